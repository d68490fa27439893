"""The paper's figures from kept results: quantiles of norms and of η, and losses. Each as PNG and SVG.

Every seed is a thin line; the thick line is their mean, of quantile functions for distributions: Q̄(p) = mean over seeds of
Q_s(p), so that the mean of equal shapes keeps their shape.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tamedit.diagnostics.gradient_record import NORMS
from tamedit.figures.gradient_figures import TITLES, finish_norms
from tamedit.figures.gradient_figures import figure as drawn
from tamedit.figures.plots import INK, log_axis, run_style
from tamedit_paper.grid.measures import Runs, clipping
from tamedit_paper.grid.results import Result
from tamedit_paper.tables.layout import Figure

STYLES = {"Non-DP": 0, "DP-vanilla": 1, "DP-aware": 2}  # the same colour for an arm in every figure
THIN = {"lw": 0.6, "alpha": 0.35}


def draw(figure: Figure, runs: Runs, folder: Path) -> list[Path]:
    """PNG and SVG of a figure; nothing if none of its runs is there."""
    if not any(runs.of(cell) for cell in figure.cells()):
        return []
    makers = {"norms": _norms, "clipping": _clipping, "losses": _losses}
    return makers[figure.kind](figure, runs, folder / file_name(figure.label))


def file_name(label: str) -> str:
    """A label as the name of a file."""
    return label.partition(":")[2].replace("_", "-")


def _names(figure: Figure) -> dict[int, str]:
    return {_number(name): name for _, panel in figure.panels for name, _ in panel}


def _number(name: str) -> int:
    return STYLES.get(name, 2)


def _curves(results: Sequence[Result], which: str) -> list[np.ndarray]:
    """One curve per seed; none for a run that recorded nothing."""
    return [np.array(one.curves[which]) for one in results if one.curves[which]]


def _plot(axis: Any, xs: Sequence[np.ndarray], ys: Sequence[np.ndarray], name: str) -> None:
    """Every seed thin, their mean thick."""
    style = run_style(_number(name))
    if len(xs) > 1:
        for x, y in zip(xs, ys, strict=True):
            axis.plot(x, y, **style | THIN)
    axis.plot(np.mean(xs, axis=0), np.mean(ys, axis=0), **style)


def _norms(figure: Figure, runs: Runs, stem: Path) -> list[Path]:
    """For every panel an ECDF above a CCDF, for each of the three norms; the dotted line is C."""
    rows = len(figure.panels)
    with drawn(stem, 4.2 if rows == 1 else 2.7 * rows + 0.6, _names(figure)) as (made, paths):
        parts = np.atleast_1d(made.subfigures(rows, 1, hspace=0.04))
        for part, (title, panel) in zip(parts, figure.panels, strict=True):
            there = any(_curves(list(runs.of(cell).values()), "total") for _, cell in panel)
            if title:
                shown = title if there else f"{title} (not run)"
                part.suptitle(shown, x=0.01, ha="left", fontsize=9, weight="bold")
            if not there:
                continue
            axes = part.subplots(2, 3, sharex="col")
            for column, which in enumerate(NORMS):
                least = _norm_pair(axes[0, column], axes[1, column], panel, runs, which)
                clips = _clips(panel, runs) if which == "total" else set()
                finish_norms(axes[0, column], axes[1, column], least, clips)
                axes[0, column].set_title(TITLES[which])
            axes[1, 1].set_xlabel("norm of an example's gradient")
            axes[0, 0].set_ylabel("share below")
            axes[1, 0].set_ylabel("share above")
    return paths


def _norm_pair(below: Any, beyond: Any, panel: Sequence[tuple[str, str]], runs: Runs, which: str) -> float:
    """Draw one norm of the runs of a panel; the norm from which on there is something to see."""
    least = np.inf
    for name, cell in panel:
        found = list(runs.of(cell).values())
        norms = _curves(found, which)
        if not norms:
            continue
        shares = [np.array(one.curves["quantiles"]) for one in found if one.curves[which]]
        _plot(below, norms, shares, name)
        _plot(beyond, norms, [1 - share for share in shares], name)
        least = min(least, *(float(np.interp(0.02, share, norm)) for share, norm in zip(shares, norms, strict=True)))
    return least if least > 0 else np.inf


def _clips(panel: Sequence[tuple[str, str]], runs: Runs) -> set[float]:
    """C of the private runs of a panel."""
    settings = [one.config["privacy"] for _, cell in panel for one in runs.of(cell).values()]
    return {float(one["clip"]) for one in settings if one}


def _clipping(figure: Figure, runs: Runs, stem: Path) -> list[Path]:
    """ECDF of η at every σ, and p_clip in words."""
    with drawn(stem, 4.4, _names(figure)) as (made, paths):
        axes = made.subplots(2, 2, sharex=True, sharey=True)
        for axis, (title, panel) in zip(axes.flat, figure.panels, strict=True):
            said = []
            for name, cell in panel:
                found = list(runs.of(cell).values())
                factors = _curves(found, "factor")
                if not factors:
                    continue
                _plot(axis, factors, [np.array(one.curves["quantiles"]) for one in found if one.curves["factor"]], name)
                rate = np.mean(list(runs.values(cell, clipping("p_clip")).values()))
                said.append(f"{name}: p_clip {rate:.3f}")
            _panel(axis, title, bool(said))
            axis.text(0.03, 0.96, "\n".join(said), transform=axis.transAxes, va="top", fontsize=8, color=INK)
        axes[0, 0].set(xlim=(0, 1.02), ylim=(0, 1.02))
        for axis in axes[-1]:
            axis.set_xlabel("clipping factor η")
        for axis in axes[:, 0]:
            axis.set_ylabel("share below (ECDF)")
    return paths


def _losses(figure: Figure, runs: Runs, stem: Path) -> list[Path]:
    """The training loss at every σ, on one scale."""
    with drawn(stem, 4.4, _names(figure)) as (made, paths):
        axes = made.subplots(2, 2, sharex=True, sharey=True)
        for axis, (title, panel) in zip(axes.flat, figure.panels, strict=True):
            private = False
            for name, cell in panel:
                found = [one for one in runs.of(cell).values() if one.curves["losses"]]
                if found:
                    private |= name != "Non-DP"
                    least = min(len(one.curves["losses"]) for one in found)
                    steps = [np.array(one.curves["loss_steps"][:least]) for one in found]
                    _plot(axis, steps, [np.array(one.curves["losses"][:least]) for one in found], name)
            _panel(axis, title, private)
        axes[0, 0].set_yscale("log")
        log_axis(axes[0, 0].yaxis)
        for axis in axes[-1]:
            axis.set_xlabel("step")
        for axis in axes[:, 0]:
            axis.set_ylabel("training loss")
    return paths


def _panel(axis: Any, title: str, filled: bool) -> None:
    axis.set_title(title if filled else f"{title} (not run)")
