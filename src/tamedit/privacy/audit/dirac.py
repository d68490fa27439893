"""White-box canaries: examples whose gradient is a coordinate axis, through the sampler, the engine and the noise of a plan.

A canary is a made-up unit with a coordinate i of its own. Each of its k examples has the gradient 100 C eᵢ, and the engine
clips it to C eᵢ: the largest contribution, in a direction that nobody else uses. A coin decides whether it is in the data.
Under removal a canary outside is absent; under replacement its examples have the gradient −100 C eᵢ. What a step releases
along eᵢ is, in units of C,

    x = j + N(0, σ²),      j ~ Binomial(k, q) for a canary inside, j = 0 outside (−Binomial under replacement)

and the score of a canary is the logarithm of the likelihood ratio of all its steps, the best test there is (Neyman, Pearson).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from scipy.special import logsumexp
from scipy.stats import binom
from torch import Tensor, nn

from tamedit.privacy.audit.repeated import Rates
from tamedit.privacy.engine import Engine
from tamedit.privacy.engine.clipping import Mode
from tamedit.privacy.plan import PrivacyPlan

OVERSHOOT = 100.0  # a canary's gradient before clipping, in units of C


class DiracStep:
    """The private step of a plan on examples whose gradients are `sizes[n]` along the coordinate `axes[n]`.

    The sampler, the engine, the noise and the divisor are the plan's own, as in training. A canary outside is not drawn.
    `mode` is how the run clips.
    """

    def __init__(
        self,
        plan: PrivacyPlan,
        axes: Int64[np.ndarray, " N"],
        sizes: Float[np.ndarray, " N"],
        dimension: int,
        *,
        mode: Mode = "flat",
    ) -> None:
        self.plan = plan
        self.axes, self.sizes = torch.from_numpy(axes), torch.from_numpy(sizes).float()
        self.table = nn.Embedding(dimension, 1)  # the loss s · θᵢ has the gradient s eᵢ
        self.engine = Engine(self.table, clip=plan.clip, mode=mode, keep_memory=False)
        self.sampler, self.noise = plan.sampler(max(1, len(axes))), plan.noise()

    def __call__(self, step: int) -> tuple[Float[Tensor, " d"], Int64[np.ndarray, " B"]]:
        """What the step releases, and the examples that it drew."""
        drawn = self.drawn(step)
        sums = self.clipped(drawn)
        self.noise.add_([sums], step=step)
        return sums.div_(self.divisor(drawn))[:, 0], drawn

    def drawn(self, step: int) -> Int64[np.ndarray, " B"]:
        return self.sampler.sample(step) if len(self.axes) else np.zeros(0, dtype=np.int64)

    def clipped(self, drawn: Int64[np.ndarray, " B"]) -> Float[Tensor, "d 1"]:
        rows = np.repeat(drawn, self.plan.draws)
        return self.engine(dirac_losses, self.rows(rows), units=len(drawn), draws=self.plan.draws).sums["weight"]

    def rows(self, rows: Int64[np.ndarray, " R"]) -> tuple[Tensor, Tensor]:
        return self.axes[rows], self.sizes[rows]

    def divisor(self, drawn: Int64[np.ndarray, " B"]) -> float:
        return self.plan.divisor


def dirac_losses(table: nn.Module, rows: tuple[Tensor, Tensor]) -> Float[Tensor, " R"]:
    axes, sizes = rows
    losses: Tensor = table(axes)[:, 0] * sizes
    return losses


StepMaker = Callable[[PrivacyPlan, np.ndarray, np.ndarray, int], DiracStep]


@dataclass(frozen=True)
class Observed:
    """One run with canaries, as a white-box attacker saw it."""

    scores: Float[np.ndarray, " m"]
    coins: Bool[np.ndarray, " m"]
    alarms: int  # observations x ≥ threshold of a canary that was not drawn …
    without: int  # … of so many
    misses: int  # observations x < threshold of a canary of which one example was drawn …
    with_unit: int  # … of so many
    noise: float  # Σ x² along coordinates without any example, over what the plan says: 1 if the noise is right
    quiet: int  # number of such observations

    def rates(self, significance: float) -> Rates:
        """Error rates of the test of a single step."""
        return Rates.of(self.alarms, self.without, self.misses, self.with_unit, significance)

    def noise_interval(self, significance: float) -> tuple[float, float]:
        """An interval for the deviation of the noise over what the plan says, by the χ² distribution; (0, ∞) without any."""
        from scipy.stats import chi2

        if not self.quiet:
            return 0.0, float("inf")
        ends = chi2.ppf([1.0 - significance / 2, significance / 2], self.quiet)
        return tuple(float(np.sqrt(self.noise * self.quiet / end)) for end in ends)  # type: ignore[return-value]


def observe(
    plan: PrivacyPlan,
    coins: Bool[np.ndarray, " m"],
    *,
    examples_per_unit: int | None = None,
    make: StepMaker = DiracStep,
) -> Observed:
    """Run all steps of a plan on canaries alone. `examples_per_unit` is what a unit owns, if that is not what the plan says."""
    k, count, replaced = examples_per_unit or plan.contributions, len(coins), plan.neighbour == "replacement"
    signs = np.where(coins, 1.0, -1.0 if replaced else 0.0)
    axes = np.repeat(np.flatnonzero(signs), k)
    step = make(plan, axes, OVERSHOOT * plan.clip * signs[axes], count)
    score, gap = likelihood_ratio(plan), 2.0 if replaced else 1.0
    scores, tally, squares, quiet = np.zeros(count), np.zeros(4, dtype=np.int64), 0.0, 0
    for number in range(plan.steps):
        released, drawn = step(number)
        x = released.double().numpy() * (plan.divisor / plan.clip)
        scores += score(x)
        owned = np.bincount(axes[drawn], minlength=count)  # examples of each canary in this batch
        counted = np.minimum(owned, plan.contributions)  # as many as the plan knows of
        inside, outside = coins & (counted == 1), ~coins & (counted == int(replaced))
        threshold = 1.0 - gap / 2
        tally += [(x[outside] >= threshold).sum(), outside.sum(), (x[inside] < threshold).sum(), inside.sum()]
        untouched = owned == 0
        squares, quiet = squares + float((x[untouched] ** 2).sum()), quiet + int(untouched.sum())
    stated = plan.noise_multiplier**2 * max(quiet, 1)
    alarms, without, misses, with_unit = tally.tolist()
    return Observed(scores, coins, alarms, without, misses, with_unit, squares / stated, quiet)


def likelihood_ratio(plan: PrivacyPlan) -> Callable[[np.ndarray], np.ndarray]:
    """ln of the density of x for a canary inside over that for one outside, by the plan."""
    counts = np.arange(plan.contributions + 1)
    weights, variance = binom.logpmf(counts, plan.contributions, plan.sampling_rate)[:, None], plan.noise_multiplier**2

    def towards(x: np.ndarray) -> np.ndarray:
        exponents = weights + (counts[:, None] * x - counts[:, None] ** 2 / 2) / variance
        found: np.ndarray = logsumexp(exponents, axis=0)
        return found

    return (lambda x: towards(x) - towards(-x)) if plan.neighbour == "replacement" else towards


Score = Callable[[Float[np.ndarray, "T d"]], float]  # of what all steps released, in units of C


def repeat(
    plan: PrivacyPlan,
    runs: int,
    score: Score,
    *,
    others: Float[np.ndarray, " N"],
    dimension: int = 1,
    make: StepMaker = DiracStep,
) -> tuple[Float[np.ndarray, " runs"], Float[np.ndarray, " runs"]]:
    """The scores of independent runs with and without one canary, in a data set that an attacker chose.

    The canary and the other examples have their gradients along the first coordinate; those of `others` are given in units of
    C. The other coordinates see no example, so they show the noise and what it was divided by.
    """
    found = []
    for inside in (True, False):
        sizes = plan.clip * np.concatenate([np.full(plan.contributions * inside, OVERSHOOT), others])
        own = plan if plan.seed is None else plan.model_copy(update={"seed": plan.seed + inside})
        step = make(own, np.zeros(len(sizes), dtype=np.int64), sizes, dimension)
        # Steps are independent of each other, so the next T steps are another run.
        released = np.stack([step(number)[0].double().numpy() for number in range(runs * plan.steps)])
        by_run = released.reshape(runs, plan.steps, dimension) * (plan.divisor / plan.clip)
        found.append(np.array([score(one) for one in by_run]))
    return found[0], found[1]


def along_canary(released: Float[np.ndarray, "T d"]) -> float:
    """What was released along the canary, of all steps together."""
    return float(released[:, 0].sum())


def batch_size(released: Float[np.ndarray, "T d"]) -> float:
    """How large batches seem: noise that is divided by a batch's size is small where the batch is large."""
    return float((1.0 / released[:, 1:].std(1)).sum())
