"""The units in which a model sees a window: x ↦ (x − level) / scale, undone on output.

There are three modes. They differ in the data that decides:

    instance     level μ and scale of every window from its own observed cells:
                 scale = sqrt(var + (floor + tiny)² + (relative_floor · μ)²), tiny = 1e-6 or less. No statistic of the
                 data set is used, so there is nothing to protect and nothing to pay. The floors are public constants: a
                 window that is nearly constant would otherwise have a tiny scale and residuals that rule the loss.
    public       one level and scale per channel, given by the user as facts that were known before.
    nonprivate   mean and standard deviation of the training rows: what the paper does. Touches private data outside of
                 any guarantee, so every statement must say so (`warning`).

Every formula is per example: no number of one window depends on another window.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tamedit.data.series import Series
from tamedit.errors import UserError

Mode = Literal["instance", "public", "nonprivate"]
Origin = Literal["public", "private", "nonprivate", "none"]
RELATIVE_FLOOR = 0.1
_TINY = 1e-6


@dataclass(frozen=True)
class Scaling:
    """How windows are put into units; see the module's text. Tuples have one number per target channel."""

    mode: Mode
    level: tuple[float, ...]  # the centre (public, nonprivate); for windows with nothing observed (instance)
    scale: tuple[float, ...]  # likewise
    floor: tuple[float, ...]  # instance: the scale never falls below it, in units of the data
    relative_floor: tuple[float, ...]  # instance: nor below this share of |mean of the window's own observed cells|
    origin: Origin  # where level and scale came from ("private": with noise, charged to a ledger); "none" = 0 and 1

    def units(
        self, values: Float[Tensor, "B L K"], observed: Bool[Tensor, "B L K"]
    ) -> tuple[Float[Tensor, "B 1 K"], Float[Tensor, "B 1 K"]]:
        """(level, scale) of every example and channel, from its observed cells only.

        Guarantees: finite, scale > 0, whatever stands in the cells that are not observed (NaN, infinities) and however
        many cells are observed; a window and channel with nothing observed gets the reference level and scale.
        """
        level = values.new_tensor(self.level).expand(values.shape[0], 1, -1)  # B 1 K
        scale = values.new_tensor(self.scale).expand(values.shape[0], 1, -1)  # B 1 K
        if self.mode != "instance":
            return level, scale
        known = observed & torch.isfinite(values)
        count = known.sum(dim=1, keepdim=True)  # B 1 K
        number = count.clamp(min=1).to(values.dtype)
        # Divided by the largest magnitude first, so that squares of large float32 readings stay finite.
        largest = torch.where(known, values.abs(), 0.0).amax(dim=1, keepdim=True).clamp(min=1.0)
        cells = torch.where(known, values, 0.0) / largest  # B L K
        mean = cells.sum(dim=1, keepdim=True) / number
        deviation = torch.where(known, cells - mean, 0.0)
        variance = (deviation**2).sum(dim=1, keepdim=True) / number
        tiny = (1e-4 * values.new_tensor(self.scale)).clamp(max=_TINY)
        floor = (values.new_tensor(self.floor) + tiny) / largest
        relative = values.new_tensor(self.relative_floor)
        own = largest * torch.sqrt(variance + floor**2 + (relative * mean) ** 2)
        own = torch.maximum(own, tiny)
        some = count > 0
        return torch.where(some, mean * largest, level), torch.where(some, own, scale)

    def warning(self) -> str | None:
        """The sentence that every statement must contain if statistics of private data were used."""
        if self.origin != "nonprivate":
            return None
        return (
            "The level and scale of every channel were computed from the training data without noise: no privacy "
            "guarantee covers them (use scaling 'instance', or 'public' with known values)."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "Scaling":
        """The inverse of `to_dict`; earlier models have one relative floor for all channels."""
        fields: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in plain.items()
        }
        share = fields.get("relative_floor")
        if isinstance(share, int | float):
            fields["relative_floor"] = (float(share),) * len(fields.get("level", ()))
        return cls(**fields)


def fit_scaling(
    mode: Mode,
    train: Series,
    *,
    level: Sequence[float] | float | None = None,
    scale: Sequence[float] | float | None = None,
    floor: Sequence[float] | float | None = None,
    relative_floor: Sequence[float] | float = RELATIVE_FLOOR,
) -> Scaling:
    """A scaling for the targets of `train`; only mode "nonprivate" looks at its readings.

    `level`, `scale` and the floors are public facts: one number, or one per channel. Mode "public" needs the first two. In
    mode "instance" the floor is a hundredth of the public scale if that is given, and 0 if it is not.
    """
    if mode not in get_args(Mode):
        raise UserError(f"The scaling {mode!r} is not known; choose instance, public or nonprivate.")
    channels = len(train.targets)
    given_level = _a_channel("level", level, channels)
    given_scale = _a_channel("scale", scale, channels, positive=True)
    given_floor = _a_channel("floor", floor, channels)
    given_share = _a_channel("relative_floor", relative_floor, channels) or ()
    if (given_level is None) != (given_scale is None):
        raise UserError("A public level needs a public scale, and the other way round; give both or neither.")
    if min(given_share) < 0 or min(given_floor or (0.0,)) < 0:
        raise UserError(f"The floors must be 0 or above, not floor={floor} and relative_floor={relative_floor}.")
    origin: Origin = "none" if given_level is None else "public"
    if mode == "nonprivate":
        if given_level is not None:
            raise UserError("Level and scale were given, so nothing is estimated; use the scaling 'public' with them.")
        given_level, given_scale, origin = *_statistics(train), "nonprivate"
    if mode == "public" and given_level is None:
        raise UserError(
            "The scaling 'public' needs a level and a scale for every channel that were known without the data; give "
            "them, or use the scaling 'instance'."
        )
    used_scale = given_scale or (1.0,) * channels
    public_scale = used_scale if origin == "public" else (0.0,) * channels
    return Scaling(
        mode=mode,
        level=given_level or (0.0,) * channels,
        scale=used_scale,
        floor=given_floor or tuple(0.01 * one for one in public_scale),
        relative_floor=given_share,
        origin=origin,
    )


def _a_channel(
    name: str, given: Sequence[float] | float | None, channels: int, positive: bool = False
) -> tuple[float, ...] | None:
    if given is None:
        return None
    numbers = (float(given),) * channels if isinstance(given, int | float) else tuple(float(one) for one in given)
    if len(numbers) != channels:
        raise UserError(
            f"{name} has {len(numbers)} numbers but the series has {channels} targets; give one number per target."
        )
    if any(not math.isfinite(one) or (positive and one <= 0) for one in numbers):
        raise UserError(f"{name}={numbers} must be finite{' and above 0' if positive else ''}.")
    return numbers


def _statistics(train: Series) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of every channel of the readings that are there; a constant channel gets scale 1."""
    values = train.values.astype(np.float64)
    known = ~np.isnan(values)
    for channel, name in enumerate(train.targets):
        if not known[:, channel].any():
            raise UserError(f"Target {name!r} has no reading in the training part; leave it out or use another split.")
    level = np.nanmean(values, axis=0)
    scale = np.nanstd(values, axis=0)
    scale = np.where(scale > 1e-8 * np.abs(level), scale, 1.0)  # rounding alone spreads a constant by 1e-16 of it
    return tuple(float(one) for one in level), tuple(float(one) for one in scale)
