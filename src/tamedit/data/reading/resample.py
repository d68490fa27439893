"""Stamps with jitter, and another step between rows.

Rounding moves a stamp τ to the nearest multiple of a duration on the clock.

Resampling puts every reading into the bin of its stamp, [b, b + s) with s the new step, and b a multiple of s on the clock (days
begin at midnight, weeks on Mondays, months on their first day). A bin is stamped with its beginning. Its value is the sum or the
mean of its readings, as the user states. A sum counts if all readings of the bin are there, a mean if at least half of
them are; how many there should be follows from the step of the readings. A reading stays in its own bin, so
no reading reaches farther than one row.
"""

from dataclasses import replace
from typing import Literal

import numpy as np
import pandas as pd

from tamedit.data.reading import grid
from tamedit.errors import UserError

Aggregate = Literal["sum", "mean"]
_WEEK = 7 * grid.MICROSECONDS_A_DAY
JITTER = 0.2  # of a step: stamps with so much of it are still of this step
_MONDAY = 4 * grid.MICROSECONDS_A_DAY  # 1970-01-01 is a Thursday


def rounded(times: pd.DatetimeIndex, to: str, notes: list[str]) -> pd.DatetimeIndex:
    """Stamps at the nearest multiple of a duration."""
    step = grid.parse_frequency(to, times)
    if step.kind != "elapsed" or step.size > grid.MICROSECONDS_A_DAY:
        raise UserError(
            f"round={to!r} is too coarse to round stamps to; write a duration below a day, such as 1min or 30min."
        )
    shift = np.round(grid.microseconds(times.tz_localize(None)) / step.size) * step.size
    apart = shift.astype(np.int64) - grid.microseconds(times.tz_localize(None))
    notes.append(f"The stamps were rounded to {grid.spoken(step)}, as stated.")
    moved = (grid.microseconds(times) + apart).astype("datetime64[us]")
    plain = pd.DatetimeIndex(moved)
    return plain if times.tz is None else plain.tz_localize("UTC").tz_convert(times.tz)


def resampled(
    readings: grid.Readings, raw: np.ndarray, sums: np.ndarray, to: str, frequency: str | None, notes: list[str]
) -> tuple[grid.Readings, np.ndarray]:
    """Readings of bins and what they hold, (bins, columns). `sums` says which columns of `raw` (n, columns) are added up."""
    times = readings.times
    native = grid.infer_step(readings) if frequency is None else grid.parse_frequency(frequency, times)
    if frequency is None:  # how many readings a bin should have follows from it
        _refuse_several_steps(readings, native)
        notes.append(f"The step of the readings was taken to be {grid.spoken(native)}, the most common one.")
    step = grid.parse_frequency(to, times)
    _refuse_other_clock(times, step, to)
    notes.append(f"The readings were resampled to {grid.spoken(step)}, as stated.")
    if step.frequency <= native.frequency:
        raise UserError(
            f"resample={to!r} is not longer than the step of the readings, {grid.spoken(native)}; name a longer one, or leave "
            "it out."
        )
    ordinals = step.ordinals(times)
    begin = _MONDAY if step.kind != "months" and step.size % _WEEK == 0 else 0
    bins = (ordinals - begin) // step.size * step.size + begin
    new = np.r_[True, (readings.codes[1:] != readings.codes[:-1]) | (np.diff(bins) != 0)]
    number, starts = np.cumsum(new) - 1, np.flatnonzero(new)
    first = bins[starts]
    like = pd.DatetimeIndex([pd.Timestamp("2000-01-01")]).as_unit("us")
    like = like if times.tz is None else like.tz_localize(times.tz)
    stamps = step.stamps(first, like)
    per_bin = _expected(first, step, native, like)
    values = raw[readings.order].astype(np.float64)
    known = ~np.isnan(values)
    total = np.stack([np.bincount(number, np.where(k, v, 0.0)) for k, v in zip(known.T, values.T, strict=True)], axis=1)
    counts = np.stack([np.bincount(number, k) for k in known.T], axis=1)
    enough = np.where(sums, counts >= per_bin[:, None] - 0.5, 2 * counts >= per_bin[:, None]) & (counts > 0)
    made = np.where(enough, np.where(sums, total, total / np.maximum(counts, 1)), np.nan).astype(np.float32)
    order = np.arange(len(starts))
    return replace(readings, times=stamps, codes=readings.codes[starts], order=order), made


def _refuse_several_steps(readings: grid.Readings, native: grid.Step) -> None:
    """Meters that come at another step than most have other numbers of readings in a bin: which is right, a table cannot tell."""
    if native.kind != "elapsed":
        return
    same = readings.codes[1:] == readings.codes[:-1]
    sizes, which = np.unique(np.diff(grid.microseconds(readings.times))[same], return_inverse=True)
    pairs, counts = np.unique(readings.codes[1:][same] * len(sizes) + which, return_counts=True)
    order = np.lexsort((-counts, pairs // len(sizes)))
    meters, first = np.unique(pairs[order] // len(sizes), return_index=True)
    own = sizes[pairs[order][first] % len(sizes)]  # the most common step of each meter
    judged = np.bincount(readings.codes)[meters] >= grid.FEWEST_TO_JUDGE
    others = np.flatnonzero(judged & (np.abs(own / native.size - 1) > 0.5 * JITTER))
    if len(others):
        index = int(np.searchsorted(readings.codes, meters[others[0]]))
        raise UserError(
            f"The readings{readings.of_meter(index)} in {readings.where} come every "
            f"{grid.spoken(grid.Step('elapsed', int(own[others[0]])))}, those of most meters every {grid.spoken(native)}; give "
            "each step a file of its own, or name the longest one with frequency=."
        )


def _refuse_other_clock(times: pd.DatetimeIndex, step: grid.Step, to: str) -> None:
    """Steps are counted in UTC. If they did not begin at midnight by the clock, a bin would hold readings of two days."""
    if times.tz is None or step.kind != "elapsed":
        return
    days = pd.date_range(times.min(), times.max() + pd.Timedelta(days=1), freq="D")
    apart = (grid.microseconds(days.tz_localize(None)) - grid.microseconds(days)) % step.size
    if apart.any():
        raise UserError(
            f"resample={to!r} does not fit the clock of {times.tz}: its distance from UTC is not a whole number of such steps "
            "all the time, so a bin would reach over midnight; name a step that divides it, such as 1h or 30min, or give "
            "local stamps without an offset and no `timezone`."
        )


def _expected(first: np.ndarray, step: grid.Step, native: grid.Step, like: pd.DatetimeIndex) -> np.ndarray:
    """How many readings a bin has if none is missing: a day with a change of clocks has 23 or 25 hours."""
    if native.kind == "months":
        return np.full(len(first), step.size / native.size)
    ends = step.stamps(first + step.size, like)
    if native.kind == "wall":
        span = grid.microseconds(ends.tz_localize(None)) - grid.microseconds(step.stamps(first, like).tz_localize(None))
    else:
        span = grid.microseconds(ends) - grid.microseconds(step.stamps(first, like))
    return span / native.size
