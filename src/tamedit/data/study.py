"""The extent of a study and the dates of its parts: public facts that decide which examples exist.

A guarantee compares a table with the same table without one unit's rows. So nothing that cuts a table into examples may hang on
which rows are there. The rows of every meter are laid on one grid,

    start, start + step, …, the last stamp before end,

and a row of it without a reading is missing: an absent row and an empty cell are the same thing. A reading outside the extent is
not used. Training, validation and test part from one another at the same dates for all meters. The user states the extent;
if not, it is the whole months around the stamps, and the privacy statement says that this was taken as public.
"""

from dataclasses import replace
from itertools import pairwise
from typing import Any, Self

import numpy as np
import pandas as pd

from tamedit.choices import Frozen
from tamedit.data.series import Series
from tamedit.data.tiled import tiled_stamps
from tamedit.errors import UserError
from tamedit.files import on_disk

TRAINING = 0.7  # of the extent, where no dates are stated; the rest is halved
SPARSE = 200  # rows of the grid per reading, from which the extent is taken for a mistake


class Study(Frozen):
    """Dates as text, by the clock of the stamps; `end` and the dates of the parts are the first moments that do not belong.

    Without `start` and `end` it is not complete: `completed` takes the months around the stamps.
    """

    start: str | None = None
    end: str | None = None
    train_until: str | None = None  # None: after 70 % of the extent
    validate_until: str | None = None  # None: half of what is left
    stated: bool = True  # the extent, by the user or the catalogue; else the months around the stamps

    @classmethod
    def stating(cls, extent: Any = None, train_until: Any = None, validate_until: Any = None) -> Self | None:
        """From "2023-01-01/2024-01-01" or a pair of dates, and the dates of the parts; None if nothing is stated."""
        if extent is None and train_until is None and validate_until is None:
            return None
        pair = (None, None) if extent is None else extent.split("/") if isinstance(extent, str) else tuple(extent)
        if len(pair) != 2:
            raise UserError(
                f"study={extent!r} is not an extent; write the first day and the day after the last, such as "
                "2023-01-01/2024-01-01."
            )
        named = ("study", pair[0]), ("train_until", train_until), ("validate_until", validate_until), ("study", pair[1])
        dates = [_date(name, value) for name, value in named]
        given = [one for one in dates if one is not None]
        if any(later <= earlier for earlier, later in pairwise(given)):
            raise UserError(
                f"The dates {', '.join(str(one)[:10] for one in given)} must follow one another: the study begins, "
                "`train_until`, `validate_until`, the study ends."
            )
        start, first, second, end = (None if one is None else one.isoformat() for one in dates)
        return cls(start=start, end=end, train_until=first, validate_until=second)

    def completed(self, series: Series, exact: bool = False) -> Self:
        """With an extent: as stated, or the whole months around the stamps; `exact`: an array, whose shape is public."""
        if self.start is not None:
            return self
        wall = series.distinct_times.tz_localize(None)
        first, last = wall.min(), wall.max() + series.frequency
        if not exact:
            first = first.normalize().replace(day=1)
            last = wall.max().normalize().replace(day=1) + pd.DateOffset(months=1)
        found = self.stating((first, last), self.train_until, self.validate_until)
        assert found is not None
        return found.model_copy(update={"stated": exact})

    @property
    def sentence(self) -> str:
        """For the statement: what was taken as public."""
        assert self.start is not None
        assert self.end is not None
        origin = "as stated" if self.stated else "the months around the stamps, assumed to be public"
        return f"the extent of the study, {self.start[:10]} to {self.end[:10]} ({origin})"

    def rows(self, series: Series, until: str | None = None) -> int:
        """Rows of the grid before a date, or before the end."""
        assert self.start is not None
        last = until or self.end
        assert last is not None
        apart = _ordinal(series, last) - _first_ordinal(series, self.start)
        return max(0, -(-apart // series.grid_step.size))

    def lay(self, series: Series) -> Series:
        """The series with every meter on the grid of the study; rows outside are left out, rows without a reading are missing."""
        step, rows, aligned = series.grid_step, self.rows(series), series.aligned and not series.covariate_names
        ordinals = step.ordinals(series.times[: int(series.offsets[1])] if aligned else series.times)
        _check_phase(series, ordinals)
        if rows < 2:
            raise UserError(
                f"The study from {self.start} to {self.end} has {rows} rows of {series.spoken_step}; state a longer one."
            )
        meters = len(series.meters)
        if meters * rows > SPARSE * len(series) + 1_000_000:
            raise UserError(
                f"From {self.start} to {self.end} there would be {meters * rows:,} rows for {len(series):,} readings; state the "
                "extent of the study with `study`, or correct the time stamps."
            )
        assert self.start is not None
        begin = _first_ordinal(series, self.start)
        if aligned:  # on one grid already: moved as a whole
            stamps = step.stamps(begin + step.size * np.arange(rows), series.times)
            return _shifted(series, int(ordinals[0] - begin) // step.size, stamps)
        place = (ordinals - begin) // step.size
        inside = (ordinals >= begin) & (place < rows)
        position = (np.repeat(np.arange(meters), series.lengths) * rows + place)[inside]
        values = np.full((meters * rows, len(series.targets)), np.nan, dtype=np.float32)
        covariates = np.zeros((meters * rows, len(series.covariate_names)), dtype=np.float32)
        values[position], covariates[position] = series.values[inside], series.covariates[inside]
        if series.static:  # known of a meter as a whole: in rows without a reading as well
            covariates[:, series.static_columns] = np.repeat(series.marks(), rows, axis=0)
        stamps = step.stamps(begin + step.size * np.arange(rows), series.times)
        return replace(
            series,
            values=values,
            covariates=covariates,
            times=tiled_stamps(stamps, meters),
            offsets=np.arange(meters + 1, dtype=np.int64) * rows,
            reach=rows if series.reach else 0,
        )

    def borders(self, laid: Series) -> tuple[int, int]:
        """The rows at which validation and test begin, in a series that was laid on the grid."""
        rows = self.rows(laid)
        first = round(TRAINING * rows) if self.train_until is None else self.rows(laid, self.train_until)
        if self.validate_until is not None:
            return first, self.rows(laid, self.validate_until)
        return first, first + round((rows - first) / 2)


def _date(name: str, value: Any) -> pd.Timestamp | None:
    if value is None:
        return None
    try:
        found = pd.Timestamp(value)
    except (ValueError, TypeError):
        found = pd.NaT
    if found is pd.NaT:
        raise UserError(f"{name}={value!r} is not a date; write it as 2023-01-31.")
    return found.tz_localize(None)


def _shifted(series: Series, shift: int, stamps: pd.DatetimeIndex) -> Series:
    """An aligned series with its first row at row `shift` of other stamps."""
    meters, before, rows = len(series.meters), int(series.lengths[0]), len(stamps)
    if shift == 0 and before == rows:
        return series
    shape = meters * rows, len(series.targets)
    values = on_disk(shape) if isinstance(series.values, np.memmap) else np.empty(shape, dtype=np.float32)
    there = values.reshape(meters, rows, shape[1])
    first = min(max(shift, 0), rows)
    last = max(min(shift + before, rows), first)
    there[:, :first], there[:, last:] = np.nan, np.nan
    there[:, first:last] = series.values.reshape(meters, before, shape[1])[:, first - shift : last - shift]
    return replace(
        series,
        values=values,
        covariates=np.zeros((meters * rows, 0), dtype=np.float32),
        times=tiled_stamps(stamps, meters),
        offsets=np.arange(meters + 1, dtype=np.int64) * rows,
        reach=rows if series.reach else 0,
    )


def _ordinal(series: Series, date: str) -> int:
    """A date by the clock of the stamps, as a number on their grid."""
    stamp = pd.DatetimeIndex([pd.Timestamp(date)]).as_unit("us")
    if series.times.tz is not None:
        stamp = stamp.tz_localize(series.times.tz, ambiguous=np.ones(1, bool), nonexistent="shift_forward")
    return int(series.grid_step.ordinals(stamp)[0])


def _first_ordinal(series: Series, date: str) -> int:
    """The first row of the grid at or after a date. The grid goes through every stamp, so any stamp tells where it lies."""
    begin = _ordinal(series, date)
    if not len(series):
        return begin
    return begin + int((series.grid_step.ordinals(series.times[:1])[0] - begin) % series.grid_step.size)


def _check_phase(series: Series, ordinals: np.ndarray) -> None:
    """All meters are read at the same moments: one grid goes through all stamps."""
    apart = (ordinals - ordinals[:1]) % series.grid_step.size != 0
    if apart.any():
        row = int(np.argmax(apart))
        meter = series.meters[int(np.searchsorted(series.offsets, row, side="right")) - 1]
        raise UserError(
            f"The stamp {series.times[row]} of meter {meter!r} lies between the stamps of other meters, which begin at "
            f"{series.times[0]}; round all stamps to the same steps of {series.spoken_step}."
        )
