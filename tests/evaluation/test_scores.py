"""Scores against closed forms and numbers worked out by hand."""

import numpy as np
import pytest
from scipy import stats

from tamedit.evaluation.scores import Scores, aggregate, cell_statistics


def gaussian_crps(mean: np.ndarray, deviation: float, truth: np.ndarray) -> np.ndarray:
    """Gneiting and Raftery 2007: σ (z (2Φ(z) − 1) + 2φ(z) − 1/√π)."""
    z = (truth - mean) / deviation
    crps: np.ndarray = deviation * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi))
    return crps


@pytest.mark.parametrize("count", [2, 5, 20])
def test_crps_of_independent_samples_is_unbiased(count: int) -> None:
    rng = np.random.default_rng(count)
    truth = np.full((40_000, 1, 1), 0.7)
    samples = 0.2 + 1.5 * rng.standard_normal((40_000, count, 1, 1))
    crps = cell_statistics(samples, truth, independent_halves=False).crps
    error = crps.std() / np.sqrt(crps.size)
    assert abs(crps.mean() - gaussian_crps(np.array(0.2), 1.5, np.array(0.7))) < 4 * error


@pytest.mark.parametrize("count", [4, 20])
def test_crps_of_antithetic_samples_is_unbiased_within_halves_and_not_pooled(count: int) -> None:
    rng = np.random.default_rng(count)
    truth = np.full((40_000, 1, 1), 0.7)
    noise = rng.standard_normal((40_000, count // 2, 1, 1))
    samples = 0.2 + 1.5 * np.concatenate([noise, -noise], axis=1)
    closed = gaussian_crps(np.array(0.2), 1.5, np.array(0.7))
    halves = cell_statistics(samples, truth, independent_halves=True).crps
    pooled = cell_statistics(samples, truth, independent_halves=False).crps
    assert abs(halves.mean() - closed) < 4 * halves.std() / np.sqrt(halves.size)
    # A pair z and −z is farther apart than two independent draws, so that pooling flatters the ensemble.
    assert closed - pooled.mean() > 8 * pooled.std() / np.sqrt(pooled.size)


def test_crps_is_proper() -> None:
    """The right forecast beats one that is too narrow, one too wide and one beside the truth."""
    rng = np.random.default_rng(0)
    truth = rng.standard_normal((20_000, 1, 1))
    noise = rng.standard_normal((20_000, 10, 1, 1))

    def score(centre: float, width: float) -> float:
        return float(cell_statistics(centre + width * noise, truth, independent_halves=False).crps.mean())

    assert score(0, 1) < min(score(0, 0.6), score(0, 1.6), score(0.5, 1))


def test_two_antithetic_samples_are_too_few() -> None:
    with pytest.raises(ValueError, match="at least 4"):
        cell_statistics(np.zeros((1, 2, 1, 1)), np.zeros((1, 1, 1)), independent_halves=True)


@pytest.mark.parametrize("count", [19, 20, 100])
def test_coverage_of_an_ensemble_that_is_right_is_nominal(count: int) -> None:
    rng = np.random.default_rng(count)
    truth = rng.standard_normal((20_000, 1, 1))
    samples = rng.standard_normal((20_000, count, 1, 1))
    statistics = cell_statistics(samples, truth, independent_halves=False)
    scores = aggregate(statistics, np.ones_like(truth, dtype=bool), np.ones(1), probabilistic=True)
    assert scores.coverage50 == pytest.approx(0.5, abs=0.015)
    assert scores.coverage90 == pytest.approx(0.9, abs=0.01)


def test_by_hand() -> None:
    truth = np.array([[[1.0, 10.0], [2.0, 20.0]], [[3.0, 30.0], [4.0, 40.0]]])  # (2, 2, 2)
    guess = truth + np.array([[[1.0, 0.0], [99.0, 2.0]], [[-3.0, 99.0], [0.0, 4.0]]])
    hidden = np.array([[[1, 1], [0, 1]], [[1, 0], [1, 1]]], dtype=bool)
    statistics = cell_statistics(guess[:, None], truth, independent_halves=False)
    scores = aggregate(statistics, hidden, np.ones(2), probabilistic=False)
    rmse = (np.sqrt((1 + 9 + 0) / 3) + np.sqrt((0 + 4 + 16) / 3)) / 2
    mae = (4 / 3 + 6 / 3) / 2
    assert scores.to_dict() == pytest.approx(
        {"rmse": rmse, "mae": mae, "crps": mae, "coverage50": None, "coverage90": None}
    )
    in_units = aggregate(statistics, hidden, np.array([2.0, 4.0]), probabilistic=False)
    assert in_units.mae == pytest.approx((4 / 3 / 2 + 6 / 3 / 4) / 2)


def test_mean_for_squares_and_median_for_absolutes() -> None:
    samples = np.array([0.0, 0.0, 0.0, 4.0, 6.0]).reshape(1, 5, 1, 1)
    statistics = cell_statistics(samples, np.ones((1, 1, 1)), independent_halves=False)
    assert statistics.squared.item() == pytest.approx(1.0)  # mean 2
    assert statistics.absolute.item() == pytest.approx(1.0)  # median 0


def test_channels_without_hidden_cells_do_not_count() -> None:
    truth, hidden = np.zeros((3, 4, 2)), np.zeros((3, 4, 2), dtype=bool)
    hidden[:, :, 0] = True
    guess = np.stack([np.ones((3, 4)), np.full((3, 4), np.nan)], axis=-1)
    statistics = cell_statistics(guess[:, None], truth, independent_halves=False)
    assert aggregate(statistics, hidden, np.array([1.0, np.nan]), probabilistic=False).rmse == 1.0
    nothing = aggregate(statistics, np.zeros_like(hidden), np.ones(2), probabilistic=True)
    assert nothing == Scores(None, None, None, None, None)
