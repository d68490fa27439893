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
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor
from torch.nn.functional import pad

from tamedit.windows.anchor import Neighbours

ERRORS = 1 / (2 * log(2))  # the scale of a logistic distribution whose mean size is 1
PRIOR_CELLS = 1.0  # errors of the window's own scale that are added
FAR = 10**9  # steps: nothing was observed there
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


class Ends(NamedTuple):
    """The nearest observed cells that are more than a gap of steps away: where they are, and how many steps away."""

    before: Int64[Tensor, "N L"]  # a cell that exists, also where none was observed
    after: Int64[Tensor, "N L"]
    p: Float[Tensor, "N L"]  # steps; very many where none was observed
    q: Float[Tensor, "N L"]
    known: Bool[Tensor, "N L"]  # whether anything was observed on either side
    errors: Bool[Tensor, "N L"]  # whether the cell itself was, too


def ends(seen: Bool[Tensor, "N L"], gap: int, near: Neighbours) -> Ends:
    """What a bridge stands on; the same for every base and memory."""
    length = seen.shape[1]
    step = torch.arange(length)
    moved = min(gap + 1, length)
    before = pad(near.before[:, : length - moved, 0], (moved, 0), value=-1)
    after = pad(near.after[:, moved:, 0], (0, moved), value=length)
    left, right = before >= 0, after < length
    p = torch.where(left, step - before, FAR).to(torch.float32)
    q = torch.where(right, after - step, FAR).to(torch.float32)
    known = left | right
    return Ends(before.clamp_min_(0), after.clamp_max_(length - 1), p, q, known, seen & known)


def bridge(deviation: Float[Tensor, "N L"], base: Float[Tensor, "N L"], memory: float, end: Ends) -> Bridge:
    """Every cell from its ends, and the errors at the observed ones. `deviation` x − base counts at observed cells alone."""
    rise_p, rise_q, whole = (-torch.expm1(one * (-2 / memory)) for one in (end.p, end.q, end.p + end.q))
    at_left = torch.exp(end.p * (-1 / memory)) * rise_q / whole * deviation.gather(1, end.before)
    at_right = torch.exp(end.q * (-1 / memory)) * rise_p / whole * deviation.gather(1, end.after)
    moved, spread = at_left + at_right, (rise_p * rise_q / whole).sqrt()
    error = ((deviation - moved) / spread).abs() * end.errors
    cells = end.errors.sum(1, keepdim=True)
    size = (error.sum(1, keepdim=True) + PRIOR_CELLS) / (cells + PRIOR_CELLS)
    return Bridge(base + moved, spread, end.known, size)


def errors(sets: list[Bridge], chosen: Int64[Tensor, "N L"]) -> Errors:
    """The first bridge (nothing left out but the cell) with the errors of the set that each cell uses."""
    first = sets[0]
    size = torch.cat([one.size for one in sets], 1).gather(1, chosen)  # (N, L)
    scale = ERRORS * first.spread * size
    return Errors(first.mean[..., None], scale[..., None], first.known[..., None].to(size.dtype))
