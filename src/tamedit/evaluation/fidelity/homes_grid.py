"""A fleet as an array: one row per home, one column per step of the clock, all homes on one grid.

Axes: H homes, T steps, P steps of a day, W weeks (Monday to Sunday). NaN means missing. A *home-week* is a week of one home. It
counts if at most 5 % of its readings are missing; those are filled by a line, since convolutions and spectra need every step.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float, Int64

from tamedit.data.series import Series
from tamedit.errors import UserError

GAPS = 0.05  # share of a week's readings that may be missing
LEAST_HOMES = 2


@dataclass(frozen=True)
class Fleet:
    """Readings of one target, and where the grid begins."""

    values: Float[np.ndarray, "H T"]
    start: pd.Timestamp  # by the clock on the wall; a Monday, 00:00
    period: int  # P

    @property
    def homes(self) -> int:
        return len(self.values)

    @property
    def days(self) -> Float[np.ndarray, "H D P"]:
        return self.values.reshape(self.homes, -1, self.period)

    @property
    def weeks(self) -> Float[np.ndarray, "H W L"]:
        return self.values.reshape(self.homes, -1, 7 * self.period)

    def home_weeks(self) -> tuple[Float[np.ndarray, "N L"], Int64[np.ndarray, " N"]]:
        """The home-weeks that count, without gaps, and the home of each."""
        weeks = self.weeks
        kept = np.isnan(weeks).mean(axis=2) <= GAPS
        return without_gaps(weeks[kept]), np.nonzero(kept)[0].astype(np.int64)


def fleet(series: Series, target: str | None = None, name: str = "The data") -> Fleet:
    """The homes of a series on one grid of whole weeks. `name` says in errors which data is meant."""
    channel = _channel(series, target, name)
    if series.frequency >= pd.Timedelta(days=1) or pd.Timedelta(days=1) % series.frequency:
        raise UserError(
            f"{name} has a row every {series.spoken_step}; fidelity needs several rows a day at the same times every day."
        )
    if len(series.meters) < LEAST_HOMES:
        raise UserError(f"{name} has {len(series.meters)} homes; fidelity compares fleets of at least {LEAST_HOMES}.")
    clock = series.times.tz_localize(None) if series.times.tz is not None else series.times
    first = clock.min().normalize()
    start = first - pd.Timedelta(days=first.dayofweek)
    place = np.asarray((clock - start) // series.frequency)
    length = 7 * series.period
    steps = -(-(int(place.max()) + 1) // length) * length
    values = np.full((len(series.meters), steps), np.nan)
    values[np.repeat(np.arange(len(series.meters)), series.lengths), place] = series.values[:, channel]
    values = values[np.isfinite(values).any(axis=1)]
    if len(values) < LEAST_HOMES:
        raise UserError(f"{name} has {len(values)} homes with readings; fidelity needs at least {LEAST_HOMES}.")
    made = Fleet(values, start, series.period)
    whole = len(np.unique(made.home_weeks()[1]))
    if whole < LEAST_HOMES:
        raise UserError(
            f"{name} has {whole} homes with a whole week (Monday to Sunday, at most {GAPS:.0%} missing); fidelity needs "
            f"at least {LEAST_HOMES}, so give longer series."
        )
    return made


def fleets(real: Series, others: dict[str, Series], target: str | None = None) -> tuple[Fleet, dict[str, Fleet]]:
    """Real and other homes as arrays, if they have the same target and the same step."""
    wanted = target if target is not None else real.targets[_channel(real, None, "The real data")]
    held = fleet(real, wanted, "The real data")
    made = {}
    for name, series in others.items():
        own = wanted if len(series.targets) > 1 else None  # a single target may have another name
        made[name] = fleet(series, own, f"{name.capitalize()!r}")
        if made[name].period != held.period:
            raise UserError(
                f"{name!r} has a row every {series.spoken_step} and the real data one every {real.spoken_step}; resample one."
            )
    return held, made


def within(series: Series, start: pd.Timestamp, days: int) -> Series:
    """The rows of every home from `start` on, `days` days, by the clock on the wall; homes without any are left out."""
    clock = series.times.tz_localize(None) if series.times.tz is not None else series.times
    early = np.asarray(clock < start).astype(np.int64)
    there = np.asarray((clock >= start) & (clock < start + pd.Timedelta(days=days))).astype(np.int64)
    if not there.any():
        raise UserError(f"No home has a row in the {days} days from {start:%Y-%m-%d} on; choose other dates.")
    starts = np.add.reduceat(early, series.offsets[:-1])
    return series.between(starts, starts + np.add.reduceat(there, series.offsets[:-1]))


def without_gaps(rows: Float[np.ndarray, "N L"]) -> Float[np.ndarray, "N L"]:
    """Missing readings on a line between the observed ones of their row; at its ends, the nearest reading."""
    filled = pd.DataFrame(rows.T).interpolate(limit_direction="both")
    return np.ascontiguousarray(filled.to_numpy(dtype=np.float64).T)


def _channel(series: Series, target: str | None, name: str) -> int:
    if target is None and len(series.targets) == 1:
        return 0
    if target not in series.targets:
        said = "several targets" if target is None else f"no target {target!r}"
        raise UserError(f"{name} has {said}; name one with `target`: {', '.join(series.targets)}.")
    return series.targets.index(target)
