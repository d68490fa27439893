"""Which steps of a window are hidden: six schemes, one row of a vectorised draw per example.

    random           a share r ~ U[0.1, 0.5] of the steps
    block            the last h steps, h ~ U{24 … 96}, at most ⌊0.75 L⌋
    stride           n ~ U{4 … 8} equal blocks, every second one, with a random phase
    gap              one stretch of a share U[1/7, 5/7] of the steps, anywhere
    few              all but one stretch of a share U[1/14, 3/7] of the steps, anywhere
    reconstruction   all steps

A mask is 1 where a step is observed, and is the same for all targets of an example. Each scheme is a pure function of the
example's own uniforms (`streams.uniforms`): no mask depends on another example, on its neighbours in the batch or on
the size of the batch.

Two more belong to evaluation alone, in seasons of P steps:

    known before last  only s seasons just before the last season
    long gap           h seasons in a row are hidden, h ~ U{2 … 5}, at a random place; at least one season stays observed
"""

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Bool, Float, UInt64
from pydantic import Field, model_validator
from torch import Tensor

from tamedit.choices import Frozen
from tamedit.errors import UserError
from tamedit.streams import uniforms

Uniforms = Float[Tensor, "B N"]


class MaskConfig(Frozen):
    """Ranges of the schemes (the paper's), and how often each is drawn."""

    ratio: tuple[float, float] = (0.1, 0.5)
    horizon: tuple[int, int] = (24, 96)
    horizon_cap: float = 0.75  # of the window
    blocks: tuple[int, int] = (4, 8)
    gap: tuple[float, float] = (1 / 7, 5 / 7)  # of the window
    few: tuple[float, float] = (1 / 14, 3 / 7)
    weights: dict[str, float] = Field(
        default={"random": 0.35, "block": 0.35, "stride": 0.2, "reconstruction": 0.1}, validate_default=True
    )

    @model_validator(mode="after")
    def _check(self) -> "MaskConfig":
        unknown = set(self.weights) - set(SCHEMES)
        if unknown or not self.weights or min(self.weights.values()) < 0 or sum(self.weights.values()) <= 0:
            raise UserError(f"mask weights {self.weights} must be non-negative shares of {', '.join(SCHEMES)}.")
        for name in ("ratio", "horizon", "blocks", "gap", "few"):
            low, high = getattr(self, name)
            if not 0 < low <= high:
                raise UserError(f"mask range {name}=({low}, {high}) must rise from above 0; swap or raise its ends.")
        return self


def without_reconstruction(config: MaskConfig) -> MaskConfig:
    """Settings that never hide everything, for models without a level and scale to generate a whole window in."""
    weights = {name: weight for name, weight in config.weights.items() if name != "reconstruction"}
    return config.model_copy(update={"weights": weights})


def _whole(uniform: Float[Tensor, "B 1"], low: int, high: int) -> Float[Tensor, "B 1"]:
    """Uniform whole numbers low … high."""
    return low + torch.floor(uniform * (high - low + 1))


def random_mask(u: Uniforms, length: int, config: MaskConfig) -> Bool[Tensor, "B L"]:
    """Hides ⌊r L + 1/2⌋ steps (at least one): those with the smallest of L uniforms."""
    low, high = config.ratio
    hidden = torch.floor((low + (high - low) * u[:, :1]) * length + 0.5).clamp(1, length)
    order = u[:, 1 : length + 1].argsort(dim=1, stable=True)
    rank = torch.empty_like(order).scatter_(1, order, torch.arange(length).expand_as(order).contiguous())
    return rank >= hidden


def block_mask(u: Uniforms, length: int, config: MaskConfig) -> Bool[Tensor, "B L"]:
    """Hides the last h steps."""
    cap = max(int(config.horizon_cap * length), 1)
    low, high = min(config.horizon[0], cap), min(config.horizon[1], cap)
    return torch.arange(length) < length - _whole(u[:, :1], low, high)


def stride_mask(u: Uniforms, length: int, config: MaskConfig) -> Bool[Tensor, "B L"]:
    """Cuts the window into n equal blocks and hides every second one."""
    count = _whole(u[:, :1], *config.blocks).clamp(max=length)
    phase = _whole(u[:, 1:2], 0, 1)
    block = torch.floor(torch.arange(length) * count / length)
    return (block + phase) % 2 == 0


def gap_mask(u: Uniforms, length: int, config: MaskConfig) -> Bool[Tensor, "B L"]:
    """Hides one stretch, as an outage of days does."""
    return ~_stretch(u, length, config.gap)


def few_mask(u: Uniforms, length: int, config: MaskConfig) -> Bool[Tensor, "B L"]:
    """Shows one stretch alone, as of a meter that is new."""
    return _stretch(u, length, config.few)


def _stretch(u: Uniforms, length: int, share: tuple[float, float]) -> Bool[Tensor, "B L"]:
    """One run of steps, its share of the window and its place uniform; at least one step, and never all."""
    size = torch.floor((share[0] + (share[1] - share[0]) * u[:, :1]) * length + 0.5).clamp(1, max(length - 1, 1))
    first = torch.floor(u[:, 1:2] * (length - size + 1)).clamp(max=length - 1)
    step = torch.arange(length)
    return (step >= first) & (step < first + size)


def reconstruction_mask(u: Uniforms, length: int, config: MaskConfig) -> Bool[Tensor, "B L"]:
    """Hides everything."""
    return torch.zeros(len(u), length, dtype=torch.bool)


SCHEMES: dict[str, Callable[[Uniforms, int, MaskConfig], Bool[Tensor, "B L"]]] = {
    "random": random_mask,
    "block": block_mask,
    "stride": stride_mask,
    "gap": gap_mask,
    "few": few_mask,
    "reconstruction": reconstruction_mask,
}


def draw_masks(keys: UInt64[np.ndarray, " B"], length: int, config: MaskConfig) -> Bool[Tensor, "B L"]:
    """One mask per example; the scheme is also drawn from the example's own stream."""
    u = uniforms(keys, length + 2)  # the first chooses the scheme, the rest belong to it
    names = list(config.weights)
    shares = torch.tensor([config.weights[name] for name in names], dtype=torch.float64)
    edges = (shares.cumsum(0) / shares.sum())[:-1].to(u.dtype)
    choice = torch.bucketize(u[:, 0].contiguous(), edges, right=True)  # (B,)
    candidates = torch.stack([SCHEMES[name](u[:, 1:], length, config) for name in names])  # (schemes, B, L)
    return candidates[choice, torch.arange(len(u))]


def task_config(name: str, horizon: int | None = None) -> MaskConfig:
    """The masks of one task alone, as evaluation wants them: one scheme, and for `block` a fixed horizon if given."""
    fixed = {} if horizon is None else {"horizon": (horizon, horizon), "horizon_cap": 1.0}
    return MaskConfig(weights={name: 1.0}, **fixed)  # type: ignore[arg-type]


def known_before_last(examples: int, length: int, period: int, seasons: int) -> Bool[Tensor, "B L"]:
    """Observed: the `seasons` just before the last one. Everything earlier, and the last season, is hidden."""
    step, last = torch.arange(length), length - period
    return ((step >= last - seasons * period) & (step < last)).expand(examples, length)


def long_gap(keys: UInt64[np.ndarray, " B"], length: int, period: int, seasons: tuple[int, int]) -> Bool[Tensor, "B L"]:
    """Hidden: h seasons in a row, h ~ U{seasons}, at most ⌊L / P⌋ − 1 of them; every place is equally likely."""
    u = uniforms(keys, 2)
    most = max(length // period - 1, 1)
    hidden = period * _whole(u[:, :1], min(seasons[0], most), min(seasons[1], most))  # (B, 1)
    first = torch.floor(u[:, 1:] * (length - hidden + 1)).minimum(length - hidden)
    step = torch.arange(length)
    return (step < first) | (step >= first + hidden)
