"""The gain over a free guess: paired, so that what windows have in common does not blur it."""

import numpy as np
import pytest

from tamedit.evaluation.gains import gain, smallest_gain
from tamedit.evaluation.intervals import bootstrap_weights, group_weights
from tamedit.evaluation.scores import Scores, score

WINDOWS, LENGTH = 60, 24


def scored(error: np.ndarray, truth: np.ndarray, weights: np.ndarray | None) -> Scores:
    """A method that misses the truth of every window by its own error."""
    guess = (truth + error[:, None, None])[:, None]
    hidden = np.ones_like(truth, dtype=bool)
    return score(guess, truth, hidden, np.ones(1), probabilistic=False, weights=weights)[0]


def test_a_constant_advantage_has_no_spread() -> None:
    generator = np.random.default_rng(0)
    truth = generator.standard_normal((WINDOWS, LENGTH, 1))
    weights = bootstrap_weights(WINDOWS, 400)
    hard = generator.gamma(1.0, 3.0, WINDOWS)  # windows differ far more than methods do
    ours, theirs = scored(hard, truth, weights), scored(hard + 0.1, truth, weights)
    found = gain(ours, theirs, "point_MAE")
    assert found is not None
    assert (found.difference, found.low, found.high) == pytest.approx((0.1, 0.1, 0.1))
    low, high = ours.intervals["point_MAE"] or (0, 0)
    assert high - low > 0.5, "unpaired intervals overlap"
    back = gain(theirs, ours, "point_MAE")
    assert back is not None
    assert back.difference == pytest.approx(-0.1)


def test_the_interval_covers_the_true_gain_nineteen_times_in_twenty() -> None:
    covered, trials = 0, 300
    for trial in range(trials):
        generator = np.random.default_rng(trial)
        truth = np.zeros((WINDOWS, 1, 1))
        shared = generator.gamma(2.0, 2.0, WINDOWS) + 2.0
        ours = np.abs(shared + generator.normal(0.0, 0.5, WINDOWS))
        theirs = np.abs(shared + 0.2 + generator.normal(0.0, 0.5, WINDOWS))
        weights = bootstrap_weights(WINDOWS, 200, seed=trial)
        found = gain(scored(ours, truth, weights), scored(theirs, truth, weights), "point_MAE")
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= 0.2 <= found.high
    assert 0.90 <= covered / trials <= 0.99


def test_the_hardest_guess_is_the_one_that_counts() -> None:
    truth = np.zeros((4, 2, 1))
    model, near, far = (scored(np.full(4, size), truth, None) for size in (1.0, 1.5, 3.0))
    name, found = smallest_gain(model, {"far": far, "near": near}, "point_RMSE") or ("", None)
    assert name == "near"
    assert found is not None
    assert (found.difference, found.low, found.high) == (pytest.approx(0.5), None, None)
    assert gain(model, near, "CRPS") is not None
    assert gain(Scores({"CRPS": None}), near, "CRPS") is None


def test_meters_are_drawn_whole() -> None:
    groups = np.array([5, 5, 9, 2, 2, 2, 7, 8])
    weights = group_weights(groups, 3000, seed=1)
    assert (weights[:, groups == 2] == weights[:, [3]]).all()
    assert weights[:, [0, 2, 3, 6, 7]].sum(axis=1) == pytest.approx(5), "five meters, each once on average"
    assert weights.mean(axis=0) == pytest.approx(np.ones(8), abs=0.08)
    assert (weights == group_weights(groups, 3000, seed=1)).all()


def test_correlated_windows_of_a_meter_widen_the_interval() -> None:
    generator = np.random.default_rng(3)
    meters = np.repeat(np.arange(20), 6)
    own = generator.standard_normal(20)[meters]  # all windows of a meter alike
    alone, whole = bootstrap_weights(120, 500) @ own / 120, group_weights(meters, 500) @ own / 120
    assert whole.std() > 2 * alone.std()
