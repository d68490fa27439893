"""Time stamps: from text, numbers or dates to a DatetimeIndex, with time zones and clock changes."""

import re
import warnings
import zoneinfo

import numpy as np
import pandas as pd

from tamedit.data.reading.clocks import some, spelled
from tamedit.data.reading.grid import microseconds
from tamedit.data.reading.tables import Files, Table, row_at
from tamedit.errors import UserError

_DAY_MONTH = re.compile(r"^\s*(\d{1,2})([./-])(\d{1,2})\2(\d{4}|\d{2})(?!\d)")

_COMPACT = ((10, "%Y%m%d%H", "YYYYMMDDHH"), (12, "%Y%m%d%H%M", "YYYYMMDDHHMM"), (14, "%Y%m%d%H%M%S", "YYYYMMDDHHMMSS"))


def looks_like_time(column: pd.Series, share: float = 0.9) -> bool:
    """Whether at least this share of the first values of a column reads as dates (numbers alone do not)."""
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return True
    if pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_bool_dtype(column.dtype):
        return False
    texts = some(column)
    texts = spelled(texts.str.strip(), [])[0]
    count = len(texts)
    texts = texts[texts.str.contains(r"\d.*[-/.:T]\s*.*\d", regex=True)]
    if len(texts) == 0:
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parsed = pd.to_datetime(texts, errors="coerce", utc=True, format="mixed", dayfirst=True)
    return bool(parsed.notna().sum() >= share * count)


def parse(column: pd.Series, where: str, notes: list[str], findings: list[str] | None = None) -> pd.DatetimeIndex:
    """Stamps of a column whose index holds row numbers; no time zone is invented.

    What was assumed goes to `notes`, what depends on single rows to `findings` (by default to the notes, too).
    """
    name = column.name
    missing = column.isna().to_numpy()
    if missing.any():
        row = column.index[int(np.argmax(missing))]
        raise UserError(f"Row {row_at(row, where)} has no time in column {name!r}; give it one or delete the row.")
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        times = pd.DatetimeIndex(column)
    elif isinstance(column.dtype, pd.PeriodDtype):
        times = pd.DatetimeIndex(column.dt.to_timestamp())
    elif pd.api.types.is_numeric_dtype(column.dtype):
        times = _from_numbers(column, where, notes)
    else:
        times = _from_text(column, where, notes, notes if findings is None else findings)
    return times.as_unit("us")


def is_compact(column: pd.Series) -> bool:
    """Whether whole numbers are stamps such as 202401311300, by what they hold."""
    if not pd.api.types.is_integer_dtype(column.dtype):
        return False
    first = column.head(20)
    forms = [
        form
        for digits, form, _ in _COMPACT
        if digits > 10 and first.between(1900 * 10 ** (digits - 4), 2101 * 10 ** (digits - 4)).all()
    ]
    return any(pd.to_datetime(first.astype(str), format=form, errors="coerce").notna().all() for form in forms)


def _from_numbers(column: pd.Series, where: str, notes: list[str]) -> pd.DatetimeIndex:
    """Unix time in s, ms, µs or ns; 20230131, also with hours, minutes and seconds; or years: told apart by their size."""
    numbers = column.to_numpy(dtype=np.float64)
    largest = np.abs(numbers).max()
    if not np.isfinite(largest):
        raise UserError(f"Column {column.name!r} of {where} contains an infinite time; correct it.")
    if (numbers == np.round(numbers)).all():
        if numbers.min() >= 1500 and largest <= 2500:
            return pd.DatetimeIndex(pd.to_datetime(column.astype(int).astype(str), format="%Y"))
        if numbers.min() >= 15_000_101 and largest <= 25_001_231:
            days = pd.to_datetime(column.astype(int).astype(str), format="%Y%m%d", errors="coerce")
            if days.notna().all():
                return pd.DatetimeIndex(days)
        if (compact := _compact(column, where, notes)) is not None:
            return compact
    if largest < 1e8:
        row, value = column.index[0], column.iloc[0]
        raise UserError(
            f"Column {column.name!r} of {where} contains numbers that are not times (row {_only(row, where)}: {value}); name the "
            "column of time stamps with time=."
        )
    unit = "s" if largest < 1e11 else "ms" if largest < 1e14 else "us" if largest < 1e17 else "ns"
    notes.append(f"The numbers in {column.name!r} were taken to be Unix time in {unit}, in UTC.")
    exact = column.to_numpy() if pd.api.types.is_integer_dtype(column.dtype) else numbers
    return pd.DatetimeIndex(pd.to_datetime(exact, unit=unit, utc=True))


def _compact(column: pd.Series, where: str, notes: list[str]) -> pd.DatetimeIndex | None:
    """Stamps such as 2024013113, 202401311300 or 20240131130000; None if the numbers are of another kind."""
    for digits, form, shown in _COMPACT:
        unit = 10.0 ** (digits - 4)
        if column.min() < 1900 * unit or column.max() >= 2101 * unit:
            continue
        times = pd.to_datetime(column.astype("int64").astype(str), format=form, errors="coerce")
        wrong = times.isna().to_numpy()
        if wrong.mean() > 0.5:  # Unix seconds of the years 2030 to 2036, one in a hundred of which reads as a date
            continue
        if wrong.any():
            first = int(np.argmax(wrong))
            raise UserError(
                f"Row {row_at(column.index[first], where)} has {int(column.iloc[first])} in the time column {column.name!r}, "
                "which is not a time; write it as 2024-01-31 13:00."
            )
        notes.append(f"The numbers in {column.name!r} were taken to be times written as {shown}.")
        return pd.DatetimeIndex(times)
    return None


def _from_text(column: pd.Series, where: str, notes: list[str], findings: list[str]) -> pd.DatetimeIndex:
    """Every different text is read once, in the order of their first rows: many meters share their stamps."""
    codes, different = pd.factorize(column)
    rows = column.index[np.unique(codes, return_index=True)[1]]
    texts = pd.Series(pd.Index(different).astype(str), index=rows, name=column.name).str.strip()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain, late = spelled(texts, notes)
        layout = _day_month_layout(plain, notes)
        dayfirst = layout == 1
        try:
            times = pd.to_datetime(plain, dayfirst=dayfirst)
        except (ValueError, pd.errors.OutOfBoundsDatetime):
            times = _mixed(plain, texts, dayfirst, where, findings)
    if not pd.api.types.is_datetime64_any_dtype(times.dtype):
        times = _mixed(plain, texts, dayfirst, where, findings)
    found = pd.DatetimeIndex(times)
    found = found + pd.to_timedelta(late.astype(np.int64), unit="D") if late.any() else found
    return found.as_unit("us") if len(found) == len(codes) else found.as_unit("us").take(codes)


def _only(row: object, where: str) -> str:
    """The row alone where the file is named already, both where there are several files."""
    return row_at(row, where) if isinstance(where, Files) else str(row)


def _mixed(plain: pd.Series, texts: pd.Series, dayfirst: bool, where: str, findings: list[str]) -> pd.Series:
    """Several formats or several offsets in one column; the error names the first value that is not a time."""
    coerced = pd.to_datetime(plain, errors="coerce", utc=True, format="mixed", dayfirst=dayfirst)
    wrong = coerced.isna().to_numpy()
    if wrong.any():
        first = int(np.argmax(wrong))
        raise UserError(
            f"Row {row_at(texts.index[first], where)} has {str(texts.iloc[first])!r} in the time column {texts.name!r}, which "
            "is not a time; write it as 2024-01-31 13:00."
        )
    with_offset = plain.str.contains(r"\d(?:Z|z|\s?UTC|[+-]\d{2}:?\d{2})$", regex=True).to_numpy()
    if with_offset.all():
        findings.append("The stamps have different offsets from UTC; they were converted to UTC.")
        return coerced
    if with_offset.any():
        first = int(np.argmax(with_offset != with_offset[0]))
        raise UserError(
            f"Some stamps of {where} have an offset from UTC and some do not (row {_only(texts.index[first], where)}: "
            f"{str(texts.iloc[first])!r}); write all of them in the same way."
        )
    return coerced.dt.tz_localize(None)


def _day_month_layout(texts: pd.Series, notes: list[str]) -> int:
    """1 if dates such as 03/04/2024 put the day first, 2 if the month, 0 if they are written in another way."""
    match = _DAY_MONTH.match(texts.iloc[0])
    if not match:
        return 0
    parts = texts.str.extract(r"^(\d{1,2})[./-](\d{1,2})[./-]")
    first, second = pd.to_numeric(parts[0]), pd.to_numeric(parts[1])
    if first.max() > 12 or second.max() > 12:
        sure = 1 if first.max() > 12 else 2
        notes.append(f"The dates in column {texts.name!r} have the {'day' if sure == 1 else 'month'} first.")
        return sure
    steps = {}
    for choice in (1, 2):
        parsed = pd.to_datetime(texts, errors="coerce", dayfirst=choice == 1)
        if pd.api.types.is_datetime64_any_dtype(parsed.dtype) and parsed.notna().all():
            steps[choice] = _kinds_of_step(pd.DatetimeIndex(parsed))
    choice = 1 if steps.get(1, (0,)) < steps.get(2, (0,)) or match[2] == "." else 2
    word = "day first" if choice == 1 else "month first"
    notes.append(f"The dates in column {texts.name!r} were read {word}; write 2024-01-31 to be sure.")
    return choice


def _kinds_of_step(times: pd.DatetimeIndex) -> tuple[int, int]:
    """How many different steps there are, counted in months where all stamps are of one day of the month; and in time."""
    elapsed = len(np.unique(np.diff(microseconds(times))))
    monthly = len(times) > 1 and len(np.unique(times.day)) == 1 and len(np.unique(times - times.normalize())) == 1
    return len(np.unique(np.diff(times.year * 12 + times.month))) if monthly else elapsed, elapsed


def to_zone(times: pd.DatetimeIndex, codes: np.ndarray, timezone: str | None, table: Table) -> pd.DatetimeIndex:
    """Stamps in `timezone`: converted if they carry an offset, read as local clock times if they do not.

    When clocks go back an hour occurs twice. In the order of the file, or against it if the newest stand first, the first
    occurrence of a stamp (of one meter) is summer time, the second is winter time.
    """
    if timezone is None:
        return times
    try:
        zone = zoneinfo.ZoneInfo(timezone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise UserError(f"The time zone {timezone!r} is not known; write it as Europe/London or UTC.") from error
    if times.tz is not None:
        return times.tz_convert(zone)
    local = pd.DataFrame({"code": codes, "time": times.asi8})
    forwards = np.diff(times.asi8)
    newest_first = int((forwards < 0).sum()) > int((forwards > 0).sum())
    second = local.groupby(["code", "time"], sort=False).cumcount(ascending=not newest_first).to_numpy() > 0
    summer = times.tz_localize(zone, ambiguous=np.ones(len(times), bool), nonexistent="NaT")
    winter = times.tz_localize(zone, ambiguous=np.zeros(len(times), bool), nonexistent="NaT")
    absent = np.asarray(summer.isna())
    if absent.any():
        first = int(np.argmax(absent))
        raise UserError(
            f"Row {row_at(table.frame.index[first], table.where)} has the time {times[first]}, which does not exist in "
            f"{timezone} (the clocks went forward); if the stamps are not local times there, use timezone='UTC' "
            "or none."
        )
    ambiguous = np.asarray(summer != winter)
    repeated = np.zeros(len(times), bool)
    if ambiguous.any():
        hours = local[ambiguous]
        repeated[ambiguous] = hours.duplicated(keep=False).to_numpy()
        once = int((ambiguous & ~repeated).sum())
        if once:
            table.findings.append(
                f"{once} stamps fall into the hour that clocks repeat and appear once; they were read as summer time."
            )
    return summer.where(~(second & ambiguous), winter)
