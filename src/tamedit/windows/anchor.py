"""The free fill b(observed), a training-free guess from the example's own observed cells.

    observed cells             themselves
    short gaps                 linear interpolation between the observed neighbours
    long gaps, and ahead       the mean of the observed cells at the same phase of the season
    no such phase observed     linear interpolation inside, the nearest observed value at the ends
    nothing observed           0

A gap is short if it is at most a quarter of the season long and has observed cells on both sides. Everything is vectorised
over examples, steps and channels, and every example depends on itself alone.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor
from torch.nn import functional as F

SHORT_GAP = 0.25  # of a season


class Neighbours(NamedTuple):
    """The nearest observed steps before and after each cell (at or before, at or after); −1 and L where there is none."""

    before: Int64[Tensor, "B L K"]
    after: Int64[Tensor, "B L K"]


def neighbours(observed: Bool[Tensor, "B L K"]) -> Neighbours:
    length = observed.shape[1]
    step = torch.arange(length, device=observed.device)[None, :, None]
    before = torch.where(observed, step, -1).cummax(dim=1).values
    after = torch.where(observed, step, length).flip(1).cummin(dim=1).values.flip(1)
    return Neighbours(before, after)


def linear_interpolation(
    values: Float[Tensor, "B L K"], observed: Bool[Tensor, "B L K"], near: Neighbours | None = None
) -> Float[Tensor, "B L K"]:
    """A straight line between observed neighbours; the nearest observed value before the first and after the last; 0 if none."""
    near = near or neighbours(observed)
    length = values.shape[1]
    step = torch.arange(length, device=values.device)[None, :, None]
    clean = torch.where(observed, values, 0.0)
    left_step = torch.where(near.before < 0, near.after, near.before).clamp(max=length - 1)
    right_step = torch.where(near.after >= length, near.before, near.after).clamp(min=0)
    left, right = clean.gather(1, left_step), clean.gather(1, right_step)
    span = (right_step - left_step).clamp_min(1).to(values.dtype)
    weight = ((step - left_step) / span).clamp(0, 1)
    return torch.lerp(left, right, weight)


def seasonal_mean(
    values: Float[Tensor, "B L K"], observed: Bool[Tensor, "B L K"], period: int
) -> tuple[Float[Tensor, "B L K"], Bool[Tensor, "B L K"]]:
    """The mean of the observed cells at the same phase, and where there is one."""
    batch, length, channels = values.shape
    extra = -length % period
    shape = (batch, (length + extra) // period, period, channels)
    clean = F.pad(torch.where(observed, values, 0.0), (0, 0, 0, extra)).view(shape)
    seen = F.pad(observed.to(values.dtype), (0, 0, 0, extra)).view(shape)
    count = seen.sum(1, keepdim=True)
    mean = (clean.sum(1, keepdim=True) / count.clamp_min(1)).expand_as(clean).flatten(1, 2)
    known = (count > 0).expand_as(clean).flatten(1, 2)
    return mean[:, :length], known[:, :length]


def seasonal_naive(
    values: Float[Tensor, "B L K"], observed: Bool[Tensor, "B L K"], period: int
) -> tuple[Float[Tensor, "B L K"], Bool[Tensor, "B L K"]]:
    """The latest observed cell at the same phase (else the next one to come), and where there is one."""
    batch, length, channels = values.shape
    extra = -length % period
    shape = (batch, (length + extra) // period, period * channels)
    clean = F.pad(torch.where(observed, values, 0.0), (0, 0, 0, extra)).reshape(shape)
    near = neighbours(F.pad(observed, (0, 0, 0, extra)).reshape(shape))
    seasons = clean.shape[1]
    chosen = torch.where(near.before < 0, near.after, near.before)
    filled = clean.gather(1, chosen.clamp(max=seasons - 1)).reshape(batch, length + extra, channels)
    known = (chosen < seasons).reshape(batch, length + extra, channels)
    return filled[:, :length], known[:, :length]


def free_fill(
    values: Float[Tensor, "B L K"], observed: Bool[Tensor, "B L K"], period: int, short_gap: float = SHORT_GAP
) -> Float[Tensor, "B L K"]:
    """b(observed). `values` may be anything, NaN included, where `observed` is False."""
    near = neighbours(observed)
    line = linear_interpolation(values, observed, near)
    if period <= 1:
        return line
    season, known = seasonal_mean(values, observed, period)
    inside = (near.before >= 0) & (near.after < values.shape[1])
    short = inside & (near.after - near.before - 1 <= short_gap * period)
    return torch.where(observed | short | ~known, line, season)
