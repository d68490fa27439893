"""`Series`: one or more meters on a regular time grid, joined end to end.

Rows offsets[m] : offsets[m + 1] belong to meter m. Within a meter every row is one step after the row before; between
meters nothing is implied: each meter has its own start and end. NaN means missing, everywhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd

from tamedit.data.reading.grid import MICROSECONDS_A_DAY, Step, after, microseconds, moved, spoken
from tamedit.data.tiled import TiledStamps, tiled_stamps
from tamedit.errors import UserError
from tamedit.files import on_disk
from tamedit.statics import Static, columns_of


@dataclass(frozen=True, eq=False)
class Series:
    """One or more meters on a regular time grid, joined end to end."""

    values: np.ndarray  # (T, K) float32, targets, NaN = missing
    covariates: np.ndarray  # (T, V) float32, known at every step
    times: pd.DatetimeIndex | TiledStamps  # (T,) stamps of every row; kept once where all meters share them
    meters: tuple[str, ...]  # M names, "" for a single meter without a name
    offsets: np.ndarray  # (M + 1,) int64
    targets: tuple[str, ...]  # K names
    covariate_names: tuple[str, ...]  # V names
    frequency: pd.Timedelta
    notes: tuple[str, ...] = ()  # what was assumed, one sentence each
    inferred: tuple[
        str, ...
    ] = ()  # those of them that were inferred from a table, and that a guarantee takes as public
    findings: tuple[str, ...] = ()  # what was seen in the rows, one sentence each: not private
    layout: Literal["wide", "long"] = "wide"
    time_name: str = "time"  # how the user called the column of stamps
    id_name: str = "meter"  # and, in the long layout, the column of meters
    id_guessed: bool = False  # whether that column was found by its content alone
    step: Step | None = None  # the exact step (months have no fixed length); derived from `frequency` if not given
    clock: str = "the stamps"  # what days and weeks are counted by, if stamps have no time zone
    static: Static = ()  # attributes of the meters: each category is a covariate of 0 and 1, the same in all rows of a meter
    static_guessed: bool = False  # whether categories are those that the table holds
    reach: int = 0  # rows on either side to which preparing the data may have carried a reading: it counts for privacy

    def __post_init__(self) -> None:
        rows = len(self.times)
        if self.values.shape != (rows, len(self.targets)) or self.covariates.shape != (rows, len(self.covariate_names)):
            raise ValueError(
                f"values {self.values.shape} and covariates {self.covariates.shape} must have {rows} rows and "
                f"{len(self.targets)} and {len(self.covariate_names)} columns"
            )
        if len(self.offsets) != len(self.meters) + 1 or self.offsets[0] != 0 or self.offsets[-1] != rows:
            raise ValueError(f"offsets of {len(self.meters)} meters must run from 0 to {rows}")
        if self.step is None:
            size = int(self.frequency / pd.Timedelta(1, unit="us"))
            whole_days = self.times.tz is not None and size % MICROSECONDS_A_DAY == 0
            object.__setattr__(self, "step", Step("wall" if whole_days else "elapsed", size))

    def __len__(self) -> int:
        return len(self.times)

    def __repr__(self) -> str:
        span = "{} … {}".format(*self.span) if len(self) else "no rows"
        return (
            f"Series({len(self):,} rows every {self.spoken_step}, {len(self.meters):,} meter"
            f"{'s' * (len(self.meters) != 1)}, {span}, targets {', '.join(self.targets)})"
        )

    @property
    def lengths(self) -> np.ndarray:
        """(M,) rows of every meter."""
        return np.diff(self.offsets)

    @property
    def spoken_step(self) -> str:
        """The step in words: "1 hour", "15 minutes", "1 month"."""
        return spoken(self.grid_step)

    @property
    def period(self) -> int:
        """Steps in a season: a day below a day (24 hourly, 96 at 15 minutes), 7 daily, a year monthly, 1 if none."""
        if self.grid_step.kind == "months":
            return max(1, 12 // self.grid_step.size)
        size = self.grid_step.size
        if size < MICROSECONDS_A_DAY:
            return max(1, round(MICROSECONDS_A_DAY / size))
        if size == MICROSECONDS_A_DAY:
            return 7
        return 52 if size == 7 * MICROSECONDS_A_DAY else 1

    @property
    def phase_seconds(self) -> float:
        """Where the first row stands within a step counted from Thursday 1970-01-01 00:00, by the clock; 0 for months."""
        if self.grid_step.kind == "months" or not len(self):
            return 0.0
        return float(microseconds(self.times[:1].tz_localize(None))[0] % self.grid_step.size) / 1e6

    @property
    def static_columns(self) -> slice:
        """Which covariates are categories of attributes."""
        names = columns_of(self.static)
        first = self.covariate_names.index(names[0]) if names else 0
        return slice(first, first + len(names))

    @property
    def other_covariates(self) -> tuple[str, ...]:
        """The covariates that change from row to row."""
        mine = set(columns_of(self.static))
        return tuple(name for name in self.covariate_names if name not in mine)

    def marks(self, rows: np.ndarray | None = None) -> np.ndarray:
        """(R, S) 0 or 1 for each category: of the meters of these rows, or of every meter."""
        if not self.static:
            return np.zeros((len(self.meters) if rows is None else len(rows), 0))
        known = self.covariates[self.offsets[:-1] if rows is None else rows][:, self.static_columns]
        return np.asarray(known > 0, dtype=np.float64)  # a network's covariates are squashed

    def moved(self, rows: np.ndarray, steps: np.ndarray) -> pd.DatetimeIndex:
        """The stamps of these rows, each moved by a number of steps."""
        return moved(self.times[rows], self.grid_step, steps)

    @property
    def grid_step(self) -> Step:
        """The exact distance of two rows."""
        assert self.step is not None  # set in __post_init__
        return self.step

    def between(self, starts: np.ndarray, stops: np.ndarray) -> "Series":
        """Rows starts[m] : stops[m] of every meter, counted from the meter's first row; empty meters are left out."""
        starts = np.clip(np.asarray(starts, dtype=np.int64), 0, self.lengths)
        stops = np.clip(np.asarray(stops, dtype=np.int64), starts, self.lengths)
        lengths = stops - starts
        if (
            self.rectangular
            and lengths[0] > 0
            and isinstance(self.covariates, np.ndarray)
            and (starts == starts[0]).all()
            and (lengths == lengths[0]).all()
        ):
            return self._columns(int(starts[0]), int(lengths[0]))
        kept = np.flatnonzero(lengths)
        offsets = np.concatenate([[0], np.cumsum(lengths[kept])]).astype(np.int64)
        if len(kept) == 1:  # a view, not a copy
            first = self.offsets[kept[0]] + starts[kept[0]]
            index: slice | np.ndarray = slice(int(first), int(first + lengths[kept[0]]))
        else:
            inside = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths[kept])
            index = np.repeat(self.offsets[kept] + starts[kept], lengths[kept]) + inside
        return replace(
            self,
            values=self.values[index],
            covariates=self.covariates[index],
            times=self.times[index],
            meters=tuple(self.meters[meter] for meter in kept),
            offsets=offsets,
        )

    @property
    def distinct_times(self) -> pd.DatetimeIndex:
        """Every stamp that occurs: those of one meter, where all of them share theirs."""
        return self.times.base if isinstance(self.times, TiledStamps) else self.times

    @property
    def span(self) -> tuple[pd.Timestamp, pd.Timestamp]:
        """The first and the last stamp; pandas would copy all stamps to find them."""
        times = self.distinct_times
        numbers = times.asi8
        return times[int(numbers.argmin())], times[int(numbers.argmax())]

    @property
    def rectangular(self) -> bool:
        """Whether there are several meters, all with the same number of rows."""
        return len(self.meters) > 1 and bool((self.lengths == self.lengths[0]).all())

    @property
    def aligned(self) -> bool:
        """Whether all meters have a row at the same stamps."""
        if not self.rectangular:
            return False
        if self._shared is not None:
            return True
        stamps = self.times.asi8.reshape(len(self.meters), int(self.lengths[0]))
        return bool((stamps == stamps[0]).all())

    @property
    def _shared(self) -> pd.DatetimeIndex | None:
        """The stamps of each meter, if they are kept once for all of them."""
        once = isinstance(self.times, TiledStamps) and bool((self.lengths == len(self.times.base)).all())
        return self.times.base if once else None

    def _columns(self, start: int, length: int) -> "Series":
        """The same rows of every meter of a rectangular series, without a number for each of them."""
        meters, shared = len(self.meters), self._shared

        def cut(array: np.ndarray) -> np.ndarray:
            part = array.reshape(meters, int(self.lengths[0]), *array.shape[1:])[:, start : start + length]
            shape = (meters * length, *array.shape[1:])
            if not isinstance(array, np.memmap):
                return part.reshape(shape)
            there = on_disk(shape)
            there.reshape(part.shape)[:] = part
            return there

        if shared is None:
            times = stamps_like(self.times, cut(self.times.asi8))
        else:
            times = tiled_stamps(shared[start : start + length], meters)
        return replace(
            self,
            values=cut(self.values),
            covariates=cut(self.covariates),
            times=times,
            offsets=np.arange(meters + 1, dtype=np.int64) * length,
        )

    def rows(self, start: int, stop: int) -> "Series":
        """Rows start : stop of a single meter."""
        if len(self.meters) != 1:
            raise UserError(f"rows() cuts a single meter, but this series has {len(self.meters)}; select() one first.")
        return self.between(np.array([start]), np.array([stop]))

    def select(self, meters: Sequence[int]) -> "Series":
        """Some meters, by their numbers, in the order given."""
        numbers = np.asarray(meters, dtype=np.int64).reshape(-1)
        if len(numbers) and (numbers.min() < 0 or numbers.max() >= len(self.meters)):
            raise UserError(
                f"There is no meter {numbers.max()}: this series has the meters 0 to {len(self.meters) - 1}."
            )
        lengths = self.lengths[numbers]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        index = np.repeat(self.offsets[numbers], lengths) + np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
        shared = self._shared if len(numbers) else None
        return replace(
            self,
            values=self.values[index],
            covariates=self.covariates[index],
            times=self.times[index] if shared is None else tiled_stamps(shared, len(numbers)),
            meters=tuple(self.meters[number] for number in numbers),
            offsets=offsets,
        )

    def future(self, steps: int, meter: int = 0) -> pd.DatetimeIndex:
        """The `steps` stamps after the last row of a meter."""
        stop = int(self.offsets[meter + 1])
        return after(self.times[stop - 1 : stop], self.grid_step, steps)

    def frame(self, values: np.ndarray | None = None) -> pd.DataFrame:
        """Back to pandas, laid out as the user wrote it, with other (T, K) values if given.

        Wide: stamps as the index, one column per target. Long: columns for the meter, the stamp and every target.
        """
        values = self.values if values is None else np.asarray(values)
        if values.shape != self.values.shape:
            raise UserError(f"The values have the shape {values.shape}, but this series has {self.values.shape}.")
        frame = pd.DataFrame(values, index=self.times.rename(self.time_name), columns=list(self.targets))
        if self.layout == "wide" and len(self.meters) == 1:
            return frame
        frame = frame.reset_index()
        frame.insert(0, self.id_name, np.repeat(np.array(self.meters, dtype=object), self.lengths))
        return frame


def stamps_like(times: pd.DatetimeIndex, numbers: np.ndarray) -> pd.DatetimeIndex:
    """Stamps from their numbers, in the unit and zone of others."""
    utc = pd.DatetimeIndex(numbers.view(f"datetime64[{times.unit}]"))
    return utc if times.tz is None else utc.tz_localize("UTC").tz_convert(times.tz)
