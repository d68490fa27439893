"""The page of the ε curve is what the results say, and the committed page is what the committed results say."""

import re
from pathlib import Path
from statistics import fmean

import pytest

from made_curve import plausible, whole_curve
from tamedit_paper.curve.cells import curve_cells, groups, nonprivate, private, untuned
from tamedit_paper.curve.figure import draw_curve
from tamedit_paper.curve.page import NOTES, PAGE, utility_text, write_utility
from tamedit_paper.curve.tables import coverage_table, crps_table, gain_table, path_table
from tamedit_paper.grid.measures import Runs, metric
from tamedit_paper.grid.results import save

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def whole() -> Runs:
    return whole_curve()


def test_a_row_says_its_unit_and_what_it_costs_for_others(whole: Runs) -> None:
    rows = crps_table(groups()[0], whole).splitlines()[2:]
    assert [line.split(" | ")[1] for line in rows] == [
        "none used (untuned)",
        *(f"{epsilon} per home-week" for epsilon in (1, 3, 8, 8)),
        *("∞", "∞", "free", "free"),
    ]
    assert rows[3].startswith("| the shipped model | 8 per home-week | aware | 0.2910 ± 0.0012 | 0.2910 ± 0.0012 |")
    assert rows[3].endswith("| 0.808 ± 0.003 | 0.808 ± 0.003 | 26,635 / – | 3 |")
    assert "| 0.3060 † |" in rows[0]
    assert rows[-2].startswith("| **free distribution** | free | free | 0.3100 |")
    assert rows[-2].endswith("| 0.861 | 0.861 | – | – |")
    assert rows[-1].startswith("| draws from the same hour | free | free | 0.3600 |")


def test_gains_are_marked(whole: Runs) -> None:
    lines = gain_table(whole).splitlines()[2:]
    assert len(lines) == len(curve_cells())
    best = next(line for line in lines if "8 per home-week | aware" in line)
    assert best.count("**+0.0190 [+0.0165, +0.0225]**") == 9  # five tasks, and the totals of four
    bad = plausible(private("aware", 8), 0)
    worse = {"difference": -0.02, "low": -0.03, "high": -0.01}
    gains = bad.evaluation["gains"] | {"forecast": {"free_distribution": {"CRPS": worse}}}
    bad = bad.model_copy(update={"evaluation": bad.evaluation | {"gains": gains}})
    text = gain_table(Runs({private("aware", 8): [bad]}))
    assert "-0.0200 [-0.0300, -0.0100] (worse)" in text


def test_paths_and_bands(whole: Runs) -> None:
    text = path_table(whole, "long_gap")
    assert "| begins from | ε | arm | total ↓ | peak ↓ | energy score ↓ | variogram score ↓ |" in text
    assert "| free distribution | free | free | 0.3100 | 0.3100 | 0.3100 | 0.3100 |" in text
    assert "| 50.0 % / 90.0 % |" in coverage_table(whole)


def test_the_whole_page(whole: Runs) -> None:
    text = utility_text(whole, "laptop", "This did not help.")
    assert "So far 15 of 15 cells are there (41 runs)." in text
    assert "not run" not in text.replace('"–  (not run)": no result is there', "").replace("0 not run.", "")
    assert "## What was tried\n\nThis did not help.\n" in text
    assert "Not to be compared" not in text
    assert "(aware is better)" in text
    assert utility_text(whole, "laptop", "This did not help.") == text


def test_the_page_without_any_result() -> None:
    text = utility_text(Runs({}), "laptop", "")
    assert "0 of 15 cells are there (0 runs)" in text
    assert "## What was tried" not in text
    assert "](" not in text, "nothing to show, no link"
    assert "**met**" not in text


@pytest.mark.parametrize("name", curve_cells())
def test_any_single_cell_makes_a_page(name: str, tmp_path: Path) -> None:
    runs = Runs({name: [plausible(name, 0)]})
    assert "1 of 15 cells are there (1 runs)" in utility_text(runs, "laptop", "")


def test_png_and_svg_of_the_curve(whole: Runs, tmp_path: Path) -> None:
    png, svg = draw_curve(whole, tmp_path)
    assert (png.name, svg.name) == ("curve-ideal.png", "curve-ideal.svg")
    assert png.read_bytes().startswith(b"\x89PNG")
    text = svg.read_text(encoding="utf-8")
    for said in ("per home-week", "per whole home", "free distribution", "long gap", "cold start", "untuned", "∞"):
        assert said in text


def test_a_curve_is_drawn_from_what_is_there(tmp_path: Path) -> None:
    name = private("aware", 3)
    svg = draw_curve(Runs({name: [plausible(name, 0)]}), tmp_path)[1].read_text(encoding="utf-8")
    assert "per home-week" in svg
    assert "per whole home" not in svg
    plain = nonprivate("aware")
    assert draw_curve(Runs({plain: [plausible(plain, 0)]}), tmp_path / "none") == []


def test_files_are_written_and_linked(tmp_path: Path) -> None:
    for name in (private("aware", 8), nonprivate("aware")):
        save(plausible(name, 0), tmp_path / "results")
    out = tmp_path / "docs"
    out.mkdir()
    (out / NOTES).write_text("By hand.\n", encoding="utf-8")
    paths = write_utility(tmp_path / "results", "laptop", out)
    assert len(paths) == 3
    assert all(path.exists() for path in paths)
    text = (out / PAGE).read_text(encoding="utf-8")
    assert "By hand." in text
    assert "2 of 15 cells are there (2 runs)" in text
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (out / target).exists(), target
    before = {path: path.read_bytes() for path in paths}
    write_utility(tmp_path / "results", "laptop", out)
    assert {path: path.read_bytes() for path in paths} == before


def test_the_committed_page_is_what_the_committed_results_say() -> None:
    docs, results = ROOT / "docs", ROOT / "results" / "laptop"
    notes = docs / NOTES
    said = notes.read_text(encoding="utf-8") if notes.exists() else ""
    remedy = "the page is older than the results: tamedit reproduce curve --tables --out paper/docs"
    runs = Runs.load(results, curve_cells(), "laptop")
    assert (docs / PAGE).read_text(encoding="utf-8") == utility_text(runs, "laptop", said), remedy


def test_the_readme_shows_the_committed_results() -> None:
    """CRPS of four tasks, and the number of runs, by row."""
    shown = {
        "free: the free distribution": (untuned(), "free_distribution"),
        "free: draws from the same hour": (untuned(), "seasonal_draws"),
        "the shipped model, no private data": (untuned(), "model"),
        "the same, tuned at ε = 1 per home-week": (private("aware", 1), "model"),
        "the same, tuned at ε = 8 per home-week": (private("aware", 8), "model"),
        "the same, tuned at ε = 8 per whole home": (private("aware", 8, "series"), "model"),
        "the same, tuned without privacy": (nonprivate("aware"), "model"),
        "from random weights at ε = 8 per home-week": (private("aware", 8, public=""), "model"),
    }
    runs = Runs.load(ROOT / "results" / "laptop", curve_cells(), "laptop")
    if not all(runs.of(cell) for cell, _ in shown.values()):
        pytest.skip("the runs of the README's table are not all there yet")
    text = (ROOT.parent / "README.md").read_text("utf-8")
    rows = re.findall(r"^\| ([^|]*) " + 4 * r"\| (0\.\d{3}) " + r"\| (\d|–) \|$", text, re.M)
    assert {name for name, *_ in rows} == set(shown)
    for name, *numbers, count in rows:
        cell, method = shown[name]
        for task, number in zip(("imputation", "forecast", "cold_start_24", "long_gap"), numbers, strict=True):
            values = runs.values(cell, metric(task, "CRPS", method)).values()
            assert number == f"{fmean(values):.3f}", (name, task)
            assert count == (str(len(values)) if method == "model" else "–"), name
