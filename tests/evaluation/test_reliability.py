"""Reliability curves against closed forms: Gaussian truth, Gaussian ensembles of the right and of the wrong width."""

import numpy as np
import pytest
from scipy.stats import norm

from tamedit.evaluation.intervals import bootstrap_weights
from tamedit.evaluation.reliability import LEVELS, reachable, reliability
from tamedit.report.performance import judged

WINDOWS, STEPS, CHANNELS = 400, 25, 2


def gaussian(width: float, samples: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Samples of standard deviation `width` about 0 for truth of standard deviation 1; every cell hidden."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((WINDOWS, STEPS, CHANNELS))
    drawn = width * rng.standard_normal((WINDOWS, samples, STEPS, CHANNELS))
    return drawn, truth, np.ones(truth.shape, dtype=bool)


@pytest.mark.parametrize("samples", [20, 39])
def test_an_ensemble_that_is_right_covers_what_it_says(samples: int) -> None:
    curve = reliability(*gaussian(1.0, samples))
    assert curve.levels == LEVELS
    np.testing.assert_allclose(curve.coverage, LEVELS, atol=0.012)


@pytest.mark.parametrize("width", [0.5, 2.0])
def test_one_of_the_wrong_width_covers_what_the_normal_distribution_says(width: float) -> None:
    curve = reliability(*gaussian(width, 400))
    expected = 2 * norm.cdf(width * norm.ppf((1 + np.array(LEVELS)) / 2)) - 1
    np.testing.assert_allclose(curve.coverage, expected, atol=0.015)
    assert all((share < level) == (width < 1) for share, level in zip(curve.coverage, LEVELS, strict=True))


def test_intervals_hold_the_estimate_and_words_follow_them() -> None:
    weights = bootstrap_weights(WINDOWS, 200)
    right, narrow, wide = (reliability(*gaussian(width, 19), weights) for width in (1.0, 0.5, 2.0))
    for curve in (right, narrow, wide):
        for share, ends in zip(curve.coverage, curve.intervals, strict=True):
            assert ends[0] <= share <= ends[1]
            assert 0 < ends[1] - ends[0] < 0.05
    assert "too narrow" in judged("gap filling", narrow)
    assert "too wide" in judged("gap filling", wide)
    assert "in line with" in judged("gap filling", right)


def test_levels_that_samples_cannot_reach_are_left_out() -> None:
    assert reachable(19) == LEVELS
    assert reachable(18)[-1] == 0.8
    assert reachable(4) == (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)


def test_cells_without_truth_do_not_count_and_none_at_all_is_said() -> None:
    drawn, truth, hidden = gaussian(1.0, 20)
    holes = truth.copy()
    holes[::2] = np.nan
    np.testing.assert_allclose(
        reliability(drawn, holes, hidden).coverage, reliability(drawn[1::2], truth[1::2], hidden[1::2]).coverage
    )
    empty = reliability(drawn, np.full_like(truth, np.nan), hidden)
    assert set(empty.coverage) == {None}
    assert "nothing could be checked" in judged("forecast", empty)
    alone = reliability(drawn[:1], truth[:1], hidden[:1], bootstrap_weights(1, 10))
    assert set(alone.intervals) == {None}
    assert "too few to say more" in judged("forecast", alone)
