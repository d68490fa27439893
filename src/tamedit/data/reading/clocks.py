"""Stamps in two columns, a date and a time of day; and what people write into stamps besides: 24:00, BST, CET.

A time of day is a clock (13:00) or a whole number: hours 0 to 23 begin at their number, hours 1 to 24 end at it. Numbers that
reach beyond 24 are half hours (1 to 48, 0 to 47) or quarters of an hour (1 to 96, 0 to 95).
"""

import re

import numpy as np
import pandas as pd

from tamedit.data.reading.tables import Table, row_at
from tamedit.errors import UserError

DATE_NAMES = ["date", "day", "datum", "fecha", "tag", "jour", "dato", "reading_date", "read_date", "settlement_date"]
CLOCK_NAMES = ["time", "hour", "clock", "time_of_day", "hora", "uhrzeit", "tijd", "heure", "reading_time"]
NUMBER_NAMES = [
    "hour",
    "hr",
    "he",
    "hour_ending",
    "hour_of_day",
    "half_hour",
    "period",
    "settlement_period",
    "interval",
    "time",
    "hora",
    "stunde",
]
_CLOCK = re.compile(r"\s*\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?\s*").fullmatch
_DATE = re.compile(
    r"\s*\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}\s*|\s*\d{1,2}[- ][A-Za-z]{3}[- ]\d{2,4}\s*|\s*(19|20)\d{6}\s*"
).fullmatch
_MIDNIGHT = r"[ T]24:00(?::00(?:\.0+)?)?(?![\d:])"
_HOURS = {
    "GMT": 0, "UTC": 0, "WET": 0, "BST": 1, "WEST": 1, "CET": 1, "MEZ": 1, "CEST": 2, "MESZ": 2, "EET": 2, "EEST": 3,
    "AEST": 10, "AEDT": 11, "EST": -5, "EDT": -4, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7,
}  # fmt: skip
_WORD = re.compile(rf"\s*\(?\b({'|'.join(_HOURS)})\)?$")


def some(column: pd.Series, count: int = 20) -> pd.Series:
    """The first values that are not missing, as text."""
    found = column.iloc[: 100 * count].dropna().head(count)
    return (found if len(found) else column.dropna().head(count)).astype(str)


def is_clock(column: pd.Series) -> bool:
    """Whether a column contains times of day, such as 13:00."""
    texts = some(column)
    return len(texts) > 0 and all(_CLOCK(text) for text in texts)


def join_date_and_clock(table: Table, plain: dict[str, str]) -> str | None:
    """The column of dates, once a column with times of day has been joined to it; `plain` has columns by their plain names."""
    for date in [plain[name] for name in DATE_NAMES if name in plain]:
        if not _is_date(table.frame[date]):
            continue
        for clock in [plain[name] for name in CLOCK_NAMES if name in plain and plain[name] != date]:
            if is_clock(table.frame[clock]):
                _join_texts(table, date, clock)
                return date
        for clock in [plain[name] for name in NUMBER_NAMES if name in plain and plain[name] != date]:
            if _join_numbers(table, date, clock):
                return date
    return None


def _is_date(column: pd.Series) -> bool:
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        times = pd.DatetimeIndex(column.dropna())
        return bool((times == times.normalize()).all())
    texts = some(column)
    return len(texts) > 0 and all(_DATE(text.removesuffix(" 00:00:00")) for text in texts)


def _join_texts(table: Table, date: str, clock: str) -> None:
    dates, clocks = table.frame[date], table.frame[clock]
    days = dates.dt.strftime("%Y-%m-%d") if pd.api.types.is_datetime64_any_dtype(dates.dtype) else dates.astype(str)
    days = days.str.strip().str.removesuffix(" 00:00:00")
    if days.str.fullmatch(r"\d{8}").all():
        days = days.str.replace(r"(\d{4})(\d{2})(\d{2})", r"\1-\2-\3", regex=True)
    joined = (days + " " + clocks.astype(str).str.strip()).where(dates.notna() & clocks.notna())
    table.frame = table.frame.drop(columns=[clock]).assign(**{date: joined})
    table.notes.append(f"The columns {date!r} and {clock!r} were joined into the time.")


def _join_numbers(table: Table, date: str, clock: str) -> bool:
    """Join whole numbers within the day, if that is what the column holds."""
    from tamedit.data.reading.stamps import parse

    numbers, where = table.frame[clock], table.where
    if not pd.api.types.is_numeric_dtype(numbers.dtype) or pd.api.types.is_bool_dtype(numbers.dtype):
        return False
    values = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
    if np.isnan(values).any() or (values % 1 != 0).any() or values.min() < 0 or values.max() > 100:
        return False
    begin, last = int(values.min()), int(values.max())
    most = next((most for most in (24, 48, 96) if last <= most - (begin == 0)), None)
    if most is None:
        row = numbers.index[int(values.argmax())]
        raise UserError(
            f"Row {row_at(row, where)} has {last} in column {clock!r}, and a day has 48 half hours or 96 quarters; if days with "
            "a change of clocks have more, write whole stamps such as 2024-01-31 13:00."
        )
    ends = begin > 0 and not (most == 24 and last < 24)  # 1 to 23 are hours of the clock
    minutes = (values - ends) * (1440 // most)
    days = parse(table.frame[date], where, table.notes, table.findings)
    times = days + pd.to_timedelta(minutes, unit="min")
    table.frame = table.frame.drop(columns=[clock]).assign(**{date: times})
    kind = {24: "hours", 48: "half hours", 96: "quarters of an hour"}[most]
    how = f"{kind} 1 to {most}, stamped with their beginning" if ends else f"{kind} counted from 0"
    table.notes.append(f"The columns {date!r} and {clock!r} were joined into the time ({how}).")
    return True


def spelled(texts: pd.Series, notes: list[str]) -> tuple[pd.Series, np.ndarray]:
    """Stamps without words of time zones and without 24:00; and which of them are a day later for that."""
    late = texts.str.contains(_MIDNIGHT, regex=True).to_numpy(dtype=bool)
    if late.any():
        texts = texts.str.replace(_MIDNIGHT, " 00:00", regex=True)
        notes.append("24:00 was read as the beginning of the next day.")
    words = texts.str.extract(_WORD)[0]
    if words.notna().any() and not words.dropna().eq("UTC").all():
        offsets = words.map({word: f"{'-' if hours < 0 else '+'}{abs(hours):02d}:00" for word, hours in _HOURS.items()})
        plain = texts.str.replace(_WORD, "", regex=True).str.strip()
        texts = texts.where(words.isna(), plain + offsets.fillna(""))
        notes.append("Words for time zones behind the stamps, such as BST or CET, were read as their offsets from UTC.")
    return texts, late
