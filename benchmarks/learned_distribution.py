"""Does the free distribution get better when a few hundred numbers of it are learned? A prototype, not part of the product.

F_t stays the mixture of `tamedit.windows.free_distribution`. Learned, one set for all windows (θ = 0 is F_t itself):

    share of component c in cell t      π_c · exp(θ[set, hour, c] + θ[set, weekday, c])
    widths of kernels and bridges       times exp(θ[set, c])
    sharpen                             times exp(θ[set])

The loss is −log density of hidden cells, averaged over the hidden cells of an example; its gradient by example is clipped,
summed and noised as in a private run, with the noise, the divisor and the sampler of one `PrivacyPlan`. The noise of this
benchmark is repeatable, so it gives no guarantee. Score: CRPS as a multiple of F_t's, on homes (rows) that were not learned from.

    python benchmarks/learned_distribution.py --place cold --epsilon 0 8 1     0: without noise, the most that can be gained
    python benchmarks/learned_distribution.py --place etth1                    training rows alone: the last fifth is the test
    python benchmarks/learned_distribution.py --place cold --shipped           CRPS of the shipped model, untuned, beside it
"""

import argparse
from dataclasses import dataclass, replace
from importlib.resources import as_file

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from private_recipe import REGIONS, fleet
from torch import Tensor

from tamedit.data.calendar import network_covariates
from tamedit.data.loading import load_split
from tamedit.data.scaling import fit_scaling
from tamedit.data.series import Series
from tamedit.evaluation.baselines import own_units
from tamedit.privacy.plan import PrivacyPlan
from tamedit.runs.recipe import MASKS
from tamedit.streams import example_keys
from tamedit.tasks.model import Model
from tamedit.training.homes import PLACE
from tamedit.windows import free_distribution as free
from tamedit.windows.anchor import neighbours
from tamedit.windows.bridges import ERRORS, bridge, ends, errors, season_profile
from tamedit.windows.cut import Windows, cut
from tamedit.windows.masks import MaskConfig, draw_masks, task_config

CELLS, GRID, COMPONENTS, SETS = 24, 96, len(free.COMPONENTS), len(free.DEFAULT.gaps)
SHAPES = {
    "hour": (SETS, 24, COMPONENTS),
    "weekday": (SETS, 7, COMPONENTS),
    "width": (SETS, COMPONENTS),
    "sharp": (SETS,),
}
Parameters = dict[str, Tensor]


@dataclass(frozen=True, eq=False)
class Cells:
    """Some hidden cells of every window (N, M), and what F_t is made of there, in units of the window."""

    truth: Float[Tensor, "N M"]
    there: Float[Tensor, "N M"]  # 0 where there is no such hidden cell
    share: Float[Tensor, "N M C"]
    sets: Int64[Tensor, "N M"]
    hour: Int64[Tensor, "N M"]
    weekday: Int64[Tensor, "N M"]
    units: Float[Tensor, "N L"]
    widths: Float[Tensor, "N L"]
    atoms: Float[Tensor, "N M J 2"]  # weights of the observed cells in the kernels
    centre: Float[Tensor, "N M 2"]  # of line and profile
    spread: Float[Tensor, "N M 2"]
    scale: Float[Tensor, " N"]
    place: Int64[Tensor, "N M"]
    seen: Bool[Tensor, "N L"]


def cells_of(
    series: Series, starts: Int64[np.ndarray, " N"], length: int, masks: MaskConfig, seed: int, purpose: str
) -> Cells:
    """Windows of one channel and their hidden cells."""
    rows = starts[:, None] + np.arange(length)
    values = torch.from_numpy(series.values[rows, 0]).float()
    mask = draw_masks(example_keys(seed, purpose, 0, starts), length, masks)
    seen = torch.isfinite(values) & mask
    scaling = own_units(fit_scaling("instance", series))
    level, scale = scaling.units(torch.where(seen, values, 0.0)[..., None], seen[..., None])
    hidden = torch.isfinite(values) & ~mask
    order = torch.rand(hidden.shape, generator=torch.Generator().manual_seed(seed)).masked_fill(~hidden, 2.0).argsort(1)
    place = order[:, :CELLS]
    times = series.times.to_numpy()[rows]
    hours = torch.from_numpy((times.astype("datetime64[h]").astype(np.int64)) % 24)
    days = torch.from_numpy((times.astype("datetime64[D]").astype(np.int64) + 3) % 7)
    return _cells((values - level[..., 0]) / scale[..., 0], seen, hidden, place, hours, days, scale[:, 0, 0])


def _cells(
    units: Float[Tensor, "N L"],
    seen: Bool[Tensor, "N L"],
    hidden: Bool[Tensor, "N L"],
    place: Int64[Tensor, "N M"],
    hours: Int64[Tensor, "N L"],
    days: Int64[Tensor, "N L"],
    scale: Float[Tensor, " N"],
) -> Cells:
    """The parts of `free_distribution._tables` that come before the shares are used."""
    constants, geometry = free.DEFAULT, free._geometry(units.shape[1], 24, free.DEFAULT)
    truth, units, count = units.nan_to_num(), torch.where(seen, units, 0.0), seen.float()
    near = neighbours(seen[..., None])
    bases = [torch.zeros_like(units), season_profile(units, count, geometry.other_days)]
    bridged = [
        [
            bridge((units - base) * count, base, memory * geometry.hour, end)
            for base, memory in zip(bases, constants.memory, strict=True)
        ]
        for end in (ends(seen, gap, near) for gap in geometry.gaps)
    ]
    widths = free._widths(*torch.where(seen, units, torch.inf).sort(dim=1), seen, constants)
    shares = free._shares(units, count, widths, geometry, bridged, constants)
    chosen = free._sets(near.before[..., 0], near.after[..., 0], seen, geometry.hour, constants)
    lines = [errors([one[which] for one in bridged], chosen) for which in range(2)]
    weights = geometry.near.permute(1, 2, 0)[place] * count[:, None, :, None]  # (N, M, J, 2)
    total = weights.sum(2, keepdim=True)

    def at(one: Tensor) -> Tensor:
        return one.gather(1, place)

    sets = at(chosen)
    return Cells(
        at(truth),
        at(hidden).float(),
        shares.gather(1, sets[..., None].expand(*sets.shape, COMPONENTS)),
        sets,
        at(hours),
        at(days),
        units,
        widths,
        weights / total.clamp_min(1e-20),
        torch.stack([at(one.centre[..., 0]) for one in lines], -1),
        torch.stack([at(one.scale[..., 0]) for one in lines], -1),
        scale,
        place,
        seen,
    )


def laws(
    cells: Cells, own: Parameters, at: Float[Tensor, "N M G"]
) -> tuple[Float[Tensor, "N M G"], Float[Tensor, "N M G"]]:
    """Cumulative and density of the sharpened mixture. `own`: parameters by window, (N, ...)."""
    window = torch.arange(len(cells.units))[:, None]
    moved = own["hour"][window, cells.sets, cells.hour] + own["weekday"][window, cells.sets, cells.weekday]
    share = cells.share * moved.exp()
    share = share / share.sum(-1, keepdim=True)
    stretch = own["width"][window, cells.sets].exp()  # (N, M, C)
    broad = torch.full_like(share[..., :1], free.WIDTH * ERRORS)
    narrow = [1 / (cells.widths[:, None] * stretch[..., which, None]) for which in range(2)]
    parts = []
    for which in range(2):
        half = ((at[:, :, None] - cells.units[:, None, :, None]) * narrow[which][..., None]).sigmoid()  # (N, M, J, G)
        weight = cells.atoms[..., which, None]
        parts.append(((weight * half).sum(2), (weight * narrow[which][..., None] * half * (1 - half)).sum(2)))
    scales = [cells.spread[..., one, None] * stretch[..., 2 + one, None] for one in range(2)]
    for centre, scale in zip([*cells.centre.unbind(-1), 0 * cells.truth], [*scales, broad], strict=True):
        half = ((at - centre[..., None]) / scale).sigmoid()
        parts.append((half, half * (1 - half) / scale))
    kept = torch.cat([(1 - free.DEFAULT.broad) * share, torch.full_like(broad, free.DEFAULT.broad)], -1)
    below, density = (
        torch.stack([kept[..., c, None] * part[k] for c, part in enumerate(parts)]).sum(0) for k in range(2)
    )
    z = torch.special.ndtri(below.clamp(free.TAIL, 1 - free.TAIL))
    sharp = torch.tensor(free.DEFAULT.sharpen)[cells.sets] * own["sharp"][window, cells.sets].exp()
    sharp = sharp[..., None]
    log = density.clamp_min(1e-9).log() + sharp.log() - (sharp**2 - 1) * z**2 / 2
    return torch.special.ndtr(sharp * z), log


def example_gradients(cells: Cells, parameters: Parameters) -> tuple[Float[Tensor, " N"], Parameters]:
    """−log density by window, and its gradient by window: every window has its own copy of the parameters."""
    count = len(cells.units)
    own = {name: value.expand(count, *value.shape).clone().requires_grad_() for name, value in parameters.items()}
    log = laws(cells, own, cells.truth[..., None])[1][..., 0]
    losses = -(log * cells.there).sum(1) / cells.there.sum(1).clamp_min(1)
    found = torch.autograd.grad(losses.sum(), list(own.values()))
    return losses.detach(), dict(zip(own, found, strict=True))


@torch.no_grad()
def crps(cells: Cells, parameters: Parameters) -> Float[Tensor, " N"]:
    """∫ (F − 1{x ≥ y})² dx by window, in the data's units."""
    grid = torch.linspace(-2.5, 3.5, GRID).sinh().expand(*cells.truth.shape, GRID)
    grid = torch.cat([grid, cells.truth[..., None]], -1).sort(-1).values
    own = {name: value.expand(len(cells.units), *value.shape) for name, value in parameters.items()}
    middle = (grid[..., 1:] + grid[..., :-1]) / 2
    below = laws(cells, own, middle)[0]
    each = ((below - (middle >= cells.truth[..., None]).float()) ** 2 * grid.diff(dim=-1)).sum(-1)
    return (each * cells.there).sum(1) / cells.there.sum(1).clamp_min(1) * cells.scale


def learn(cells: list[Cells], plan: PrivacyPlan, rate: float, noisy: bool, seed: int) -> Parameters:
    """Adam on the noisy clipped sums; `cells[s % len]` are the examples of step s, each with its own masks."""
    parameters = {name: torch.zeros(shape) for name, shape in SHAPES.items()}
    moments = {name: (torch.zeros(shape), torch.zeros(shape)) for name, shape in SHAPES.items()}
    noise, sampler, norms = plan.noise(), plan.sampler(examples=plan.examples), []
    for step in range(plan.steps):
        drawn = torch.from_numpy(sampler.sample(step))
        every = cells[step % len(cells)]
        mine = Cells(**{name: value[drawn] for name, value in vars(every).items()})
        gradients = example_gradients(mine, parameters)[1]
        norm = torch.stack([one.flatten(1).square().sum(1) for one in gradients.values()]).sum(0).sqrt()
        norms.append(norm)
        factor = (plan.clip / norm.clamp_min(1e-12)).clamp_max(1.0)
        sums = {name: torch.einsum("n,n...->...", factor, one) for name, one in gradients.items()}
        if noisy:
            noise.add_(sums, step=step)
        for name, one in sums.items():
            first, second = moments[name]
            mean = one / plan.divisor
            first.lerp_(mean, 0.1)
            second.lerp_(mean.square(), 0.05)
            corrected = (second / (1 - 0.95 ** (step + 1))).sqrt() + 1e-8
            parameters[name] -= (
                rate * min(1.0, 2 * (1 - step / plan.steps)) * first / (1 - 0.9 ** (step + 1)) / corrected
            )
    print(f"  norms of gradients: median {torch.cat(norms).median():.2f}, C = {plan.clip:g}")
    return parameters


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--place", default="cold", choices=(*REGIONS, "etth1"))
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.0, 8.0, 1.0])
    parser.add_argument("--homes", type=int, default=100)
    parser.add_argument("--steps", type=int, default=80)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--clip", type=float, default=0.5)
    parser.add_argument("--rate", type=float, default=0.03)
    parser.add_argument("--windows", type=int, default=216, help="to score")
    parser.add_argument("--shipped", action="store_true")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    learned, scored, length = places(chosen.place, chosen.homes)
    windows = cut(learned, length, length)
    every = [cells_of(learned, windows.starts, length, MASKS, seed, "learned") for seed in range(3)]
    tests = cut(scored, length, length // 2)
    kept = tests.starts[np.linspace(0, len(tests) - 1, min(chosen.windows, len(tests))).astype(int)]
    tasks = {"imputation": task_config("random"), "forecast": task_config("block", 24)}
    judged = {name: cells_of(scored, kept, length, masks, 1, name) for name, masks in tasks.items()}
    none = {name: torch.zeros(shape) for name, shape in SHAPES.items()}
    before = {name: crps(cells, none) for name, cells in judged.items()}
    print(f"{chosen.place}: {len(windows)} examples, {sum(one.numel() for one in none.values())} parameters")
    print("F_t", {name: round(float(one.mean()), 4) for name, one in before.items()}, flush=True)
    if chosen.shipped:
        report("shipped model, untuned", before, shipped(scored, kept, judged))
    for epsilon in chosen.epsilon:
        plan = PrivacyPlan.for_epsilon(
            epsilon or 8.0, unit="week", examples=len(windows), sampling_rate=min(chosen.batch / len(windows), 1.0),
            clip=chosen.clip, steps=chosen.steps, delta=1e-5, test_only=True, seed=0,
        )  # fmt: skip
        parameters = learn(every, plan, chosen.rate, epsilon > 0, 0)
        name = f"learned at ε = {epsilon:g}" if epsilon else "learned without noise"
        report(name, before, {task: crps(cells, parameters) for task, cells in judged.items()})


def places(name: str, homes: int) -> tuple[Series, Series, int]:
    """To learn from, to score on, and the length of a window. Of ETT training rows alone, and one channel."""
    if name in REGIONS:
        split = fleet(name, homes)
        return split.train, split.test, 168
    train = load_split(name)[1].train
    last = len(train.values)
    one = replace(train, values=train.values[:, :1], targets=train.targets[:1])
    begin, cut_at, end = (np.array([row]) for row in (0, last * 4 // 5, last))
    return one.between(begin, cut_at), one.between(cut_at, end), 96


def shipped(series: Series, starts: np.ndarray, judged: dict[str, Cells]) -> dict[str, Tensor]:
    """CRPS of 20 samples of the shipped model at the same cells, each half of the samples by itself (they are pairs)."""
    with as_file(PLACE) as folder:
        model = Model.load(folder, "cpu")
    windows = Windows(network_covariates(series, model.spec.calendar), starts, 168)
    values, covariates = windows.gather(np.arange(len(starts)))
    found = {}
    for name, cells in judged.items():
        observed = cells.seen[..., None]
        given = (torch.where(observed, values, 0.0), observed, covariates, np.arange(len(starts)))
        drawn = model.draw(*given, 20, 0, None)[..., 0]  # (N, S, L)
        at = drawn.gather(2, cells.place[:, None].expand(-1, 20, -1)).transpose(1, 2)  # (N, M, S)
        truth = values[..., 0].nan_to_num().gather(1, cells.place)[..., None]
        each = []
        for half in at.chunk(2, -1):
            pairs = (half[..., None] - half[..., None, :]).abs().sum((-1, -2)) / (10 * 9)
            each.append((half - truth).abs().mean(-1) - pairs / 2)
        found[name] = (torch.stack(each).mean(0) * cells.there).sum(1) / cells.there.sum(1).clamp_min(1)
    return found


def report(name: str, before: dict[str, Tensor], after: dict[str, Tensor]) -> None:
    said = []
    for task, own in before.items():
        gain = own - after[task]
        said.append(
            f"{task} {after[task].mean() / own.mean():.4f} x F_t (± {2 * gain.std() / len(gain) ** 0.5 / own.mean():.4f})"
        )
    print(f"{name:26} " + ", ".join(said), flush=True)


if __name__ == "__main__":
    main()
