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
    readings: grid.Readings, raw: np.ndarray, sums: np.ndarray, to: str, frequency: str | None
) -> tuple[grid.Readings, np.ndarray]:
    """Readings of bins and what they hold, (bins, columns). `sums` says which columns of `raw` (n, columns) are added up."""
    times = readings.times
    native = grid.infer_step(readings) if frequency is None else grid.parse_frequency(frequency, times)
    step = grid.parse_frequency(to, times)
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
