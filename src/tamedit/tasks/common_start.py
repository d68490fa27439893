"""A forecast that begins at one date for all meters, wherever their rows end.

Rows from the date on are not used. A meter that ends before it gets empty rows up to it, which the model sees as missing.
"""

from dataclasses import replace

import numpy as np
import pandas as pd

from tamedit.data.series import Series
from tamedit.errors import UserError

MOST_AHEAD = 1_000_000  # rows without readings that are made up to a date


def different_ends(series: Series) -> tuple[str, ...]:
    """What there is to say if the meters end at different times."""
    ends = series.times[series.offsets[1:] - 1]
    if len(ends.unique()) < 2:
        return ()
    return (
        f"The meters end at different times, from {ends.min()} to {ends.max()}, and each forecast begins after its meter's last "
        f"row; name a common beginning with since='{ends.min():%Y-%m-%d}'.",
    )


def ending_before(series: Series, since: str | pd.Timestamp) -> Series:
    """Every meter up to the last step before a date."""
    first = _stamp(series, since)
    step, starts = series.grid_step, series.offsets[:-1]
    begins = step.ordinals(series.times[starts])
    rows = -(-(step.ordinals(pd.DatetimeIndex([first]).as_unit("us"))[0] - begins) // step.size)  # (M,)
    if (rows < 1).any():
        late = int(np.argmax(rows < 1))
        name = f" of meter {series.meters[late]!r}" if series.meters[late] else ""
        raise UserError(
            f"The readings{name} begin at {series.times[starts[late]]}, not before {first}; name a later date."
        )
    ahead = int((rows - series.lengths).max())
    if ahead > MOST_AHEAD:
        raise UserError(
            f"since={str(since)!r} is {ahead:,} steps after the last row, {series.times.max()}; name a date before the end of "
            "the data, or shortly after it."
        )
    lacking = np.maximum(rows - series.lengths, 0)
    cut = series.between(np.zeros_like(rows), rows)
    if not lacking.any():
        return cut
    if series.other_covariates:
        raise UserError(
            f"A meter ends before {first}, and covariates must be known at every step; complete the table, or name an "
            "earlier date."
        )
    offsets = np.concatenate([[0], np.cumsum(rows)]).astype(np.int64)
    inside = np.arange(offsets[-1]) - np.repeat(offsets[:-1], rows)
    known = inside < np.repeat(cut.lengths, rows)
    values = np.full((int(offsets[-1]), len(series.targets)), np.nan, np.float32)
    values[known] = cut.values
    known_of = np.repeat(cut.marks().astype(np.float32), rows, axis=0)
    times = step.stamps(np.repeat(begins, rows) + inside * step.size, series.times)
    return replace(cut, values=values, covariates=known_of, times=times, offsets=offsets)


def too_late(series: Series, since: str | pd.Timestamp, meter: int, channel: int, window: int) -> str:
    """The sentence for a date after which too little is known of a meter of the cut `series`: it names the latest usable one."""
    known = np.isfinite(series.values[series.offsets[meter] : series.offsets[meter + 1], channel])
    name = f" of meter {series.meters[meter]!r}" if series.meters[meter] else ""
    if not known.any():
        return f"Before since={str(since)!r} the data{name} hold no value of {series.targets[channel]!r}; name a later date."
    step, last = series.grid_step, int(series.offsets[meter] + np.flatnonzero(known)[-1])
    latest = step.stamps(step.ordinals(series.times[last : last + 1]) + step.size * window, series.times)[0]
    return (
        f"since={str(since)!r} lies too far beyond the data: the last value of {series.targets[channel]!r}{name} is at "
        f"{series.times[last]}, and the model sees {window} rows; name {latest} or an earlier date."
    )


def _stamp(series: Series, since: str | pd.Timestamp) -> pd.Timestamp:
    """The date on the clock of the series."""
    try:
        found = pd.Timestamp(since)
    except (ValueError, TypeError):
        found = pd.NaT
    if found is pd.NaT:
        raise UserError(f"since={since!r} is not a date; write it as 2024-01-31 or 2024-01-31 06:00.")
    zone = series.times.tz
    if zone is None:
        return found.tz_localize(None)
    return (
        found.tz_localize(zone, ambiguous=True, nonexistent="shift_forward")
        if found.tz is None
        else found.tz_convert(zone)
    )
