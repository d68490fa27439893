"""Regular time grids: from stamps as they came to rows at equal steps.

Every meter m has its own first stamp a_m and last stamp z_m; its grid is a_m, a_m + s, …, z_m, where s is the step that
occurs most often between neighbouring stamps of all meters. A reading at stamp τ goes to row (τ − a_m) / s, which must
be a whole number. Rows of the grid without a reading stay missing.

There are three kinds of step, because a day is not always 24 hours and a month has no fixed length:

    elapsed   below a day: seconds on a clock that never jumps (UTC for stamps with a time zone)
    wall      whole days of stamps with a time zone: the local calendar, so that midnight stays midnight
    months    1, 2, 3, 4, 6 or 12 months: counted on the calendar
"""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Literal

import numpy as np
import pandas as pd

from tamedit.data.tiled import TiledStamps
from tamedit.errors import UserError

MICROSECONDS_A_DAY = 86_400_000_000
_MONTH_STEPS = {months: (28 * months, 31 * months) for months in (1, 2, 3, 4, 6, 12)}
DAYS_A_MONTH = 30.4375
FEWEST_TO_JUDGE = 24  # readings of a meter, before its own step is compared with the others'


@dataclass(frozen=True)
class Step:
    """The distance of two rows: `size` microseconds, or `size` months if `kind` is "months"."""

    kind: Literal["elapsed", "wall", "months"]
    size: int
    month_ends: bool = False  # months only: stamps are the last day of their month

    @property
    def frequency(self) -> pd.Timedelta:
        """The step as a duration; for months their mean length."""
        if self.kind == "months":
            return pd.Timedelta(days=DAYS_A_MONTH * self.size)
        return pd.Timedelta(self.size, unit="us")

    def ordinals(self, times: pd.DatetimeIndex) -> np.ndarray:
        """Integers that grow by `size` from one row of the grid to the next."""
        if self.kind == "months":
            return np.asarray(times.year * 12 + times.month - 1, dtype=np.int64)
        if self.kind == "wall":
            return microseconds(times.tz_localize(None))
        return microseconds(times)

    def stamps(self, ordinals: np.ndarray, like: pd.DatetimeIndex) -> pd.DatetimeIndex:
        """The inverse of `ordinals`, with the time zone, and for months the day and time of day, of `like`."""
        if self.kind == "elapsed":
            utc = pd.DatetimeIndex(ordinals.astype("datetime64[us]"))
            return utc if like.tz is None else utc.tz_localize("UTC").tz_convert(like.tz)
        if self.kind == "wall":
            local = pd.DatetimeIndex(ordinals.astype("datetime64[us]"))
        else:
            first = (ordinals - 1970 * 12).astype("datetime64[M]")
            wall = like[0].tz_localize(None)
            days = (first + 1).astype("datetime64[D]") - np.timedelta64(1, "D") if self.month_ends else first
            shift = wall - wall.normalize() + pd.Timedelta(days=0 if self.month_ends else wall.day - 1)
            local = pd.DatetimeIndex(days.astype("datetime64[us]")) + shift
        if like.tz is not None:
            local = local.tz_localize(like.tz, ambiguous=np.ones(len(local), bool), nonexistent="shift_forward")
        return local.as_unit("us")


@dataclass(frozen=True)
class Readings:
    """Rows of a table in order: meter by meter, time by time."""

    times: pd.DatetimeIndex  # (n,) stamps
    codes: np.ndarray  # (n,) number of the meter
    meters: tuple[str, ...]  # M names
    order: np.ndarray  # (n,) position in the table
    where: str  # what to call the table in a sentence

    def of_meter(self, index: int) -> str:
        """ " of meter 'home 7'" for a reading, or nothing for a single unnamed meter."""
        return of_meter(self.meters, int(self.codes[index]))


@dataclass(frozen=True)
class Grid:
    """Where every reading goes: row `position[i]` of a table with `offsets[-1]` rows and stamps `times`."""

    position: np.ndarray  # (n,) int64
    times: pd.DatetimeIndex | TiledStamps  # (T,)
    offsets: np.ndarray  # (M + 1,) int64
    step: Step
    notes: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()


def microseconds(times: pd.DatetimeIndex) -> np.ndarray:
    """Microseconds since 1970 (UTC for stamps with a time zone)."""
    return np.asarray(times.as_unit("us").asi8, dtype=np.int64)


def step_of(seconds: float) -> Step:
    """The step whose (mean) length is `seconds`, as far as that tells."""
    months = round(seconds / (DAYS_A_MONTH * 86_400))
    if months and abs(seconds - months * DAYS_A_MONTH * 86_400) < 1:
        return Step("months", months)
    return Step("elapsed", round(seconds * 1e6))


def parse_frequency(frequency: str | timedelta, times: pd.DatetimeIndex) -> Step:
    """A step from a pandas frequency such as "1h", "15min", "1D" or "MS"."""
    try:
        offset: Any = pd.tseries.frequencies.to_offset(frequency)
    except ValueError as error:
        raise UserError(
            f"The frequency {frequency!r} is not known; write a number and a unit, such as 1h, 15min, 1D or 1MS."
        ) from error
    start = pd.Timestamp("2001-01-31")
    lengths = {one + offset - one for one in (start, pd.Timestamp("2001-02-03"))}
    size = int(min(lengths) / pd.Timedelta(1, unit="us"))
    if len(lengths) == 1 and size > 0:
        return Step("wall" if times.tz is not None and size % MICROSECONDS_A_DAY == 0 else "elapsed", size)
    months = (start + 2 * offset).to_period("M").ordinal - (start + offset).to_period("M").ordinal
    if months > 0 and size > 0:
        return Step("months", months, month_ends=bool(times.is_month_end.all()))
    raise UserError(f"The frequency {frequency!r} has no fixed length; use 1h, 15min, 1D, 7D or 1MS.")


def infer_step(readings: Readings) -> Step:
    """The most common step between neighbours of one meter; of two equally common ones the shorter."""
    times, codes = readings.times, readings.codes
    same = codes[1:] == codes[:-1]
    differences = np.diff(microseconds(times))[same]
    if len(differences) == 0:
        raise UserError(
            f"Every meter in {readings.where} has only one row; at least two readings at different times are needed."
        )
    sizes, counts = np.unique(differences, return_counts=True)
    size = int(sizes[np.argmax(counts)])
    days = size / MICROSECONDS_A_DAY
    for months, (shortest, longest) in _MONTH_STEPS.items():
        if shortest <= days <= longest:
            wall = times.tz_localize(None)
            month_ends = bool(wall.is_month_end.all())
            if month_ends or (len(np.unique(wall.day)) == 1 and wall.day[0] <= 28):
                return Step("months", months, month_ends)
    if times.tz is None:
        return Step("elapsed", size)
    local = np.diff(microseconds(times.tz_localize(None)))[same]
    local_sizes, local_counts = np.unique(local, return_counts=True)
    local_size = int(local_sizes[np.argmax(local_counts)])
    if local_size % MICROSECONDS_A_DAY == 0:
        return Step("wall", local_size)
    return Step("elapsed", size)


def build(readings: Readings, frequency: str | None) -> Grid:
    """The grid of readings that are in order and hold no stamp twice."""
    times, codes = readings.times, readings.codes
    step = infer_step(readings) if frequency is None else parse_frequency(frequency, times)
    ordinals = step.ordinals(times)
    starts = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
    ends = np.r_[starts[1:], len(codes)] - 1
    counts = ends - starts + 1
    first = np.repeat(ordinals[starts], counts)
    off = (ordinals - first) % step.size != 0
    if step.kind == "months":
        off |= _off_calendar(times, step)
    if off.any():
        raise UserError(_off_grid_sentence(readings, step, int(np.argmax(off)), stated=frequency is not None))
    lengths = (ordinals[ends] - ordinals[starts]) // step.size + 1
    _refuse_endless(readings, step, int(lengths.sum()))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    position = np.repeat(offsets[:-1], counts) + (ordinals - first) // step.size
    inside = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
    full = np.repeat(ordinals[starts], lengths) + inside * step.size
    _refuse_coarser(readings, step, ordinals, starts)
    notes = () if frequency else (f"The step between rows was taken to be {spoken(step)}, the most common one.",)
    findings = []
    absent = int(offsets[-1]) - len(times)
    if absent:
        findings.append(
            f"{absent:,} absent time stamp{'s' * (absent != 1)} ({absent / offsets[-1]:.1%} of rows) added as missing."
        )
    return Grid(position, step.stamps(full, times), offsets, step, notes, tuple(findings))


def _refuse_coarser(readings: Readings, step: Step, ordinals: np.ndarray, starts: np.ndarray) -> None:
    """A meter whose readings all lie on a coarser grid has another step: half of its rows would be called missing."""
    apart = np.diff(ordinals, prepend=ordinals[0])
    apart[starts] = 0
    common = np.gcd.reduceat(apart, starts) // step.size
    counts = np.diff(np.r_[starts, len(ordinals)])
    coarse = np.flatnonzero((common > 1) & (counts >= FEWEST_TO_JUDGE))
    if len(coarse) and (common == 1).any():
        own = spoken(replace(step, size=step.size * int(common[coarse[0]])))
        meter = readings.of_meter(int(starts[coarse[0]]))
        raise UserError(
            f"The readings{meter} in {readings.where} come every {own}, those of other meters every {spoken(step)}; bring all "
            "meters to one step, or give each step a file of its own."
        )


def after(times: pd.DatetimeIndex, step: Step, steps: int) -> pd.DatetimeIndex:
    """The `steps` stamps that follow the last one of `times`."""
    last = step.ordinals(times[-1:])
    return step.stamps(last + step.size * np.arange(1, steps + 1), times)


def moved(times: pd.DatetimeIndex, step: Step, steps: np.ndarray) -> pd.DatetimeIndex:
    """Every stamp moved by its number of steps, along the grid: by the clock for days, by the calendar for months."""
    return step.stamps(step.ordinals(times) + step.size * steps, times)


def spoken(step: Step) -> str:
    """A step in words: "1 hour", "15 minutes", "1 day", "3 months"."""
    if step.kind == "months":
        return _counted(step.size, "month")
    for name, size in (
        ("day", MICROSECONDS_A_DAY),
        ("hour", 3_600_000_000),
        ("minute", 60_000_000),
        ("second", 1_000_000),
    ):
        if step.size % size == 0:
            return _counted(step.size // size, name)
    return f"{step.size / 1e6:g} seconds"


def _counted(count: int, name: str) -> str:
    return f"{count} {name}{'s' * (count != 1)}"


def _off_calendar(times: pd.DatetimeIndex, step: Step) -> np.ndarray:
    """Monthly stamps that are not on the first one's day of the month and time of day."""
    wall = times.tz_localize(None)
    within = np.asarray((wall - wall.normalize()).asi8)
    off = within != within[0]
    if step.month_ends:
        return np.asarray(off | ~np.asarray(wall.is_month_end))
    return np.asarray(off | (np.asarray(wall.day) != wall.day[0]))


def _off_grid_sentence(readings: Readings, step: Step, index: int, stated: bool) -> str:
    first = int(np.searchsorted(readings.codes, readings.codes[index]))
    unit = _unit_of_jitter(readings, step.size if stated and step.kind != "months" else None)
    if unit is not None:
        return (
            f"The time stamp {readings.times[index]}{readings.of_meter(index)} in {readings.where} lies a little off a regular "
            f"grid, as others do; say round={unit!r} to bring every stamp to it."
        )
    return (
        f"The time stamp {readings.times[index]}{readings.of_meter(index)} in {readings.where} is not a whole number "
        f"of steps of {spoken(step)} after the first one ({readings.times[first]}); put the readings on a regular "
        "grid, or name the step with frequency=."
    )


def _unit_of_jitter(readings: Readings, stated: int | None) -> str | None:
    """The smallest usual unit to which all stamps can be rounded, each by less than a fifth of the step that they then have."""
    own = microseconds(readings.times.tz_localize(None) if readings.times.tz is not None else readings.times)
    same = readings.codes[1:] == readings.codes[:-1]
    for unit in ("1s", "10s", "1min", "5min", "10min", "15min", "30min", "1h"):
        size = parse_frequency(unit, readings.times).size
        rounded = np.round(own / size).astype(np.int64) * size
        apart = np.diff(rounded)[same]
        sizes, counts = np.unique(apart, return_counts=True)
        step = stated or (int(sizes[np.argmax(counts)]) if len(sizes) else 0)
        moved = np.abs(rounded - own).max()
        if step > 0 and (apart > 0).all() and not (apart % step).any() and 0 < 5 * moved < step:
            return unit
    return None


def _refuse_endless(readings: Readings, step: Step, rows: int) -> None:
    """A mistyped year must not fill the memory with missing rows."""
    times, codes = readings.times, readings.codes
    if rows <= 100 * len(times) + 1_000_000:
        return
    gaps = np.where(codes[1:] == codes[:-1], np.diff(microseconds(times)), 0)
    widest = int(np.argmax(gaps))
    missing = gaps[widest] / 1e6 / step.frequency.total_seconds()
    raise UserError(
        f"Between {times[widest]} and {times[widest + 1]}{readings.of_meter(widest)} in {readings.where} there would "
        f"be {missing:,.0f} missing steps of {spoken(step)}; correct the time stamps, or name the step "
        "with frequency=."
    )


def of_meter(meters: tuple[str, ...], code: int) -> str:
    """ " of meter 'home 7'", or nothing for a single unnamed meter."""
    return f" of meter {meters[code]!r}" if meters[code] else ""
