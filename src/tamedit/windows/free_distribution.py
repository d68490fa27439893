"""The free distribution: what a window's own observed cells say about every one of its cells, without any training.

For cell t of a window and channel, in units of the window, F_t is a mixture of four components made of the observed cells j ≠ t:

    recent           a kernel around each x_j, weighted by how close it is in the hour of the day and in days
    near             a kernel around each x_j, weighted by the steps between
    line, profile    a bridge between the nearest observed neighbours, with its own leave-one-out errors (`bridges`)

and a little of one broad bell, so that tails reach beyond what was observed. The share π of a component is found by each window
for itself: the likelihood of its own observed cells when they are left out is maximised by EM, with pseudo-counts in favour of
a public prior. Cells far from any reading must not trust neighbours, so there are three sets of shares, found by
leaving out the cell alone, or with it all cells that are fewer than `gaps` steps away (the shares that a long gap or
a forecast would have needed). A mixture is wider than its best component: z is multiplied by `sharpen`.

The map z = Φ⁻¹(F_t(x)) is stored as a table of rising knots (x, z) per cell, straight between knots and beyond the last ones;
so its inverse is exact. Under F_t itself z is N(0, 1). Cells that are not observed are never read and windows never meet.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from tamedit.windows.anchor import neighbours
from tamedit.windows.bridges import ERRORS, Bridge, bridge, ends, errors, season_profile

COMPONENTS = ("recent", "near", "line", "profile")
LEFT_OUT = 80  # at least as many cells are left out in turn to find the shares, where there are as many
ROWS = 48  # windows and channels at a time: what they need fits into the processor's cache


@dataclass(frozen=True)
class Constants:
    """All that is not found by each window for itself: the same for all data (benchmarks/free_distribution.py chose it)."""

    hours: float = 1.4  # how far the same hour reaches; hours are 24ths of a season
    days: float = 5.0  # how fast days are forgotten
    steps: float = 1.0  # how near a neighbour is
    kernel: float = (
        0.3  # width around each observed cell, of the range that holds a tenth of the window's cells around it
    )
    widths: tuple[float, float] = (0.01, 0.1)  # least and largest width, of the window's scale
    broad: float = 0.01  # the share of the broad bell
    memory: tuple[float, float] = (200.0, 10.0)  # of the deviations from the mean (line) and from the profile, in hours
    gaps: tuple[int, ...] = (0, 4, 6)  # hours left out around a cell, one for every set of shares
    reach: tuple[int, ...] = (1, 4)  # hours to the nearest reading up to which the first sets are used
    prior: tuple[tuple[float, ...], ...] = ((3, 1, 2, 1), (3, 0.5, 0.5, 2), (5, 0.01, 0.01, 1))
    strength: float = 6.0  # cells that the prior counts for
    rounds: int = 8  # of EM
    sharpen: tuple[float, ...] = (1.25, 1.2, 1.15)


DEFAULT = Constants()
COMMON, AROUND = 32, (-2.6, -1.4, -0.7, -0.2, 0.2, 0.7, 1.4, 2.6)  # 32 + 2 · 8 knots
KNOTS = COMMON + 2 * len(AROUND)
WIDTH, BEYOND, LEAST_SLOPE, STEP = 1.5, 3.0, 0.01, 1e-5
TAIL = 1e-5  # least F and 1 − F at a knot: single precision knows 1 − F to 6e-8, so z further out would be rounding


@dataclass(frozen=True, eq=False)
class FreeDistribution:
    """F_t of every cell: knots of x (in units of the window) and the z that belongs to each; both rise along the last axis."""

    knots: Float[Tensor, "B L K G"]
    z: Float[Tensor, "B L K G"]
    level: Float[Tensor, "B 1 K"]
    scale: Float[Tensor, "B 1 K"]

    def to_z(self, values: Float[Tensor, "B L K"]) -> Float[Tensor, "B L K"]:
        """Φ⁻¹(F_t(x)) of a value in the data's units for every cell."""
        return _interpolate(self.knots, self.z, ((values - self.level) / self.scale)[..., None])[..., 0]

    def from_z(self, z: Float[Tensor, "B S L K"]) -> Float[Tensor, "B S L K"]:
        """F_t⁻¹(Φ(z)), in the data's units, for S numbers per cell."""
        units = _interpolate(self.z, self.knots, z.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        return units * self.scale[:, None] + self.level[:, None]

    def quantiles_in_units(self, probabilities: tuple[float, ...]) -> Float[Tensor, "B L K Q"]:
        """The values below which these shares of F_t lie, in units of the window."""
        z = torch.special.ndtri(torch.tensor(probabilities, dtype=torch.float64)).to(self.z)
        return _interpolate(self.z, self.knots, z.expand(*self.z.shape[:-1], len(probabilities)))


def _interpolate(
    of: Float[Tensor, "*cells G"], to: Float[Tensor, "*cells G"], at: Float[Tensor, "*cells S"]
) -> Float[Tensor, "*cells S"]:
    """Straight lines between knots, and beyond the ends as between the last two."""
    right = torch.searchsorted(of.contiguous(), at.contiguous()).clamp(1, of.shape[-1] - 1)
    low, high = of.gather(-1, right - 1), of.gather(-1, right)
    share = (at - low) / (high - low).clamp_min(1e-9)
    return torch.lerp(to.gather(-1, right - 1), to.gather(-1, right), share)


@torch.no_grad()
def free_distribution(
    values: Float[Tensor, "B L K"],
    observed: Bool[Tensor, "B L K"],
    period: int,
    level: Float[Tensor, "B 1 K"],
    scale: Float[Tensor, "B 1 K"],
    constants: Constants = DEFAULT,
) -> FreeDistribution:
    """F_t of every cell. `level` and `scale` come from `Scaling.units`: their floors hold a constant window together."""
    batch, length, channels = values.shape
    units = torch.where(observed, (values - level) / scale, 0.0).transpose(1, 2).reshape(-1, length)
    seen = observed.transpose(1, 2).reshape(-1, length)
    geometry = _geometry(length, period, constants)
    parts = [
        _tables(one, known, geometry, constants) for one, known in zip(units.split(ROWS), seen.split(ROWS), strict=True)
    ]
    knots, z = (
        torch.cat(both).view(batch, channels, length, KNOTS + 2).transpose(1, 2).contiguous()
        for both in zip(*parts, strict=True)
    )
    return FreeDistribution(knots, z, level, scale)


@dataclass(frozen=True, eq=False)
class _Geometry:
    """What depends on places alone, not on readings."""

    near: Float[Tensor, "C L L"]  # the weight of cell j for cell t in each kernel component; 0 for j = t
    left_out: Float[Tensor, "J L Q"]  # the same for the cells that are left out in turn, for every gap (Q = sets · C)
    used: slice  # which cells these are
    other_days: Float[Tensor, "L L"]  # the weights of the profile
    hour: float  # steps
    gaps: tuple[int, ...]  # steps


@lru_cache(maxsize=8)
def _geometry(length: int, period: int, constants: Constants) -> _Geometry:
    step = torch.arange(length, dtype=torch.float32)
    apart = (step[:, None] - step).abs()
    seasonal = 1 < period < length
    season = float(period) if seasonal else max(length / 7, 1.0)
    hour = max(season / 24, 1.0)
    around = torch.minimum(apart % season, season - apart % season)
    same = torch.exp(-0.5 * (around / max(constants.hours * season / 24, 0.5)) ** 2)
    same = same if seasonal else torch.ones_like(apart)
    recent = same * torch.exp(-apart / season / constants.days)
    steps = (1 + (apart / constants.steps) ** 2) ** -1.5
    near = torch.stack([recent, steps]) * (apart > 0)
    other_days = recent * (apart >= season / 2) * float(seasonal)
    gaps = tuple(round(gap * hour) for gap in constants.gaps)
    used = slice(None, None, max(length // LEFT_OUT, 1))  # cells of long windows in turn: as good, and cheaper
    places = torch.stack([near * (apart > gap) for gap in gaps])[:, :, used]  # (sets, C, J, L)
    return _Geometry(near, places.permute(2, 3, 0, 1).flatten(2).contiguous(), used, other_days, hour, gaps)


def _tables(
    units: Float[Tensor, "N L"], seen: Bool[Tensor, "N L"], geometry: _Geometry, constants: Constants
) -> tuple[Float[Tensor, "N L G"], Float[Tensor, "N L G"]]:
    """Knots and z of a few windows and channels."""
    count = seen.to(units.dtype)
    profile = season_profile(units, count, geometry.other_days)
    near = neighbours(seen[..., None])
    bases = [(base, units.sub(base).mul_(count)) for base in (torch.zeros_like(units), profile)]
    bridged = [
        [
            bridge(deviation, base, memory * geometry.hour, end)
            for (base, deviation), memory in zip(bases, constants.memory, strict=True)
        ]
        for end in (ends(seen, gap, near) for gap in geometry.gaps)
    ]
    ordered, order = torch.where(seen, units, torch.inf).sort(dim=1)
    widths = _widths(ordered, order, seen, constants)
    shares = _shares(units, count, widths, geometry, bridged, constants)  # (N, sets, components)
    chosen = _sets(near.before[..., 0], near.after[..., 0], seen, geometry.hour, constants)
    share = shares.gather(1, chosen[..., None].expand(*chosen.shape, shares.shape[2]))  # (N, L, C)
    common = _common_knots(ordered, seen)  # (N, G)
    below, mass = _kernels(units, count, widths, common, share, geometry)
    lines = [errors([one[which] for one in bridged], chosen) for which in range(2)]
    around = torch.tensor(AROUND) / ERRORS
    extra = torch.cat([one.centre + one.scale * around for one in lines], -1)
    knots, cumulative = _merged(common[:, None].expand_as(below), below, extra)
    knots += STEP * torch.arange(knots.shape[-1])
    for which, line in enumerate(lines):
        held = share[..., len(geometry.near) + which, None] * line.known
        cumulative.addcmul_(line.cumulative(knots), held)
        mass = mass + held
    kept = 1 - constants.broad
    broad = torch.mul(knots, 1 / (WIDTH * ERRORS)).sigmoid_().mul_(1 - kept * mass)
    cumulative = cumulative.mul_(kept).add_(broad)
    z = cumulative.clamp_(TAIL, 1 - TAIL).mul_(2).sub_(1).erfinv_()  # Φ⁻¹(F) / √2, much faster than ndtri
    np.maximum.accumulate(z.numpy(), axis=-1, out=z.numpy())  # twice as fast as cummax
    z = z.mul_(2**0.5 * torch.tensor(constants.sharpen)[chosen][..., None]).add_(knots, alpha=LEAST_SLOPE)
    tails = torch.tensor([-BEYOND, BEYOND])
    knots = torch.cat([knots[..., :1] + tails[0], knots, knots[..., -1:] + tails[1]], -1)
    return knots, torch.cat([z[..., :1] + tails[0], z, z[..., -1:] + tails[1]], -1)


def _kernels(
    units: Float[Tensor, "N L"],
    count: Float[Tensor, "N L"],
    widths: Float[Tensor, "N L"],
    common: Float[Tensor, "N G"],
    share: Float[Tensor, "N L C"],
    geometry: _Geometry,
) -> tuple[Float[Tensor, "N L G"], Float[Tensor, "N L 1"]]:
    """The kernel components' part of F_t at the common knots, and how much of F_t they are."""
    totals = [(count @ place.T)[..., None] for place in geometry.near]  # (N, L, 1)
    held = [share[..., one, None] * (total > 0) for one, total in enumerate(totals)]
    atoms = torch.sub(common[:, None], units[..., None]).mul_(1 / widths[..., None])
    atoms = atoms.sigmoid_().mul_(count[..., None])  # (N, L, G)
    each = (geometry.near.flatten(0, 1) @ atoms).chunk(len(totals), 1)  # (N, L, G) of every component
    below = torch.zeros_like(atoms)
    for one, total, part in zip(held, totals, each, strict=True):
        below.addcmul_(one / total.clamp_min(1e-20), part)
    return below, torch.stack(held).sum(0)


def _merged(
    common: Float[Tensor, "N L G"], below: Float[Tensor, "N L G"], extra: Float[Tensor, "N L E"]
) -> tuple[Float[Tensor, "N L H"], Float[Tensor, "N L H"]]:
    """Both kinds of knots in order, and the kernels' part at all of them: by straight lines between the common ones."""
    size = common.shape[-1]
    knots = torch.cat([common, extra], -1)
    order = torch.from_numpy(np.argsort(knots.numpy(), axis=-1, kind="stable"))  # twice as fast as torch's
    place = torch.empty_like(order).scatter_(-1, order, torch.arange(knots.shape[-1]).expand_as(order))
    common_so_far = (order < size).cumsum(-1, dtype=torch.int16)
    right = common_so_far.gather(-1, place[..., size:]).long().clamp_(1, size - 1)  # the next common knot
    left = right - 1
    low, low_below = common.gather(-1, left), below.gather(-1, left)
    share = ((extra - low) / (common.gather(-1, right) - low)).clamp_(0, 1)
    between = torch.lerp(low_below, below.gather(-1, right), share)
    return knots.gather(-1, order), torch.cat([below, between], -1).gather(-1, order)


def _sets(
    before: Int64[Tensor, "N L"],
    after: Int64[Tensor, "N L"],
    seen: Bool[Tensor, "N L"],
    hour: float,
    constants: Constants,
) -> Int64[Tensor, "N L"]:
    """Which set of shares a cell uses: by the steps to the nearest observed cell but itself."""
    length = seen.shape[1]
    step = torch.arange(length)
    left = torch.where(before < 0, -(10**6), before).roll(1, dims=1)
    right = torch.where(after >= length, 10**6, after).roll(-1, dims=1)
    left[:, 0], right[:, -1] = -(10**6), 10**6
    nearest = torch.minimum(step - left, right - step)
    return torch.stack([nearest > reach * hour for reach in constants.reach]).sum(0)


def _shares(
    units: Float[Tensor, "N L"],
    count: Float[Tensor, "N L"],
    widths: Float[Tensor, "N L"],
    geometry: _Geometry,
    bridged: list[list[Bridge]],
    constants: Constants,
) -> Float[Tensor, "N sets C"]:
    """π by EM: likelihoods of the observed cells under each component when they, and what lies around them, are left out."""
    used = geometry.used
    narrow = 1 / widths[:, None]
    bell = torch.sub(units[:, used, None], units[:, None]).mul_(narrow).sigmoid_()
    bell.addcmul_(bell, bell, value=-1).mul_(narrow * count[:, None])  # (N, j, i): the kernel around i, at j
    found = torch.bmm(bell.transpose(0, 1), geometry.left_out)  # (J, N, Q)
    total = torch.matmul(count, geometry.left_out)
    atoms = (found / total.clamp_min(1e-20)).unflatten(2, (len(geometry.gaps), -1)).permute(3, 1, 2, 0)
    none = torch.zeros_like(units, dtype=torch.long)
    lines = [
        torch.stack([errors([one], none).density(units)[:, used] for one in each], 1)
        for each in zip(*bridged, strict=True)
    ]
    broad = torch.sigmoid(units[:, used] / (WIDTH * ERRORS))
    floor = constants.broad * (broad * (1 - broad)) / (WIDTH * ERRORS) + 1e-9
    likelihood = torch.cat([atoms, torch.stack(lines)]) + floor[:, None]  # (C, N, sets, J)
    prior = torch.tensor(constants.prior).T[:, None]
    prior = prior / prior.sum(0)  # (C, 1, sets)
    share = prior.expand(-1, len(units), -1)
    chosen, cells = count[:, None, used], count[:, used].sum(1)[:, None]
    for _ in range(constants.rounds):
        total = (likelihood * share[..., None]).sum(0)
        held = (likelihood * (chosen / total)).sum(-1) * share
        share = (held + constants.strength * prior) / (cells + constants.strength)
    return share.permute(1, 2, 0)


def _widths(
    ordered: Float[Tensor, "N L"], order: Int64[Tensor, "N L"], seen: Bool[Tensor, "N L"], constants: Constants
) -> Float[Tensor, "N L"]:
    """Kernels are narrow where values lie close together, as at a home's base load, and wide where they are rare."""
    count = seen.sum(1, keepdim=True)
    rank = torch.arange(ordered.shape[1]).expand_as(order)
    side = (count + 19) // 20
    high = ordered.gather(1, torch.minimum(rank + side, count - 1).clamp_min(0))
    low = ordered.gather(1, (torch.minimum(rank, count - 1) - side).clamp_min(0))
    width = (constants.kernel * (high - low)).nan_to_num(posinf=0.0).clamp(*constants.widths)
    return torch.empty_like(ordered).scatter_(1, order, width)


def _common_knots(ordered: Float[Tensor, "N L"], seen: Bool[Tensor, "N L"]) -> Float[Tensor, "N G"]:
    """Three quarters at equal ranks of the observed values, the others evenly over their range and beyond it."""
    ranks = 3 * COMMON // 4
    last = (seen.sum(1, keepdim=True) - 1).clamp_min(0)
    place = torch.linspace(0, 1, ranks) * last
    quantile = ordered.gather(1, place.round().long()).nan_to_num(posinf=0.0)
    low, high = quantile[:, :1] - BEYOND, quantile[:, -1:] + BEYOND
    even = low + (high - low) * torch.linspace(0, 1, COMMON - ranks)
    return torch.cat([quantile, even], 1).sort(dim=1).values + STEP * torch.arange(COMMON)
