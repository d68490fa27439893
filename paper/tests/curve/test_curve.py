"""The ε curve: its cells, the share of the gain that privacy leaves, and the verdicts, from numbers that the test knows."""

from collections.abc import Mapping, Sequence

import pytest

from made_curve import whole_curve
from made_results import result
from tamedit.data.simulate import simulate
from tamedit.evaluation.task_table import NAMES
from tamedit_paper.curve.cells import (
    curve_cells,
    groups,
    kept,
    nonprivate,
    private,
    untuned,
    without_bounds,
    without_privacy,
)
from tamedit_paper.curve.gains import home_gain
from tamedit_paper.curve.tables import free_values, other_bars, share_table
from tamedit_paper.curve.targets import contrasts, tally, targets
from tamedit_paper.grid import recipes
from tamedit_paper.grid.cells import Cell
from tamedit_paper.grid.measures import Runs
from tamedit_paper.grid.results import Result, agrees

AWARE, VANILLA, HOME = private("aware", 8), private("vanilla", 8), private("aware", 8, "series")
SCRATCH = private("aware", 8, public="")
CRPS = "imputation CRPS"


def made(numbers: Mapping[str, Sequence[float]], name: str = CRPS) -> Runs:
    """Runs of which one number is known by seed; all others, and the free baselines, are 1."""
    return Runs(
        {
            cell: [result(cell, seed, model={name: value}) for seed, value in enumerate(values)]
            for cell, values in numbers.items()
        }
    )


def verdicts(runs: Runs) -> dict[str, str]:
    return {one.said: one.verdict for one in targets(runs)}


def everywhere(value: float) -> dict[str, float]:
    return {f"{task} CRPS": value for task in NAMES}


def test_every_cell_has_a_name_that_comes_back() -> None:
    names = curve_cells()
    assert all(Cell.parse(name).name == name for name in names)
    assert len(set(names)) == len(names) == 15
    assert {Cell.parse(name).anchor for name in names} == {"free"}


def test_the_most_informative_cells_come_first() -> None:
    assert curve_cells()[:3] == [
        "ideal/aware/epsilon=8/unit=week/medium/tanh/free/public=homes",
        "ideal/untuned/medium/tanh/free/public=homes",
        "ideal/aware/epsilon=8/unit=series/medium/tanh/free/public=homes",
    ]


def test_the_groups_show_every_cell() -> None:
    shown = [name for group in groups() for name in group.cells]
    assert set(shown) == set(curve_cells())
    assert shown.count(untuned()) == 2, "the shipped model begins both units"


def test_partners() -> None:
    assert without_privacy(AWARE) == without_privacy(HOME) == without_privacy(untuned()) == nonprivate("aware")
    assert without_privacy(SCRATCH) == nonprivate("aware", "")
    assert without_bounds(AWARE) == VANILLA
    assert without_bounds(nonprivate("aware")) == nonprivate("vanilla")


def test_the_share_is_taken_seed_by_seed() -> None:
    runs = made({AWARE: [0.8, 0.7, 0.6], nonprivate("aware"): [0.6, 0.5]})
    assert kept(runs, AWARE, "imputation") == pytest.approx({0: 0.5, 1: 0.6})
    assert kept(runs, VANILLA, "imputation") == {}
    text = share_table(runs)
    assert "| 8 per home-week | aware | 55 ± 64 % | no gain to keep |" in text  # t = 12.7 with two seeds
    assert "| 8 per home-week | vanilla | –  (not run) |" in text


def test_a_share_of_no_gain_is_none() -> None:
    runs = made({AWARE: [0.8, 0.8], nonprivate("aware"): [0.6, 1.0]})
    assert kept(runs, AWARE, "imputation") is None, "one seed without a gain is enough: it is not left out"


@pytest.mark.parametrize(
    ("free", "band", "limit", "covers"),
    [(0.90, 0.90, "met", "met"), (0.91, 0.86, "missed", "missed"), (0.5, 0.94, "met", "missed")],
)
def test_the_free_distribution_has_limits(free: float, band: float, limit: str, covers: str) -> None:
    numbers = {"free_distribution imputation CRPS": free, "free_distribution imputation coverage90": band}
    said = verdicts(Runs({untuned(): [result(untuned(), free=numbers)]}))
    assert said["free distribution, gap filling: CRPS at most 0.9 × draws from the same hour"] == limit
    assert said["free distribution, gap filling: the 90 % band covers 87 to 93 %"] == covers


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([0.85, 0.86, 0.86], "met"),
        ([0.86, 0.87, 0.88], "missed"),
        ([0.85, 0.85], "not run with enough seeds (2)"),
        ([], "not run"),
    ],
)
def test_eight_per_home_week_has_limits(values: list[float], verdict: str) -> None:
    said = verdicts(made({AWARE: values}))
    target = "ε = 8 per home-week, from the shipped model, gap filling: CRPS at most 0.86 × draws from the same hour"
    assert said[target] == verdict


def gaining(cell: str, ends: Mapping[str, tuple[float, float, float]], seeds: int = 3) -> list[Result]:
    return [result(cell, seed, gains=ends) for seed in range(seeds)]


def test_better_than_free_needs_every_seeds_interval_above_zero() -> None:
    target = "ε = 8 per home-week, from the shipped model, forecast, the day's total: better than the free distribution"
    sure, unsure = {"forecast path_total_CRPS": (0.1, 0.01, 0.2)}, {"forecast path_total_CRPS": (0.1, -0.01, 0.2)}
    assert verdicts(Runs({AWARE: gaining(AWARE, sure)}))[target] == "met"
    mixed = Runs({AWARE: [*gaining(AWARE, sure, 2), result(AWARE, 2, gains=unsure)]})
    assert verdicts(mixed)[target] == "missed"
    found = home_gain(mixed, AWARE, "forecast", "path_total_CRPS")
    assert str(found) == "+0.1000 [-0.0100, +0.2000]"
    assert home_gain(mixed, AWARE, "long_gap", "CRPS") is None
    without = {"forecast CRPS": {"difference": 0.1, "low": None, "high": None}}
    plain = result(AWARE)
    gains = plain.evaluation["gains"] | {"forecast": {"free_distribution": {"CRPS": without["forecast CRPS"]}}}
    bare = plain.model_copy(update={"evaluation": plain.evaluation | {"gains": gains}})
    assert home_gain(Runs({AWARE: [bare]}), AWARE, "forecast", "CRPS") is None, (
        "a gain without an interval says nothing"
    )


def test_from_random_weights() -> None:
    better, worse, open_ = (0.1, 0.05, 0.2), (-0.1, -0.2, -0.05), (0.0, -0.1, 0.1)
    count = "ε = 8 per home-week, from random weights: better than the free distribution in 2 tasks or more"
    each = "ε = 8 per home-week, from random weights, {}: no worse than the free distribution"
    ends = {f"{task} CRPS": open_ for task in NAMES} | {"imputation CRPS": better}
    said = verdicts(Runs({SCRATCH: gaining(SCRATCH, ends)}))
    assert (said[count], said[each.format("forecast")]) == ("missed", "met")
    ends |= {"long_gap CRPS": better, "forecast CRPS": worse}
    said = verdicts(Runs({SCRATCH: gaining(SCRATCH, ends)}))
    assert (said[count], said[each.format("forecast")]) == ("met", "missed")


@pytest.mark.parametrize(
    ("values", "worse", "better"),
    [
        ([0.98, 0.981, 0.979], "met", "met"),
        ([1.01, 0.99, 1.0], "met", "missed"),
        ([1.02, 1.021, 1.019], "missed", "missed"),
    ],
)
def test_a_whole_home_against_the_shipped_model(values: list[float], worse: str, better: str) -> None:
    runs = Runs(
        {
            untuned(): [result(untuned(), model=everywhere(1.0))],
            HOME: [result(HOME, seed, model=everywhere(value)) for seed, value in enumerate(values)],
        }
    )
    said = verdicts(runs)
    short = "ε = 8 per whole home, from the shipped model"
    assert said[f"{short}, long gap: no worse than the shipped model"] == worse
    assert said[f"{short}: better than the shipped model in a task or more"] == better


def test_verdicts_of_a_whole_curve_and_of_none() -> None:
    found = targets(whole_curve())
    assert [one.said for one in found if one.verdict == "missed"] == []
    assert tally(found) == f"{len(found)} of {len(found)} met, 0 missed, 0 not run."
    assert {one.verdict for one in targets(Runs({}))} == {"not run"}
    assert tally(targets(Runs({}))) == f"0 of {len(found)} met, 0 missed, {len(found)} not run."


def test_aware_against_vanilla() -> None:
    low, high, wide = [0.50, 0.51, 0.49], [0.60, 0.62, 0.59], [0.40, 0.90, 0.45]
    first, second = contrasts(made({AWARE: low, VANILLA: high}))
    assert first.startswith(
        "ε = 8 per home-week, from the shipped model, vanilla − aware in CRPS, 3 seeds: gap filling"
    )
    assert "gap filling +0.1033 ± 0.0143 (aware is better); forecast +0.0000 ± 0.0000;" in first
    assert second == "ε = ∞, from the shipped model: not run."
    assert "(aware is worse)" in contrasts(made({AWARE: high, VANILLA: low}))[0]
    assert "(aware" not in contrasts(made({AWARE: low, VANILLA: wide}))[0]
    assert "gap filling +0.1000;" in contrasts(made({AWARE: [0.5], VANILLA: [0.6]}))[0]


def test_runs_with_other_free_distributions_are_named() -> None:
    own, other = result(AWARE), result(VANILLA, free={"forecast CRPS": 1.02})
    assert other_bars([AWARE, VANILLA], Runs({AWARE: [own], VANILLA: [other]})) == [VANILLA]
    assert other_bars([AWARE, VANILLA], Runs({AWARE: [own], VANILLA: [result(VANILLA)]})) == []
    assert other_bars([AWARE], Runs({})) == []


def test_a_free_guess_is_read_from_any_run_that_is_there() -> None:
    runs = Runs({VANILLA: [result(VANILLA, 2, free={"forecast CRPS": 0.4})]})
    assert free_values(runs, [AWARE, VANILLA], "forecast", "CRPS", "free_distribution") == {2: 0.4}


def test_a_published_household_is_not_called_nobodys(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is someone's data: the statement must say that its being public is a claim."""
    homes = simulate(hours=24 * 7 * 10, seed=1)
    monkeypatch.setattr(recipes, "load_data", lambda source, private=False: (homes, None))
    said = {
        public: recipes.public_start(Cell.parse(private("aware", 8, public=public)), "smoke")
        for public in ("simulated", "household")
    }
    assert said["simulated"].sentence.endswith("which is public")
    assert "the user says is public" in said["household"].sentence


def test_what_a_beginning_is_called_does_not_make_a_run_due_again() -> None:
    cell = Cell.parse("fleet/aware/epsilon=8/unit=week/medium/tanh/free/public")
    config = recipes.recipe(cell, "smoke", 0, simulate(meters=4, hours=6 * 168, seed=0))
    assert config.start is not None
    found = result(cell.name).model_copy(update={"config": config.model_dump(mode="json")})
    renamed = config.model_copy(update={"start": config.start.model_copy(update={"origin": "said to be public"})})
    assert agrees(found, renamed)
    other = config.model_copy(update={"start": config.start.model_copy(update={"digest": "0" * 16})})
    assert not agrees(found, other), "another public model is another run"
