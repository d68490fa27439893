"""HTML from the standard library: whatever is not marked as `Html` is escaped, so no name in the data can become markup.

The page fetches nothing and runs nothing: styles are inline, figures are data URIs, and a content security policy forbids
everything else.
"""

from collections.abc import Iterable, Sequence
from html import escape
from typing import TypeAlias

from tamedit.report.style import CSS

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
VOID = {"meta", "link", "img", "br"}


class Html(str):
    """Markup that is ready; any other string is text."""

    __slots__ = ()


Child: TypeAlias = "Html | str | None"


def join(children: Iterable[Child], between: str = "") -> Html:
    """Several pieces in a row; None is nothing."""
    return Html(
        between.join(child if isinstance(child, Html) else _text(child) for child in children if child is not None)
    )


def _text(words: str) -> str:
    """Escaped, and without the half characters of a path that is not UTF-8."""
    return escape(words.encode("utf-8", "replace").decode("utf-8"))


def tag(name: str, *children: Child, **attributes: str) -> Html:
    """One element: `tag("td", "3", class_="number")`. An underscore at the end of an attribute is dropped, others are dashes."""
    written = "".join(f' {key.rstrip("_").replace("_", "-")}="{_text(value)}"' for key, value in attributes.items())
    if name in VOID:
        return Html(f"<{name}{written}>")
    return Html(f"<{name}{written}>{join(children)}</{name}>")


def paragraph(*children: Child, **attributes: str) -> Html:
    return tag("p", *children, **attributes)


def listed(items: Iterable[Child]) -> Html:
    """A bulleted list."""
    return tag("ul", *(tag("li", item) for item in items))


def figure(source: str, alt: str, caption: str) -> Html:
    """A picture (a data URI) in a frame that scrolls sideways where the screen is narrow."""
    frame = tag("div", tag("img", src=source, alt=alt), class_="wide", tabindex="0", role="group", aria_label=caption)
    return tag("figure", frame, tag("figcaption", caption))


def table(
    caption: str, heads: Sequence[Child], rows: Iterable[Sequence[Child]], text: Iterable[int] = (), own: int = -1
) -> Html:
    """A table whose first column names the rows; columns in `text` hold words; `own` is the row to point at."""
    words = {0, *text}
    top = tag("tr", *(tag("th", one, scope="col", class_=_kind(at, words)) for at, one in enumerate(heads)))
    body = [
        tag(
            "tr",
            tag("th", row[0], scope="row"),
            *(_cell(at, cell, words) for at, cell in enumerate(row) if at),
            **({"class_": "own"} if place == own else {}),
        )
        for place, row in enumerate(rows)
    ]
    made = tag("table", tag("caption", tag("span", caption)), tag("thead", top), tag("tbody", *body))
    return tag("div", made, class_="wide", tabindex="0", role="group", aria_label=caption)


def _cell(at: int, cell: Child, words: set[int]) -> Html:
    return tag("td", "–" if cell is None else cell, class_=_kind(at, words))


def _kind(at: int, words: set[int]) -> str:
    return "text" if at in words else "number"


def head(name: str, unit: str) -> Html:
    """The head of a column, its unit below it."""
    return join([name, " ", tag("span", f"({unit})", class_="unit")])


def data(value: float, shown: str) -> Html:
    """A number as people read it, with all of its digits for programs."""
    return tag("data", shown, value=repr(float(value)))


def section(name: str, title: str, *children: Child) -> Html:
    """A part of the page that the table of contents can lead to."""
    return tag("section", tag("h2", title, id=f"{name}-title"), *children, id=name, aria_labelledby=f"{name}-title")


def page(title: str, header: Html, sections: Sequence[tuple[str, str, Html]], footer: Child) -> str:
    """The whole document; `sections` are (name, title, content) in order."""
    contents = tag("nav", tag("ol", *(tag("li", tag("a", said, href=f"#{name}")) for name, said, _ in sections)))
    numbered = [section(name, f"{at}. {said}", body) for at, (name, said, body) in enumerate(sections, 1)]
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name_="robots", content="noindex"),
        tag("title", title),
        tag("link", rel="icon", href="data:,"),
        Html(f"<style>{CSS}</style>"),
    )
    main = tag("main", *numbered)
    body = tag("body", tag("header", header, contents), main, tag("footer", footer))
    return "<!DOCTYPE html>\n" + tag("html", head, body, lang="en") + "\n"
