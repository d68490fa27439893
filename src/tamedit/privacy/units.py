"""Privacy units: how much of the training set one unit can touch, and what a neighbouring data set is.

A table of R rows holds M meters one after the other; meter m owns the rows offsets[m] … offsets[m+1] − 1, on a regular
grid (a missing reading is a row without a value). An *example* is what Poisson sampling draws: the rows [s, s + L).

    overlapping   windows of length L at a stride, as in the paper: one row lies in about L / stride examples
    blocks        disjoint pieces of a series; G crops are drawn inside, no crop crosses a border

A *privacy unit* is what one guarantee covers: an interval [a, b) of the rows of one meter (record, day, week, series),
or one example (window). The examples that it touches are those with s < b and s + L > a, so that

    k = max over units of  #{s < b} − #{s + L ≤ a}            (an example that ends before a also begins before b)

and two binary searches count them for all units at once. What happens to those examples when the unit is taken away
decides the neighbour:

    removal       they disappear: each lies within the unit, or an example with a missing reading is dropped
    replacement   they stay and change: a gap is kept, or the unit covers only a part of them

k must hold for every pair of neighbouring data sets, not only for this one. So the layout counts examples that exist
when no reading is missing; it is public (extents, stride, calendar), while which readings are missing is not.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from tamedit.errors import UserError

Unit = Literal["window", "record", "day", "week", "series"]
Neighbour = Literal["removal", "replacement"]
UNITS: tuple[str, ...] = get_args(Unit)
DAYS_A_WEEK = 7


@dataclass(frozen=True)
class Contribution:
    """A unit touches at most `k` examples; in the neighbouring data set they disappear (removal) or change (replacement)."""

    k: int
    neighbour: Neighbour
    reason: str


@dataclass(frozen=True)
class Layout:
    """Where the examples lie, as plain arrays.

    Attributes:
        kind: "overlapping" windows or disjoint "blocks".
        starts: (N,) first row of each example.
        length: rows of an example, one number or (N,).
        offsets: (M + 1,) first row of each meter, and the number of rows.
        steps_per_day: rows per day; None when the sampling interval does not divide a day.
        week_phase: (M,) rows between Monday 00:00 and the meter's first row, modulo a week; None when unknown.
        gaps: what becomes of an example with a missing reading, "kept" (with a gap) or "dropped".
        stride: of overlapping windows; windows of this grid that are absent because a reading is missing count as well.
        reach: rows on either side that a reading may change while the data are cleaned (3.5 days for a centred 7-day mean).
    """

    kind: Literal["overlapping", "blocks"]
    starts: NDArray[np.int64]
    length: int | NDArray[np.int64]
    offsets: NDArray[np.int64]
    steps_per_day: int | None = None
    week_phase: NDArray[np.int64] | None = None
    gaps: Literal["kept", "dropped"] = "kept"
    stride: int | None = None
    reach: int = 0


def contribution(unit: str, layout: Layout) -> Contribution:
    """The bound k and the kind of neighbour of a unit under a layout, or a UserError with the reason and the remedy.

    Guarantees: no unit of the table touches more than k examples; "removal" is answered only when every example that a
    unit touches disappears together with it.
    """
    if unit not in UNITS:
        raise UserError(f"Unknown privacy unit {unit!r}: choose one of {', '.join(UNITS)}.")
    starts, ends = _examples(layout)
    if unit == "window":
        if layout.kind == "blocks":
            return Contribution(1, "removal", "one block is one example")
        return Contribution(1, "removal", "one window is one example; windows overlap, so this covers no reading")
    if unit == "record" and layout.reach == 0:  # most examples lie over a row where one begins: other rows need no look
        first = np.unique(starts)
        last, inside = first + 1, ends - starts == 1
    else:
        borders = _borders(unit, layout)
        first, last = _widened(borders, unit, layout)
        inside = np.searchsorted(borders, starts, side="right") == np.searchsorted(borders, ends - 1, side="right")
    touched = np.searchsorted(np.sort(starts), last, side="left") - np.searchsorted(np.sort(ends), first, side="right")
    k = max(1, int(touched.max(initial=0)))
    spread = layout.reach > 0 and unit != "series"
    if bool(inside.all()) and not spread:
        return Contribution(
            k, "removal", f"each {unit} holds its {_count(k)} whole, which {'vanishes' if k == 1 else 'vanish'} with it"
        )
    if layout.gaps == "dropped" and not spread:
        return Contribution(k, "removal", f"one {unit} touches {_count(k)}, dropped when a reading is missing")
    why = f"cleaning carries a reading {layout.reach} rows further" if spread else "a gap is kept"
    return Contribution(k, "replacement", f"one {unit} touches {_count(k)}, which stay and change ({why})")


def contributions(layout: Layout) -> tuple[dict[str, Contribution], dict[str, str]]:
    """Every unit's contribution, and for the units that cannot be accounted the reason why."""
    accounted: dict[str, Contribution] = {}
    refused: dict[str, str] = {}
    for unit in UNITS:
        try:
            accounted[unit] = contribution(unit, layout)
        except UserError as error:
            refused[unit] = str(error)
    return accounted, refused


def _count(k: int) -> str:
    return "1 example" if k == 1 else f"up to {k} examples"


def _examples(layout: Layout) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First and one-past-last rows of all examples, checked: inside one meter each, and disjoint when they are blocks."""
    offsets = np.asarray(layout.offsets, dtype=np.int64)
    starts = np.asarray(layout.starts, dtype=np.int64)
    lengths = np.broadcast_to(np.asarray(layout.length, dtype=np.int64), starts.shape)
    if starts.size == 0:
        raise UserError("The layout contains no example: give longer series or a shorter window length.")
    if lengths.min() < 1 or np.any(np.diff(offsets) < 0):
        raise UserError("A layout needs examples of at least one row and meter offsets in increasing order.")
    if layout.stride is not None and layout.kind == "overlapping":
        starts, lengths = _grid(starts, lengths, offsets, layout.stride)
    ends = starts + lengths
    meter = np.searchsorted(offsets, starts, side="right") - 1
    if starts.min() < offsets[0] or ends.max() > offsets[-1] or np.any(ends > offsets[meter + 1]):
        raise UserError("An example crosses the border between two meters: cut windows inside one meter's rows only.")
    if layout.kind == "blocks":
        order = np.argsort(starts)
        if np.any(starts[order][1:] < ends[order][:-1]):
            raise UserError("Blocks overlap: cut disjoint blocks, or describe the layout as 'overlapping'.")
    return starts, ends


def _grid(
    starts: NDArray[np.int64], lengths: NDArray[np.int64], offsets: NDArray[np.int64], stride: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The given windows and those of the full grid: starts offsets[m] + j · stride that leave room for a window."""
    if stride < 1:
        raise UserError(f"The stride of overlapping windows is {stride}: give a positive number of rows.")
    length = int(lengths.max())
    if np.any(lengths != length):
        raise UserError("Overlapping windows on a grid have one length: give a single number as the length.")
    full = [np.arange(a, b - length + 1, stride, dtype=np.int64) for a, b in pairwise(offsets)]
    merged = np.union1d(starts, np.concatenate(full))
    return merged, np.full(merged.shape, length, dtype=np.int64)


def _borders(unit: str, layout: Layout) -> NDArray[np.int64]:
    """The first rows of all units, and the number of rows: units are the intervals between neighbouring borders."""
    offsets = np.asarray(layout.offsets, dtype=np.int64)
    if unit == "series":
        if np.count_nonzero(np.diff(offsets)) < 2:
            raise UserError(
                "Unit 'series' needs several meters, but the data has only one, so that nothing but noise could be "
                "learned: choose 'week' or 'day', or give a panel of meters."
            )
        return np.unique(offsets)
    if unit == "record":
        return np.arange(offsets[0], offsets[-1] + 1, dtype=np.int64)
    if layout.steps_per_day is None or layout.week_phase is None:
        raise UserError(
            f"Unit {unit!r} needs to know where days begin: give readings at an interval that divides a day, with "
            "time stamps, or choose 'record', 'window' or 'series'."
        )
    period = layout.steps_per_day * (DAYS_A_WEEK if unit == "week" else 1)
    phase = np.asarray(layout.week_phase, dtype=np.int64)
    if phase.shape != (offsets.size - 1,) or layout.steps_per_day < 1:
        raise UserError(f"Unit {unit!r} needs one calendar position per meter and at least one reading per day.")
    parts = [offsets]
    for begin, end, at in zip(offsets[:-1], offsets[1:], phase, strict=True):
        parts.append(np.arange(begin + (-at) % period, end, period, dtype=np.int64))
    return np.unique(np.concatenate(parts))


def _widened(borders: NDArray[np.int64], unit: str, layout: Layout) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Units as intervals [a, b), widened by the reach of cleaning but never past their own meter."""
    first, last = borders[:-1], borders[1:]
    if layout.reach == 0 or unit == "series":
        return first, last
    offsets = np.unique(np.asarray(layout.offsets, dtype=np.int64))
    meter = np.searchsorted(offsets, first, side="right") - 1
    return np.maximum(first - layout.reach, offsets[meter]), np.minimum(last + layout.reach, offsets[meter + 1])
