"""The page of the ε curve is what the results say, and the committed page is what the committed results say."""

import re
from pathlib import Path
from statistics import fmean

import pytest

from made_results import result
from tamedit_paper.curve.cells import FREE, HARDER, all_cells, nonprivate, private, untuned, utility_cells
from tamedit_paper.curve.figure import draw_curve
from tamedit_paper.curve.homes import homes_table
from tamedit_paper.curve.page import NOTES, PAGE, utility_text, write_utility
from tamedit_paper.curve.tables import run_table
from tamedit_paper.grid.cells import Cell, Public
from tamedit_paper.grid.measures import Runs, metric
from tamedit_paper.grid.results import Result, save
from tamedit_paper.tables.render import markdown

ROOT = Path(__file__).parents[2]
GAINS = ("point_RMSE", "CRPS")


def plausible(name: str, seed: int) -> Result:
    """A run whose error falls with ε, aware a little below vanilla."""
    cell = Cell.parse(name)
    cost = {"untuned": 0.28, "non-dp": 0.22}.get(cell.arm, 0.22 + 0.05 / (cell.epsilon or 1))
    cost += 0.004 * (cell.tightness == "off") + 0.03 * (cell.anchor == "none") + 0.01 * (cell.unit == "series")
    scatter = 0.0 if cell.arm == "untuned" else 0.001 * (seed - 1)
    values = {f"{task} CRPS": cost + scatter + 0.01 * (task == "forecast") for task in ("imputation", "forecast")}
    bands = {f"{task} coverage90": 0.9 for task in ("imputation", "forecast")}
    free = {f"{task} CRPS": 0.31 for task in ("imputation", "forecast")}
    return result(name, seed, model=values | bands, free=free)


@pytest.fixture(scope="module")
def whole() -> Runs:
    return Runs({name: [plausible(name, seed) for seed in range(3)] for name in all_cells()})


def test_a_row_says_its_unit_and_what_it_costs_for_others(whole: Runs) -> None:
    text = markdown(run_table(utility_cells("curve"), whole, "ideal"), whole)
    rows = text.splitlines()[2:]
    assert rows[0].startswith("| aware | anchored | public model | 8 per home-week | 1,876 / 26,635 / – |")
    assert rows[0].endswith("**0.226 ± 0.002** | 1.000 | **0.236 ± 0.002** | 90.00 % | 90.00 % | 3 |")
    assert sum("per whole home" in line for line in rows) == 12
    assert sum("∞, no unit protected" in line for line in rows) == 7
    assert sum("0, no private data used" in line for line in rows) == 5
    assert [line.split(" | ")[0] for line in rows if "(free)" in line] == [
        "| linear interpolation (free)",
        "| seasonal naive (free)",
        "| seasonal mean (free)",
        "| free fill (free)",
        "| free fill + Gaussian (free)",
        "| draws from the same hour (free)",
    ]
    heavy = markdown(run_table(utility_cells("heavy")[:12], whole, "ideal-heavy"), whole)
    assert "| vanilla | paper's | random weights | 1,876 per window, σ = 0.1 | 1,876 / 26,635 / – |" in heavy
    assert "σ = 0.1: ε = 1,876 for a window, 26,635 for a reading (δ = 1e-5)." in heavy


def test_a_guess_without_a_band_has_no_coverage() -> None:
    name = utility_cells("curve")[0]
    one = result(name)
    for task in one.evaluation["tasks"].values():
        task["seasonal_naive"]["z"]["coverage90"] = None
    text = markdown(run_table([name], Runs({name: [one]}), "ideal"), Runs({name: [one]}))
    (line,) = (line for line in text.splitlines() if "seasonal naive" in line)
    assert line.endswith("| 1.000 † | – | – | – |")


def test_the_whole_page(whole: Runs) -> None:
    text = utility_text(whole, "laptop", "This did not help.")
    assert (
        "40 of 40 cells of `curve` (120 runs), 40 of 40 cells of `curve:fleet` (120 runs), 24 of 24 cells of `heavy`"
        in text
    )
    assert "not yet run" not in text.partition("## What it must show")[2].partition("| target")[2]
    assert "(not run)" not in text
    assert "## What was tried\n\nThis did not help.\n" in text
    assert (
        "- `ideal`, 16 pairs: 16 better.\n- `fleet`, 16 pairs: 16 better.\n- `ideal-heavy`, 6 pairs: 6 better." in text
    )
    assert (
        "| aware | anchored | public model | 8 per home-week | 93 ± 0 % | 92 ± 0 % | 93 ± 0 % | 92 ± 0 % | 3 |" in text
    )
    assert "Not to be compared" not in text
    assert utility_text(whole, "laptop", "This did not help.") == text


def test_gains_over_homes_are_those_of_the_hardest_guess_and_of_every_seed() -> None:
    name = private("ideal", "aware", 8)

    def run(seed: int, low: float) -> Result:
        easy, hard = ({"difference": d, "low": low + d - 0.1, "high": d + 0.1} for d in (0.5, 0.1))
        found = {"seasonal_naive": dict.fromkeys(GAINS, easy), HARDER: dict.fromkeys(GAINS, hard)}
        made = plausible(name, seed)
        return made.model_copy(
            update={"evaluation": made.evaluation | {"gains": dict.fromkeys(("imputation", "forecast"), found)}}
        )

    sure = Runs({name: [run(0, 0.03), run(1, 0.02)]})
    (line,) = homes_table([name], sure).splitlines()[2:]
    assert line.count("**+0.100 [+0.020, +0.200]**") == 4
    assert line.endswith("| 2 |")
    (line,) = homes_table([name], Runs({name: [run(0, 0.03), run(1, -0.02)]})).splitlines()[2:]
    assert line.count("| +0.100 [-0.020, +0.200] |") >= 2
    assert "**" not in line
    assert homes_table([name], Runs({name: [plausible(name, 0)]})) == ""
    earlier = run(0, 0.03)
    gains = {task: {"free_fill": one[HARDER]} for task, one in earlier.evaluation["gains"].items()}
    earlier = earlier.model_copy(update={"evaluation": earlier.evaluation | {"gains": gains}})
    assert homes_table([name], Runs({name: [earlier]})) == "", "made before the hardest guess was recorded"
    assert "### Would it hold for other homes?" in utility_text(sure, "laptop", "")


def test_the_page_without_any_result() -> None:
    text = utility_text(Runs({}), "laptop", "")
    assert "0 of 40 cells of `curve` (0 runs)" in text
    assert "## What was tried" not in text
    assert "](" not in text, "nothing to show, no link"
    assert text.count("\nnot yet run\n") == 3  # ideal, and both beds of heavy tails
    assert "(`fleet`)" not in text


def test_png_and_svg_of_the_curve(whole: Runs, tmp_path: Path) -> None:
    png, svg = draw_curve(whole, "ideal", tmp_path)
    assert (png.name, svg.name) == ("curve-ideal.png", "curve-ideal.svg")
    assert png.read_bytes().startswith(b"\x89PNG")
    text = svg.read_text(encoding="utf-8")
    for said in (
        "a home-week, anchored",
        "a home-week, the paper",
        "a whole home, anchored",
        "DP-aware",
        "free fill",
        "∞",
    ):
        assert said in text
    assert text.count("public model alone") == 2


def test_a_curve_is_drawn_from_what_is_there(tmp_path: Path) -> None:
    name = private("ideal", "vanilla", 3)
    svg = draw_curve(Runs({name: [plausible(name, 0)]}), "ideal", tmp_path)[1].read_text(encoding="utf-8")
    assert "a whole home" not in svg
    assert "public model" not in svg
    plain = nonprivate("ideal", "vanilla")
    assert draw_curve(Runs({plain: [plausible(plain, 0)]}), "ideal", tmp_path / "none") == []


def test_files_are_written_and_linked(tmp_path: Path) -> None:
    for name in (private("ideal", "aware", 8), nonprivate("ideal", "aware")):
        save(plausible(name, 0), tmp_path / "results")
    out = tmp_path / "docs"
    out.mkdir()
    (out / NOTES).write_text("By hand.\n", encoding="utf-8")
    paths = write_utility(tmp_path / "results", "laptop", out)
    assert len(paths) == 3
    assert all(path.exists() for path in paths)
    text = (out / PAGE).read_text(encoding="utf-8")
    assert "By hand." in text
    assert "2 of 40 cells of `curve` (2 runs)" in text
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (out / target).exists(), target
    before = {path: path.read_bytes() for path in paths}
    write_utility(tmp_path / "results", "laptop", out)
    assert {path: path.read_bytes() for path in paths} == before


def test_the_committed_page_is_what_the_committed_results_say() -> None:
    docs, results = ROOT / "docs", ROOT / "results" / "laptop"
    if not (docs / PAGE).exists():
        pytest.skip("no page was made yet")
    notes = docs / NOTES
    said = notes.read_text(encoding="utf-8") if notes.exists() else ""
    remedy = "the page is older than the results: tamedit reproduce curve --tables --out paper/docs"
    runs = Runs.load(results, all_cells(), "laptop")
    assert (docs / PAGE).read_text(encoding="utf-8") == utility_text(runs, "laptop", said), remedy


def test_the_readme_shows_the_committed_results() -> None:
    """CRPS of imputation and forecasts, and the number of runs, by row."""
    shown = {
        "free: the fill with a Gaussian around it": (untuned("ideal", "aware"), FREE),
        "free: draws from the same hour": (untuned("ideal", "aware"), HARDER),
        "a model of simulated homes, no private data": (untuned("ideal", "aware"), "model"),
        "a model of one public household, no private data": (untuned("ideal", "aware", public="household"), "model"),
        "from random weights at ε = 8 per home-week": (private("ideal", "aware", 8, public=""), "model"),
    }
    runs = Runs.load(ROOT / "results" / "laptop", all_cells(), "laptop")
    text = (ROOT.parent / "README.md").read_text("utf-8")
    rows = re.findall(r"^\| (.*) \| (0\.\d{3}) \| (0\.\d{3}) \| (\d) \|$", text, re.M)
    assert len(rows) >= 8
    beginning: Public = "simulated"
    for name, *numbers, count in rows:
        beginning = "household" if "public household" in name else beginning
        same = {
            "the same, tuned at ε = 8 per home-week": (private("ideal", "aware", 8, public=beginning), "model"),
            "the same, tuned without privacy": (nonprivate("ideal", "aware", public=beginning), "model"),
        }
        cell, method = {**shown, **same}[name]
        for task, number in zip(("imputation", "forecast"), numbers, strict=True):
            values = runs.values(cell, metric(task, "CRPS", method)).values()
            assert number == f"{fmean(values):.3f}", (name, task)
            assert int(count) == len(values), name
