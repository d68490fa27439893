"""Sums of losses where hardly any mass lies beside one place, or none is finite."""

import numpy as np

from tamedit.privacy.composed import bounds


def test_one_place_alone_stays_where_it_is() -> None:
    """Probabilities on a single place, with empty ones around it: the sum of T draws lies at T times that place."""
    probs = np.zeros(50)
    probs[7] = 0.9
    low, high = bounds(probs, 20)
    assert low <= 7 * 20 <= high
    assert high - low <= 50


def test_nothing_finite_has_an_empty_range() -> None:
    assert bounds(np.zeros(50), 20) == (0, 0)


def test_a_fair_coin_is_within_its_bounds_but_for_the_stated_mass() -> None:
    """Exactly: the binomial distribution outside of the range is at most 10⁻¹⁵."""
    from scipy.stats import binom

    low, high = bounds(np.array([0.5, 0.5]), 1000)
    outside = binom.cdf(low - 1, 1000, 0.5) + binom.sf(high, 1000, 0.5)
    assert outside <= 1e-15
    assert high - low < 400, "and the range is far shorter than all sums"
