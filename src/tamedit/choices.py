"""The words that a user may choose from, each list once, and how a mistake in a choice is said.

Nothing heavy is imported here, so that the command line can show the words at once.
"""

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, ValidationError, model_validator

from tamedit.errors import UserError, first_complaint

Scale = Literal["smoke", "laptop", "paper"]
Engine = Literal["diffusion", "evolution"]
Size = Literal["tiny", "mini", "small", "base", "paper"]
Anchor = Literal["free", "none"]
Tightness = Literal["loose", "medium", "tight", "too_tight", "off"]
Operator = Literal["tanh", "hard_clamp", "soft_clamp_band", "clamp_ste", "none"]
Tuning = Literal["all", "modulation", "low_rank", "head"]


class Frozen(BaseModel):
    """Settings that are checked when they are made and do not change. A misspelt name is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Choices(Frozen):
    """What a user chooses: a mistake is one sentence that names the argument and the value."""

    model_config = ConfigDict(allow_inf_nan=False)

    @model_validator(mode="wrap")
    @classmethod
    def _in_one_sentence(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return handler(given)
        except ValidationError as error:
            raise UserError(first_complaint(error)) from None
