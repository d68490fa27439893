"""Calendar covariates: where a stamp lies in its day, week and year, as points on three circles.

A phase φ in [0, 1) becomes (sin 2πφ, cos 2πφ), so that 23:59 lies next to 00:00 and 31 December next to 1 January. Stamps
with a time zone are read on the local clock, because people follow it.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from tamedit.data.series import Series
from tamedit.data.tiled import Tiled

CALENDAR_NAMES: tuple[str, ...] = ("day_sin", "day_cos", "week_sin", "week_cos", "year_sin", "year_cos")
_DAYS_A_YEAR = 365.2425
LARGE = 4_000_000  # rows, from which the calendar of all meters is kept once


def calendar(times: pd.DatetimeIndex) -> np.ndarray:
    """(T, 6) float32: sine and cosine of the hour of the day, the day of the week and the day of the year.

    Each phase runs on with the finer ones (the week with the hour, the year with day and hour): no jump at midnight.
    """
    day = np.asarray(times.hour * 3600 + times.minute * 60 + times.second, dtype=np.float64) / 86_400
    week = (np.asarray(times.dayofweek, dtype=np.float64) + day) / 7
    year = (np.asarray(times.dayofyear, dtype=np.float64) - 1 + day) / _DAYS_A_YEAR
    angles = 2 * np.pi * np.stack([day, week, year], axis=1)  # (T, 3)
    circles = np.stack([np.sin(angles), np.cos(angles)], axis=2)  # (T, 3, 2)
    return circles.reshape(len(times), 6).astype(np.float32)


def with_calendar(series: Series) -> Series:
    """The series with the six calendar channels behind its covariates (unchanged if it has them already)."""
    if set(CALENDAR_NAMES) <= set(series.covariate_names):
        return series
    covariates: Any
    if series.aligned:  # the same for all meters
        added: Any = Tiled(calendar(series.times[: int(series.offsets[1])]), len(series.meters))
    else:
        added = calendar(series.times[:])
    if len(series) >= LARGE and not series.covariate_names:
        covariates = added
    else:
        covariates = np.concatenate([series.covariates, added], axis=1)
    return replace(
        series,
        covariates=covariates,
        covariate_names=(*series.covariate_names, *CALENDAR_NAMES),
    )


def network_covariates(series: Series, calendar: bool) -> Series:
    """The series as a network reads it: the user's covariates, squashed, then (if asked for) the calendar's.

    asinh brings prices, degrees and counts into one range without a statistic of the data: it is linear near 0 and
    logarithmic far away, and so costs no privacy.
    """
    squashed = replace(series, covariates=np.arcsinh(series.covariates))
    return with_calendar(squashed) if calendar else squashed


def without_calendar(series: Series) -> Series:
    """The user's own covariates alone: calendar channels are put in their place when a model needs them."""
    kept = [k for k, name in enumerate(series.covariate_names) if name not in CALENDAR_NAMES]
    if len(kept) == len(series.covariate_names):
        return series
    names = tuple(series.covariate_names[k] for k in kept)
    return replace(series, covariates=series.covariates[:, kept], covariate_names=names)
