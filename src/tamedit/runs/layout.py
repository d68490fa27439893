"""The examples of a private run, and how many of them each unit touches."""

import numpy as np

from tamedit.data.series import Series
from tamedit.errors import UserError
from tamedit.privacy.settings import Privacy
from tamedit.privacy.units import Contribution, Layout, contributions
from tamedit.windows.cut import Windows, cut, cut_blocks

CLOCK_CHANGES = (
    "days and weeks by the clock after it changes: units are 24 and 168 hours long and begin at the hour that was midnight at a "
    "meter's first reading, so a day by the clock may then lie in two of them"
)


def rows_of_unit(series: Series, unit: str) -> int | None:
    """Rows in a day or a week; None where that is not a whole number or the unit has no fixed length."""
    days = {"day": 1, "week": 7}.get(unit)
    if days is None:
        return None
    rows = days * 86_400 / series.frequency.total_seconds()
    return int(rows) if rows >= 1 and float(rows).is_integer() else None


def week_phase(series: Series) -> np.ndarray:
    """(M,) rows between Monday 00:00 and each meter's first row, on the clock of the stamps."""
    first = series.times[series.offsets[:-1]]
    seconds = first.dayofweek * 86_400 + first.hour * 3600 + first.minute * 60 + first.second
    return np.asarray(seconds / series.frequency.total_seconds(), dtype=np.float64).astype(np.int64)


def clock_changes(series: Series) -> bool:
    """Whether the clock of the stamps changes within the series (summer time)."""
    if series.times.tz is None or rows_of_unit(series, "day") in (None, 1):
        return False
    apart = series.times.tz_localize(None) - series.times.tz_convert("UTC").tz_localize(None)
    return bool(np.any(apart != apart[0]))


def private_windows(series: Series, length: int, stride: int, privacy: Privacy, least_present: float = 0.5) -> Windows:
    """The examples of a private run: blocks that contain whole units where possible, or the paper's overlapping windows."""
    if privacy.layout == "overlapping":
        return cut(series, length, stride, least_present)
    if privacy.unit == "series":
        return cut_blocks(series, length, None, least_present=least_present)
    unit_rows = rows_of_unit(series, privacy.unit)
    if unit_rows is None:
        return cut_blocks(series, length, length, least_present=least_present)
    block = max(unit_rows, -(-length // unit_rows) * unit_rows)  # whole units, at least a window
    return cut_blocks(series, length, block, align=unit_rows, phase=week_phase(series), least_present=least_present)


def account_units(
    windows: Windows, series: Series, stride: int, privacy: Privacy
) -> tuple[dict[str, Contribution], dict[str, str]]:
    """How many examples each unit touches, and which units cannot be accounted."""
    day = rows_of_unit(series, "day")
    blocks = privacy.layout == "blocks"
    return contributions(
        Layout(
            kind="blocks" if blocks else "overlapping",
            starts=windows.starts,
            length=windows.spans if windows.spans is not None else windows.length,
            offsets=series.offsets,
            steps_per_day=day,
            week_phase=week_phase(series) if day else None,
            gaps="kept",
            stride=None if blocks else stride,
            reach=series.reach,
        )
    )


def chosen_contribution(unit: str, accounted: dict[str, Contribution], refused: dict[str, str]) -> Contribution:
    if unit not in accounted:
        raise UserError(
            refused.get(unit, f"The unit {unit!r} cannot be accounted here; choose {', '.join(accounted)}.")
        )
    return accounted[unit]


def whole_examples(windows: Windows) -> np.ndarray:
    """(N, longest, K) every row of every example, NaN behind the shorter ones."""
    spans = windows.spans if windows.spans is not None else np.full(len(windows), windows.length)
    rows = windows.starts[:, None] + np.arange(spans.max())
    inside = np.arange(spans.max()) < spans[:, None]
    values = windows.series.values[np.minimum(rows, len(windows.series) - 1)].astype(np.float64)
    return np.where(inside[:, :, None], values, np.nan)
