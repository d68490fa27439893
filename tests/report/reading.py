"""Reading a page back, with the standard library."""

import base64
from dataclasses import dataclass, field
from html.parser import HTMLParser
from xml.etree import ElementTree

HOSTILE = '<script>alert("x")</script>&$a_b$'
VOID = {"meta", "link", "img", "br"}


def spaced(text: str) -> str:
    """As a browser shows it: any white space is one space."""
    return " ".join(text.split())


@dataclass
class Table:
    caption: str = ""
    heads: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)
    values: list[list[float]] = field(default_factory=list)  # of <data>, row by row


class Page(HTMLParser):
    """Elements, sections, tables and pictures of a page; a tag that is not closed is an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.sections: dict[str, str] = {}
        self.tables: list[Table] = []
        self.words = ""
        self._section = ""
        self.feed(text)
        self.close()
        assert self.open == []
        self.words = spaced(self.words)
        self.sections = {name: spaced(text) for name, text in self.sections.items()}

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        own = {key: value or "" for key, value in attributes}
        self.tags.append((name, own))
        if name not in VOID:
            self.open.append(name)
        if name == "section":
            self._section = own["id"]
            self.sections[self._section] = ""
        elif name == "table":
            self.tables.append(Table())
        elif name == "tr" and "tbody" in self.open:
            self.tables[-1].rows.append([])
            self.tables[-1].values.append([])
        elif name in ("th", "td") and self.tables:
            (self.tables[-1].rows[-1] if "tbody" in self.open else self.tables[-1].heads).append("")
        elif name == "data":
            self.tables[-1].values[-1].append(float(own["value"]))

    def handle_endtag(self, name: str) -> None:
        assert self.open.pop() == name
        if name == "section":
            self._section = ""

    def handle_data(self, text: str) -> None:
        if "style" in self.open:
            return
        self.words += text
        if self._section:
            self.sections[self._section] += text
        if "caption" in self.open:
            self.tables[-1].caption += text
        elif "th" in self.open or "td" in self.open:
            (self.tables[-1].rows[-1] if "tbody" in self.open else self.tables[-1].heads)[-1] += text

    def of(self, name: str) -> list[dict[str, str]]:
        """Attributes of every element of a name."""
        return [own for tag, own in self.tags if tag == name]

    def pictures(self) -> list[ElementTree.Element]:
        """Every figure's SVG, parsed."""
        found = []
        for own in self.of("img"):
            kind, content = own["src"].split(",", 1)
            assert kind == "data:image/svg+xml;base64"
            found.append(ElementTree.fromstring(base64.b64decode(content)))
        return found
