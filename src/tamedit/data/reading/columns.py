"""Which column is what: stamps, meters, targets, covariates. Named by the caller or found by name and content."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from tamedit.data.reading.stamps import looks_like_time
from tamedit.data.reading.tables import Table
from tamedit.errors import UserError

_TIME_NAMES = "time timestamp datetime date_time date ds stamp time_stamp tstp utc period year"
TIME_NAMES = tuple(_TIME_NAMES.split())
_ID_NAMES = (
    "id meter meter_id client home home_id household household_id house customer unique_id item_id series series_id "
    "lclid sensor sensor_id station site building building_id user"
)
ID_NAMES = frozenset(_ID_NAMES.split())
CLOCK_NAMES = ("time", "hour", "clock", "time_of_day")
_PART_NAMES = "hour hours hh minute minutes min second day weekday day_of_week month year quarter half_hour season"
PARTS_OF_TIME = frozenset((*_PART_NAMES.split(), *_TIME_NAMES.split(), *CLOCK_NAMES))
MissingCovariates = Literal["refuse", "hold", "zero"]
_CLOCK = re.compile(r"\s*\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?\s*").fullmatch
_FIGURES = re.compile(r"\s*[-+]?\d[\d.,]*\s*").fullmatch
_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Wanted:
    """What the caller said about the table; None means "find it"."""

    time: str | None = None
    id: str | None = None
    targets: tuple[str, ...] | None = None
    covariates: tuple[str, ...] = ()
    frequency: str | None = None
    timezone: str | None = None
    missing_covariates: MissingCovariates = "refuse"


@dataclass(frozen=True)
class Roles:
    """The columns of a table by what they are for."""

    time: str
    id: str | None
    targets: tuple[str, ...]
    covariates: tuple[str, ...]
    id_guessed: bool = False  # by its content, not by its name


def find_roles(table: Table, wanted: Wanted) -> Roles:
    """Roles of all columns; what was not named is found and noted."""
    columns, where = list(table.frame.columns), table.where
    named = [
        *wanted.covariates,
        *(wanted.targets or ()),
        *(name for name in (wanted.time, wanted.id) if name is not None),
    ]
    for name in named:
        if name not in columns:
            raise UserError(f"There is no column {name!r} in {where}; its columns are {_listed(columns)}.")
        if named.count(name) > 1:
            raise UserError(f"The column {name!r} of {where} was named twice; give every column one role.")
    time = find_time(table, named) if wanted.time is None else wanted.time
    if time is None:
        raise UserError(
            f"No time column was found in {where} among {_listed(columns)}; name it with time=, and write stamps "
            "as 2024-01-31 13:00."
        )
    rest = [column for column in table.frame.columns if column not in named and column != time]
    id = _find_id(table.frame, time, rest) if wanted.id is None else wanted.id
    guessed = id is not None and wanted.id is None and _plain(id) not in ID_NAMES
    if id != wanted.id:
        table.notes.append(f"The meters were taken from column {id!r}.")
    targets = wanted.targets
    if targets is None:
        targets = tuple(column for column in rest if column != id)
        table.notes.append(f"The targets were taken to be {_listed(targets)}.")
    if not targets:
        raise UserError(f"No column of readings was found in {where} among {_listed(columns)}; add one.")
    return Roles(time, id, targets, wanted.covariates, guessed)


def numbers(column: pd.Series, where: str, notes: list[str] | None = None) -> np.ndarray:
    """A column as float32; text and infinities are refused with their row, and lost digits are noted."""
    if pd.api.types.is_datetime64_any_dtype(column.dtype) or pd.api.types.is_complex_dtype(column.dtype):
        what = "complex numbers" if pd.api.types.is_complex_dtype(column.dtype) else "times"
        raise UserError(f"Column {column.name!r} of {where} contains {what}, not numbers; leave it out with targets=.")
    if pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_bool_dtype(column.dtype):
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        values = pd.to_numeric(column.astype(object), errors="coerce").to_numpy(dtype=np.float64)
        wrong = np.isnan(values) & column.notna().to_numpy() & (column.astype(str).str.strip() != "").to_numpy()
        if wrong.any():
            first = int(np.argmax(wrong))
            text = str(column.iloc[first])
            remedy = (
                "write the whole column as 1234.5, without thousands separators" if _FIGURES(text) else "correct it"
            )
            raise UserError(
                f"Row {column.index[first]}, column {column.name!r} of {where} has {text!r} where a number should be; "
                f"{remedy}, leave it empty if it is missing, or name other columns (targets=, covariates=)."
            )
    infinite = np.abs(values) > _LARGEST
    if infinite.any():
        first = int(np.argmax(infinite))
        raise UserError(
            f"Row {column.index[first]}, column {column.name!r} of {where} is infinite ({column.iloc[first]}); correct "
            "it, or leave it empty if it is missing."
        )
    if notes is not None and loses_digits(values):
        notes.append(too_fine(f"column {column.name!r}"))
    return values.astype(np.float32)


def loses_digits(values: np.ndarray) -> bool:
    """Whether float32 moves a value by more than a millionth of the distance from the smallest to the largest."""
    known = values[np.isfinite(values)].astype(np.float64)
    if len(known) == 0:
        return False
    return bool(np.abs(known - known.astype(np.float32)).max() > 1e-6 * np.ptp(known) > 0)


def too_fine(what: str) -> str:
    """The note about readings that lose digits."""
    return (
        f"The readings of {what} were rounded: single precision keeps about seven digits; subtract an offset from them to "
        "keep more."
    )


def find_time(table: Table, named: Sequence[str]) -> str | None:
    """The column of stamps: a column of dates joined with one of times of day, a known name, or dates by content."""
    frame = table.frame
    free = [column for column in frame.columns if column not in named]
    lowered = {_plain(column): column for column in reversed(free)}
    for clock in CLOCK_NAMES if "date" in lowered else ():
        if clock in lowered and _join_clock(table, lowered["date"], lowered[clock]):
            return lowered["date"]
    for column in (lowered[name] for name in TIME_NAMES if name in lowered):
        if looks_like_time(frame[column], share=0.3):
            table.notes.append(f"The time was taken from column {column!r}.")
            return column
    numeric = [lowered[name] for name in TIME_NAMES if name in lowered]
    numeric = [column for column in numeric if pd.api.types.is_numeric_dtype(frame[column].dtype)]
    for column in [column for column in free if looks_like_time(frame[column])] + numeric:
        table.notes.append(f"The time was taken from column {column!r}.")
        return column
    return None


def _join_clock(table: Table, date: str, clock: str) -> bool:
    """Join a column of dates with one of times of day, if that is what the second one holds."""
    dates, clocks = table.frame[date], table.frame[clock]
    if not _is_clock(clocks):
        return False
    joined = dates.astype(str).str.strip() + " " + clocks.astype(str).str.strip()
    joined = joined.where(dates.notna() & clocks.notna())
    table.frame = table.frame.drop(columns=[clock]).assign(**{date: joined})
    table.notes.append(f"The columns {date!r} and {clock!r} were joined into the time.")
    return True


def _find_id(table: pd.DataFrame, time: str, candidates: list[str]) -> str | None:
    """A column with a meter's name, if the stamps repeat or it stands in blocks; or the only column of text, if they repeat.

    A part of the time (hours as "13:00", a weekday) is never a meter: the guarantee of a meter would be one of an hour.
    """
    candidates = [one for one in candidates if _plain(one) not in PARTS_OF_TIME and not _is_clock(table[one])]
    by_name = [column for column in candidates if _plain(column) in ID_NAMES]
    texts = [column for column in candidates if _is_text(table[column])]
    named_texts = [column for column in by_name if column in texts]
    if named_texts:
        return named_texts[0]
    if (by_name or len(texts) == 1) and table[time].duplicated().any():
        whole = [column for column in by_name if pd.api.types.is_integer_dtype(table[column].dtype)]
        holed = [column for column in by_name if _is_whole_with_holes(table[column])]
        return next(iter(whole or (texts if len(texts) == 1 else holed)), None)
    blocks = [column for column in by_name if len(candidates) > 1 and _is_in_blocks(table[column])]
    return next(iter(blocks), None)


def _plain(column: str) -> str:
    return str(column).lower().replace(" ", "_")


def _is_clock(column: pd.Series) -> bool:
    """Whether a column contains times of day, such as 13:00."""
    texts = column.dropna().astype(str).head(20)
    return len(texts) > 0 and all(_CLOCK(text) for text in texts)


def _is_in_blocks(column: pd.Series) -> bool:
    """Whether every number fills one long run of rows. Meter numbers do; readings do not."""
    if not pd.api.types.is_integer_dtype(column.dtype):
        return False
    runs = 1 + int((column.to_numpy()[1:] != column.to_numpy()[:-1]).sum())
    return runs == column.nunique() and len(column) >= 8 * runs


def _is_whole_with_holes(column: pd.Series) -> bool:
    """Whole numbers that are held as fractions because some are missing or named NA."""
    values = column.dropna()
    return len(values) > 0 and pd.api.types.is_float_dtype(column.dtype) and bool((values % 1 == 0).all())


def _is_text(column: pd.Series) -> bool:
    """Text that is not numbers in disguise."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return not pd.api.types.is_numeric_dtype(column.dtype.categories.dtype)
    if pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_datetime64_any_dtype(column.dtype):
        return False
    values = column.dropna()
    return len(values) > 0 and bool(pd.to_numeric(values.head(50).astype(object), errors="coerce").isna().all())


def _listed(names: Sequence[str]) -> str:
    shown = [repr(str(name)) for name in list(names)[:12]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
