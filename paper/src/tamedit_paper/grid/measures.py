"""What is read from a run: one number, alone or divided by the same number of a partner with the same seed.

ρ_emp, ρ_cond       S_total and S_cond of a run over those of its vanilla partner (same σ, C, form and seed)
rel. to Non-DP      mean step time of a run over that of its Non-DP partner (same form and seed)
final loss          the median of the last quarter of the training-loss curve
mean ± half-width   x̄ ± t_{0.975, n − 1} · s / √n over n seeds
paired difference   the same interval of x_s − y_s over the seeds s that both runs have
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from tamedit.evaluation.metrics import METRICS
from tamedit.runs.recipe import Scale
from tamedit_paper.grid.cells import Cell
from tamedit_paper.grid.recipes import effort_of, network_of, training_of
from tamedit_paper.grid.results import NUMBERS_VERSION, Result, load_all, rounded

Partner = Literal["vanilla", "non-dp"]
BASELINES = (
    "linear_interpolation",
    "seasonal_naive",
    "seasonal_mean",
    "free_fill",
    "free_probabilistic",
    "seasonal_draws",
)
BySeed = dict[int, float]
COLLAPSED = -8.0  # R² of a task: three times the error of a constant guess


@dataclass(frozen=True)
class Measure:
    """How a number is had from a result; None where the run has none (no clipping without privacy)."""

    read: Callable[[Result], float | None]
    over: Partner | None = None
    metric: tuple[str, str] | None = None  # task and metric, for measures that free baselines have as well

    def of_method(self, method: str) -> "Measure":
        """The same measure of another method that was evaluated beside the model."""
        return self if self.metric is None else metric(*self.metric, method)


def metric(task: str, name: str, method: str = "model") -> Measure:
    """A metric of a task in z-units; shares of the data's level in original units."""
    unit = "original" if METRICS[name].original_only else "z"
    return Measure(lambda result: result.number(task, name, unit, method), metric=(task, name))


def collapsed(task: str) -> Measure:
    """1 for a run whose RMSE is more than three times that of a constant guess, R² < −8; else 0."""

    def read(result: Result) -> float | None:
        found = result.number(task, "R2")
        return None if found is None else float(found < COLLAPSED)

    return Measure(read)


def tail(which: str, quantile: str) -> Measure:
    """S_total, S_cond or S_other at p95 or p99."""
    return Measure(lambda result: (result.gradients["norms"] or {}).get(which, {}).get(quantile))


def rho(which: str, quantile: str) -> Measure:
    """ρ_emp (`total`) or ρ_cond (`cond`): S over the vanilla partner's."""
    return replace(tail(which, quantile), over="vanilla")


def clipping(statistic: str) -> Measure:
    """p_clip, or the mean or a quantile of the clipping factor η."""
    return Measure(lambda result: (result.gradients["clipping"] or {}).get(statistic))


def step_time(statistic: str, over: Partner | None = None) -> Measure:
    """Seconds of a step."""
    return Measure(lambda result: (result.gradients["time"] or {}).get(statistic), over=over)


def final_loss(over: Partner | None = None) -> Measure:
    """The floor that the training loss reached."""

    def read(result: Result) -> float | None:
        losses = result.curves["losses"]
        return float(np.median(losses[-max(len(losses) // 4, 1) :])) if losses else None

    return Measure(read, over=over)


def partner(name: str, which: Partner) -> str:
    """The run that a run is measured against: all the same but for the bounds (vanilla), or for the privacy (Non-DP).

    Without privacy there is no vanilla run, and the unbounded one stands in.
    """
    cell = Cell.parse(name)
    if which == "non-dp" or cell.arm == "non-dp":
        return Cell(source=cell.source, arm="non-dp", anchor=cell.anchor).name
    unbounded = {"arm": "vanilla", "tightness": "off", "limits": None, "operator": "tanh", "components": "both"}
    return cell.model_copy(update=unbounded).name


class Runs:
    """The results of many cells, and the numbers in them."""

    def __init__(self, results: Mapping[str, Sequence[Result]]) -> None:
        self.results = {cell: {one.seed: one for one in own} for cell, own in results.items() if own}

    @classmethod
    def load(cls, folder: Path, cells: Iterable[str], scale: Scale) -> "Runs":
        """The results under a folder such as results/laptop; those of older numbers or other settings count as missing."""
        found = load_all(folder, cells, scale)
        return cls({cell: [one for one in own if is_current(one)] for cell, own in found.items()})

    def of(self, cell: str) -> dict[int, Result]:
        """The results of a cell by seed."""
        return self.results.get(cell, {})

    def seeds(self, cell: str) -> int:
        return len(self.of(cell))

    def values(self, cell: str, measure: Measure) -> BySeed:
        """The measure of every seed that has one."""
        own = self._read(cell, measure)
        if measure.over is None:
            return own
        below = self._read(partner(cell, measure.over), measure)
        return {seed: value / below[seed] for seed, value in own.items() if below.get(seed)}

    def _read(self, cell: str, measure: Measure) -> BySeed:
        read = ((seed, measure.read(one)) for seed, one in self.of(cell).items())
        return {seed: value for seed, value in read if value is not None and np.isfinite(value)}

    def epsilon(self, cell: str) -> dict[str, float | None]:
        """ε by unit; it is the mechanism's, and so the same for every seed."""
        return next((one.epsilon for one in self.of(cell).values()), {})


def is_current(result: Result) -> bool:
    """Whether a result has today's numbers and its scale's settings (of the data nothing is asked: none is loaded)."""
    cell = Cell.parse(result.cell)
    effort = effort_of(cell, result.scale)
    wanted = {"network": network_of(cell, result.scale), "training": training_of(cell, result.scale)}
    same = all(
        rounded(result.config[part].get(key)) == rounded(value)
        for part, own in wanted.items()
        for key, value in own.items()
    )
    measured = result.evaluation["windows"] <= effort.windows and result.evaluation["samples"] == effort.samples
    return result.version == NUMBERS_VERSION and same and measured


def paired(one: BySeed, other: BySeed, combine: Callable[[float, float], float] = lambda x, y: x - y) -> BySeed:
    """x_s − y_s (or another combination) over the seeds that both have."""
    return {seed: combine(one[seed], other[seed]) for seed in sorted(one.keys() & other.keys())}
