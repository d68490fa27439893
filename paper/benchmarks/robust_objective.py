"""Which windows rule the gradient: `python paper/benchmarks/robust_objective.py [--train clipped] [--json]`.

Per-example gradient norms ‖g_i‖, as private training would clip them, under objectives that differ in

    floor     scale² = var + floor² + (0.1 μ)², floor = 0.3 of a usual home's scale; "relative" has (0.1 μ)² alone
    limit     |residual| ≤ 5 scales in the training target
    Huber     ℓ_i = mean over hidden cells of 2 h_δ(prediction − wanted), h_δ(e) = e²/2 up to δ, δ (|e| − δ/2) beyond:
              the squared error near 0, no error with more than 2 δ of pull; kept out of the package

on a fleet of simulated homes, some of them empty for weeks (a standby load of 0.03 kWh, and now and then a spike), and on
the same fleet with `grid.corrupt` on top. Each objective trains a network of its own for a few steps, because at the start
the output is zero and most gradients with it. Then, with x_i = ‖g_i‖ and the largest 1 % of the N home-weeks as T,

    before = Σ_T x_i / Σ x_i        after = Σ_T min(C, x_i) / Σ min(C, x_i)        p_clip = share of x_i > C,   C = 1

so that 1 % is an equal vote. `empty` is the share of home-weeks from empty homes within T. All of it takes about eight
minutes of one core; `--data` and `--objectives` choose a part.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch.nn import functional as F

from tamedit.data.calendar import network_covariates
from tamedit.data.series import Series
from tamedit.model.dit import DiffusionTransformer
from tamedit.privacy.engine import Engine
from tamedit.privacy.settings import Privacy
from tamedit.runs.config import RunConfig
from tamedit.runs.layout import private_layout
from tamedit.runs.recipe import make_config
from tamedit.streams import purpose_seed, step_generator
from tamedit.training.public import FACTS, fleet
from tamedit.training.scales import make_scaling
from tamedit.training.source import engine_losses, noised_batch
from tamedit.windows.examples import Examples
from tamedit_paper.grid.corrupt import corrupt

Losses = Callable[[Any, Any], Tensor]
WEEK = 168
EMPTY_EVERY = 8  # homes: one of eight stands empty for some weeks
STANDBY, RIPPLE = 0.03, 0.05  # kWh an hour, and its relative deviation
SPIKE_RATE = 1 / 200  # an hour: about one a week
TOP = 0.01
CLIP = 1.0


@dataclass(frozen=True)
class Objective:
    """What a window may weigh."""

    floor: bool = False
    relative_floor: bool = False
    limit: bool = False
    huber: bool = False


OBJECTIVES = {
    "neither": Objective(),
    "relative floor": Objective(relative_floor=True),
    "floor": Objective(floor=True, relative_floor=True),
    "limit": Objective(limit=True),
    "floor and limit (the recipe)": Objective(floor=True, relative_floor=True, limit=True),
    "floor, limit, Huber": Objective(floor=True, relative_floor=True, limit=True, huber=True),
    "Huber": Objective(huber=True),
}


@dataclass(frozen=True)
class Norms:
    """‖g_i‖ over all home-weeks; see the module's text."""

    median: float
    p90: float
    p99: float
    largest: float
    p99_over_median: float
    before: float
    p_clip: float
    after: float
    empty: float
    not_finite: int


def homes_with_empty_weeks(meters: int, seed: int) -> tuple[Series, Bool[np.ndarray, " T"]]:
    """The public fleet, every eighth home empty for four to eight of its twelve weeks, and which rows those are."""
    homes = fleet(meters)
    values, empty = homes.values.copy(), np.zeros(len(homes), dtype=bool)
    for meter in range(0, meters, EMPTY_EVERY):
        generator = np.random.default_rng([seed, meter])
        weeks = int(generator.integers(4, 9))
        first = int(homes.offsets[meter]) + WEEK * int(generator.integers(0, 13 - weeks))
        rows = slice(first, first + WEEK * weeks)
        load = STANDBY * (1 + RIPPLE * generator.standard_normal((rows.stop - first, 1)))
        spikes = generator.random(load.shape) < SPIKE_RATE
        load[spikes] += generator.uniform(0.5, 2.0, int(spikes.sum()))
        values[rows], empty[rows] = np.where(np.isnan(values[rows]), np.nan, load), True
    return replace(homes, values=values), empty


def examples_of(series: Series, config: RunConfig, objective: Objective) -> Examples:
    """The examples of a private run with this objective; without a floor a scale is the window's own deviation."""
    scaling, privacy = make_scaling(config, FACTS, series), config.privacy
    assert privacy is not None
    none = (0.0,) * len(scaling.floor)
    relative = scaling.relative_floor if objective.relative_floor else none
    scaling = replace(scaling, floor=scaling.floor if objective.floor else none, relative_floor=relative)
    limit = config.examples.residual_limit if objective.limit else None
    seen = config.examples.model_copy(update={"residual_limit": limit})
    known = network_covariates(series, config.calendar)
    windows = private_layout(known, config.window, config.stride, privacy).windows
    return Examples(windows, config.masks, scaling, seen, config.seed)


def huber_losses(config: RunConfig, delta: float) -> Losses:
    """Twice Huber's function of the error, a mean over each example's own hidden cells: shape (B,)."""

    def losses(network: Any, rows: Any) -> Tensor:
        batch, time, epsilon = rows
        noised, wanted = config.process.diffuse(batch.residual, epsilon, time)
        predicted = network(noised * batch.hidden, time, batch.context)
        error = 2 * F.huber_loss(predicted, wanted, reduction="none", delta=delta) * batch.hidden  # B L K
        return error.sum((1, 2)) / batch.hidden.sum((1, 2)).clamp_min(1)

    return losses


def trained_a_little(examples: Examples, losses: Losses, config: RunConfig, clipped: bool) -> DiffusionTransformer:
    """A fresh network after some steps with the mean gradient, or with the mean of clipped ones (no noise)."""
    torch.manual_seed(purpose_seed(config.seed, "weights"))
    network, training = DiffusionTransformer(config.network), config.training
    engine = Engine(network, clip=CLIP)
    optimizer = torch.optim.AdamW(
        network.parameters(), lr=training.learning_rate, weight_decay=training.weight_decay, foreach=True
    )
    for step in range(training.steps):
        optimizer.param_groups[0]["lr"] = training.rate(step)
        drawn = step_generator(config.seed, "batches", step).integers(0, len(examples), training.batch_size)
        rows = noised_batch(examples, drawn, step, config.process)
        optimizer.zero_grad()
        if clipped:
            sums = engine(losses, rows, units=len(drawn)).sums
            for name, parameter in network.named_parameters():
                parameter.grad = sums[name].div_(len(drawn))
        else:
            losses(network, rows).mean().backward()
        optimizer.step()
    return network


def summarise(norms: Float[np.ndarray, " N"], empty: Bool[np.ndarray, " N"]) -> Norms:
    """The numbers of one objective, over the home-weeks with a finite gradient."""
    finite = np.isfinite(norms)
    own = norms[finite]
    top = np.argsort(-own, kind="stable")[: max(1, round(TOP * len(own)))]
    kept = np.minimum(own, CLIP)
    median, p90, p99 = np.quantile(own, (0.5, 0.9, 0.99)).tolist()
    return Norms(
        median=median,
        p90=p90,
        p99=p99,
        largest=float(own.max()),
        p99_over_median=p99 / median,
        before=float(own[top].sum() / own.sum()),
        p_clip=float((own > CLIP).mean()),
        after=float(kept[top].sum() / kept.sum()),
        empty=float(empty[finite][top].mean()),
        not_finite=int((~finite).sum()),
    )


def measure(series: Series, empty: Bool[np.ndarray, " T"], objective: Objective, options: argparse.Namespace) -> Norms:
    """Train with an objective, then look at every home-week once, with masks and noise that training did not see."""
    config = make_config(
        series,
        "simulated",
        size=options.size,
        window=WEEK,
        steps=options.steps,
        batch_size=options.batch,
        seed=options.seed,
        privacy=Privacy(epsilon=8.0, unit="week", clip=CLIP, test_only=True),
    )
    examples = examples_of(series, config, objective)
    losses = huber_losses(config, options.delta) if objective.huber else engine_losses(config.process)
    network = trained_a_little(examples, losses, config, options.train == "clipped")
    rows = noised_batch(examples, np.arange(len(examples)), options.steps, config.process)
    norms = Engine(network, clip=CLIP)(losses, rows, units=len(examples)).norms.numpy()
    windows = examples.windows
    vacant = empty[windows.starts[:, None] + np.arange(windows.length)].mean(axis=1) > 0.5
    return summarise(norms, vacant)


def show(name: str, found: dict[str, Norms], console: Console) -> None:
    table = Table(title=name)
    table.add_column("objective")
    for heading in ("median", "p90", "p99", "max", "p99/median", "before", "p_clip", "after", "empty"):
        table.add_column(heading, justify="right")
    for objective, one in found.items():
        sizes = (f"{value:.3g}" for value in (one.median, one.p90, one.p99, one.largest, one.p99_over_median))
        shares = (f"{value:.1%}" for value in (one.before, one.p_clip, one.after, one.empty))
        label = f"{objective}, {one.not_finite} not finite" if one.not_finite else objective
        table.add_row(label, *sizes, *shares)
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--meters", type=int, default=128)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--size", default="mini")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--delta", type=float, default=1.0, help="of Huber's loss, in units of a window's scale")
    parser.add_argument(
        "--train", choices=["ordinary", "clipped"], default="ordinary", help="how the network is trained"
    )
    parser.add_argument("--data", nargs="+", choices=["homes", "corrupted homes"], default=["homes", "corrupted homes"])
    parser.add_argument("--objectives", nargs="+", choices=list(OBJECTIVES), default=list(OBJECTIVES))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    homes, empty = homes_with_empty_weeks(options.meters, options.seed)
    found: dict[str, dict[str, Norms]] = {}
    for name in options.data:
        series = homes if name == "homes" else corrupt(homes, options.seed)
        found[name] = {one: measure(series, empty, OBJECTIVES[one], options) for one in options.objectives}
        if not options.json:
            show(name, found[name], Console(width=140))
    if options.json:
        answer = {data: {name: asdict(one) for name, one in rows.items()} for data, rows in found.items()}
        print(json.dumps({"settings": vars(options), "data": answer}, indent=2))


if __name__ == "__main__":
    main()
