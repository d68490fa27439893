"""What a table is: rows of cells, columns of measures, and who competes with whom."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tamedit.evaluation.labels import LABELS
from tamedit.evaluation.metrics import METRICS
from tamedit_paper.grid.measures import BASELINES, Measure, metric, partner

NONE = "–"


@dataclass(frozen=True)
class Column:
    """One measure. `key` names it among the published numbers."""

    key: str
    title: str
    measure: Measure
    group: str = ""
    sigma: float | None = None  # of a group of columns; its ε stands beside it
    best: Literal["least", "most", "neither"] = "least"
    percent: bool = False

    @property
    def arrow(self) -> str:
        return {"least": " ↓", "most": " ↑", "neither": ""}[self.best]


@dataclass(frozen=True)
class Row:
    """One run, or one for each group of columns. Rows of one `contest` compete for the bold print."""

    key: str
    leads: tuple[str, ...]  # what stands before the numbers: the model, σ, C
    cells: tuple[str, ...]  # one per column; none for a free baseline
    contest: str = ""
    sigma: float | None = None
    blank: frozenset[str] = frozenset()  # columns in which the paper prints a dash
    method: str = "model"


@dataclass(frozen=True)
class Table:
    """A table by the paper's label."""

    label: str
    caption: str
    leads: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]

    def cells(self) -> list[str]:
        """The distinct cells of the table in its order."""
        return list(dict.fromkeys(name for row in self.rows for name in row.cells))

    def needs(self) -> list[str]:
        """The cells, and those that ratios divide by."""
        cells = self.cells()
        over = sorted({column.measure.over for column in self.columns if column.measure.over})
        return list(dict.fromkeys([*cells, *(partner(cell, which) for which in over for cell in cells)]))


@dataclass(frozen=True)
class Figure:
    """A figure by the paper's label: panels of runs, each with the name of its line."""

    label: str
    caption: str
    panels: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]  # title, then (name, cell)
    kind: Literal["norms", "clipping", "losses"] = "norms"

    def cells(self) -> list[str]:
        return list(dict.fromkeys(cell for _, runs in self.panels for _, cell in runs))


def utility(
    task: str, *names: str, group: str = "", sigma: float | None = None, short: bool = False
) -> Iterator[Column]:
    """Columns of metrics of a task."""
    for name in names:
        known = METRICS[name]
        shown = name.removeprefix("point_") if short else name
        key = f"{task} {name}" + ("" if sigma is None else f" σ={sigma:g}")
        percent = name == "point_MAPE"
        yield Column(key, shown, metric(task, name), group, sigma, known.best, percent)


def row(
    key: str,
    leads: tuple[str, ...],
    cell: str,
    columns: tuple[Column, ...],
    *,
    contest: str = "",
    sigma: float | None = None,
    blank: tuple[str, ...] = (),
) -> Row:
    """A row whose columns all come from one cell."""
    return Row(key, leads, (cell,) * len(columns), contest, sigma, frozenset(blank))


def baselines(leads: int) -> tuple[Row, ...]:
    """What costs nothing: it sees the same windows and masks, and no training data."""
    return tuple(
        Row(f"free: {method}", (f"{LABELS[method]} (free)", *[NONE] * (leads - 1)), (), method=method)
        for method in BASELINES
    )
