"""Windows, masks, units and the anchor become a batch that a network can learn from.

    observed = mask ∧ present            hidden = ¬mask ∧ present
    level, scale = units(observed cells)
    residual = z of the hidden cells, clamped to ±limit

With the anchor, z = Φ⁻¹(F_t(x)), F_t the free distribution of cell t: close to N(0, 1) for every window, whatever its shape. The
network sees the window in units that are as tame, all of them functions of the observed cells:

    values    asinh((x − level) / scale) of the observed cells, 0 elsewhere
    anchor    of every cell t: the 10, 50 and 90 % quantiles of F_t in the same units; and z of the observed cells, which says how
              far a reading lies from what the other readings say about it

Without an anchor (the paper's form) z = (x − level) / scale, values are z of the observed cells, and there is no clamp. The limit
clamps training targets alone; what is sampled is not clamped. Per example, from the example alone.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from pydantic import PositiveFloat, PositiveInt, model_validator
from torch import Tensor
from torch.nn import functional as F

from tamedit.choices import Anchor, Frozen
from tamedit.data.scaling import Scaling
from tamedit.errors import UserError
from tamedit.streams import example_keys, uniforms
from tamedit.windows.batch import Batch, Context
from tamedit.windows.coordinates import Coordinates, Standardised
from tamedit.windows.cut import Windows
from tamedit.windows.free_distribution import FreeDistribution, free_distribution
from tamedit.windows.masks import MaskConfig, draw_masks

QUANTILES = (0.1, 0.5, 0.9)  # of F_t that the network sees
FEATURE_LIMIT = 8.0  # of what the anchor says: far beyond what readings give, so that theory has a number
ANCHOR_FEATURES: dict[Anchor, int] = {"free": len(QUANTILES) + 1, "none": 1}  # per target channel


class ExampleConfig(Frozen):
    """How windows become examples: public facts, none of them taken from private data."""

    anchor: Anchor = "free"
    period: PositiveInt = 24
    residual_limit: PositiveFloat | None = 5.0  # of |z|; None for the paper's form
    channels: PositiveInt | None = None  # K_max: pad the targets up to this many channels

    @model_validator(mode="before")
    @classmethod
    def _of_today(cls, given: Any) -> Any:
        if isinstance(given, dict) and given.get("anchor") == "seasonal":
            raise UserError(
                "A model with the anchor 'seasonal' is of an earlier version, which this one does not read; train it again."
            )
        return given


def build_context(
    values: Float[Tensor, "B L K"],
    observed: Bool[Tensor, "B L K"],
    covariates: Float[Tensor, "B L V"],
    scaling: Scaling,
    config: ExampleConfig,
) -> tuple[Context, Coordinates]:
    """What may be seen, and the coordinates of what is hidden. Values at unobserved cells are never read, whatever they hold."""
    level, scale = scaling.units(values, observed)
    known = torch.where(observed, (values - level) / scale, 0.0)
    channels = torch.ones(len(values), values.shape[2])
    seen = observed.to(known.dtype)
    if config.anchor == "none":
        return Context(known, seen, torch.zeros_like(known), covariates, channels), Standardised(level, scale)
    free = free_distribution(values, observed, config.period, level, scale)
    return Context(known.asinh(), seen, _anchor(free, values, observed), covariates, channels), free


def _anchor(
    free: FreeDistribution, values: Float[Tensor, "B L K"], observed: Bool[Tensor, "B L K"]
) -> Float[Tensor, "B L A"]:
    """What the free distribution says of every cell, in tame units; feature by feature, each with its K channels."""
    surprise = torch.where(observed, free.to_z(torch.where(observed, values, free.level)), 0.0)
    features = torch.cat([*free.quantiles_in_units(QUANTILES).asinh().unbind(-1), surprise], dim=-1)
    return features.clamp(-FEATURE_LIMIT, FEATURE_LIMIT)


def build_batch(
    values: Float[Tensor, "B L K"],
    mask: Bool[Tensor, "B L"],
    covariates: Float[Tensor, "B L V"],
    scaling: Scaling,
    config: ExampleConfig,
) -> Batch:
    """An example for the loss: `values` with NaN where the data has none, `mask` False where a step is hidden."""
    present = torch.isfinite(values)
    observed = present & mask[:, :, None]
    hidden = present & ~mask[:, :, None]
    context, coordinates = build_context(values, observed, covariates, scaling, config)
    residual = torch.where(hidden, coordinates.to_z(values), 0.0)
    if config.residual_limit is not None:
        residual = residual.clamp(-config.residual_limit, config.residual_limit)
    batch = Batch(context, residual, hidden.to(residual.dtype))
    return batch if config.channels is None else pad_channels(batch, config.channels)


def pad_channels(batch: Batch, channels: int) -> Batch:
    """Targets padded up to K_max channels: never observed, never hidden, marked as not real."""
    missing = channels - batch.residual.shape[2]
    if missing == 0:
        return batch
    context = pad_context(batch.context, channels)
    return Batch(context, F.pad(batch.residual, (0, missing)), F.pad(batch.hidden, (0, missing)))


def pad_context(context: Context, channels: int | None) -> Context:
    """The same for what may be seen; as it is without a K_max."""
    real = context.values.shape[2]
    missing = 0 if channels is None else channels - real
    if missing == 0:
        return context
    padded = {name: F.pad(getattr(context, name), (0, missing)) for name in ("values", "observed", "channels")}
    features = F.pad(context.anchor.unflatten(-1, (-1, real)), (0, missing)).flatten(-2)
    return replace(context, **padded, anchor=features)


class Examples:
    """The examples of a data set at a training step: a pure function of (seed, step, indices)."""

    def __init__(self, windows: Windows, masks: MaskConfig, scaling: Scaling, config: ExampleConfig, seed: int) -> None:
        self.windows, self.masks, self.scaling, self.config, self.seed = windows, masks, scaling, config, seed

    def __len__(self) -> int:
        return len(self.windows)

    def batch(self, indices: Int64[np.ndarray, " B"], step: int, draws: int = 1) -> Batch:
        """The batch of these examples at this step: `draws` windows each, next to each other, with fresh masks."""
        names = self.names(indices, draws)
        repeated = np.repeat(indices, draws)
        places = uniforms(example_keys(self.seed, "crops", step, names), 1)[:, 0].numpy()
        values, covariates = self.windows.gather(repeated, self.windows.shifts(repeated, places))
        mask = draw_masks(example_keys(self.seed, "masks", step, names), self.windows.length, self.masks)
        return build_batch(values, mask, covariates, self.scaling, self.config)

    @staticmethod
    def names(indices: Int64[np.ndarray, " B"], draws: int) -> Int64[np.ndarray, " R"]:
        """A name for every draw of every example, for its random streams."""
        return (indices[:, None] * draws + np.arange(draws)).ravel()
