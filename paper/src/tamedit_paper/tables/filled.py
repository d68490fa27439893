"""A table with its numbers: what stands in every place, before anyone decides how it looks.

number      mean ± half-width of a 95 % t-interval over seeds; one seed has no interval and is marked
bold        the best of a contest, only where the paired difference to every rival over the seeds that both have,
            x_rival − x_best (best the least), has a 95 % t-interval that excludes 0
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tamedit.evaluation.intervals import OverSeeds, over_seeds
from tamedit_paper.grid.cells import Cell
from tamedit_paper.grid.measures import BySeed, Runs, paired
from tamedit_paper.tables.layout import Column, Row, Table
from tamedit_paper.tables.printed import marked, printed


@dataclass(frozen=True)
class Entry:
    """One place of a table. `missing`: the run is not there; without both number and `missing` there is none to have."""

    number: OverSeeds | None
    missing: bool
    bold: bool
    percent: bool
    paper: str = ""
    noted: bool = False  # the paper disagrees with itself about its number


@dataclass(frozen=True)
class Line:
    """A row with its numbers and the number of seeds behind them."""

    row: Row
    entries: tuple[Entry, ...]
    seeds: str


def fill(table: Table, runs: Runs) -> tuple[Line, ...]:
    """The lines of a table."""
    values = {
        (row.key, column.key): _values(table, row, place, runs)
        for row in table.rows
        for place, column in enumerate(table.columns)
    }
    return tuple(_line(table, row, values, runs) for row in table.rows)


def _values(table: Table, row: Row, place: int, runs: Runs) -> BySeed | None:
    """The numbers by seed; None where a baseline has no such number (no coverage of a single guess)."""
    column = table.columns[place]
    if row.cells:
        return runs.values(row.cells[place], column.measure)
    if column.measure.metric is None:
        return None
    cell = _any_cell(table, runs)
    return runs.values(cell, column.measure.of_method(row.method)) or None if cell else {}


def _any_cell(table: Table, runs: Runs) -> str | None:
    """A cell that has been run on the table's data: all see the same windows and masks, and so have the same baselines."""
    source = Cell.parse(table.cells()[0]).source
    everywhere = [name for name in runs.results if Cell.parse(name).source == source]
    return next((name for name in (*table.cells(), *everywhere) if runs.of(name)), None)


def _line(table: Table, row: Row, values: dict[tuple[str, str], BySeed | None], runs: Runs) -> Line:
    paper = printed(table.label, row.key)
    entries = []
    for place, column in enumerate(table.columns):
        own = values[row.key, column.key]
        blank = column.key in row.blank
        number = over_seeds(list(own.values())) if own and not blank else None
        shown = paper[place] if place < len(paper) and paper[place] != "--" else ""
        # A run that is there and has no such number (no clipping without privacy) is not missing.
        there = bool(row.cells) and runs.of(row.cells[place]) and column.measure.over is None
        missing = own is not None and not own and not there and not blank
        rivals = [
            values[other.key, column.key] or {}
            for other in table.rows
            if other.contest == row.contest and other.key != row.key
        ]
        bold = bool(row.contest and own and rivals) and _wins(own or {}, rivals, column)
        entries.append(Entry(number, missing, bold, column.percent, shown, marked(table.label, row.key, place)))
    return Line(row, tuple(entries), _seeds(row, runs))


def _wins(own: BySeed, rivals: Sequence[BySeed], column: Column) -> bool:
    """Whether a row is better than each rival beyond the scatter of the seeds."""
    if column.best == "neither":
        return False
    sign = 1.0 if column.best == "least" else -1.0
    for rival in rivals:
        ahead = [sign * value for value in paired(rival, own).values()]
        low = over_seeds(ahead).low if ahead else None
        if low is None or low <= 0:
            return False
    return True


def _seeds(row: Row, runs: Runs) -> str:
    counts = sorted({runs.seeds(cell) for cell in row.cells})
    if not counts:
        return "–"
    return f"{counts[0]}" if len(counts) == 1 else f"{counts[0]}–{counts[-1]}"


def budgets(cells: Iterable[str], runs: Runs) -> dict[float, dict[str, float | None]]:
    """ε by unit at every σ of these cells; empty for a σ of which no run is there."""
    found: dict[float, dict[str, float | None]] = {}
    for name in cells:
        sigma = Cell.parse(name).sigma
        if sigma is not None and not found.get(sigma):
            found[sigma] = runs.epsilon(name)
    return dict(sorted(found.items()))
