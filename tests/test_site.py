"""The documentation as a site: built strictly, each page in its navigation, every public name explained, nothing from the net."""

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import tamedit

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Strict: a link or an anchor that leads nowhere, or a page outside the navigation, fails the build (not with --quiet)."""
    place = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(place)]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True, timeout=120, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return place


class Loaded(HTMLParser):
    """What a browser fetches by itself for a page."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in {"script", "img", "iframe", "source"} and given.get("src"):
            self.addresses.append(given["src"] or "")
        if tag == "link" and given.get("rel") in {"stylesheet", "icon", "preconnect", "preload"}:
            self.addresses.append(given["href"] or "")


def loaded(html: str) -> list[str]:
    parser = Loaded()
    parser.feed(html)
    return parser.addresses


def test_every_page_stands_in_the_navigation_once() -> None:
    named = re.findall(r"^ +- .+: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), flags=re.MULTILINE)
    patterns = ("README.md", "docs/*.md", "paper/docs/*.md")
    pages = [path.relative_to(ROOT).as_posix() for pattern in patterns for path in ROOT.glob(pattern)]
    assert {page for page in pages if not page.endswith("-notes.md")} <= set(named)
    assert len(named) == len(set(named))


def test_the_reference_explains_every_public_name(site: Path) -> None:
    page = (site / "docs" / "api" / "index.html").read_text(encoding="utf-8")
    for name in tamedit.__all__:
        _, found, after = page.partition(f'id="tamedit.{name}"')
        assert found, f"docs/api.md lacks tamedit.{name}"
        first = (getattr(tamedit, name).__doc__ or "").strip().splitlines()[0]
        words = re.findall(r"\w{4,}", first)[:4]
        text = re.sub(r"<[^>]+>", " ", after.split("<h3 ")[0])
        assert all(word in text for word in words), f"the docstring of {name} is not shown"


def test_a_reader_without_a_network_sees_all_of_it(site: Path) -> None:
    assert loaded('<script src="https://x/y.js"></script><link rel="icon" href="a.png">') == ["https://x/y.js", "a.png"]
    pages = list(site.rglob("*.html"))
    assert len(pages) > 25
    for page in pages:
        for address in loaded(page.read_text(encoding="utf-8")):
            assert not address.startswith(("http:", "https:", "//")), f"{page.name} loads {address}"
    for style in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*['\"]?(https?:)?//", style.read_text(encoding="utf-8")), style.name


def test_the_search_knows_the_pages(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    places = {entry["location"] for entry in index["docs"] if "ledger" in entry["text"]}
    assert any(place.startswith("docs/privacy/") for place in places)
    assert any(place.startswith("docs/cli/") for place in places)
