"""Two samples of one population are close in every measure; shuffled hours are far away; bad input gets one sentence."""

from dataclasses import replace

import numpy as np
import pytest

from tamedit.data.series import Series
from tamedit.data.simulate import simulate
from tamedit.errors import UserError
from tamedit.evaluation.fidelity import FidelityTable, fidelity, fidelity_table, independent_hours, simulated_homes
from tamedit.evaluation.fidelity.homes_grid import Fleet, fleet
from tamedit.evaluation.fidelity.judges import discriminate
from tamedit.evaluation.fidelity.measures import MEASURES

HOMES = 24


@pytest.fixture(scope="module")
def homes() -> Series:
    return simulate(2 * HOMES, hours=24 * 7 * 8, seed=5, variety=0.3)


def shuffled(series: Series) -> Series:
    """Every home's own readings, in another order."""
    generator = np.random.default_rng(0)
    parts = [generator.permutation(one) for one in np.split(series.values, series.offsets[1:-1])]
    return replace(series, values=np.concatenate(parts))


@pytest.fixture(scope="module")
def table(homes: Series) -> FidelityTable:
    real, other = homes.select(range(HOMES)), homes.select(range(HOMES, 2 * HOMES))
    candidates = {"other": other, "shuffled": shuffled(other), "hours": independent_hours(real, HOMES)}
    return fidelity_table(real, candidates, resamples=60)


def test_shuffled_hours_are_farther_than_other_homes(table: FidelityTable) -> None:
    other, far = table.columns["other"], table.columns["shuffled"]
    for one in MEASURES:
        if one.best == "least":
            assert far[one.name].value > 1.5 * other[one.name].value, one.name  # type: ignore[operator]
    assert far["discriminative"].value > 0.9  # type: ignore[operator]
    assert far["predictive"].value > other["predictive"].value  # type: ignore[operator]
    assert abs(far["autocorrelation_step"].value) < 0.02  # type: ignore[arg-type]
    assert other["autocorrelation_step"].value > 0.3  # type: ignore[operator]
    for kept in ("log_level_mean", "log_level_sd", "duration_p50", "zeros"):  # which the order does not change
        assert far[kept].value == pytest.approx(other[kept].value)


def test_a_classifier_cannot_tell_random_halves_of_one_fleet(homes: Series) -> None:
    """One pair of halves may differ by chance (deviation 0.07), so many pairs are averaged."""
    whole, scores = fleet(homes), []
    for seed in range(10):
        order = np.random.default_rng(seed).permutation(whole.homes)
        halves = [Fleet(whole.values[part], whole.start, whole.period) for part in np.split(order, 2)]
        scores.append(np.mean([np.nanmean(side) for side in discriminate(halves[0], halves[1], 0.5)]))
    assert abs(np.mean(scores) - 0.5) < 0.07


def test_other_homes_lie_within_what_chance_does(table: FidelityTable) -> None:
    """Intervals of two samples of one population overlap in nearly all statistics."""
    real, other = table.columns["real"], table.columns["other"]
    pairs = [(real[one.name], other[one.name]) for one in MEASURES if one.best == "real" and one.name != "coincidence"]
    assert all(one.low <= one.value <= one.high for pair in pairs for one in pair)  # type: ignore[operator]
    apart = [a.high < b.low or b.high < a.low for a, b in pairs]  # type: ignore[operator]
    assert sum(apart) <= 1


def test_independent_hours_have_the_marginal_and_nothing_else(table: FidelityTable) -> None:
    real, hours = table.columns["real"], table.columns["hours"]
    assert hours["duration_p90"].value == pytest.approx(real["duration_p90"].value, rel=0.03)
    assert hours["log_level_sd"].value < 0.2 * real["log_level_sd"].value  # type: ignore[operator]
    assert hours["nearest_home"].value < real["nearest_home"].value  # type: ignore[operator]


def test_a_fleet_against_itself_is_perfect(homes: Series) -> None:
    real = homes.select(range(HOMES))
    found = fidelity(real, real, resamples=0).columns
    for one in MEASURES:
        if one.best == "least":
            assert found["synthetic"][one.name].value == pytest.approx(0, abs=1e-6)
        elif one.name not in ("discriminative", "predictive"):
            assert found["synthetic"][one.name].value == found["real"][one.name].value
    assert found["synthetic"]["discriminative"].value <= 0.6  # type: ignore[operator]


def test_the_simulator_stands_beside_where_it_can(homes: Series) -> None:
    made = simulated_homes(homes, 3)
    assert made is not None
    assert len(made.meters) == 3
    assert made.times.max() == homes.times.max()
    assert np.isfinite(made.values).all()
    assert simulated_homes(replace(homes, values=np.tile(homes.values, 2), targets=("a", "b")), 3) is None


def test_what_cannot_be_compared_is_said(homes: Series) -> None:
    with pytest.raises(UserError, match="has 1 homes; fidelity compares fleets of at least 2"):
        fidelity(homes, homes.select([0]))
    with pytest.raises(UserError, match="whole week"):
        fidelity(homes, simulate(3, hours=100))
    with pytest.raises(UserError, match="resample one"):
        fidelity(homes, simulate(3, hours=24 * 15, minutes=30))
    with pytest.raises(UserError, match="no target 'gas'"):
        fidelity(homes, homes, target="gas")
