"""Which column is what: stamps, meters, targets, covariates. Named by the caller or found by name and content."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import pandas as pd

from tamedit.data.reading.attributes import Attributes
from tamedit.data.reading.clocks import CLOCK_NAMES, is_clock, join_date_and_clock, some
from tamedit.data.reading.numeric import FIGURES
from tamedit.data.reading.stamps import is_compact, looks_like_time
from tamedit.data.reading.tables import Table
from tamedit.errors import UserError

_TIME_NAMES = "time timestamp datetime date_time date ds stamp time_stamp tstp utc period year"
TIME_NAMES = tuple(_TIME_NAMES.split())
_ID_NAMES = (
    "id meter meter_id client home home_id household household_id house customer unique_id item_id series series_id "
    "lclid sensor sensor_id station site building building_id user meter_number customer_id client_id user_id ean_id mpan cups"
)
ID_NAMES = frozenset(_ID_NAMES.split())
_PART_NAMES = "hour hours hh minute minutes min second day weekday day_of_week month year quarter half_hour season"
PARTS_OF_TIME = frozenset((*_PART_NAMES.split(), *_TIME_NAMES.split(), *CLOCK_NAMES))
MissingCovariates = Literal["refuse", "hold", "zero"]


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
    columns: Literal["meters", "channels"] | None = None
    files: Literal["meters", "parts"] | None = None
    missing: tuple[float | str, ...] = ()
    round: str | None = None
    resample: str | None = None
    aggregate: Literal["sum", "mean"] | None = None
    static: Attributes = field(default_factory=Attributes)


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
    targets = wanted.targets
    if wanted.columns == "meters" and targets is not None and not set(targets) & set(columns):
        targets = None  # the name of the value, not of columns
    named = [
        *wanted.covariates,
        *wanted.static.names,
        *(targets or ()),
        *(name for name in (wanted.time, wanted.id) if name is not None),
    ]
    for name in named:
        if name not in columns:
            role = next((one for one in ("time", "id") if name == getattr(wanted, one)), "targets")
            role = "covariates" if name in wanted.covariates else "static" if name in wanted.static.names else role
            raise UserError(
                f"There is no column {name!r} in {where}; its columns are {_listed(columns)}; if one of them holds it, name it "
                f"with {role}={_alike(table, columns, role)}."
            )
        if named.count(name) > 1:
            raise UserError(f"The column {name!r} of {where} was named twice; give every column one role.")
    time = find_time(table, named) if wanted.time is None else wanted.time
    if time is None:
        raise UserError(
            f"No time column was found in {where} among {_listed(columns)}; name it with time=, and write stamps "
            "as 2024-01-31 13:00."
        )
    rest = [column for column in table.frame.columns if column not in named and column != time]
    id, guessed = _identify(table, wanted, time, rest)
    if targets is None:
        targets = _readings(table, [column for column in rest if column != id], named=wanted.columns != "meters")
        # Names of meters are not for a statement: who takes part is private.
        every = "Every column of numbers was taken to be one meter."
        table.notes.append(every if wanted.columns == "meters" else f"The targets were taken to be {_listed(targets)}.")
    if not targets:
        raise UserError(f"No column of readings was found in {where} among {_listed(columns)}; add one.")
    return Roles(time, id, targets, wanted.covariates, guessed)


def _identify(table: Table, wanted: Wanted, time: str, rest: list[str]) -> tuple[str | None, bool]:
    """The column of meters, and whether it was guessed by its content."""
    if wanted.columns == "meters":
        if wanted.id is not None:
            raise UserError(
                "id= names a column of meters, and columns='meters' says that each column is one; leave one out."
            )
        return None, False
    if wanted.id is not None or table.id is not None:
        return wanted.id or table.id, False
    id = _find_id(table.frame, time, rest)
    if id is not None:
        table.notes.append(f"The meters were taken from column {id!r}.")
    return id, id is not None and plain_name(id) not in ID_NAMES


def _readings(table: Table, candidates: list[str], named: bool) -> tuple[str, ...]:
    """Columns of readings: flags and other columns of words are left out."""
    words = [column for column in candidates if _is_words(table.frame[column])]
    if words and len(words) < len(candidates):
        said = f"Left out, since {_listed(words)} contain{'s' * (len(words) == 1)} text."
        table.notes.append(said if named else "Columns of text were left out.")
        return tuple(column for column in candidates if column not in words)
    return tuple(candidates)


def _is_words(column: pd.Series) -> bool:
    """Whether no value of a column is a number, or could be meant as one."""
    if not _is_text(column):
        return False
    values = pd.Series(column.dropna().unique()).astype(str)
    numeric = pd.to_numeric(values.astype(object), errors="coerce").notna()
    return not bool(numeric.any()) and not any(FIGURES(value) for value in values)


def find_time(table: Table, named: Sequence[str]) -> str | None:
    """The column of stamps: a column of dates joined with one of times of day, a known name, or dates by content."""
    frame = table.frame
    free = [column for column in frame.columns if column not in named]
    lowered = {plain_name(column): column for column in reversed(free)}
    if (joined := join_date_and_clock(table, lowered)) is not None:
        return joined
    for column in (lowered[name] for name in TIME_NAMES if name in lowered):
        if looks_like_time(frame[column], share=0.3):
            table.notes.append(f"The time was taken from column {column!r}.")
            return column
    numeric = [lowered[name] for name in TIME_NAMES if name in lowered]
    numeric += [column for column in free if column not in numeric and is_compact(frame[column])]
    numeric = [column for column in numeric if pd.api.types.is_numeric_dtype(frame[column].dtype)]
    for column in [column for column in free if looks_like_time(frame[column])] + numeric:
        table.notes.append(f"The time was taken from column {column!r}.")
        return column
    return None


def _find_id(table: pd.DataFrame, time: str, candidates: list[str]) -> str | None:
    """A column with a meter's name, if the stamps repeat or it stands in blocks; or the only column of text, if they repeat.

    A part of the time (hours as "13:00", a weekday) is never a meter: the guarantee of a meter would be one of an hour.
    """
    candidates = [one for one in candidates if plain_name(one) not in PARTS_OF_TIME and not is_clock(table[one])]
    by_name = [column for column in candidates if plain_name(column) in ID_NAMES]
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


def plain_name(column: str) -> str:
    """The name of a column in small letters, with _ for spaces."""
    return str(column).lower().replace(" ", "_")


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
    values = some(column, 50)
    return len(values) > 0 and bool(pd.to_numeric(values.astype(object), errors="coerce").isna().all())


def _alike(table: Table, columns: list[str], role: str) -> str:
    """An ellipsis, and for readings in many columns what to say if each is a meter."""
    numeric = sum(pd.api.types.is_numeric_dtype(table.frame[name].dtype) for name in columns)
    return "…, or say columns='meters' if each is a meter" if role == "targets" and numeric > 1 else "…"


def _listed(names: Sequence[str]) -> str:
    shown = [repr(str(name)) for name in list(names)[:12]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
