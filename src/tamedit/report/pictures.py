"""Every figure of the report."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tamedit.evaluation.baselines import BAR
from tamedit.evaluation.task_table import TASKS
from tamedit.figures import gradient_figures
from tamedit.figures.plots import bands
from tamedit.figures.report_figures import embedded, profile, reliability_figure, season, stretch
from tamedit.report.findings import Findings


def draw(found: Findings) -> dict[str, str]:
    """Data URIs by name; what a run has no numbers for is left out."""
    curves = [
        (TASKS[task].label, found.curves[task, "model"], found.curves[task, BAR]) for task in found.evaluation.tasks
    ]
    drawers: dict[str, Callable[[Path], Any]] = {"stretch": partial(stretch, found.test)}
    drawers |= {task: partial(bands, panels) for task, panels in found.bands.items() if panels}
    drawers["reliability"] = partial(reliability_figure, curves)
    if season(found.test) is not None:
        drawers["profile"] = partial(profile, found.test)
    for name, drawer in _recorded(found).items():
        drawers[name] = partial(_with_suffix, partial(drawer, found.comparison))
    return {name: embedded(drawer) for name, drawer in drawers.items()}


def _recorded(found: Findings) -> dict[str, Callable[..., Any]]:
    """What the run's own record can show."""
    if found.comparison is None:
        return {}
    summary, drawers = found.comparison.summaries[0], {}
    if found.comparison.records[0].metrics:
        drawers["losses"] = gradient_figures.loss_curves
    if summary.norms is not None:
        drawers |= {"norms": gradient_figures.gradient_norms, "parts": gradient_figures.part_tails}
    if summary.clipping is not None:
        drawers["clipping"] = gradient_figures.clipping_factors
    return drawers


def _with_suffix(drawer: Callable[[Path], Any], path: Path) -> None:
    """Figures of gradients add the suffix themselves."""
    drawer(path.with_suffix(""))
