"""Cleaning: readings that cannot be (a household's consumption below zero) are replaced.

With x the readings, N the negative ones and m the moving average over 7 days of the readings that are neither missing
nor in N, the deviations d = x − m are interpolated linearly in time across N, and x̂ = max(0, m + d̂) takes the place of
x there. So a replaced reading follows the level of its own week and depends on its neighbours. Missing readings stay missing.

A neighbour may be far away, so in private training a single reading would touch many examples (`Series.reach`). There
negative readings become missing instead, each by itself.
"""

from dataclasses import replace

import numpy as np
import pandas as pd

from tamedit.data.series import Series

_BASELINE = pd.Timedelta(days=7)


def replace_negatives(series: Series) -> Series:
    """The series without negative readings; `notes` says how many were replaced.

    If all readings of a channel of a meter are negative, they become missing: there is nothing to interpolate from.
    """
    with np.errstate(invalid="ignore"):
        negative = series.values < 0
    count = int(negative.sum())
    series = replace(series, reach=int(series.lengths.max(initial=0)))  # whatever this table holds: another might
    if count == 0:
        return series
    values = series.values.copy()
    width = max(1, round(_BASELINE / series.frequency))
    for meter in np.flatnonzero(np.logical_or.reduceat(negative.any(axis=1), series.offsets[:-1])):
        rows = slice(int(series.offsets[meter]), int(series.offsets[meter + 1]))
        for channel in np.flatnonzero(negative[rows].any(axis=0)):
            values[rows, channel] = _replaced(values[rows, channel], negative[rows, channel], width)
    share = count / max(1, int((~np.isnan(series.values)).sum()))
    note = (
        f"{count:,} negative reading{'s' * (count != 1)} ({share:.2%}) replaced by interpolation on a 7-day "
        "moving-average baseline."
    )
    return replace(series, values=values, findings=(*series.findings, note))


def drop_negatives(series: Series) -> Series:
    """The series with negative readings missing; no reading has any influence beyond itself."""
    with np.errstate(invalid="ignore"):
        negative = series.values < 0
    if not negative.any():
        return series
    note = f"{int(negative.sum()):,} negative reading{'s' * (int(negative.sum()) != 1)} taken as missing."
    return replace(
        series, values=np.where(negative, np.float32(np.nan), series.values), findings=(*series.findings, note)
    )


def negatives(series: Series, non_negative: bool) -> tuple[str, ...]:
    """What there is to say of negative readings that were stated to be impossible. Counts readings: not private."""
    with np.errstate(invalid="ignore"):
        count = int((series.values < 0).sum()) if non_negative else 0
    if not count:
        return ()
    return (
        f"{count:,} reading{'s are' if count > 1 else ' is'} negative, although non_negative says that none can be; the model "
        "never draws one, but learns from these.",
    )


def moving_average(values: np.ndarray, width: int) -> np.ndarray:
    """Centred mean over `width` steps of what is not NaN (fewer at the borders); NaN where there is nothing."""
    known = ~np.isnan(values)
    sums = np.concatenate([[0.0], np.cumsum(np.where(known, values, 0.0), dtype=np.float64)])
    counts = np.concatenate([[0], np.cumsum(known)])
    centres = np.arange(len(values))
    low = np.maximum(centres - width // 2, 0)
    high = np.minimum(centres + (width - width // 2), len(values))
    number = counts[high] - counts[low]
    return np.where(number > 0, (sums[high] - sums[low]) / np.maximum(number, 1), np.nan)


def _replaced(column: np.ndarray, negative: np.ndarray, width: int) -> np.ndarray:
    kept = np.where(negative, np.nan, column.astype(np.float64))
    known = np.flatnonzero(~np.isnan(kept))
    wrong = np.flatnonzero(negative)
    if len(known) == 0:
        return kept.astype(column.dtype)
    baseline = moving_average(kept, width)
    # A week without any good reading has no average: the average is carried over from the nearest weeks.
    averaged = np.flatnonzero(~np.isnan(baseline))
    baseline = np.interp(np.arange(len(kept)), averaged, baseline[averaged])
    deviation = np.interp(wrong, known, kept[known] - baseline[known])
    kept[wrong] = np.maximum(0.0, baseline[wrong] + deviation)
    return kept.astype(column.dtype)
