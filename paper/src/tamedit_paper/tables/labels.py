"""Every table and figure of the paper by its label, and the cells that each needs.

A cell that several tables share is one cell. PrivatePower is not public: its tables take a `source`, the real household
(default) or the simulated one.
"""

from collections.abc import Callable
from functools import partial

from tamedit.errors import UserError
from tamedit_paper.tables.gradients import clipping_rate, clipping_stats, figures, gradient_norms, runtime
from tamedit_paper.tables.layout import Figure, Table
from tamedit_paper.tables.utility import (
    FORECAST_THREE,
    IMPUTATION_THREE,
    clip_norm,
    components,
    ett,
    expressiveness,
    full_metrics,
    main_results,
    operators,
    tightness,
)

SOURCES = ("household", "simulated")  # what stands in for PrivatePower

# In the paper's order.
TABLES: dict[str, Callable[[str], Table]] = {
    "tab:main-results-extended": main_results,
    "tab:grad-norms-multi-m": gradient_norms,
    "tab:clipping_stats": clipping_stats,
    "tab:ablation-forecast": partial(components, task="forecast"),
    "tab:boundop-mini": partial(
        operators, label="tab:boundop-mini", task="forecast", names=FORECAST_THREE, sigmas=(0.05,)
    ),
    "tab:forecasting-full": partial(full_metrics, task="forecast"),
    "tab:inter-full": partial(full_metrics, task="imputation"),
    "tab:main-results-bts": lambda _: ett("etth1"),
    "tab:main-results-cts": lambda _: ett("ettm1"),
    "tab:boundop-pp-forecast": partial(
        operators, label="tab:boundop-pp-forecast", task="forecast", names=FORECAST_THREE, sigmas=(0.05, 0.2)
    ),
    "tab:boundop-pp-impute": partial(
        operators, label="tab:boundop-pp-impute", task="imputation", names=IMPUTATION_THREE, sigmas=(0.05, 0.2)
    ),
    "tab:clipping-rate": clipping_rate,
    "tab:tightness-forecast": partial(tightness, task="forecast"),
    "tab:nonprivate-expressiveness": expressiveness,
    "tab:clip-norm": clip_norm,
    "tab:tightness-interp": partial(tightness, task="imputation"),
    "tab:component-ablation-interp": partial(components, task="imputation"),
    "tab:runtime-step-time": runtime,
}
FIGURES = tuple(figure.label for figure in figures(SOURCES[0]))

# What says most, first: the main comparison, components, operators, ETTh1.
FIRST = (
    "tab:main-results-extended",
    "tab:grad-norms-multi-m",
    "tab:ablation-forecast",
    "tab:boundop-mini",
    "tab:main-results-bts",
)


def labels() -> tuple[str, ...]:
    return (*TABLES, *FIGURES)


def full_label(what: str) -> str:
    """A label with its prefix; one sentence with all labels for anything else."""
    for known in labels():
        if what in (known, known.partition(":")[2]):
            return known
    raise UserError(f"{what!r} is not a table or figure of the paper; choose all, or one of: {', '.join(labels())}.")


def table(what: str, source: str = SOURCES[0]) -> Table:
    """The table of a label."""
    label = full_label(what)
    if label not in TABLES:
        raise UserError(f"{label} is a figure; choose one of: {', '.join(TABLES)}.")
    return TABLES[label](source)


def figure(what: str, source: str = SOURCES[0]) -> Figure:
    """The figure of a label."""
    label = full_label(what)
    if label not in FIGURES:
        raise UserError(f"{label} is a table; choose one of: {', '.join(FIGURES)}.")
    return next(one for one in figures(source) if one.label == label)


def cells_of(what: str, source: str = SOURCES[0]) -> list[str]:
    """The distinct cells of a label or of `all`, the most informative first."""
    if source not in SOURCES:
        raise UserError(f"source={source!r} cannot replace PrivatePower; choose one of {', '.join(SOURCES)}.")
    if what != "all":
        label = full_label(what)
        return table(label, source).needs() if label in TABLES else figure(label, source).cells()
    first = [TABLES[label](source) for label in FIRST]
    rest = [TABLES[label](source) for label in TABLES if label not in FIRST]
    names = [name for one in (*first, *rest) for name in one.needs()]
    names += [name for one in figures(source) for name in one.cells()]
    return list(dict.fromkeys(names))
