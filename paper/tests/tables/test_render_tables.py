"""Numbers, intervals, bold print, gaps and marks in Markdown and LaTeX."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from made_results import result, runs
from tamedit.errors import UserError
from tamedit.evaluation.intervals import over_seeds
from tamedit_paper.grid.measures import Runs
from tamedit_paper.grid.results import save
from tamedit_paper.tables.filled import fill
from tamedit_paper.tables.labels import TABLES, cells_of, table
from tamedit_paper.tables.numbers import epsilon, shown
from tamedit_paper.tables.render import latex, markdown, table_text

VANILLA, AWARE = "household/vanilla/sigma=0.05", "household/aware/sigma=0.05/medium/tanh"
CONDITION = f"{AWARE}/condition-only"
MODULATION = f"{AWARE}/modulation-only"


def lines_of(text: str) -> list[list[str]]:
    """The places of every row of a Markdown table."""
    return [[part.strip() for part in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]


def row_of(text: str, *starts: str) -> list[str]:
    """The first row that begins with these words."""
    return next(
        row for row in lines_of(text) if all(own.startswith(start) for own, start in zip(row, starts, strict=False))
    )


@pytest.mark.parametrize(
    ("values", "percent", "said"),
    [
        ([1.0, 1.1, 1.2], False, "1.100 ± 0.248"),  # 4.3027 · 0.1 / √3
        ([0.4], False, "0.400"),
        ([0.5, 0.5, 0.5], False, "0.500"),
        ([8.0e-4, 9.0e-4, 10.0e-4], False, "(9.00 ± 2.48)e-4"),
        ([-0.001], False, "-1.00e-3"),
        ([123456.0], False, "1.23e5"),
        ([0.05, 0.06], True, "5.500 ± 6.353 %"),  # 12.706 · 0.7071 / √2
        ([58.44], False, "58.44"),
        ([0.0], False, "0.000"),
    ],
)
def test_numbers_are_readable(values: Sequence[float], percent: bool, said: str) -> None:
    assert shown(over_seeds(values), percent) == said


def test_epsilon_is_readable() -> None:
    assert [epsilon(value) for value in (None, 0.5, 7.999, 1876.24, 300026.4)] == ["∞", "0.5", "8", "1,876", "300,026"]


def test_means_intervals_seeds_and_the_papers_number() -> None:
    text = markdown(table("ablation-forecast"), runs({VANILLA: [1.0, 1.1, 1.2], AWARE: [0.4]}))
    vanilla, full = row_of(text, "DP-vanilla"), row_of(text, "DP-aware (full)")
    assert vanilla[3:] == ["1.000<br>*1.00*", "1.100 ± 0.248<br>*0.567*", "1.000<br>*0.723 ‡*", "3"]
    assert full[4] == "0.400 †<br>*0.423*"
    assert full[-1] == "1"
    assert "0.723" in text.partition("‡ DP-vanilla")[2]


def test_a_run_that_is_not_there_says_so() -> None:
    text = markdown(table("ablation-forecast"), runs({VANILLA: [1.0, 1.1]}))
    missing = row_of(text, "DP-aware (only c")
    assert missing[3:] == ["–  (not run)<br>*0.95*", "–  (not run)<br>*0.510*", "–  (not run)<br>*0.691*", "0"]
    assert row_of(markdown(table("ablation-forecast"), Runs({})), "free fill (free)")[-2] == "–  (not run)"


def test_a_ratio_whose_partner_is_missing_is_not_run() -> None:
    text = markdown(table("tightness-forecast"), runs({AWARE: [1.0, 1.1]}))
    assert row_of(text, "Medium")[2].startswith("–  (not run)")
    assert row_of(text, "Medium")[3].startswith("1.050 ± 0.635")


def test_where_a_number_cannot_be_there_is_a_dash() -> None:
    norms = markdown(table("grad-norms-multi-m"), runs({VANILLA: [1.0], AWARE: [1.0]}))
    assert row_of(norms, "0.05", "DP-vanilla")[5] == "–"
    assert row_of(norms, "0.05", "DP-aware")[5] == "1.000 †<br>*0.984*"
    assert row_of(markdown(table("ablation-forecast"), runs({VANILLA: [1.0]})), "free fill (free)")[3] == "–"


def bold(label: str, made: Runs, column: str) -> list[str]:
    """The rows in bold in a column."""
    found = table(label)
    place = [one.key for one in found.columns].index(column)
    return [line.row.key for line in fill(found, made) if line.entries[place].bold]


RMSE = "forecast point_RMSE"
LONG = "tab:forecasting-full"


@pytest.mark.parametrize(
    ("vanilla", "aware", "wins"),
    [
        ([1.0, 2.0, 3.0], [0.9, 1.9, 2.9], ["DP-aware σ=0.05"]),  # the seeds scatter, the difference does not
        ([0.9, 1.9, 2.9], [1.0, 2.0, 3.0], ["DP-vanilla σ=0.05"]),
        ([1.0, 1.1, 1.2], [0.9, 1.2, 1.0], []),  # better on average, within the scatter
        ([1.0, 1.1, 1.2], [1.0, 1.1, 1.2], []),
        ([2.0], [1.0], []),  # one seed
        ([2.0, 2.0, 2.0], [], []),
    ],
)
def test_bold_only_where_the_paired_interval_excludes_zero(
    vanilla: list[float], aware: list[float], wins: list[str]
) -> None:
    assert bold(LONG, runs({VANILLA: vanilla, AWARE: aware}), RMSE) == wins


def test_seeds_that_only_one_arm_has_do_not_count() -> None:
    made = Runs(
        {
            VANILLA: [result(VANILLA, seed, model={RMSE: 2.0}) for seed in (0, 1)],
            AWARE: [result(AWARE, seed, model={RMSE: 1.0}) for seed in (1, 2)],
        }
    )
    assert bold(LONG, made, RMSE) == []


def test_more_is_better_for_r2() -> None:
    made = runs({VANILLA: [0.5, 0.6, 0.7], AWARE: [0.6, 0.7, 0.8]}, "forecast R2")
    assert bold(LONG, made, "forecast R2") == ["DP-aware σ=0.05"]


def test_the_best_of_many_must_beat_every_rival() -> None:
    made = {VANILLA: [4.0, 4.1, 4.2], CONDITION: [3.0, 3.1, 3.2], MODULATION: [2.0, 2.1, 2.2], AWARE: [1.0, 1.1, 1.2]}
    assert bold("ablation-forecast", runs(made), RMSE) == ["full"]
    assert bold("ablation-forecast", runs(made | {MODULATION: [1.0, 1.2, 1.1]}), RMSE) == []
    assert bold("ablation-forecast", runs({**made, MODULATION: []}), RMSE) == []


def test_rho_is_bold_where_its_interval_lies_below_one() -> None:
    light = {AWARE: (0.8, 0.81, 0.82), VANILLA: (1.0, 1.0, 1.0)}
    made = Runs(
        {cell: [result(cell, seed, norms={"total": v}) for seed, v in enumerate(own)] for cell, own in light.items()}
    )
    assert bold("grad-norms-multi-m", made, "ρ_emp p99") == ["DP-aware σ=0.05"]
    assert bold("grad-norms-multi-m", made, "ρ_cond p99") == []


def test_bold_print_in_both_forms() -> None:
    made = runs({VANILLA: [1.0, 2.0, 3.0], AWARE: [0.5, 1.5, 2.5]})
    assert row_of(markdown(table(LONG), made), "DP-aware", "0.05")[3] == "**1.500 ± 2.484**<br>*0.423*"
    assert r"\makecell{\textbf{1.500 $\pm$ 2.484} \\ \textit{0.423}}" in latex(table(LONG), made)


def test_epsilon_stands_beside_every_sigma() -> None:
    made = runs({VANILLA: [1.0], "household/aware/sigma=0.2/medium/tanh": [1.0]})
    text = markdown(table("main-results-extended"), made)
    assert row_of(text, "DP-vanilla", "0.05")[1] == "0.05 (ε 1,876 / 26,635)"
    assert row_of(text, "DP-vanilla", "0.03")[1] == "0.03"  # nothing was run at 0.03
    assert "σ = 0.05: ε = 1,876 for a window, 26,635 for a reading" in text
    heads = lines_of(markdown(table("boundop-pp-forecast"), made))[0]
    assert heads[1] == "σ = 0.05 (ε 1,876 / 26,635):<br>point_RMSE ↓"
    assert "ε" not in markdown(table("nonprivate-expressiveness"), runs({"household/non-dp": [1.0]}))


def test_shares_are_percent_and_baselines_come_from_any_run() -> None:
    made = Runs({VANILLA: [result(VANILLA, seed, free={"imputation point_MAPE": 0.05}) for seed in (0, 1)]})
    row = row_of(markdown(table("main-results-extended"), made), "seasonal naive (free)")
    assert row[3] == "5.000 %"
    operators = markdown(table("tightness-interp"), made)  # the table's own cells were not run, its data was
    assert row_of(operators, "seasonal naive (free)")[3] == "1.000"


@pytest.mark.parametrize("label", TABLES)
def test_latex_is_sound(label: str) -> None:
    made = Runs({cell: [result(cell, seed) for seed in (0, 1)] for cell in cells_of(label)[::2]})
    text = latex(table(label), made)
    assert text.count("{") == text.count("}")
    assert text.count(r"\begin") == text.count(r"\end") == 2
    assert len(re.findall(r"(?<!\\)\$", text)) % 2 == 0
    assert text.isascii(), sorted({letter for letter in text if not letter.isascii()})
    assert rf"\label{{{label}}}" in text
    inner = re.sub(r"\\makecell\{(.*?) \\\\ (\\textit\{.*?\})\}", r"\1 \2", text)
    width = len(table(label).leads) + len(table(label).columns) + 1
    kinds = re.search(r"\\begin\{tabular\}\{([lc|]+)\}", text)
    assert kinds
    assert len(kinds[1].replace("|", "")) == width
    rows = [line for line in inner.splitlines() if line.endswith(r"\\")]
    assert len(rows) > len(table(label).rows)
    for row in rows:
        spanned = sum(int(span) - 1 for span in re.findall(r"\\multicolumn\{(\d+)\}", row))
        assert len(re.findall(r"(?<!\\)&", row)) + 1 + spanned == width, row


@pytest.mark.parametrize("label", TABLES)
def test_markdown_rows_are_equally_wide(label: str) -> None:
    made = Runs({cell: [result(cell, seed) for seed in (0, 1)] for cell in cells_of(label)})
    rows = lines_of(markdown(table(label), made))
    assert {len(row) for row in rows} == {len(table(label).leads) + len(table(label).columns) + 1}
    assert len(rows) == len(table(label).rows) + 2
    assert not any("not run" in part for row in rows for part in row)


def test_a_table_from_files(tmp_path: Path) -> None:
    for seed, value in enumerate((1.0, 1.1, 1.2)):
        save(result(VANILLA, seed, model={RMSE: value}), tmp_path)
        save(result(AWARE, seed, model={RMSE: value}, norms={"total": 0.5}), tmp_path)
    save(result(AWARE, 3, version=-1), tmp_path)  # of older numbers
    text = table_text("tightness-forecast", tmp_path, "laptop")
    assert row_of(text, "Medium")[2:4] == ["0.500<br>*0.87 ‡*", "1.100 ± 0.248<br>*0.423*"]
    assert row_of(text, "Medium")[-1] == "3"
    assert table_text("tightness-forecast", tmp_path, "laptop", "latex").startswith(r"\begin{table*}")
    assert "not run" in table_text("tightness-forecast", tmp_path, "smoke")
    with pytest.raises(UserError, match="markdown or latex"):
        table_text("tightness-forecast", tmp_path, "laptop", "html")  # type: ignore[arg-type]
