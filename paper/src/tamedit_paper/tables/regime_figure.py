"""The figure that explains the effect: both arms over the walk, over the noise, and over training.

Top: RMSE of every seed (dots) and its median (line) against the walk at the paper's σ = 0.1, and against noise over signal at the
paper's walk. Middle: share of seeds that collapsed. Bottom: p99 of ‖g_cond‖, of |γ| after its bound and of ‖c‖
before it, along training at the paper's σ = 0.2.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tamedit.figures.gradient_figures import figure as drawn
from tamedit.figures.plots import GREY, log_axis, run_style
from tamedit_paper.grid.matching import PAPER_NOISE, PAPER_WALK
from tamedit_paper.grid.measures import Runs, collapsed, metric
from tamedit_paper.tables.figures import STYLES
from tamedit_paper.tables.sweeps import SMALL_SIGMA, WALK_SIGMA, WALKS
from tamedit_paper.tables.utility import AWARE, SIGMAS, VANILLA, aware, vanilla

NAME = "regime"
ARMS: dict[str, Callable[..., str]] = {VANILLA: vanilla, AWARE: aware}
TASK = "imputation"
COURSES = {
    "cond_p99_by_step": "p99 of ‖g_cond‖",
    "scale_p99": "p99 of |γ|",
    "condition_p99": "p99 of ‖c‖ before its bound",
}


def walk_cells(arm: Callable[..., str], source: str) -> list[tuple[float, str]]:
    """(walk, cell) at the paper's σ = 0.1."""
    others = [(walk, arm(source, WALK_SIGMA, walk=walk)) for walk in WALKS]
    return sorted([*others, (PAPER_WALK, arm(source, WALK_SIGMA))])


def noise_cells(arm: Callable[..., str], source: str) -> list[tuple[float, str]]:
    """(noise over signal, cell) at the paper's walk."""
    return [(PAPER_NOISE * sigma, arm(source, sigma)) for sigma in (SMALL_SIGMA, *SIGMAS)]


def draw_regime(runs: Runs, folder: Path, source: str) -> list[Path]:
    """PNG and SVG; nothing if no run of a sweep is there."""
    sweeps = (("walk", walk_cells), ("noise over signal", noise_cells))
    if not any(runs.of(cell) for _, cells in sweeps for arm in ARMS.values() for _, cell in cells(arm, source)):
        return []
    with drawn(folder / NAME, 7.2, {STYLES[name]: name for name in ARMS}) as (made, paths):
        above, below = made.subfigures(2, 1, height_ratios=(1.7, 1.0), hspace=0.04)
        axes = above.subplots(2, 2, sharex="col", height_ratios=(2.2, 1.0))
        for column, (title, cells) in enumerate(sweeps):
            for name, arm in ARMS.items():
                points = [(at, cell) for at, cell in cells(arm, source) if runs.of(cell)]
                _sweep(axes[0, column], axes[1, column], runs, points, name)
            _finish(axes[0, column], axes[1, column], title, column)
        _courses(below.subplots(1, 3), runs, source)
    return paths


def _sweep(errors: Any, shares: Any, runs: Runs, points: Sequence[tuple[float, str]], name: str) -> None:
    style = run_style(STYLES[name])
    medians, lost = [], []
    for at, cell in points:
        values = list(runs.values(cell, metric(TASK, "point_RMSE")).values())
        errors.plot([at] * len(values), values, ".", color=style["color"], ms=4, alpha=0.5)
        medians.append(float(np.median(values)))
        lost.append(float(np.mean(list(runs.values(cell, collapsed(TASK)).values()))))
    where = [at for at, _ in points]
    errors.plot(where, medians, **style)
    shares.plot(where, lost, **style)


def _finish(errors: Any, shares: Any, title: str, column: int) -> None:
    errors.set(xscale="log", yscale="log", title=f"{TASK} RMSE over the {title}")
    log_axis(errors.yaxis)
    shares.set(xlabel=title, ylim=(-0.05, 1.05), yticks=(0, 0.5, 1))
    log_axis(shares.xaxis)
    for axis in (errors, shares):
        for mark in (PAPER_WALK,) if column == 0 else tuple(PAPER_NOISE * sigma for sigma in SIGMAS):
            axis.axvline(mark, color=GREY, lw=0.7, ls=":")
    if column == 0:
        errors.set_ylabel("RMSE (z-units)")
        shares.set_ylabel("share collapsed")


def _courses(axes: Sequence[Any], runs: Runs, source: str) -> None:
    for axis, (key, title) in zip(axes, COURSES.items(), strict=True):
        for name, arm in ARMS.items():
            curves = [one.curves[key] for one in runs.of(arm(source, SIGMAS[-1])).values() if one.curves.get(key)]
            if curves:
                shares = np.arange(1, len(curves[0]) + 1) / len(curves[0])
                axis.plot(shares, np.median(curves, axis=0), **run_style(STYLES[name]))
        axis.set(title=f"{title}, σ = {SIGMAS[-1]:g}", xlabel="share of the training", yscale="log")
        log_axis(axis.yaxis)
