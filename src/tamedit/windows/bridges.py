"""Every cell predicted from its observed neighbours, itself left out, with the errors that such predictions have.

Deviations a = x − base from a base follow an Ornstein–Uhlenbeck process with memory ℓ: corr(a_s, a_t) = ρ^|s − t|, ρ = exp(−1/ℓ).
It is Markov, so the best guess of a cell from all others needs only the nearest on each side, p and q steps away:

    mean      base + (ρ^p (1 − ρ^2q) a_left + ρ^q (1 − ρ^2p) a_right) / (1 − ρ^2(p+q))
    spread²   (1 − ρ^2p) (1 − ρ^2q) / (1 − ρ^2(p+q))          of the variance of the process

With a long memory and base 0 this is a straight line whose spread grows with the distance to the readings; with a short
memory and the profile of other days as base, it returns from the last reading to the usual day.

The errors (x − mean) / spread of the observed cells make a distribution of two halves, each a logistic one with the mean size of its
own side, so that it may be skewed.
"""

from dataclasses import dataclass
from math import log

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from tamedit.windows.anchor import Neighbours

ERRORS = 1 / (2 * log(2))  # the scale of a logistic distribution whose mean size is 1
PRIOR_CELLS = 1.0  # errors of the window's own scale that are added to each side
SHRINK = 0.1  # of the profile towards the window's mean, in weights of a cell


@dataclass(frozen=True, eq=False)
class Bridge:
    """The prediction of every cell in units of the window."""

    mean: Float[Tensor, "N L"]
    spread: Float[Tensor, "N L"]
    known: Bool[Tensor, "N L"]  # whether anything was observed on either side
    size: Float[Tensor, "N 2"]  # mean size of the errors below and above, in spreads
    below: Float[Tensor, "N 1"]  # share of errors below 0


@dataclass(frozen=True, eq=False)
class Errors:
    """A distribution around each cell: two logistic halves."""

    centre: Float[Tensor, "N L"]
    low: Float[Tensor, "N L 1"]  # scales
    high: Float[Tensor, "N L 1"]
    below: Float[Tensor, "N L 1"]
    known: Float[Tensor, "N L 1"]

    @property
    def width(self) -> Float[Tensor, "N L 1"]:
        return 0.5 * (self.low + self.high) / ERRORS

    def cumulative(self, knots: Float[Tensor, "N L G"], share: Float[Tensor, "N L 1"]) -> Float[Tensor, "N L G"]:
        """`share` times the distribution function: 2 · below · σ(error / low), then below + (1 − below) (2 σ(error / high) − 1)."""
        error = knots - self.centre[..., None]
        left = error < 0
        half = torch.sigmoid(error.mul_(torch.where(left, 1 / self.low, 1 / self.high)))
        half.mul_(torch.where(left, 2 * share * self.below, 2 * share * (1 - self.below)))
        return half.add_(torch.where(left, 0.0, share * (2 * self.below - 1)))

    def density(self, at: Float[Tensor, "N L"]) -> Float[Tensor, "N L"]:
        error = (at - self.centre)[..., None]
        scale = torch.where(error < 0, self.low, self.high)
        share = torch.where(error < 0, self.below, 1 - self.below)
        half = torch.sigmoid(error / scale)
        return (2 * share * half * (1 - half) / scale * self.known)[..., 0]


def season_profile(
    units: Float[Tensor, "N L"], count: Float[Tensor, "N L"], other_days: Float[Tensor, "L L"]
) -> Float[Tensor, "N L"]:
    """The weighted mean of the same hour on other days, drawn a little towards 0, the window's mean."""
    return ((units * count) @ other_days.T) / (count @ other_days.T + SHRINK)


def bridge(
    units: Float[Tensor, "N L"],
    seen: Bool[Tensor, "N L"],
    base: Float[Tensor, "N L"],
    memory: float,
    gap: int,
    near: Neighbours,
) -> Bridge:
    """Every cell from those that are more than `gap` steps away, and the errors at the observed ones."""
    length = units.shape[1]
    step = torch.arange(length)
    left, right = step - gap - 1, step + gap + 1
    before = torch.where(left >= 0, near.before[..., 0][:, left.clamp_min(0)], -1)
    after = torch.where(right < length, near.after[..., 0][:, right.clamp(max=length - 1)], length)
    deviation = torch.where(seen, units - base, 0.0)
    p = torch.where(before >= 0, (step - before).to(units.dtype), 1e9)
    q = torch.where(after < length, (after - step).to(units.dtype), 1e9)
    rise_p, rise_q, whole = (-torch.expm1(-2 * one / memory) for one in (p, q, p + q))
    at_left = torch.exp(-p / memory) * rise_q / whole * deviation.gather(1, before.clamp_min(0))
    at_right = torch.exp(-q / memory) * rise_p / whole * deviation.gather(1, after.clamp(max=length - 1))
    mean, spread = base + at_left + at_right, (rise_p * rise_q / whole).sqrt()
    known = (before >= 0) | (after < length)
    error = torch.where(seen & known, (units - mean) / spread, 0.0)
    sides = torch.stack([error < 0, error > 0], -1).to(units.dtype).sum(1)  # (N, 2)
    sizes = torch.stack([-error.clamp(max=0), error.clamp(min=0)], -1).sum(1)
    size = (sizes + PRIOR_CELLS) / (sides + PRIOR_CELLS)
    below = (sides[:, :1] + 1) / (sides.sum(1, keepdim=True) + 2)
    return Bridge(mean, spread, known, size, below)


def errors(sets: list[Bridge], count: Float[Tensor, "N L"], chosen: Int64[Tensor, "N L"] | None = None) -> Errors:
    """The first bridge (nothing left out but the cell) with the errors of the set that each cell uses."""
    first = sets[0]
    which = torch.zeros_like(count, dtype=torch.long) if chosen is None else chosen
    rows = torch.arange(len(count))[:, None]
    size = torch.stack([one.size for one in sets], 1)[rows, which]  # (N, L, 2)
    below = torch.stack([one.below for one in sets], 1)[rows, which]
    scale = ERRORS * first.spread[..., None] * size
    return Errors(first.mean, scale[..., :1], scale[..., 1:], below, first.known[..., None].to(count.dtype))
