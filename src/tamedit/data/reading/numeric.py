"""A column as numbers: text and infinities are refused with their row, and what is odd is noted."""

import re

import numpy as np
import pandas as pd

from tamedit.data.reading.tables import row_at
from tamedit.errors import UserError
from tamedit.formatting import counted

FIGURES = re.compile(r"\s*[-+]?\d[\d.,]*\s*").fullmatch
_SENTINELS = (-99.0, -999.0, -9999.0, -99999.0, -999999.0)
_LARGEST = float(np.finfo(np.float32).max)


def numbers(
    column: pd.Series, where: str, notes: list[str] | None = None, missing: tuple[float | str, ...] = ()
) -> np.ndarray:
    """A column as float32; text and infinities are refused with their row, and lost digits are noted.

    `missing`: numbers and words that stand for no reading.
    """
    words = {one.strip().casefold() for one in missing if isinstance(one, str)}
    if pd.api.types.is_datetime64_any_dtype(column.dtype) or pd.api.types.is_complex_dtype(column.dtype):
        what = "complex numbers" if pd.api.types.is_complex_dtype(column.dtype) else "times"
        raise UserError(f"Column {column.name!r} of {where} contains {what}, not numbers; leave it out with targets=.")
    if pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_bool_dtype(column.dtype):
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        if words:
            column = column.astype(object).mask(column.astype(str).str.strip().str.casefold().isin(words))
        values = pd.to_numeric(column.astype(object), errors="coerce").to_numpy(dtype=np.float64)
        wrong = np.isnan(values) & column.notna().to_numpy() & (column.astype(str).str.strip() != "").to_numpy()
        if wrong.any():
            first = int(np.argmax(wrong))
            text = str(column.iloc[first])
            remedy = "write the whole column as 1234.5, without thousands separators" if FIGURES(text) else "correct it"
            plain = re.fullmatch(r"[\w.-]+", text) and not FIGURES(text)
            empty = f"say missing={text!r}" if plain else "leave it empty"
            raise UserError(
                f"{_cell(column, first, where)} has {text!r} where a number should be; "
                f"{remedy}, {empty} if it is missing, or name other columns (targets=, covariates=)."
            )
    infinite = np.abs(values) > _LARGEST
    if infinite.any():
        first = int(np.argmax(infinite))
        raise UserError(
            f"{_cell(column, first, where)} is infinite ({column.iloc[first]}); correct "
            "it, or leave it empty if it is missing."
        )
    if missing:
        values = np.where(np.isin(values, [one for one in missing if not isinstance(one, str)]), np.nan, values)
    if notes is not None:
        if loses_digits(values):
            notes.append(too_fine(f"column {column.name!r}"))
        if (said := _sentinel(values, str(column.name))) is not None:
            notes.append(said)
    return values.astype(np.float32)


def _sentinel(values: np.ndarray, name: str) -> str | None:
    """A number such as -999 that lies below all others, far away, and looks like a code for "missing"."""
    least = np.nanmin(values) if not np.isnan(values).all() else np.nan
    if least not in _SENTINELS:
        return None
    others = values[values > least]
    if len(others) == 0 or np.ptp(others) >= others.min() - least:
        return None
    count = int((values == least).sum())
    return (
        f"Column {name!r} has {counted(count, 'reading')} of {least:g}, which looks like a code for a missing one; say "
        f"missing={least:g} to take it as missing."
    )


def _cell(column: pd.Series, place: int, where: str) -> str:
    row, of, file = row_at(column.index[place], where).partition(" of ")
    return f"Row {row}, column {column.name!r}{of}{file}"


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
