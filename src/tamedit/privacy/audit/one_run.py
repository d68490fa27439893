"""Lower bounds on ε from one training run with m canaries, each in the data or not by its own fair coin.

An attacker sees what the run released, gives each canary a score, and guesses: the k₊ highest scores are in, the k₋ lowest
are out, the rest is left open. Of r = k₊ + k₋ guesses, v are right. If the mechanism is (ε, δ)-private, then

    Pr[at least v right] ≤ β + 2 m δ · max_i (Pr[v − i ≤ W < v] / i),     β = Pr[W ≥ v],  W ~ Binomial(r, e^ε / (1 + e^ε))

(Steinke, Nasr, Jagielski, "Privacy auditing with one (1) training run", arXiv 2305.08846, Theorem 5.2). The whole trade-off
curve says more than one pair (ε, δ): `rejects_curve` is the test of Mahloujifar, Melis, Chaudhuri, "Auditing f-differential
privacy in one run", arXiv 2410.22235.

k₊ and k₋ must not depend on the coins. Several pairs are tried, each at its share of the significance (Bonferroni).
"""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Bool, Float
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import binom

from tamedit.errors import UserError
from tamedit.privacy.audit.claims import Curve, Family, largest_rejected, rejects_any

SHARES = (1.0, 0.5, 0.2, 0.05)  # of the canaries that are guessed
LARGEST = 200.0  # ε beyond which no bound is looked for

Guesses = Sequence[tuple[int, int]]  # (made, right)


def guesses(scores: Float[np.ndarray, " m"], coins: Bool[np.ndarray, " m"]) -> list[tuple[int, int]]:
    """Guesses for shares of the canaries fixed in advance: from both ends, and from the top alone."""
    if scores.shape != coins.shape or scores.ndim != 1 or len(scores) < 2:
        raise UserError(f"{scores.shape} scores do not fit {coins.shape} coins; give one of each for every canary.")
    if not np.isfinite(scores).all():
        raise UserError("A score is not finite, so canaries cannot be put in order; give finite scores.")
    right, count = coins[np.argsort(-scores, kind="stable")], len(coins)
    made = []
    for share in SHARES:
        half = max(1, round(share * count / 2))
        made.append((2 * half, int(right[:half].sum() + (~right[-half:]).sum())))
        made.append((half, int(right[:half].sum())))
    return made


def tail(canaries: int, made: int, right: int, epsilon: float, delta: float) -> float:
    """The probability bound above: how likely so many right guesses are if the mechanism is (ε, δ)-private."""
    rate = expit(epsilon)
    beta = binom.sf(right - 1, made, rate)
    steps = np.arange(1, right + 1)
    mass = np.cumsum(binom.pmf(right - steps, made, rate))  # Pr[v − i ≤ W < v]
    return float(min(1.0, beta + 2.0 * canaries * delta * np.max(mass / steps, initial=0.0)))


def one_run(canaries: int, found: Guesses, significance: float, delta: float) -> float:
    """The largest ε that the guesses reject at this significance, corrected for their number; 0 if none."""
    share = significance / len(found)

    def bound(made: int, right: int) -> float:
        def excess(epsilon: float) -> float:
            return tail(canaries, made, right, epsilon, delta) - share

        if excess(0.0) >= 0.0:
            return 0.0
        return LARGEST if excess(LARGEST) < 0.0 else float(brentq(excess, 0.0, LARGEST, xtol=1e-9))

    return max(bound(made, right) for made, right in found)


def rejects_curve(canaries: int, made: int, right: int, significance: float) -> Callable[[Curve], bool]:
    """Whether a claim's curve is refuted by `right` of `made` guesses.

    The recursion of their Algorithm 3. Suppose that the claim holds, and yet so many guesses are right with probability τ.
    `correct` and `wrong` are the least shares of right and wrong guesses that follow from the ranks seen so far; a wrong
    share is at least g of the right one. If more guesses follow than were made, the assumption was false.
    """

    def rejects(curve: Curve) -> bool:
        correct, wrong = significance * right / canaries, significance * (made - right) / canaries
        for rank in range(right - 1, -1, -1):
            forced = curve(min(correct, 1.0))
            if forced <= wrong:
                break  # nothing changes any more
            correct, wrong = min(1.0, correct + rank / (made - rank) * (forced - wrong)), forced
        return correct + wrong > made / canaries

    return rejects


def one_run_curve(canaries: int, found: Guesses, significance: float, family: Family) -> float:
    """The largest ε of a family of claims whose trade-off curve the guesses reject; 0 if none."""
    share = significance / len(found)
    tests = [rejects_curve(canaries, made, right, share) for made, right in found]
    return largest_rejected(family, rejects_any(tests))
