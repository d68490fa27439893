"""Intervals hold the truth as often as they say."""

import numpy as np
import pytest
from scipy import stats

from tamedit.evaluation.intervals import (
    bootstrap_interval,
    bootstrap_weights,
    combine,
    draws_of,
    group_weights,
    over_seeds,
    usable_block,
)


def test_weights_are_counts_of_a_seeded_draw() -> None:
    weights = bootstrap_weights(30, 500, seed=1)
    assert weights.sum(axis=1) == pytest.approx(30)
    assert (weights == bootstrap_weights(30, 500, seed=1)).all()
    assert (weights != bootstrap_weights(30, 500, seed=2)).any()
    assert weights.mean(axis=0) == pytest.approx(np.ones(30), abs=0.2)
    wider = (
        30 / 29 * (stats.t.ppf(0.975, 29) / stats.norm.ppf(0.975)) ** 2
    )  # than 30 draws of 30, for Student's interval
    assert weights.var() == pytest.approx((1 - 1 / 30) * wider, rel=0.05)
    assert bootstrap_weights(7, 0, block=3).shape == (0, 7)


def test_blocks_keep_neighbours_together() -> None:
    weights = bootstrap_weights(40, 2000, block=5, seed=0)
    assert weights.sum(axis=1) == pytest.approx(40)
    together = [np.corrcoef(weights[:, 3], weights[:, 3 + gap])[0, 1] for gap in (1, 4, 8)]
    assert together[0] > 0.6
    assert 0.3 > together[1] > together[2]


def test_the_interval_of_a_mean_has_its_nominal_coverage() -> None:
    rng = np.random.default_rng(0)
    held = 0
    for trial in range(300):
        values = rng.exponential(size=60)
        ends = bootstrap_interval(
            float(values.mean()), bootstrap_weights(60, 300, seed=trial) @ values / 60, 0.0, np.inf
        )
        held += ends is not None and ends[0] <= 1 <= ends[1]
    assert 0.89 < held / 300 < 0.98


def test_ten_meters_have_an_interval_as_wide_as_students() -> None:
    rng = np.random.default_rng(1)
    held = 0
    for trial in range(400):
        own = np.repeat(rng.normal(size=10), 3)
        drawn = group_weights(np.repeat(np.arange(10), 3), 300, seed=trial) @ own / 30
        low, high = bootstrap_interval(float(own.mean()), drawn, -np.inf, np.inf) or (9, 9)
        held += low <= 0 <= high
    assert 0.91 < held / 400 < 0.98  # ten draws of ten: 0.89
    assert [draws_of(count) for count in (1, 4, 5, 10, 54, 10_000)] == [0, 0, 2, 7, 51, 9997]


def test_few_windows_have_an_honest_interval_and_fewer_than_five_none() -> None:
    rng = np.random.default_rng(2)
    for count in range(1, 9):
        held, said = 0, 0
        for trial in range(1000):
            values = rng.normal(size=count)
            make = (group_weights, np.arange(count)) if trial % 2 else (bootstrap_weights, count)
            drawn = make[0](make[1], 300, seed=trial)  # type: ignore[arg-type,operator]
            ends = bootstrap_interval(float(values.mean()), drawn @ values / count, -np.inf, np.inf)
            said += ends is not None
            held += ends is not None and ends[0] <= 0 <= ends[1]
        assert said == (1000 if count >= 5 else 0)
        assert count < 5 or 0.90 < held / 1000 < 0.97
    assert bootstrap_weights(20, 50, block=5).shape == (0, 20)


def test_blocks_are_never_shorter_than_the_overlap() -> None:
    assert [usable_block(windows, 8) for windows in (3, 40, 55, 80, 500)] == [8, 8, 11, 16, 16]
    assert [usable_block(windows, 1) for windows in (1, 5, 10)] == [1, 1, 2]
    rng = np.random.default_rng(0)
    for windows in (41, 55):  # 5 blocks: of windows that each share rows with 7 others
        held = 0
        for trial in range(300):
            values = np.convolve(rng.normal(size=windows + 7), np.ones(8) / 8, mode="valid")
            drawn = bootstrap_weights(windows, 300, usable_block(windows, 8), seed=trial) @ values / windows
            ends = bootstrap_interval(float(values.mean()), drawn, -np.inf, np.inf)
            held += ends is not None and ends[0] <= 0 <= ends[1]
        assert held / 300 > 0.85


def test_overlapping_windows_need_blocks() -> None:
    """Of a moving average over 8 neighbours, single draws pretend to know too much."""
    rng = np.random.default_rng(0)
    held = {1: 0, 12: 0}
    for trial in range(150):
        values = np.convolve(rng.normal(size=207), np.ones(8) / 8, mode="valid")
        for block in held:
            drawn = bootstrap_weights(200, 200, block, seed=trial) @ values / 200
            ends = bootstrap_interval(float(values.mean()), drawn, -np.inf, np.inf)
            held[block] += ends is not None and ends[0] <= 0 <= ends[1]
    assert held[1] / 150 < 0.7
    assert held[12] / 150 > 0.85


def test_ends_stay_within_the_range_and_hold_the_estimate() -> None:
    drawn = np.linspace(0.2, 0.4, 100)
    low, high = bootstrap_interval(0.01, drawn, 0.0, 1.0) or (9, 9)
    assert low == 0
    assert high == pytest.approx(0.01 + 0.095, abs=0.002)
    assert bootstrap_interval(0.5, np.full(100, np.nan), 0.0, 1.0) is None
    assert bootstrap_interval(np.nan, drawn, 0.0, 1.0) is None


def test_seeds_combine_by_students_t() -> None:
    values = [1.0, 2.0, 4.0]
    combined = over_seeds(values)
    low, high = stats.t.interval(0.95, 2, np.mean(values), stats.sem(values))
    assert (combined.low, combined.high) == pytest.approx((low, high))
    assert combined.mean == pytest.approx(7 / 3)
    assert over_seeds([2.0]).half is None
    assert str(over_seeds([2.0])) == "2.0000"
    assert str(over_seeds([1.0, 1.0])) == "1.0000 ± 0.0000"
    with pytest.raises(ValueError, match="at least one"):
        over_seeds([])


def test_whole_results_combine() -> None:
    results = [
        {"forecast": {"model": {"z": {"crps": value, "coverage50": None, "intervals": {"CRPS": [0, 1]}}}}}
        for value in (0.2, 0.4)
    ]
    combined = combine(results)["forecast"]["model"]["z"]
    assert combined["crps"]["mean"] == pytest.approx(0.3)
    assert combined["crps"]["seeds"] == 2
    assert combined["coverage50"] is None
    assert "intervals" not in combined
