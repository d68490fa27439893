"""What a user asks for: a budget or a noise level, and the privacy unit (what one guarantee covers)."""

from collections.abc import Sequence
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, ValidationError, model_validator

from tamedit.errors import UserError
from tamedit.privacy.accountant import LEAST_EPSILON, LEAST_NOISE, MOST_NOISE, SMALLEST_DELTA, Mechanism
from tamedit.privacy.plan import PrivacyPlan
from tamedit.privacy.units import Contribution, Unit


class Privacy(BaseModel):
    """`Privacy(epsilon=8, delta=1e-5, unit="day")`: all of it public, none of it chosen by looking at the data.

    Give `epsilon` (the noise is calibrated to it), or `noise_multiplier` (as in the paper), or both. With `epsilon`, training
    stops before it would exceed ε.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    epsilon: float | None = Field(default=None, ge=LEAST_EPSILON)
    delta: float = Field(default=1e-5, ge=SMALLEST_DELTA, lt=1)
    unit: Unit = "week"
    noise_multiplier: float | None = Field(default=None, ge=LEAST_NOISE, le=MOST_NOISE)  # σ
    clip: float = Field(default=1.0, gt=0)  # C
    clipping: Literal["flat", "automatic", "groups"] = "flat"
    draws: PositiveInt = 1  # G
    layout: Literal["blocks", "overlapping"] = "blocks"
    statistics_noise: float = Field(default=10.0, ge=LEAST_NOISE, le=MOST_NOISE)  # σ of each release of a statistic
    secure: bool = False
    test_only: bool = False

    def __init__(self, **values: object) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"]) or "the request"
            raise UserError(f"Privacy: {place}: {first['msg']} (given: {first['input']!r}).") from None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.epsilon is None and self.noise_multiplier is None:
            raise ValueError("give epsilon (a budget) or noise_multiplier (a noise level)")
        return self

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
            "sampling_rate": min(1.0, batch_size / examples),
            "clip": self.clip,
            "steps": steps,
            "delta": self.delta,
            "draws": self.draws,
            "contributions": contribution.k,
            "neighbour": contribution.neighbour,
            "test_only": self.test_only,
            "seed": seed if self.test_only else None,
        }
        if self.noise_multiplier is not None:
            return PrivacyPlan(noise_multiplier=self.noise_multiplier, **fields)
        assert self.epsilon is not None
        return PrivacyPlan.for_epsilon(self.epsilon, charged=charged, **fields)
