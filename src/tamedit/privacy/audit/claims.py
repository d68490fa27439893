"""What a plan claims, as a trade-off curve: f(α) is the least share of misses of any test that raises false alarms at a rate α.

(ε, δ(ε)) for every ε ≥ 0 is the same claim (Dong, Roth, Su, arXiv 1905.02383): f is the largest of the lines

    1 − δ(ε) − e^ε α        and        e^{−ε} (1 − δ(ε) − α)

The bounds of `one_run.py` need g(x) = f(1 − x): the least probability that an event of probability x can have in the
neighbouring data set. A claim belongs to a family: the same mechanism with its noise times a `scale`. Scale 1 is what is
stated. If an attack rejects the claim at a scale s, then the mechanism that ran does not keep that claim. If it is one of the
family, its ε is at least that at s. Whatever it is: if the claim at scale 1 is rejected, what was stated is false.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np

from tamedit.privacy import accountant
from tamedit.privacy.accountant import LEAST_NOISE, MOST_NOISE, Mechanism
from tamedit.privacy.plan import PrivacyPlan
from tamedit.privacy.units import Neighbour

Curve = Callable[[float], float]  # g: probability of an event → the least that it can be in a neighbouring data set
EPSILONS = np.concatenate([[0.0], np.geomspace(1e-3, 60.0, 400)])
WIDEST = 64.0  # scales from 1/64 to 64 are searched
PRECISION = 0.01  # of the logarithm of a scale


class Family(Protocol):
    """Claims of increasing strength."""

    def curve(self, scale: float) -> Curve:
        """g of the claim with this scale of noise."""

    def epsilon(self, scale: float) -> float:
        """Its ε."""


@dataclass(frozen=True)
class Claim:
    """All that a run releases, for a unit of k examples."""

    mechanisms: tuple[Mechanism, ...]
    delta: float
    contributions: int = 1
    neighbour: Neighbour = "removal"

    @classmethod
    def of(cls, plan: PrivacyPlan) -> Self:
        work = (Mechanism(plan.sampling_rate, plan.noise_multiplier, plan.steps),)
        return cls(work, plan.delta, plan.contributions, plan.neighbour)

    def scaled(self, scale: float) -> list[Mechanism]:
        return [
            replace(m, noise_multiplier=float(np.clip(m.noise_multiplier * scale, LEAST_NOISE, MOST_NOISE)))
            for m in self.mechanisms
        ]

    def epsilon(self, scale: float = 1.0) -> float:
        work = self.scaled(scale)
        return accountant.epsilon(work, self.delta, self.contributions, self.neighbour, with_rdp=False).value

    def curve(self, scale: float = 1.0) -> Curve:
        from tamedit.privacy.losses import Unreachable

        twice = self.neighbour == "replacement" and self.contributions > 1
        try:
            deltas = accountant.profile(
                self.scaled(scale), EPSILONS, self.contributions, "removal" if twice else self.neighbour
            )
        except Unreachable:
            return lambda probability: 0.0  # so little noise that nothing is claimed
        once = envelope(EPSILONS, deltas)
        # A replacement leads through the data without the examples: T(P, R)(α) ≥ f(1 − f(α)).
        return (lambda probability: once(once(probability))) if twice else once


@dataclass(frozen=True)
class Gaussian:
    """The claim "μ-Gaussian DP with μ = 1 / scale": f(α) = Φ(Φ⁻¹(1 − α) − μ)."""

    delta: float

    def epsilon(self, scale: float) -> float:
        from dp_accounting import get_epsilon_gaussian

        return float(get_epsilon_gaussian(scale, self.delta, tol=1e-9))

    def curve(self, scale: float) -> Curve:
        from scipy.special import ndtr, ndtri

        return lambda probability: float(ndtr(ndtri(probability) - 1.0 / scale))


def envelope(epsilons: np.ndarray, deltas: np.ndarray) -> Curve:
    """g from pairs (ε, δ). The line that is largest at a point is found by its neighbours' crossings; never above the truth."""
    rates = np.exp(epsilons)
    slopes = np.concatenate([-rates[::-1], -1.0 / rates[1:]])  # increasing; α grows to the right
    heights = np.concatenate([(1.0 - deltas)[::-1], ((1.0 - deltas) / rates)[1:]])
    crossings = np.maximum.accumulate((heights[:-1] - heights[1:]) / np.diff(slopes)).tolist()
    lines = list(zip(slopes.tolist(), heights.tolist(), strict=True))

    def g(probability: float) -> float:
        alpha = 1.0 - probability
        at = bisect_left(crossings, alpha)
        return max(0.0, *(slope * alpha + height for slope, height in lines[max(0, at - 1) : at + 2]))

    return g


def largest_rejected(family: Family, rejects: Callable[[Curve], bool]) -> float:
    """The largest ε of the family that is rejected, 0 if none is: bisection of the scale, from the stated one outwards."""
    if rejects(family.curve(1.0)):
        low, high = -np.log(WIDEST), 0.0
        if rejects(family.curve(1.0 / WIDEST)):
            return family.epsilon(1.0 / WIDEST)
    else:
        low, high = 0.0, np.log(WIDEST)
        if not rejects(family.curve(WIDEST)):
            return 0.0
    while high - low > PRECISION:
        middle = (low + high) / 2
        low, high = (low, middle) if rejects(family.curve(float(np.exp(middle)))) else (middle, high)
    return family.epsilon(float(np.exp(high)))


def rejects_any(tests: Sequence[Callable[[Curve], bool]]) -> Callable[[Curve], bool]:
    """Whether any of several tests rejects; each must have its share of the significance."""
    return lambda curve: any(test(curve) for test in tests)
