"""What an attack found: lower bounds on ε beside the stated one, with their confidence, and how to read them."""

import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from tamedit.errors import UserError
from tamedit.privacy import accountant
from tamedit.privacy.audit.attack import auroc, true_positive_rate
from tamedit.privacy.audit.claims import Claim
from tamedit.privacy.audit.dirac import DiracStep, Observed, StepMaker, observe
from tamedit.privacy.audit.one_run import guesses, one_run, one_run_curve
from tamedit.privacy.plan import PrivacyPlan

LOW = 0.01  # the false positive rate at which hits are counted
READING = (
    "A lower bound far below ε does not show that ε is too large: it shows what these attacks can do. "
    "A lower bound above ε shows that the mechanism does not keep its promise."
)
ONE_RUN, CURVE, STEPS = "one run", "one run, trade-off curve", "single steps, Gaussian"


@dataclass(frozen=True)
class Finding:
    """One attack. The bounds hold together with the given confidence."""

    attack: str
    canaries: int
    stated: float  # ε that the mechanism claims
    delta: float
    confidence: float
    bounds: dict[str, float]  # by method: ε is at least
    auroc: float
    true_positive_rate: float  # at a false positive rate of 1 %
    noise: tuple[float, float] | None = None  # deviation of the noise over what the plan says, an interval

    @property
    def lower(self) -> float:
        return max(self.bounds.values())

    @property
    def broken(self) -> bool:
        """Whether the claim is refuted: a bound above ε, or less noise than the plan says."""
        return self.lower > self.stated or (self.noise is not None and self.noise[1] < 1.0)

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "lower": self.lower, "broken": self.broken}

    def __str__(self) -> str:
        bounds = "; ".join(f"{name}: {value:.3g}" for name, value in self.bounds.items())
        return (
            f"{self.attack}, {self.canaries} canaries: ε ≥ {self.lower:.3g} with {self.confidence:.0%} confidence ({bounds}); "
            f"stated ε = {self.stated:.3g} at δ = {self.delta:g}; AUROC {self.auroc:.3f}, "
            f"TPR {self.true_positive_rate:.1%} at FPR {LOW:.0%}"
        )


def toss(canaries: int, seed: int | None = None) -> Bool[np.ndarray, " m"]:
    """Fair coins, from the operating system unless there is a seed. Keep them apart from the run."""
    if canaries < 2:
        raise UserError(f"{canaries} canaries are too few for an audit; plant at least 2.")
    return np.random.default_rng(secrets.randbits(128) if seed is None else seed).random(canaries) < 0.5


def from_scores(
    scores: Mapping[str, Float[np.ndarray, " m"]],
    coins: Bool[np.ndarray, " m"],
    claim: Claim,
    *,
    attack: str,
    confidence: float = 0.95,
) -> Finding:
    """The one-run bounds of one or several scores of the same canaries; the measurements are those of the best score."""
    share = _significance(confidence) / (2 * len(scores))
    bounds: dict[str, float] = {}
    for name, values in scores.items():
        found, ending = guesses(values, coins), f" ({name})" * (len(scores) > 1)
        bounds[ONE_RUN + ending] = one_run(len(coins), found, share, claim.delta)
        bounds[CURVE + ending] = one_run_curve(len(coins), found, share, claim)
    best = max(scores.values(), key=lambda values: auroc(values, coins))
    return Finding(
        attack,
        len(coins),
        claim.epsilon(),
        claim.delta,
        confidence,
        bounds,
        auroc(best, coins),
        true_positive_rate(best, coins, LOW),
    )


def white_box(
    plan: PrivacyPlan,
    coins: Bool[np.ndarray, " m"],
    *,
    confidence: float = 0.95,
    examples_per_unit: int | None = None,
    make: StepMaker = DiracStep,
) -> Finding:
    """Attack a plan with gradient-space canaries: one run of all its steps, one coin per canary.

    `make` builds the step that is attacked, and `examples_per_unit` says what a unit truly owns; both are the plan's own by
    default.
    """
    share = _significance(confidence) / 4  # of the three bounds, and the noise
    seen = observe(plan, coins, examples_per_unit=examples_per_unit, make=make)
    found = from_scores({"": seen.scores}, coins, Claim.of(plan), attack="white box", confidence=1 - 2 * share)
    bounds = {**found.bounds, STEPS: per_step(seen, plan, share)}
    return Finding(**{**vars(found), "bounds": bounds, "confidence": confidence, "noise": seen.noise_interval(share)})


def per_step(seen: Observed, plan: PrivacyPlan, significance: float) -> float:
    """ε of the plan with the most noise that the errors of single steps allow: the step is taken as Gaussian, its q as known."""
    gap = 2.0 if plan.neighbour == "replacement" else 1.0
    distance = seen.rates(significance).gaussian
    if distance <= 0.0:
        return 0.0
    noise = float(np.clip(gap / distance, accountant.LEAST_NOISE, accountant.MOST_NOISE))
    work = [accountant.Mechanism(plan.sampling_rate, noise, plan.steps)]
    return accountant.epsilon(work, plan.delta, plan.contributions, plan.neighbour, with_rdp=False).value


def _significance(confidence: float) -> float:
    if not 0.5 <= confidence < 1.0:
        raise UserError(f"confidence={confidence:g} is not possible: give a number from 0.5 up to, but below, 1.")
    return 1.0 - confidence
