"""The ε curve: its cells, the share of the gain that privacy leaves, and the verdicts, from numbers that the test knows."""

from collections.abc import Mapping, Sequence

import pytest

from made_results import result
from tamedit.data.simulate import simulate
from tamedit.errors import UserError
from tamedit_paper.curve.cells import (
    HARDER,
    all_cells,
    is_utility,
    kept,
    nonprivate,
    private,
    untuned,
    utility_cells,
    without_bounds,
    without_privacy,
)
from tamedit_paper.curve.tables import contrast_table, other_bars, share_table, tally
from tamedit_paper.curve.targets import Contrast, contrasts, targets
from tamedit_paper.grid import recipes
from tamedit_paper.grid.cells import Cell
from tamedit_paper.grid.measures import Runs
from tamedit_paper.grid.results import Result, agrees

AWARE, VANILLA = private("ideal", "aware", 8), private("ideal", "vanilla", 8)
CRPS = "imputation CRPS"
Numbers = Mapping[str, Sequence[float]]


def made(numbers: Numbers) -> Runs:
    """Runs of which the CRPS of imputation is known by seed; all others, and the free baselines, are 1."""
    return Runs(
        {
            cell: [result(cell, seed, model={CRPS: value}) for seed, value in enumerate(values)]
            for cell, values in numbers.items()
        }
    )


def everything(cell: str, values: Sequence[float], coverage: float = 0.9) -> list[Result]:
    """Runs of a cell that have the same RMSE and CRPS at both tasks."""
    names = [f"{task} {name}" for task in ("imputation", "forecast") for name in ("point_RMSE", "CRPS")]
    bands = {f"{task} coverage90": coverage for task in ("imputation", "forecast")}
    return [result(cell, seed, model={**dict.fromkeys(names, value), **bands}) for seed, value in enumerate(values)]


def test_every_cell_has_a_name_that_comes_back() -> None:
    for name in all_cells():
        assert Cell.parse(name).name == name
    assert len(set(all_cells())) == len(all_cells()) == 2 * 40 + 24


def test_the_most_informative_cells_come_first() -> None:
    assert utility_cells("curve")[:8] == [
        "ideal/aware/epsilon=8/unit=week/medium/tanh/free/public",
        "ideal/vanilla/epsilon=8/unit=week/free/public",
        "ideal/aware/epsilon=3/unit=week/medium/tanh/free/public",
        "ideal/vanilla/epsilon=3/unit=week/free/public",
        "ideal/aware/epsilon=1/unit=week/medium/tanh/free/public",
        "ideal/vanilla/epsilon=1/unit=week/free/public",
        "ideal/non-dp/medium/tanh/free/public",
        "ideal/non-dp/free/public",
    ]
    assert "ideal/untuned/medium/tanh/free/public" in utility_cells("curve")
    assert "ideal/non-dp/medium/tanh/free" in utility_cells("curve")
    assert "ideal/vanilla/epsilon=1/unit=week/public" in utility_cells("curve")
    assert "ideal/vanilla/epsilon=1/unit=series/public" in utility_cells("curve")
    assert utility_cells("curve") == utility_cells("curve:ideal")
    assert utility_cells("curve:fleet") == [name.replace("ideal/", "fleet/") for name in utility_cells("curve")]
    heavy = utility_cells("heavy")
    assert heavy[0] == "ideal-heavy/aware/epsilon=8/unit=week/medium/tanh/free/public"
    assert {"ideal-heavy/vanilla/sigma=0.1", "fleet-heavy/aware/sigma=0.1/medium/tanh"} < set(heavy)


def test_what_is_no_curve_is_one_sentence() -> None:
    assert [is_utility(what) for what in ("curve", "curve:fleet", "heavy", "all", "tab:clip-norm")] == [True] * 3 + [
        False
    ] * 2
    for what in ("curve:moon", "curve:", "curves"):
        with pytest.raises(UserError, match="choose one of: curve, curve:ideal, curve:fleet, heavy"):
            utility_cells(what)


def test_partners() -> None:
    assert without_privacy(AWARE) == nonprivate("ideal", "aware")
    assert without_privacy(untuned("ideal", "vanilla")) == nonprivate("ideal", "vanilla")
    assert without_privacy(private("ideal", "aware", 3, "series", "none")) == nonprivate("ideal", "aware", "none")
    assert without_bounds(AWARE) == VANILLA
    assert without_bounds(nonprivate("ideal", "aware")) == nonprivate("ideal", "vanilla")


def test_the_share_is_taken_seed_by_seed() -> None:
    runs = made({AWARE: [0.8, 0.7, 0.6], nonprivate("ideal", "aware"): [0.6, 0.5]})
    assert kept(runs, AWARE, "imputation") == pytest.approx({0: 0.5, 1: 0.6})
    assert kept(runs, VANILLA, "imputation") == {}
    assert kept(runs, AWARE, "imputation", HARDER) == pytest.approx({0: 0.5, 1: 0.6})
    text = share_table([AWARE, VANILLA], runs)
    assert (
        "| 55 ± 64 % | no gain to keep | 55 ± 64 % | no gain to keep | 2 |" in text
    )  # t = 12.7 with two seeds; forecasts are all 1: nothing to keep
    assert "| vanilla | anchored | public model | 8 per home-week |" + 4 * " –  (not run) |" + " 0 |" in text


def test_a_share_of_no_gain_is_none() -> None:
    runs = made({AWARE: [0.8, 0.8], nonprivate("ideal", "aware"): [0.6, 1.0]})
    assert kept(runs, AWARE, "imputation") is None, "one seed without a gain is enough: it is not left out"


def verdicts(runs: Runs) -> dict[str, str]:
    """What the aware, anchored runs are said to do, by the target's words."""
    return {f"{one.letter} {one.said}": one.answers["aware", "free"].verdict for one in targets(runs, "ideal")}


@pytest.mark.parametrize(
    ("values", "free", "share"),
    [
        ([0.80, 0.81, 0.79], "met", "met"),
        ([0.90, 0.91, 0.89], "met", "missed"),
        ([1.10, 1.11, 1.09], "missed", "missed"),
        ([0.95, 1.05, 0.90], "open", "open"),
        ([0.85, 0.83, 0.82], "met", "open"),
    ],
)
def test_targets_at_eight(values: Sequence[float], free: str, share: str) -> None:
    runs = Runs(
        {AWARE: everything(AWARE, values), nonprivate("ideal", "aware"): everything("ideal/non-dp", [0.74] * 3)}
    )
    said = verdicts(runs)
    assert said["a better than every free baseline, ε = 8"] == free
    assert said["b at least 60 % of the non-private CRPS gain over free fill + Gaussian kept, ε = 8"] == share
    assert said["d 90 % bands cover 85–95 %, ε = 8"] == "met"
    assert said["c at least 35 % of the non-private CRPS gain over free fill + Gaussian kept, ε = 3"] == "not yet run"


def test_the_harder_free_guess_leaves_less_to_keep() -> None:
    bar = {f"seasonal_draws {task} CRPS": 0.85 for task in ("imputation", "forecast")}
    names = [f"{task} {name}" for task in ("imputation", "forecast") for name in ("point_RMSE", "CRPS")]
    runs = Runs(
        {
            cell: [result(cell, seed, model=dict.fromkeys(names, value + 0.001 * seed), free=bar) for seed in range(3)]
            for cell, value in ((AWARE, 0.80), (nonprivate("ideal", "aware"), 0.70))
        }
    )
    said = verdicts(runs)
    assert said["b at least 60 % of the non-private CRPS gain over free fill + Gaussian kept, ε = 8"] == "met"
    assert said["b′ at least 60 % of the non-private CRPS gain over draws from the same hour kept, ε = 8"] == "missed"


def test_the_best_free_baseline_is_the_bar() -> None:
    bar = {"seasonal_mean forecast point_RMSE": 0.7}
    names = [f"{task} {name}" for task in ("imputation", "forecast") for name in ("point_RMSE", "CRPS")]
    own = [result(AWARE, seed, model=dict.fromkeys(names, 0.8 + 0.001 * seed), free=bar) for seed in range(3)]
    assert verdicts(Runs({AWARE: own}))["a better than every free baseline, ε = 8"] == "missed"


def test_a_band_that_covers_too_much_or_too_little_is_no_band() -> None:
    for coverage, verdict in ((0.97, "missed"), (0.80, "missed"), (0.86, "met")):
        runs = Runs({AWARE: everything(AWARE, [0.8, 0.81, 0.79], coverage)})
        assert verdicts(runs)["d 90 % bands cover 85–95 %, ε = 8"] == verdict


def test_no_verdict_without_seeds_or_without_a_gain() -> None:
    plain = nonprivate("ideal", "aware")
    two = Runs({AWARE: everything(AWARE, [0.8, 0.8])})
    assert verdicts(two)["a better than every free baseline, ε = 8"] == "not yet run with enough seeds (2)"
    none = Runs({AWARE: everything(AWARE, [0.8] * 3), plain: everything(plain, [1.2] * 3)})
    said = verdicts(none)["b at least 60 % of the non-private CRPS gain over free fill + Gaussian kept, ε = 8"]
    assert said == "no gain to keep (imputation, forecast)"
    assert set(verdicts(Runs({})).values()) == {"not yet run"}


def contrast(aware: Numbers, vanilla: Numbers) -> Contrast:
    """One pair; metrics that are not named are 1 for both and differ by nothing."""
    runs = Runs(
        {
            cell: [result(cell, seed, model={name: own[seed] for name, own in numbers.items()}) for seed in range(3)]
            for cell, numbers in ((AWARE, aware), (VANILLA, vanilla))
        }
    )
    (found,) = contrasts(runs, [AWARE, VANILLA])
    return found


def test_aware_against_vanilla() -> None:
    low, high, wide = [0.50, 0.51, 0.49], [0.60, 0.62, 0.59], [0.40, 0.90, 0.45]
    assert contrast({CRPS: low}, {CRPS: high}).verdict == "better (1 of 4)"
    assert contrast({CRPS: high}, {CRPS: low}).verdict == "worse (1 of 4)"
    assert contrast({CRPS: low}, {CRPS: wide}).verdict == "not told apart"
    both = contrast({CRPS: low, "forecast CRPS": high}, {CRPS: high, "forecast CRPS": low})
    assert both.verdict == "mixed (1 better, 1 worse of 4)"
    assert tally([both]) == "- `ideal`, 1 pairs: 1 mixed.\n"
    text = contrast_table([both], Runs({}))
    assert "+0.1033 ± 0.0143<br>better" in text
    assert "-0.1033 ± 0.0143<br>worse" in text


def test_a_pair_needs_both_runs_and_seeds() -> None:
    (missing,) = contrasts(made({AWARE: [0.5] * 3}), [AWARE, VANILLA])
    assert missing.verdict == "not yet run"
    (few,) = contrasts(made({AWARE: [0.5], VANILLA: [0.6]}), [AWARE, VANILLA])
    assert few.verdict == "not yet run with enough seeds (1)"
    assert "+0.1000 † |" in contrast_table([few], Runs({}))
    pairs = [one.cell for one in contrasts(Runs({}), utility_cells("curve"))]
    assert len(pairs) == 3 + 1 + 2 + 3 + 3 + 1 + 3, "public models and runs without a vanilla partner make no pair"


def test_runs_with_other_free_baselines_are_named() -> None:
    own, other = result(AWARE), result(VANILLA, free={"forecast CRPS": 1.02})
    assert other_bars([AWARE, VANILLA], Runs({AWARE: [own], VANILLA: [other]})) == [VANILLA]
    assert other_bars([AWARE, VANILLA], Runs({AWARE: [own], VANILLA: [result(VANILLA)]})) == []
    assert other_bars([AWARE], Runs({})) == []


def test_a_published_household_is_not_called_nobodys(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is someone's data: the statement must say that its being public is a claim."""
    homes = simulate(hours=24 * 7 * 10, seed=1)
    monkeypatch.setattr(recipes, "load_data", lambda source, private=False: (homes, None))
    said = {
        public: recipes.public_start(Cell.parse(private("ideal", "aware", 8, public=public)), "smoke")
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
