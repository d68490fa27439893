"""Trade-off curves of claims against closed forms and numerical integrals."""

import numpy as np
import pytest
from scipy.stats import norm

from tamedit.privacy.accountant import Mechanism, profile
from tamedit.privacy.audit import Claim, Gaussian
from tamedit.privacy.audit.claims import largest_rejected
from tamedit.privacy.plan import PrivacyPlan

POINTS = np.array([1e-4, 0.01, 0.1, 0.3, 0.5, 0.8, 0.95, 0.999])


@pytest.mark.parametrize(
    ("claim", "distance"),
    [
        (Claim((Mechanism(1.0, 2.0, 4),), 1e-5), 1.0),
        (Claim((Mechanism(1.0, 4.0, 4),), 1e-5, contributions=3), 1.5),
        (Claim((Mechanism(1.0, 2.0, 1),), 1e-5, neighbour="replacement"), 1.0),
        (Claim((Mechanism(1.0, 8.0, 4),), 1e-5, contributions=2, neighbour="replacement"), 1.0),
        (Claim((Mechanism(1.0, 2.0, 1), Mechanism(1.0, 1.0, 1)), 1e-5), np.sqrt(1.25)),
    ],
)
def test_without_sampling_a_claim_is_gaussian(claim: Claim, distance: float) -> None:
    """k examples that are replaced move the sum by 2k, in units of C, and T steps add up in squares."""
    found, exact = np.array([claim.curve()(x) for x in POINTS]), norm.cdf(norm.ppf(POINTS) - distance)
    assert (found <= exact + 1e-12).all()  # never more than the truth
    np.testing.assert_allclose(found, exact, rtol=0.01, atol=2e-5)


def test_the_profile_of_a_sampled_step_is_the_integral() -> None:
    """δ(ε) = ∫ (P − e^ε Q)₊ with P = (1 − q) N(0, σ²) + q N(1, σ²), Q = N(0, σ²), and the other way round."""
    rate, noise, epsilons = 0.3, 0.8, np.array([0.0, 0.2, 0.7, 1.5])
    found = profile([Mechanism(rate, noise, 1)], epsilons)

    x = np.linspace(-8.0, 9.0, 200_001)
    without = norm.pdf(x, 0, noise)
    with_unit = (1 - rate) * without + rate * norm.pdf(x, 1, noise)
    for epsilon, delta in zip(epsilons, found, strict=True):
        pairs = ((with_unit, without), (without, with_unit))
        exact = max(np.trapezoid(np.maximum(p - np.exp(epsilon) * q, 0.0), x) for p, q in pairs)
        assert exact - 1e-7 <= delta <= exact + 2e-4


def test_less_noise_claims_less() -> None:
    plan = PrivacyPlan(
        unit="week", examples=100, sampling_rate=0.2, clip=1.0, noise_multiplier=1.0, steps=10, delta=1e-5
    )
    claim = Claim.of(plan)
    assert claim.epsilon() == pytest.approx(plan.epsilon().value)
    assert claim.epsilon(0.5) > claim.epsilon() > claim.epsilon(2.0)
    assert claim.curve(0.5)(0.5) < claim.curve()(0.5) < claim.curve(2.0)(0.5)


def test_the_largest_epsilon_that_is_rejected_is_found() -> None:
    """A test that rejects every Gaussian with μ < 0.7, so with noise above 1 / 0.7."""
    family, limit = Gaussian(1e-5), norm.cdf(-0.7)
    found = largest_rejected(family, lambda curve: curve(0.5) > limit)
    assert 0.98 * family.epsilon(1 / 0.7) <= found <= family.epsilon(1 / 0.7)
    assert largest_rejected(family, lambda curve: False) == 0.0
    assert largest_rejected(family, lambda curve: True) == family.epsilon(1 / 64)
