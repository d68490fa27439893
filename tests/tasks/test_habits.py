"""Paths in another order: the wanted correlations are reached, and no reading changes."""

import numpy as np
import pytest
from scipy.signal import lfilter

from tamedit.privacy.population import features
from tamedit.tasks.habits import in_order_of, with_habits

ROWS, SEASON, WEEKS = 168, 24, 40


def smooth_ratios(homes: int, seed: int = 0) -> np.ndarray:
    """Log-normal ratios that are alike from hour to hour, with a daily wave."""
    steps = ROWS * WEEKS
    noise = np.random.default_rng(seed).standard_normal((homes, steps))
    slow = lfilter([np.sqrt(1 - 0.8**2)], [1.0, -0.8], noise, axis=1)
    made = np.exp(0.5 * slow + 0.6 * np.sin(2 * np.pi * np.arange(steps) / SEASON))
    return np.asarray(made / made.mean(axis=1, keepdims=True))


def correlations(path: np.ndarray) -> np.ndarray:
    """As a population has them: an independent computation of what `with_habits` aims at."""
    vectors, _, _ = features(path.reshape(-1, ROWS, 1), [0.0], [float(path.max())], SEASON)
    return np.asarray(vectors[:, 0, 3:].reshape(len(path), -1, 2).mean(axis=1))


def reordered(ratios: np.ndarray, wanted: np.ndarray, numbers: np.ndarray | None = None) -> np.ndarray:
    place = np.arange(ratios.shape[1]) % SEASON
    known = np.arange(len(ratios)) if numbers is None else numbers
    return with_habits(ratios, np.ones_like(ratios), wanted, place, ROWS, known, seed=3)


@pytest.mark.parametrize("share", [(0.7, 0.7), (0.6, 0.9), (0.8, 0.8)])
def test_the_wanted_correlations_are_reached(share: tuple[float, float]) -> None:
    ratios = smooth_ratios(12)
    wanted = correlations(ratios) * np.array(share)
    made = reordered(ratios, wanted)
    np.testing.assert_array_equal(np.sort(made, axis=1), np.sort(ratios, axis=1))
    np.testing.assert_allclose(correlations(made).mean(axis=0), wanted.mean(axis=0), atol=0.02)


def test_a_habit_keeps_the_day_where_noise_alone_would_not() -> None:
    """Both correlations wanted: the one with a day earlier stays although single hours became less alike."""
    ratios = smooth_ratios(12)
    before = correlations(ratios)
    wanted = before * np.array([0.6, 1.0])
    after = correlations(reordered(ratios, wanted))
    assert after[:, 1].mean() > 0.93 * before[:, 1].mean()
    assert after[:, 0].mean() == pytest.approx(wanted[:, 0].mean(), abs=0.02)


def test_what_is_rough_enough_stays_as_it_is() -> None:
    ratios = smooth_ratios(5)
    np.testing.assert_array_equal(reordered(ratios, correlations(ratios) + 0.2), ratios)
    flat = np.ones((3, ROWS * 2))
    np.testing.assert_array_equal(reordered(flat, np.full((3, 2), 0.3)), flat)


def test_a_home_depends_on_its_own_number_alone() -> None:
    ratios = smooth_ratios(6)
    wanted = 0.6 * correlations(ratios)
    whole = reordered(ratios, wanted)
    some = np.array([4, 1])
    np.testing.assert_array_equal(reordered(ratios[some], wanted[some], some), whole[some])
    assert not np.array_equal(reordered(ratios[some], wanted[some], np.array([9, 1]))[0], whole[4])


def test_in_order_of_is_a_map_by_ranks() -> None:
    values = np.array([[3.0, 1.0, 2.0]])
    np.testing.assert_array_equal(in_order_of(values, np.array([[0.1, 0.2, 0.3]])), [[1.0, 2.0, 3.0]])
