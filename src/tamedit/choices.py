"""The words that a user may choose from, each list once, and how a mistake in a choice is said.

Nothing heavy is imported here, so that the command line can show the words at once.
"""

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, ValidationError, model_validator

from tamedit.errors import UserError, first_complaint

Scale = Literal["smoke", "laptop", "paper"]
Size = Literal["tiny", "mini", "small", "base", "paper"]
Anchor = Literal["seasonal", "none"]
Tightness = Literal["loose", "medium", "tight", "too_tight", "off"]
Operator = Literal["tanh", "hard_clamp", "soft_clamp_band", "clamp_ste", "none"]
Tuning = Literal["all", "modulation", "low_rank"]


class Choices(BaseModel):
    """Frozen and checked. A misspelt name is an error, and a mistake is one sentence that names the argument and the value."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="wrap")
    @classmethod
    def _in_one_sentence(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return handler(given)
        except ValidationError as error:
            raise UserError(first_complaint(error)) from None
