"""Windows, masks, units and the free fill become a batch that a network can learn from.

    observed = mask ∧ present            hidden = ¬mask ∧ present
    level, scale = units(observed cells)
    b = free fill of the observed cells, in those units
    residual = clamp((x − level) / scale − b, ±limit) at hidden cells

The limit makes the objective robust: a window that is nearly constant where it is observed has a tiny scale, and one jump
in its hidden part would otherwise be worth more than all other windows together. It clamps training targets alone; what
is sampled is not clamped. Per example, from the example alone.
"""

from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor
from torch.nn import functional as F

from tamedit.choices import Anchor, Frozen
from tamedit.data.scaling import Scaling
from tamedit.streams import example_keys, uniforms
from tamedit.windows.anchor import free_fill
from tamedit.windows.batch import Batch, Context
from tamedit.windows.cut import Windows
from tamedit.windows.masks import MaskConfig, draw_masks


class ExampleConfig(Frozen):
    """How windows become examples: public facts, none of them taken from private data."""

    anchor: Anchor = "seasonal"
    period: PositiveInt = 24
    residual_limit: PositiveFloat | None = 5.0  # in units of the window's scale; None for the paper's form
    channels: PositiveInt | None = None  # K_max: pad the targets up to this many channels


def build_context(
    values: Float[Tensor, "B L K"],
    observed: Bool[Tensor, "B L K"],
    covariates: Float[Tensor, "B L V"],
    scaling: Scaling,
    config: ExampleConfig,
) -> tuple[Context, Float[Tensor, "B 1 K"], Float[Tensor, "B 1 K"]]:
    """What may be seen, and the units it is in. Values at unobserved cells are never read, whatever they hold."""
    level, scale = scaling.units(values, observed)
    known = torch.where(observed, (values - level) / scale, 0.0)
    anchored = config.anchor == "seasonal"
    anchor = free_fill(known, observed, config.period) if anchored else torch.zeros_like(known)
    channels = torch.ones(len(values), values.shape[2])
    return Context(known, observed.to(known.dtype), anchor, covariates, channels), level, scale


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
    context, level, scale = build_context(values, observed, covariates, scaling, config)
    residual = torch.where(hidden, (values - level) / scale - context.anchor, 0.0)
    if config.residual_limit is not None:
        residual = residual.clamp(-config.residual_limit, config.residual_limit)
    batch = Batch(context, residual, hidden.to(residual.dtype), level, scale)
    return batch if config.channels is None else pad_channels(batch, config.channels)


def pad_channels(batch: Batch, channels: int) -> Batch:
    """Targets padded up to K_max channels: never observed, never hidden, marked as not real."""
    missing = channels - batch.residual.shape[2]
    if missing == 0:
        return batch

    def pad(value: Tensor, fill: float = 0.0) -> Tensor:
        return F.pad(value, (0, missing), value=fill)

    context = pad_context(batch.context, channels)
    return Batch(context, pad(batch.residual), pad(batch.hidden), pad(batch.level), pad(batch.scale, 1.0))


def pad_context(context: Context, channels: int | None) -> Context:
    """The same for what may be seen; as it is without a K_max."""
    missing = 0 if channels is None else channels - context.values.shape[2]
    if missing == 0:
        return context
    padded = {
        name: F.pad(getattr(context, name), (0, missing)) for name in ("values", "observed", "anchor", "channels")
    }
    return replace(context, **padded)


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
