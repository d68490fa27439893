"""Bounds from repeated runs, and how well scores tell canaries apart, against SciPy, counts by hand and known mechanisms."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest, norm

from tamedit.privacy.audit import Gaussian, Rates, held_out_rates, repeated_runs
from tamedit.privacy.audit.attack import auroc, true_positive_rate
from tamedit.privacy.audit.repeated import upper


@pytest.mark.parametrize(("count", "trials"), [(0, 10), (3, 10), (10, 10), (250, 1000)])
def test_the_upper_end_is_scipys_exact_interval(count: int, trials: int) -> None:
    exact = binomtest(count, trials, alternative="less").proportion_ci(0.975, method="exact").high
    assert upper(count, trials, 0.025) == pytest.approx(exact)


def test_epsilon_of_rates_by_hand() -> None:
    assert Rates(0.1, 0.4).epsilon(0.0) == pytest.approx(math.log(0.6 / 0.1))
    assert Rates(0.4, 0.1).epsilon(0.1) == pytest.approx(math.log((0.6 - 0.1) / 0.1))  # the other way round
    assert Rates(0.5, 0.6).epsilon(0.0) == 0.0
    assert Rates(0.99, 0.995).epsilon(0.5) == 0.0


def test_the_gaussian_distance_of_rates() -> None:
    assert Rates(norm.cdf(-0.5), norm.cdf(-0.5)).gaussian == pytest.approx(1.0)
    assert Rates(1.0, 0.2).gaussian == 0.0


@pytest.mark.parametrize("noise", [0.7, 2.0])
def test_a_gaussian_mechanism_is_bounded_and_almost_found(noise: float) -> None:
    generator, family = np.random.default_rng(1), Gaussian(1e-5)
    stated, plain, curve = family.epsilon(noise), [], []
    for _ in range(30):
        rates = held_out_rates(1 + noise * generator.normal(size=2000), noise * generator.normal(size=2000), 0.05)
        plain.append(rates.epsilon(1e-5))
        curve.append(rates.rejects(family.curve(noise)))
    assert max(plain) < stated
    assert sum(curve) <= 4  # 1.5 of 30 at most, on average
    assert repeated_runs(rates, family) > 0.6 * stated


def test_the_threshold_does_not_see_the_runs_that_it_is_used_on() -> None:
    """The even runs say "above 0"; the odd ones all lie below, so nothing is found in them."""
    inside, outside = np.full(200, -5.0), np.full(200, -5.0)
    inside[::2], outside[::2] = 1.0, -1.0
    rates = held_out_rates(inside, outside, 0.05)
    assert rates.misses == 1.0
    assert rates.epsilon(0.0) == 0.0


def test_the_area_counts_pairs() -> None:
    generator = np.random.default_rng(0)
    scores, coins = generator.integers(0, 6, 60).astype(float), generator.random(60) < 0.4
    pairs = [(a > b) + 0.5 * (a == b) for a in scores[coins] for b in scores[~coins]]
    assert auroc(scores, coins) == pytest.approx(np.mean(pairs))
    assert auroc(scores, np.ones(60, dtype=bool)) == 0.5


def test_hits_at_few_false_alarms() -> None:
    """The example in jax_privacy's docstring: scores 0 … 99 outside and 9.5 … 108.5 inside give 0.11 at 1 %."""
    scores, coins = np.concatenate([np.arange(100) + 9.5, np.arange(100.0)]), np.arange(200) < 100
    assert true_positive_rate(scores, coins, 0.01) == pytest.approx(0.11)
    assert true_positive_rate(scores, coins, 0.0) == pytest.approx(0.10)
    assert true_positive_rate(scores, coins, 1.0) == 1.0
