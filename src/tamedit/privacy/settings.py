"""What a user asks for: a budget or a noise level, and the privacy unit (what one guarantee covers)."""

from collections.abc import Sequence
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from tamedit.choices import Choices
from tamedit.errors import UserError
from tamedit.privacy.accountant import LEAST_EPSILON, LEAST_NOISE, MOST_NOISE, SMALLEST_DELTA, Mechanism
from tamedit.privacy.plan import PrivacyPlan
from tamedit.privacy.units import Contribution, Unit


class Privacy(Choices):
    """`Privacy(epsilon=8, delta=1e-5, unit="day")`: all of it public, none of it chosen by looking at the data.

    Give `epsilon` (the noise is calibrated to it), or `noise_multiplier` (as in the paper), or both. With `epsilon`, training
    stops before it would exceed ε.
    """

    epsilon: float | None = Field(
        default=None, ge=LEAST_EPSILON, description="Train privately: training stops before it would exceed this ε."
    )
    delta: float = Field(default=1e-5, ge=SMALLEST_DELTA, lt=1, description="δ of the guarantee.")
    unit: Unit = Field(default="week", description="Privacy unit: what one guarantee covers.")
    noise_multiplier: float | None = Field(
        default=None,
        ge=LEAST_NOISE,
        le=MOST_NOISE,
        description="Noise σ, instead of one that is calibrated to `epsilon`.",
    )
    clip: float = Field(default=1.0, gt=0, description="Clipping bound C on the gradient of each example.")
    clipping: Literal["flat", "automatic", "groups"] = Field(default="flat", description="How gradients are clipped.")
    draws: int = Field(default=1, ge=1, description="Draws per example, averaged before clipping.")
    examples: int | None = Field(
        default=None,
        ge=2,
        description="Public fact: the number of training examples. If not stated, they are counted with noise; the budget pays.",
    )
    layout: Literal["blocks", "overlapping"] = Field(
        default="blocks",
        description="How examples lie in a series: disjoint blocks, or the paper's overlapping windows.",
    )
    statistics_noise: float = Field(
        default=10.0, ge=LEAST_NOISE, le=MOST_NOISE, description="Noise σ of each statistic that is released."
    )
    population: bool = Field(
        default=False,
        description="With `lower` and `upper`: learn with noise who the homes are, to generate them; the budget pays.",
    )
    population_noise: float | None = Field(
        default=None,
        ge=LEAST_NOISE,
        le=MOST_NOISE,
        description="Noise σ of that release; if not given, 10 / ε for the unit series, else `statistics_noise`.",
    )
    secure: bool = Field(default=False, description="Noise from a cryptographic stream (slower).")
    test_only: bool = Field(default=False, description="Reproducible noise, for tests: no guarantee.")

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.epsilon is None and self.noise_multiplier is None:
            raise UserError("Privacy has no budget; give `epsilon` (a budget) or `noise_multiplier` (a noise level).")
        return self

    @property
    def noise_of_population(self) -> float:
        """σ of the release that says who the homes are: 10 / ε takes about a seventh of a budget, and whole homes are few."""
        if self.population_noise is not None:
            return self.population_noise
        if self.unit != "series" or self.epsilon is None:
            return self.statistics_noise
        return min(max(10.0 / self.epsilon, 1.5), self.statistics_noise)

    def plan(
        self,
        examples: int,
        batch_size: int,
        steps: int,
        contribution: Contribution,
        seed: int,
        charged: Sequence[Mechanism] = (),
    ) -> PrivacyPlan:
        """The plan for N examples, an expected batch and a number of steps; the budget also pays for what is `charged`."""
        fields: dict[str, Any] = {
            "unit": self.unit,
            "examples": examples,
            "sampling_rate": _rate(batch_size, examples, exact=self.test_only),
            "clip": self.clip,
            "steps": steps,
            "delta": self.delta,
            "draws": self.draws,
            "contributions": contribution.k,
            "neighbour": contribution.neighbour,
            "secure": self.secure,
            "test_only": self.test_only,
            "seed": seed if self.test_only else None,
        }
        if self.noise_multiplier is not None:
            return PrivacyPlan(noise_multiplier=self.noise_multiplier, **fields)
        assert self.epsilon is not None
        return PrivacyPlan.for_epsilon(self.epsilon, charged=charged, **fields)


def _rate(batch_size: int, examples: int, exact: bool) -> float:
    """q: B / N to three digits, so that it says no more of N than N̂ itself; exact in a test, which can be repeated."""
    return min(1.0, batch_size / examples if exact else float(f"{batch_size / examples:.3g}"))
