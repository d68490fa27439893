"""The page is what the results say, and the committed page is what the committed results say."""

import re
from pathlib import Path

import pytest

from made_results import result
from tamedit_paper.claims.page import latex_text, load_runs, page_text, stem, write_document
from tamedit_paper.claims.page_text import settings_text
from tamedit_paper.curve.page import PAGE as CURVE_PAGE
from tamedit_paper.grid.measures import Runs
from tamedit_paper.grid.recipes import EFFORT
from tamedit_paper.grid.results import save
from tamedit_paper.tables.labels import FIGURES, SOURCES, TABLES, cells_of
from tamedit_paper.tables.printed import NOTES as CONTRADICTIONS

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def whole() -> Runs:
    return Runs({cell: [result(cell, seed) for seed in range(3)] for cell in cells_of("all")})


def test_the_page_has_every_table_figure_and_contradiction(whole: Runs) -> None:
    text = page_text(whole, "laptop", "Because.")
    for label in (*TABLES, *FIGURES):
        assert f"`{label}`" in text
    for note in CONTRADICTIONS:
        assert note.text in text
    assert "## What was found\n\nBecause.\n" in text
    assert "34 of 34 cells have been run, 102 runs in all, at most 3 of a cell" in text
    assert "not yet run" not in text.partition("## Tables")[0].partition("| claim")[2]
    assert page_text(whole, "laptop", "Because.") == text


def test_the_page_without_any_result() -> None:
    text = page_text(Runs({}), "laptop", "")
    assert "0 of 34 cells have been run" in text
    assert "## What was found" not in text
    assert text.count("\nnot yet run\n") == len(FIGURES)
    assert re.search(r"Of \d+ claims: \d+ not yet run\.", text)


def test_settings_are_those_of_the_scale() -> None:
    text = settings_text("laptop")
    assert f"| training steps | {EFFORT['laptop'].training['steps']} | 20000 |" in text
    assert f"| width | {EFFORT['laptop'].network['width']} | 256 |" in text
    assert "| training steps | 20000 | 20000 |" in settings_text("paper")


@pytest.mark.parametrize("source", SOURCES)
def test_files_are_written_and_linked(tmp_path: Path, source: str) -> None:
    save(result(f"{source}/non-dp"), tmp_path / "results")
    out = tmp_path / "docs"
    out.mkdir()
    (out / f"{stem(source)}-notes.md").write_text("By hand.\n", encoding="utf-8")
    (out / "reproduction.md").write_text("The first page.\n", encoding="utf-8")
    (out / CURVE_PAGE).write_text("Made by `tamedit reproduce curve`.\n", encoding="utf-8")
    for other in SOURCES:  # each page links to the other
        (out / f"{stem(other)}.md").touch()
    paths = write_document(tmp_path / "results", "laptop", out, source)
    assert all(path.exists() for path in paths)
    text = (out / f"{stem(source)}.md").read_text(encoding="utf-8")
    assert "By hand." in text
    assert ("## The regime" in text) is (source == "household")
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (out / target).exists(), target
    before = {path: path.read_bytes() for path in paths}
    write_document(tmp_path / "results", "laptop", out, source)
    assert {path: path.read_bytes() for path in paths} == before


def test_all_tables_make_one_latex_document(whole: Runs) -> None:
    text = latex_text(whole)
    assert text.startswith(r"\documentclass")
    assert text.endswith("\\end{document}\n")
    assert text.count("{") == text.count("}")
    assert [label for label in TABLES if rf"\label{{{label}}}" not in text] == []


@pytest.mark.parametrize("source", SOURCES)
def test_the_committed_page_is_what_the_committed_results_say(source: str) -> None:
    docs, results = ROOT / "docs", ROOT / "results" / "laptop"
    page, notes = docs / f"{stem(source)}.md", docs / f"{stem(source)}-notes.md"
    if not page.exists():
        pytest.skip("this page was not made yet")
    runs = load_runs(results, "laptop", source)
    remedy = f"the page is older than the results: tamedit reproduce all --tables --source {source} --out paper/docs"
    assert page.read_text(encoding="utf-8") == page_text(runs, "laptop", notes.read_text(encoding="utf-8"), source), (
        remedy
    )
    assert (docs / stem(source) / "tables.tex").read_text(encoding="utf-8") == latex_text(runs, source), remedy
