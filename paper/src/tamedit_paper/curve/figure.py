"""CRPS against ε: one row per kind of run, imputation next to forecasts, as PNG and SVG.

ε is on a logarithmic axis with ∞ at its right end, a step of ln ε away; bars are 95 % t-intervals over seeds and a hollow mark
is one seed. Level lines cost no privacy: the free guesses with a distribution and the public model alone.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tamedit.choices import Anchor
from tamedit.evaluation.intervals import OverSeeds, over_seeds
from tamedit.evaluation.labels import LABELS
from tamedit.figures.gradient_figures import figure as drawn
from tamedit.figures.plots import RUNS, run_style
from tamedit.privacy.units import Unit
from tamedit_paper.curve.cells import ARMS, EPSILONS, FREE, HARDER, TASKS, BoundArm, nonprivate, private, untuned
from tamedit_paper.grid.cells import Public
from tamedit_paper.grid.measures import Runs, metric
from tamedit_paper.tables.figures import STYLES


class Kind(NamedTuple):
    """What the runs of a row have in common."""

    unit: Unit
    anchor: Anchor
    public: Public

    def private(self, source: str, arm: BoundArm, epsilon: float) -> str:
        return private(source, arm, epsilon, *self)

    def nonprivate(self, source: str, arm: BoundArm) -> str:
        return nonprivate(source, arm, self.anchor, self.public)

    def untuned(self, source: str, arm: BoundArm) -> str:
        return untuned(source, arm, self.anchor, self.public)


ROWS: dict[str, Kind] = {
    "a home-week, anchored": Kind("week", "free", "simulated"),
    "a home-week, anchored, training begins from one public household": Kind("week", "free", "household"),
    "a home-week, the paper's form": Kind("week", "none", "simulated"),
    "a whole home, anchored": Kind("series", "free", "simulated"),
    "a whole home, the paper's form": Kind("series", "none", "simulated"),
}
SPREAD = 1.03  # between the two arms, as a factor of ε: bars stand side by side
INFINITE = max(EPSILONS) * 8 / 3
FREE_STYLES = {FREE: STYLES["Non-DP"], HARDER: 6}
ARM_STYLES: dict[BoundArm, int] = {"vanilla": STYLES["DP-vanilla"], "aware": STYLES["DP-aware"]}
PUBLIC_STYLES: dict[BoundArm, int] = {"aware": 3, "vanilla": 4}


def draw_curve(runs: Runs, source: str, folder: Path) -> list[Path]:
    """`folder`/curve-SOURCE.png and .svg; nothing if no private run is there."""
    rows = curve_rows(runs, source)
    if not rows:
        return []
    with drawn(folder / f"curve-{source}", 2.5 * len(rows) + 0.7, _names(runs, source, rows)) as (made, paths):
        parts = np.atleast_1d(made.subfigures(len(rows), 1, hspace=0.04))
        for part, (title, kind) in zip(parts, rows.items(), strict=True):
            part.suptitle(f"ε protects {title}", x=0.01, ha="left", fontsize=9, weight="bold")
            for axis, task in zip(part.subplots(1, 2), TASKS, strict=True):
                _panel(axis, runs, source, task, kind)
    return paths


def curve_rows(runs: Runs, source: str) -> dict[str, Kind]:
    """The rows of the figure that have a private run."""

    def there(kind: Kind) -> bool:
        return any(runs.of(kind.private(source, arm, epsilon)) for arm in ARMS for epsilon in EPSILONS)

    return {title: own for title, own in ROWS.items() if there(own)}


def _names(runs: Runs, source: str, rows: dict[str, Kind]) -> dict[int, str]:
    """The legend: the arms, what is free, and the public models that are drawn."""
    public = {
        PUBLIC_STYLES[arm]: f"public model alone ({arm})"
        for arm in ARMS
        if any(runs.of(kind.untuned(source, arm)) for kind in rows.values())
    }
    return {
        **{ARM_STYLES[arm]: f"DP-{arm}" for arm in ARMS},
        **{style: LABELS[bar] for bar, style in FREE_STYLES.items()},
        **public,
    }


def _panel(axis: Any, runs: Runs, source: str, task: str, kind: Kind) -> None:
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    levels = {style: _free(runs, source, task, kind, bar) for bar, style in FREE_STYLES.items()}
    levels |= {PUBLIC_STYLES[arm]: _crps(runs, kind.untuned(source, arm), task) for arm in ARMS}
    for number, level in levels.items():
        if level is not None:
            axis.axhline(level.mean, **run_style(number) | {"lw": 1.0})
    for arm, shift in zip(ARMS, (SPREAD, 1 / SPREAD), strict=True):
        cells = {epsilon: kind.private(source, arm, epsilon) for epsilon in sorted(EPSILONS)}
        points = {epsilon * shift: _crps(runs, cell, task) for epsilon, cell in cells.items()}
        _line(axis, points, ARM_STYLES[arm])
        last = {max(points): points[max(points)], INFINITE * shift: _crps(runs, kind.nonprivate(source, arm), task)}
        _line(axis, last, ARM_STYLES[arm], faint=True)
    ticks = sorted(EPSILONS)
    axis.set_xscale("log")
    axis.set_xlim(min(ticks) / 1.3, INFINITE * 1.3)
    axis.xaxis.set_major_locator(FixedLocator([*ticks, INFINITE]))
    axis.xaxis.set_major_formatter(FixedFormatter([*(f"{tick:g}" for tick in ticks), "∞"]))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.margins(y=0.12)
    axis.set_title(task)
    axis.set_xlabel("ε")
    axis.set_ylabel("CRPS, z-units")


def _line(axis: Any, points: dict[float, OverSeeds | None], number: int, faint: bool = False) -> None:
    """A line through the runs that are there; the stretch to ∞ is faint, for the axis is broken there."""
    there = {x: point for x, point in points.items() if point is not None}
    style, color = run_style(number), RUNS[number]
    if len(there) > 1:
        axis.plot(list(there), [point.mean for point in there.values()], **style | ({"alpha": 0.4} if faint else {}))
    for x, point in there.items():
        axis.errorbar(
            *([x], [point.mean], None if point.half is None else [point.half]),
            **{"color": color, "marker": "o", "ms": 4, "capsize": 2.5, "lw": 1.0, "ls": "none"},
            mfc="white" if point.half is None else color,
        )


def _crps(runs: Runs, cell: str, task: str, method: str = "model") -> OverSeeds | None:
    values = list(runs.values(cell, metric(task, "CRPS", method)).values())
    return over_seeds(values) if values else None


def _free(runs: Runs, source: str, task: str, kind: Kind, bar: str) -> OverSeeds | None:
    """The free baseline of the panel's first run that is there: all see the same windows."""
    cells = (kind.private(source, arm, epsilon) for epsilon in EPSILONS for arm in ARMS)
    return next((_crps(runs, cell, task, bar) for cell in cells if runs.of(cell)), None)
