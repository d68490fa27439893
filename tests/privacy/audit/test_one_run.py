"""Bounds from one run against an independent implementation, closed forms, sums by hand and mechanisms whose ε is known."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import binom, norm

from tamedit.errors import UserError
from tamedit.privacy.audit import Gaussian, guesses, one_run, one_run_curve
from tamedit.privacy.audit.one_run import rejects_curve, tail

# jax_privacy 2.0.0 (google-deepmind/jax_privacy, jax_privacy/auditing.py): `_epsilon_one_run` and `_epsilon_one_run_fdp` with
# eps_lo = 0. Canaries, guesses, right ones, significance, δ, and the two answers.
VECTORS = [
    (1000, 200, 180, 0.05, 1e-5, 1.796285, 2.901243),
    (1000, 1000, 700, 0.05, 1e-5, 0.731741, 1.371980),
    (500, 50, 50, 0.05, 1e-5, 2.770507, 4.442462),
    (2000, 400, 300, 0.01, 1e-3, 0.0, 0.739521),
    (100, 60, 45, 0.1, 0.01, 0.094164, 0.638654),
]


@pytest.mark.parametrize(("canaries", "made", "right", "significance", "delta", "plain", "curve"), VECTORS)
def test_the_bounds_are_those_of_jax_privacy(canaries, made, right, significance, delta, plain, curve) -> None:
    assert one_run(canaries, [(made, right)], significance, delta) == pytest.approx(plain, abs=2e-6)
    ours = one_run_curve(canaries, [(made, right)], significance, Gaussian(delta))
    assert 0.0 <= curve - ours <= 0.02 * curve  # a bisection that ends below the root


@pytest.mark.parametrize(("made", "significance"), [(5, 0.05), (40, 0.01)])
def test_all_guesses_right_has_a_closed_form(made: int, significance: float) -> None:
    """Without δ, Pr[all right] ≤ (e^ε / (1 + e^ε))^r."""
    expected = logit(significance ** (1 / made))
    assert one_run(100, [(made, made)], significance, 0.0) == pytest.approx(expected, abs=1e-6)


def test_the_tail_by_hand() -> None:
    """ε = ln 3, so that the rate is 3/4: the sums of the theorem with fractions."""
    canaries, made, right, delta = 9, 7, 5, Fraction(1, 50)

    def probability(count: int) -> Fraction:
        return math.comb(made, count) * Fraction(3, 4) ** count * Fraction(1, 4) ** (made - count)

    beta = sum(probability(count) for count in range(right, made + 1))
    alpha = max(sum(probability(right - j) for j in range(1, i + 1)) / i for i in range(1, right + 1))
    assert beta + 2 * canaries * delta * alpha < 1
    found = tail(canaries, made, right, math.log(3), float(delta))
    assert found == pytest.approx(float(beta + 2 * canaries * delta * alpha), rel=1e-12)


def test_guesses_are_counted_from_both_ends() -> None:
    scores = np.array([5.0, 4.0, 3.0, 2.0, 1.0, 0.0])
    coins = np.array([True, True, False, True, False, False])
    assert guesses(scores, coins)[:4] == [(6, 4), (3, 2), (4, 4), (2, 2)]


def test_scores_that_cannot_be_ordered_are_refused() -> None:
    with pytest.raises(UserError, match="not finite"):
        guesses(np.array([0.0, np.nan]), np.array([True, False]))
    with pytest.raises(UserError, match="one of each for every canary"):
        guesses(np.zeros(3), np.array([True, False]))


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_randomised_response_is_bounded_and_almost_found(epsilon: float) -> None:
    """The mechanism that keeps each coin with probability e^ε / (1 + e^ε) has exactly this ε: v is Binomial(m, that)."""
    rate = expit(epsilon)
    likely = np.arange(int(binom.ppf(1e-4, 1000, rate)), int(binom.ppf(1 - 1e-4, 1000, rate)))
    bounds = np.array([one_run(1000, [(1000, int(right))], 0.05, 0.0) for right in likely])
    too_large = float(binom.pmf(likely[bounds > epsilon], 1000, rate).sum())
    assert 0.03 < too_large <= 0.05
    assert one_run(1000, [(1000, round(1000 * rate))], 0.05, 0.0) > 0.75 * epsilon


def test_the_curve_of_a_gaussian_is_kept_and_one_of_more_noise_refuted() -> None:
    generator, wrong, caught = np.random.default_rng(0), 0, 0
    family = Gaussian(1e-5)
    true, claimed = family.curve(1.0), family.curve(3.0)  # noise 1; a claim of noise 3
    for _ in range(20):
        coins = generator.random(1000) < 0.5
        found = guesses(coins + generator.normal(size=1000), coins)
        tests = [rejects_curve(1000, made, right, 0.05 / len(found)) for made, right in found]
        wrong += any(test(true) for test in tests)
        caught += any(test(claimed) for test in tests)
    assert (wrong, caught) == (0, 20)
    assert true(0.5) == pytest.approx(norm.cdf(-1.0))
