"""Where the runs stand beside the paper's, in numbers without units, and which of them collapsed."""

import math
from statistics import fmean, median
from typing import Any

from tamedit.diffusion.process import Process
from tamedit.model.zoo import NetworkConfig
from tamedit.privacy.accountant import Mechanism, epsilon
from tamedit.runs.config import TrainingConfig
from tamedit.runs.recipe import Scale
from tamedit.runs.regime import noise_over_signal, parameter_count, walk
from tamedit_paper.claims.page_text import COLLAPSE, LOSS_BY_TIME, REFERENCE_SWEEP, REGIME, UNMATCHED
from tamedit_paper.grid.matching import PAPER, PAPER_SIZE, of_paper
from tamedit_paper.grid.measures import Measure, Runs, clipping, collapsed, final_loss, metric
from tamedit_paper.grid.recipes import EFFORT
from tamedit_paper.tables.layout import NONE
from tamedit_paper.tables.sweeps import (
    CHOSEN_FACTOR,
    DEPTHS,
    FACTORS,
    RATIOS,
    REFERENCE_SIGMAS,
    WALK_SIGMA,
    bounded,
    ratio_cells,
)
from tamedit_paper.tables.utility import AWARE, ETT_SIGMA, PLAIN, SIGMAS, VANILLA, aware, non_dp, vanilla

PAPER_WINDOWS = 668  # N of PrivatePower
TASKS = ("imputation", "forecast")


def regime_text(runs: Runs, scale: Scale, source: str) -> str:
    """The table at the top of the page."""
    effort = EFFORT[scale]
    network = NetworkConfig.model_validate(
        {"target_channels": 1, "covariate_channels": 6, "length": 168} | effort.network
    )
    training = TrainingConfig.model_validate(effort.training)
    privates = {sigma: runs.of(vanilla(source, sigma)) for sigma in SIGMAS}
    configs = {sigma: next(iter(own.values())).config for sigma, own in privates.items() if own}
    rows = [
        ("parameters P", f"{parameter_count(of_paper(network)):,}", f"{parameter_count(network):,}"),
        ("batch B, steps T", f"{PAPER.batch_size}, {PAPER.steps:,}", f"{training.batch_size}, {training.steps:,}"),
        ("width, depth", *(f"{one['width']}, {one['depth']}" for one in (PAPER_SIZE, effort.network))),
        (
            "learning rate",
            f"{PAPER.learning_rate:g}",
            _joined({one["training"]["learning_rate"] for one in configs.values()}),
        ),
        ("clipping norm C", "1", f"{effort.clip:g}"),
        (
            "**walk**, rate √T √width",
            f"{walk(PAPER.learning_rate, PAPER.steps, PAPER_SIZE['width']):.2f}",
            _walks(configs),
        ),
        (
            "warm-up and averaging, share of T",
            *(f"{one.warmup / one.steps:.0%}, {1 / (1 - one.ema) / one.steps:.0%}" for one in (PAPER, training)),
        ),
    ]
    for sigma in SIGMAS:
        rows += _noise_rows(runs, source, sigma, network, training, configs.get(sigma))
    lines = [f"| | the paper | scale `{scale}` |", "|---|---|---|", *(f"| {a} | {b} | {c} |" for a, b, c in rows)]
    return "## The regime\n\n" + REGIME.format(scale=scale) + "\n" + "\n".join(lines) + "\n\n" + UNMATCHED


def _noise_rows(
    runs: Runs,
    source: str,
    sigma: float,
    network: NetworkConfig,
    training: TrainingConfig,
    config: dict[str, Any] | None,
) -> list[tuple[str, str, str]]:
    theirs = noise_over_signal(sigma, parameter_count(of_paper(network)), PAPER.batch_size)
    cost = epsilon([Mechanism(PAPER.batch_size / PAPER_WINDOWS, sigma, PAPER.steps)], 1e-5, with_rdp=False).value
    own, ours, spent = NONE, NONE, runs.epsilon(vanilla(source, sigma)).get("window")
    if config is not None:
        own = f"{config['privacy']['noise_multiplier']:.3g}"
        ours = f"{noise_over_signal(config['privacy']['noise_multiplier'], parameter_count(network), training.batch_size):.2f}"
    rates = list(runs.values(vanilla(source, sigma), clipping("p_clip")).values())
    return [
        (
            f"σ = {sigma:g}: σ used, ε per window",
            f"{sigma:g}, {cost:,.0f}",
            f"{own}, {NONE if spent is None else f'{spent:,.0f}'}",
        ),
        (
            f"σ = {sigma:g}: **noise over signal**, clipping rate",
            f"{theirs:.2f}, {PAPER_CLIPPING[sigma]}",
            f"{ours}, {f'{fmean(rates):.2f}' if rates else NONE}",
        ),
    ]


PAPER_CLIPPING = {0.03: "0.561", 0.05: "0.570", 0.1: "0.582", 0.2: "0.589"}


def _joined(values: set[float]) -> str:
    return ", ".join(f"{value:.3g}" for value in sorted(values)) or NONE


def _walks(configs: dict[float, dict[str, Any]]) -> str:
    found = {
        walk(one["training"]["learning_rate"], one["training"]["steps"], one["network"]["width"])
        for one in configs.values()
    }
    return ", ".join(sorted({f"{value:.2f}" for value in found})) or NONE


def collapse_text(runs: Runs, source: str) -> str:
    """Means, medians and collapsed runs of the main comparison: a mean over seeds hides that some collapse and some do not."""
    heads = [f"{task}: {what}" for task in TASKS for what in ("mean RMSE", "median", "collapsed", "mean CRPS")]
    lines = ["| data | run | " + " | ".join(heads) + " |", "|---" * (len(heads) + 2) + "|"]
    for data, sigmas in ((source, SIGMAS), ("etth1", (ETT_SIGMA,)), ("ettm1", (ETT_SIGMA,))):
        cells = [(PLAIN, non_dp(data))]
        for sigma in sigmas:
            cells += [
                (f"{VANILLA}, σ = {sigma:g}", vanilla(data, sigma)),
                (f"{AWARE}, σ = {sigma:g}", aware(data, sigma)),
            ]
        lines += [f"| {data} | {name} | " + " | ".join(_spread(runs, cell)) + " |" for name, cell in cells]
    return COLLAPSE + "\n" + "\n".join(lines) + "\n"


def _spread(runs: Runs, cell: str) -> list[str]:
    said = []
    for task in TASKS:
        values = list(runs.values(cell, metric(task, "point_RMSE")).values())
        lost = [bool(one) for one in runs.values(cell, collapsed(task)).values()]
        spread = list(runs.values(cell, metric(task, "CRPS")).values())
        if values and spread:
            said += [
                f"{fmean(values):.3f}",
                f"{median(values):.3f}",
                f"{sum(lost)} of {len(lost)}",
                f"{fmean(spread):.3f}",
            ]
        else:
            said += [NONE] * 4
    return said


def loss_text(runs: Runs, source: str) -> str:
    """Where in the noise process the loss is made, and what it does to samples: why loss and samples may disagree."""
    process, shown = Process(), (100, 300, 500, 700, 900)
    lines = ["| data | run | training loss | " + " | ".join(f"t = {at}" for at in shown) + " |", "|---" * 8 + "|"]
    for data, sigma, more in ((source, SIGMAS[-1], {}), ("etth1", ETT_SIGMA, {}), ("etth1", ETT_SIGMA, {"depth": 6})):
        for name, arm in ((VANILLA, vanilla), (AWARE, aware)):
            cell = arm(data, sigma, **more)
            found = [dict(zip(c["times"], c["loss_by_time"], strict=True)) for c in _curves(runs, cell, "times")]
            losses = {at: median(own[at] for own in found) if found else None for at in shown}
            said = [NONE if loss is None else _error(process, at, loss) for at, loss in losses.items()]
            trained = list(runs.values(cell, final_loss()).values())
            depth = f", {more['depth']} blocks" if more else ""
            mean = f"{median(trained):.3f}" if trained else NONE
            lines.append(f"| {data} | {name}, σ = {sigma:g}{depth} | {mean} | " + " | ".join(said) + " |")
    return LOSS_BY_TIME + "\n" + "\n".join(lines) + "\n"


def _curves(runs: Runs, cell: str, key: str) -> list[dict[str, list[float]]]:
    return [one.curves for one in runs.of(cell).values() if one.curves.get(key)]


def _error(process: Process, time: int, loss: float) -> str:
    """A loss at a diffusion step, and the error of the clean series that it stands for."""
    return f"{loss:.3f} *{math.sqrt(loss) * float(process.noise[time] / process.signal[time]):.2f}*"


def reference_text(runs: Runs) -> str:
    """The sweep on the simulator that the reference magnitudes come from."""
    measures: dict[str, Measure] = {
        f"{task} {name}": metric(task, f"point_{name}" if name != "CRPS" else name)
        for task in TASKS
        for name in ("RMSE", "MAE", "CRPS")
    }
    heads = " | ".join(measures)
    lines = [f"| paper's σ | bounds, × p99 without noise | {heads} | seeds |", "|---" * (len(measures) + 3) + "|"]
    cells = [
        (sigma, name, cell)
        for sigma in REFERENCE_SIGMAS
        for name, cell in [
            ("none", vanilla("simulated", sigma)),
            *((f"{factor:g}", bounded(sigma, factor)) for factor in FACTORS),
        ]
    ]
    names = [f"{CHOSEN_FACTOR:g}, {which} × {ratio:g}" for which in ("C₀", "Γ₀", "B₀", "A₀") for ratio in RATIOS]
    cells += [(WALK_SIGMA, name, cell) for name, cell in zip(names, ratio_cells(WALK_SIGMA), strict=True)]
    for data, depths in (("simulated", DEPTHS), ("etth1", (6,))):
        cells += [
            (WALK_SIGMA, f"{data}, {depth} blocks: {name}", arm(data, WALK_SIGMA, depth=depth))
            for depth in depths
            for name, arm in ((VANILLA, vanilla), (AWARE, aware))
        ]
    for sigma, name, cell in cells:
        numbers = [list(runs.values(cell, one).values()) for one in measures.values()]
        said = " | ".join(f"{median(own):.3f}" if own else NONE for own in numbers)
        lines.append(f"| {sigma:g} | {name} | {said} | {runs.seeds(cell)} |")
    return REFERENCE_SWEEP + "\n" + "\n".join(lines) + "\n"
