"""The registry: which cells a table needs, in which order, and how a column is read."""

import pytest

from made_results import result
from tamedit.errors import UserError
from tamedit_paper.grid.cells import Cell
from tamedit_paper.grid.measures import (
    BASELINES,
    Runs,
    clipping,
    final_loss,
    is_current,
    metric,
    partner,
    rho,
    step_time,
)
from tamedit_paper.tables.labels import FIGURES, TABLES, cells_of, figure, table

UTILITY = [
    label
    for label in TABLES
    if label not in ("tab:grad-norms-multi-m", "tab:clipping_stats", "tab:clipping-rate", "tab:runtime-step-time")
]
VANILLA, AWARE = "household/vanilla/sigma=0.05", "household/aware/sigma=0.05/medium/tanh"


@pytest.mark.parametrize("label", TABLES)
def test_a_table_is_whole(label: str) -> None:
    found = table(label)
    assert found.label == label
    assert len({column.key for column in found.columns}) == len(found.columns)
    assert len({row.key for row in found.rows}) == len(found.rows)
    for row in found.rows:
        assert len(row.leads) == len(found.leads), row.key
        assert len(row.cells) == (len(found.columns) if row.method == "model" else 0), row.key
        assert all(Cell.parse(cell).name == cell for cell in row.cells)


@pytest.mark.parametrize("label", UTILITY)
def test_every_table_of_utility_has_all_free_baselines(label: str) -> None:
    assert [row.method for row in table(label).rows if row.method != "model"] == list(BASELINES)


def test_every_cell_has_the_papers_form() -> None:
    assert {Cell.parse(cell).anchor for cell in cells_of("all")} == {"none"}


def test_the_paper_needs_34_distinct_cells() -> None:
    paper = {cell for label in TABLES for cell in table(label).cells()}
    assert len(paper) == 34
    assert {cell for label in FIGURES for cell in figure(label).cells()} <= paper


def test_all_cells_once_and_the_most_informative_first() -> None:
    cells = cells_of("all")
    assert len(cells) == len(set(cells))
    place = cells.index
    assert place("household/aware/sigma=0.2/medium/tanh") < place(
        "household/aware/sigma=0.05/medium/tanh/condition-only"
    )
    assert place("household/aware/sigma=0.05/medium/clamp_ste") < place("etth1/non-dp")
    assert place("etth1/aware/sigma=0.1/medium/tanh") < place("household/aware/sigma=0.05/loose/tanh")
    assert set(cells) == {cell for label in (*TABLES, *FIGURES) for cell in cells_of(label)}


@pytest.mark.parametrize("label", ["tab:clip-norm", "clip-norm"])
def test_a_label_with_or_without_its_prefix(label: str) -> None:
    assert cells_of(label) == [
        "household/vanilla/sigma=0.1/clip=0.5",
        "household/aware/sigma=0.1/medium/tanh/clip=0.5",
        "household/vanilla/sigma=0.1",
        "household/aware/sigma=0.1/medium/tanh",
        "household/vanilla/sigma=0.1/clip=2",
        "household/aware/sigma=0.1/medium/tanh/clip=2",
    ]


def test_a_ratio_brings_the_run_that_it_divides_by() -> None:
    assert VANILLA in cells_of("tightness-forecast")
    assert VANILLA not in table("tightness-forecast").cells()


def test_figures_have_cells_too() -> None:
    assert cells_of("grad_norm_distribution_no-dp") == ["household/non-dp", "household/non-dp/medium/tanh"]


def test_another_stand_in_for_the_private_data() -> None:
    simulated = cells_of("all", "simulated")
    assert [cell.replace("simulated/", "household/") for cell in simulated] == cells_of("all")
    with pytest.raises(UserError, match="household, simulated"):
        cells_of("all", "etth1")


def test_an_unknown_label_is_told_all_labels() -> None:
    with pytest.raises(UserError, match=r"tab:main-results-extended.*fig:training-loss-curves"):
        cells_of("tab:no-such-table")
    with pytest.raises(UserError, match="is a figure"):
        table("training-loss-curves")
    with pytest.raises(UserError, match="is a table"):
        figure("clip-norm")


@pytest.mark.parametrize(
    ("cell", "vanilla", "plain"),
    [
        (AWARE, VANILLA, "household/non-dp"),
        (f"{AWARE}/condition-only", VANILLA, "household/non-dp"),
        ("household/aware/sigma=0.2/medium/hard_clamp", "household/vanilla/sigma=0.2", "household/non-dp"),
        (f"{AWARE}/clip=2/free", f"{VANILLA}/clip=2/free", "household/non-dp/free"),
        ("household/non-dp/tight/tanh", "household/non-dp", "household/non-dp"),
        (VANILLA, VANILLA, "household/non-dp"),
    ],
)
def test_partners_differ_in_bounds_or_in_privacy_alone(cell: str, vanilla: str, plain: str) -> None:
    assert partner(cell, "vanilla") == vanilla
    assert partner(cell, "non-dp") == plain


def test_ratios_use_the_partner_of_the_same_seed() -> None:
    found = Runs(
        {
            VANILLA: [result(VANILLA, seed, norms={"cond": value}) for seed, value in ((0, 2.0), (1, 4.0))],
            AWARE: [result(AWARE, seed, norms={"cond": 1.0}) for seed in (0, 1, 2)],
        }
    )
    assert found.values(AWARE, rho("cond", "p99")) == {0: 0.5, 1: 0.25}
    assert found.values(VANILLA, rho("cond", "p99")) == {0: 1.0, 1: 1.0}
    assert found.values(AWARE, step_time("mean", "non-dp")) == {}


def test_numbers_of_a_run() -> None:
    found = Runs(
        {
            AWARE: [result(AWARE, 3, model={"imputation point_MAE": 0.7}, clipping={"p10": 0.2}, loss=0.3)],
            "household/non-dp": [result("household/non-dp")],
        }
    )
    assert found.values(AWARE, metric("imputation", "point_MAE")) == {3: 0.7}
    assert found.values(AWARE, clipping("p10")) == {3: 0.2}
    assert found.values(AWARE, final_loss()) == {3: 0.3}
    assert found.values("household/non-dp", clipping("p10")) == {}
    assert found.values("nowhere/non-dp", final_loss()) == {}


def test_results_of_other_numbers_or_settings_do_not_count() -> None:
    assert is_current(result(AWARE))
    assert not is_current(result(AWARE, version=-1))
    other = result(AWARE)
    other.config["training"]["steps"] = 601
    assert not is_current(other)
