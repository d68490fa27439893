"""The paper's numbers stand in the paper, and in the places that our tables give them."""

import re
from pathlib import Path

import pytest

from tamedit_paper.tables.labels import TABLES, labels, table
from tamedit_paper.tables.printed import NOTES, ROWS, gains, marked, notes_of, printed, printed_reductions

PAPER = Path(__file__).parents[4] / "shared" / "paper" / "dp-aware-adaln-zero.tex"
NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?%?|--")


@pytest.fixture(scope="module")
def source() -> str:
    if not PAPER.exists():
        pytest.skip("the paper's source is not on this machine")
    return PAPER.read_text(encoding="utf-8")


def tabular(source: str, label: str) -> list[list[str]]:
    """The numbers of every row of the table that carries a label, with the dashes."""
    at = source.index(f"\\label{{{label}}}")
    text = source[source.rindex("\\begin{table", 0, at) : at].partition("\\midrule")[2].partition("\\bottomrule")[0]
    text = re.sub(r"\\multirow\{2\}\{\*\}\{[\d.]+\}", "", text)
    text = re.sub(r"\$[^$]*[A-Z]_0[^$]*\$", "", text).replace("\\%", "%")
    text = re.sub(r"\\addlinespace\[[^]]*\]", "", text)
    return [NUMBER.findall(line) for line in text.split("\\\\")]


@pytest.mark.parametrize("label", TABLES)
def test_every_published_row_is_a_row_of_the_source(label: str, source: str) -> None:
    rows = tabular(source, label)
    width = len(table(label).columns)
    for key, numbers in ROWS[label].items():
        own = numbers.split()
        assert any(row[-width:] == own for row in rows), f"{label}, {key}: {own} is not in {rows}"
    filled = [row for row in rows if len(row) >= width]
    assert len(filled) == len(ROWS[label]), "a row of the paper is missing"


@pytest.mark.parametrize("label", TABLES)
def test_published_rows_fit_our_table(label: str) -> None:
    found = table(label)
    named = {row.key for row in found.rows}
    assert set(ROWS[label]) <= named
    assert all(len(printed(label, key)) == len(found.columns) for key in ROWS[label])


def test_rows_that_the_paper_lacks_have_no_numbers() -> None:
    assert printed("tab:clip-norm", "free: free_fill") == ()
    assert printed("tab:none", "Non-DP") == ()


def test_notes_point_at_numbers_that_are_there() -> None:
    for note in NOTES:
        assert set(note.labels) <= set(labels())
        for label, row, place in note.numbers:
            assert label in note.labels
            assert len(printed(label, row)) > place, (label, row)


def test_a_contradiction_is_shown_with_every_number_it_concerns() -> None:
    assert printed("tab:ablation-forecast", "vanilla")[2] == "0.723"
    assert printed("tab:main-results-extended", "DP-vanilla σ=0.05")[4] == "0.643"
    assert marked("tab:ablation-forecast", "vanilla", 2)
    assert marked("tab:main-results-extended", "DP-vanilla σ=0.05", 4)
    assert not marked("tab:main-results-extended", "DP-vanilla σ=0.05", 3)
    assert any("0.723" in note.text for note in notes_of("tab:ablation-forecast"))


def test_effects_as_the_paper_prints_them() -> None:
    (imputation, forecast) = gains("tab:main-results-bts", [("DP-vanilla", "DP-aware")], (0, 3))
    assert (round(imputation, 3), round(forecast, 3)) == (0.282, 0.290)
    assert printed_reductions(9) == pytest.approx((0.117, 0.111, 0.160, 0.150))
    assert printed_reductions(8) == pytest.approx((0.051, 0.133, 0.104, 0.170))


def test_the_notes_compute() -> None:
    def number(label: str, row: str, place: int) -> float:
        return float(printed(label, row)[place].rstrip("%"))

    norms, main = "tab:grad-norms-multi-m", "tab:main-results-extended"
    ratio = number(norms, "DP-aware σ=0.03", 7) / number(norms, "DP-vanilla σ=0.03", 7)
    assert round(ratio, 3) == 0.941
    assert number(norms, "DP-aware σ=0.03", 8) == 0.949

    def gain(sigma: str, place: int) -> int:
        return round(
            100 * (1 - number(main, f"DP-aware σ={sigma}", place) / number(main, f"DP-vanilla σ={sigma}", place))
        )

    assert [gain("0.1", place) for place in (0, 3)] == [53, 59]
    assert [gain("0.03", place) for place in (0, 3)] == [41, 47]
    assert max(gain(sigma, 3) for sigma in ("0.03", "0.05", "0.2")) < 59

    def variance(label: str, row: str) -> float:
        return number(label, row, 1) ** 2 / (1 - number(label, row, 3))

    assert round(variance("tab:forecasting-full", "Non-DP"), 2) == 0.31
    assert round(variance("tab:forecasting-full", "DP-vanilla σ=0.03"), 2) == 0.53
    assert round(variance("tab:inter-full", "Non-DP"), 1) == 1.5
    assert round(variance("tab:inter-full", "DP-vanilla σ=0.03"), 1) == 4.7
