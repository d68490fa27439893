"""CRPS against ε as a multiple of the free distribution's, for three tasks, as PNG and SVG.

The left end is the shipped model before it saw private data, the right end the same model tuned without privacy: no unit is
protected at either. Bars are 95 % t-intervals over seeds; a hollow mark is one run.
"""

from pathlib import Path
from typing import Any

from tamedit.evaluation.baselines import BAR
from tamedit.evaluation.intervals import OverSeeds, over_seeds
from tamedit.figures.gradient_figures import figure as drawn
from tamedit.figures.plots import BLUE, INK, ORANGE
from tamedit.privacy.units import Unit
from tamedit_paper.curve.cells import EPSILONS, OWNED, SOURCE, nonprivate, private, untuned
from tamedit_paper.curve.tables import multiple
from tamedit_paper.grid.measures import Runs

PANELS = {
    "imputation": "filling gaps",
    "long_gap": "long gap (2 to 5 days)",
    "cold_start_24": "cold start (1 day known)",
}
LINES: dict[Unit, dict[str, Any]] = {
    "week": {"color": BLUE, "ls": "-", "marker": "o", "shift": -0.06},
    "series": {"color": ORANGE, "ls": (0, (5, 1.5)), "marker": "s", "shift": 0.06},
}
ENDS = ("untuned", "∞")
END_MARK = {"color": INK, "marker": "D"}  # no unit is protected there: both lines share these
PLACES = {name: place for place, name in enumerate((ENDS[0], *(f"{e:g}" for e in sorted(EPSILONS)), ENDS[1]))}
HEIGHT = 3.1


def draw_curve(runs: Runs, folder: Path) -> list[Path]:
    """`folder`/curve-ideal.png and .svg; nothing if no private run is there."""
    if not has_curve(runs):
        return []
    with drawn(folder / f"curve-{SOURCE}", HEIGHT) as (made, paths):
        axes = made.subplots(1, len(PANELS), sharey=True)
        for axis, (task, title) in zip(axes, PANELS.items(), strict=True):
            _panel(axis, runs, task, title)
        axes[0].set_ylabel("CRPS / free distribution's CRPS\n(lower is better)")
        axes[0].legend(loc="best", fontsize=8, labelcolor="linecolor", handlelength=2.2)
        made.supxlabel("ε (none: untuned; ∞: no privacy)", fontsize=9)
    return paths


def has_curve(runs: Runs) -> bool:
    """Whether a private run is there that the figure shows."""
    return any(runs.of(private("aware", epsilon, unit)) for epsilon in EPSILONS for unit in LINES)


def _panel(axis: Any, runs: Runs, task: str, title: str) -> None:
    axis.axhline(1.0, color=INK, lw=1.0, ls=(0, (1, 1)))
    last = len(PLACES) - 0.6
    axis.annotate("free distribution", (last, 1.0), (0, 3), textcoords="offset points", fontsize=7, ha="right")
    for unit, style in LINES.items():
        points = _points(runs, unit, task)
        if not points.keys() - set(ENDS):
            continue
        places = [PLACES[name] + (0 if name in ENDS else style["shift"]) for name in points]
        means = [point.mean for point in points.values()]
        axis.plot(places, means, lw=1.3, color=style["color"], ls=style["ls"], label=f"ε {OWNED[unit]}")
        for name, place in zip(points, places, strict=True):
            look = END_MARK if name in ENDS else {key: style[key] for key in ("color", "marker")}
            _mark(axis, place, points[name], look)
    axis.set_xticks(list(PLACES.values()), list(PLACES))
    axis.set_xlim(-0.5, len(PLACES) - 0.5)
    axis.margins(y=0.15)
    axis.set_title(title)


def _mark(axis: Any, place: float, point: OverSeeds, look: dict[str, str]) -> None:
    """One run: filled with its interval, or hollow without one."""
    axis.errorbar(
        *([place], [point.mean], None if point.half is None else [point.half]),
        **look | {"ms": 4, "capsize": 2.5, "lw": 1.0, "ls": "none", "zorder": 3},
        mfc="white" if point.half is None else look["color"],
    )


def _points(runs: Runs, unit: Unit, task: str) -> dict[str, OverSeeds]:
    """Multiples of the free distribution by the name of their place, where there are runs."""
    cells = {ENDS[0]: untuned()}
    cells |= {f"{epsilon:g}": private("aware", epsilon, unit) for epsilon in sorted(EPSILONS)}
    cells[ENDS[1]] = nonprivate("aware")
    found = {name: list(multiple(runs, cell, task, BAR).values()) for name, cell in cells.items()}
    return {name: over_seeds(values) for name, values in found.items() if values}
