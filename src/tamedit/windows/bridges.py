"""Every cell predicted from its observed neighbours, itself left out, with the errors that such predictions have.

Deviations a = x − base from a base follow an Ornstein–Uhlenbeck process with memory ℓ: corr(a_s, a_t) = ρ^|s − t|, ρ = exp(−1/ℓ).
It is Markov, so the best guess of a cell from all others needs only the nearest on each side, p and q steps away:

    mean      base + (ρ^p (1 − ρ^2q) a_left + ρ^q (1 − ρ^2p) a_right) / (1 − ρ^2(p+q))
    spread²   (1 − ρ^2p) (1 − ρ^2q) / (1 − ρ^2(p+q))          of the variance of the process

With a long memory and base 0 this is a straight line whose spread grows with the distance to the readings; with a short
memory and the profile of other days as base, it returns from the last reading to the usual day.

The errors (x − mean) / spread of the observed cells give the width of a logistic distribution around the mean of every cell.
"""

from dataclasses import dataclass
from math import log

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from tamedit.windows.anchor import Neighbours

ERRORS = 1 / (2 * log(2))  # the scale of a logistic distribution whose mean size is 1
PRIOR_CELLS = 1.0  # errors of the window's own scale that are added
SHRINK = 0.1  # of the profile towards the window's mean, in weights of a cell


@dataclass(frozen=True, eq=False)
class Bridge:
    """The prediction of every cell in units of the window."""

    mean: Float[Tensor, "N L"]
    spread: Float[Tensor, "N L"]
    known: Bool[Tensor, "N L"]  # whether anything was observed on either side
    size: Float[Tensor, "N 1"]  # mean size of the errors, in spreads


@dataclass(frozen=True, eq=False)
class Errors:
    """A logistic distribution around each cell."""

    centre: Float[Tensor, "N L 1"]
    scale: Float[Tensor, "N L 1"]
    known: Float[Tensor, "N L 1"]  # 0 where there is none

    def cumulative(self, knots: Float[Tensor, "N L G"]) -> Float[Tensor, "N L G"]:
        return torch.sub(knots, self.centre).mul_(1 / self.scale).sigmoid_()

    def density(self, at: Float[Tensor, "N L"]) -> Float[Tensor, "N L"]:
        half = self.cumulative(at[..., None])
        return (half * (1 - half) / self.scale * self.known)[..., 0]


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
    cells = (seen & known).sum(1, keepdim=True)
    size = (error.abs().sum(1, keepdim=True) + PRIOR_CELLS) / (cells + PRIOR_CELLS)
    return Bridge(mean, spread, known, size)


def errors(sets: list[Bridge], chosen: Int64[Tensor, "N L"]) -> Errors:
    """The first bridge (nothing left out but the cell) with the errors of the set that each cell uses."""
    first = sets[0]
    size = torch.cat([one.size for one in sets], 1).gather(1, chosen)  # (N, L)
    scale = ERRORS * first.spread * size
    return Errors(first.mean[..., None], scale[..., None], first.known[..., None].to(size.dtype))
