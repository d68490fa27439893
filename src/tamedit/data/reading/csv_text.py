"""A table from the text of a CSV: where its header is, its separator and its decimal sign."""

import csv
import io
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from tamedit.errors import UserError

MISSING = ["?", "-", "--", ".", "Null", "NONE", "none", "Missing", "missing", "MISSING"]
HEAD = 1000  # lines in which the header is looked for, below remarks
_TITLE = 20  # lines that may stand above a header
_DECIMAL_COMMA = r"[-+]?(\d+|\d{1,3}(\.\d{3})*),\d+|[-+]?\d+"
_THOUSANDS = r"[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?"  # "0,250" is none: nobody writes 250 so
_DATED = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}").match
_NUMBER = re.compile(r"[-+]?\d+([.,]\d+)*(e[-+]?\d+)?", re.IGNORECASE).fullmatch
_STAMP = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}|\d{8,14}$|\d{4}-\d{2}$|\d{1,2}[- ][A-Za-z]{3,}").match
_SEPARATOR_NAMES = {";": "semicolons", "\t": "tabs", "|": "vertical bars", ",": "commas"}


@dataclass(frozen=True)
class Parsed:
    """A table, and how to get one of its columns as it is written."""

    frame: pd.DataFrame
    written: Callable[[str], pd.Series]


@dataclass(frozen=True)
class Head:
    """Where a table begins in its text."""

    skipped: int  # lines above the header
    separator: str
    line: str  # the header as it stands
    names: list[str]


def find_head(text: str, path: str, notes: list[str]) -> Head:
    """The header: below blank lines and remarks, and below lines of title, which are cut into fewer fields than it."""
    lines = text.split("\n", HEAD)[:HEAD]
    skipped = 0
    while skipped < len(lines) and (not lines[skipped].strip() or lines[skipped].startswith("#")):
        skipped += 1
    if not any(line.strip() for line in lines[skipped:]):
        raise UserError(f"{path} contains no table; give a CSV with a header and rows.")
    title = _title(lines[skipped:])
    if title:
        notes.append(
            f"{'The line' if title == 1 else f'{title} lines'} above the header {'was' if title == 1 else 'were'} left out."
        )
    skipped += title
    separator = _separator(_filled(lines[skipped:]))
    if separator != ",":
        notes.append(f"The columns were taken to be separated by {_SEPARATOR_NAMES[separator]}.")
    names = header("\n".join(lines[skipped:]), separator)
    return Head(skipped, separator, lines[skipped].rstrip("\r"), names)


def from_text(text: str, path: str, notes: list[str]) -> Parsed:
    """A table by the numbers of its rows."""
    head = find_head(text, path, notes)
    text = without_repeated_headers(text, head, notes)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            table = _parsed(text, head, na_values=MISSING, low_memory=False)
    except (pd.errors.ParserError, pd.errors.ParserWarning, pd.errors.EmptyDataError) as error:
        found = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
        if found:
            raise UserError(
                f"Row {int(found[2])} of {path} has {found[3]} fields, but the header has {found[1]}; correct that row."
            ) from error
        if isinstance(error, pd.errors.ParserWarning):
            raise UserError(f"{path} has rows that are longer than its header; correct the header.") from error
        raise UserError(f"{path} cannot be read as a table ({str(error).strip()}); export it again.") from error
    table.columns = [str(column).strip() for column in table.columns]
    refuse_repeated_columns(head.names, path)
    names = list(table.columns)
    refuse_headless(names, path)
    nameless = [name for name in table.columns if name.startswith("Unnamed: ") and table[name].isna().all()]
    table = table.drop(columns=nameless).dropna(how="all")
    if len(table) == 0:
        raise UserError(f"{path} has a header but no rows; give a file with readings.")
    table = _decimal_commas(_without_row_numbers(table, notes), notes)

    def written(column: str) -> pd.Series:
        place = names.index(column)
        return _parsed(text, head, usecols=[place], dtype=str, keep_default_na=False).iloc[:, 0]

    return Parsed(table, written)


def without_repeated_headers(text: str, head: Head, notes: list[str]) -> str:
    """`cat a.csv b.csv` leaves headers among the rows: they become blank lines, so that row numbers stay."""
    found = re.compile(rf"^{re.escape(head.line)}\r?$", re.MULTILINE)
    if f"\n{head.line}" not in text or len(head.names) < 2:
        return text
    first = found.search(text)
    if first is None or found.search(text, first.end()) is None:
        return text
    notes.append("Rows that repeat the header were left out.")
    return text[: first.end()] + found.sub("", text[first.end() :])


def _filled(lines: list[str]) -> list[str]:
    return [line for line in lines[:60] if line.strip()][:40]


def _counts(lines: list[str], separator: str) -> list[int]:
    return [re.sub(r'"[^"]*"', "", line).count(separator) for line in lines]


def _title(lines: list[str]) -> int:
    """Lines above the header: the first line of names with a stamp and numbers below it.

    Where no line is such a header, they are those after which all lines have the same number of fields, if that is not so from
    the first on.
    """
    for place in range(min(_TITLE, len(lines) - 1)):
        if _is_header(lines, place):
            return place
    first = _filled(lines)
    for separator in (";", "\t", "|", ","):
        counts = _counts(first, separator)
        if counts[0] and len(set(counts)) == 1 and not _hollow(lines, separator):
            return 0
    found = 0
    for title in range(1, min(_TITLE, len(lines) - 1)):
        rest = _filled(lines[title:])
        if not lines[title].strip() or len(rest) < 2:
            continue
        apart = not lines[title - 1].strip()  # a blank line parts a title from its table
        for separator in (";", "\t", "|", ","):
            counts, above = _counts(rest, separator), _counts(lines[:title], separator)
            hollow = all(_hollow(lines[at:], separator) for at in range(title) if lines[at].strip())
            names = [name.strip().strip('"') for name in lines[title].split(separator)]
            regular = counts[0] and len(set(counts)) == 1 and not _is_reading(names)
            narrower = not found and (max(above) < counts[0] or hollow)
            if regular and (narrower or (found and apart and not any(map(_DATED, names)))):
                found = title
    return found


def _is_header(lines: list[str], place: int) -> bool:
    """Whether a line is of names, the next ones of stamps and numbers, and the ones above it can be no header."""
    below = [line for line in lines[place + 1 : place + 12] if line.strip()][:5]
    if not below or not lines[place].strip():
        return False
    for separator in (";", "\t", "|", ","):
        names = _cells(lines[place], separator)
        rows = [_cells(line, separator) for line in below]
        named = [name for name in names if name]
        if len(named) < 2 or any(_NUMBER(name) or _STAMP(name) for name in named) or not all(rows):
            continue
        if not any(map(_STAMP, rows[0])) or any(len(row) > len(names) for row in rows):
            continue
        if not any(_NUMBER(cell) and not _STAMP(cell) for row in rows for cell in row):
            continue
        above = [
            (_cells(line, separator), at) for at, line in enumerate(lines[:place]) if line.strip(f" \r{separator}")
        ]
        if all(_no_header(cells, len(named), lines[at + 1 : place], separator) for cells, at in above):
            return True
    return False


def _cells(line: str, separator: str) -> list[str]:
    """The fields of a line, without the empty ones with which a spreadsheet pads it."""
    if separator not in line:  # one field may be longer than a parser takes
        return [line.strip()] if line.strip() else []
    try:
        cells = [cell.strip() for cell in next(csv.reader([line.replace("\r", "")], delimiter=separator), [])]
    except csv.Error:
        return []
    while cells and not cells[-1]:
        cells.pop()
    return cells


def _no_header(cells: list[str], names: int, between: list[str], separator: str) -> bool:
    """Whether a line above a header is a title: it has fewer fields, or a number, or a blank line parts them.

    Otherwise it is the header, and what looks like one below it says the units.
    """
    filled = [cell for cell in cells if cell]
    parted = any(not line.strip(f" \r{separator}") for line in between)
    return len(filled) < names or parted or any(_NUMBER(cell) or _STAMP(cell) for cell in filled)


def _hollow(lines: list[str], separator: str) -> bool:
    """Whether the first line has few filled fields where the next has many: a title that a spreadsheet has padded."""
    filled = [sum(bool(cell.strip()) for cell in line.split(separator)) for line in lines[:2]]
    return len(filled) == 2 and filled[1] >= 3 and 2 * filled[0] < filled[1]


def _separator(lines: list[str]) -> str:
    """The sign that cuts the header and the first rows into the same number of fields, most fields first."""
    best, fields = ",", 0
    for candidate in (";", "\t", "|", ","):
        counts = set(_counts(lines, candidate))
        if len(counts) == 1 and (count := counts.pop()) > fields:
            best, fields = candidate, count
    if fields:
        return best
    return max((",", ";", "\t", "|"), key=lambda one: _counts(lines[:1], one)) if lines else ","


def _parsed(text: str, head: Head, **more: Any) -> pd.DataFrame:
    """The table, or some columns of it, by the number of the row."""
    table = pd.read_csv(
        io.StringIO(text),
        sep=head.separator,
        skiprows=head.skipped,
        index_col=False,
        skip_blank_lines=False,
        skipinitialspace=True,
        **more,
    )
    return table.set_axis(pd.RangeIndex(head.skipped + 2, head.skipped + 2 + len(table)), axis=0)


def _is_reading(names: list[str]) -> bool:
    dated = any(_DATED(name) for name in names)
    return dated and any(re.fullmatch(r"[-+]?\d+([.,]\d+)?(e[-+]?\d+)?", name) for name in names)


def refuse_headless(columns: list[str], path: str) -> None:
    """A first row with a date and a number is a row of readings."""
    if _is_reading(columns):
        raise UserError(f"The first row of {path} is a reading, not a header; add a row with the names of the columns.")


def header(text: str, separator: str) -> list[str]:
    """The names as they stand in the file: pandas renames one that appears again."""
    rows = csv.reader(re.split(r"[\r\n]+", text), delimiter=separator, skipinitialspace=True)
    return [name.strip() for name in next(rows)]


def refuse_repeated_columns(columns: list[str], where: str) -> None:
    """Every column has a name of its own."""
    seen: set[str] = set()
    for column in columns:
        if column and column in seen:
            raise UserError(f"The column {column!r} appears twice in {where}; give every column its own name.")
        seen.add(column)


def _without_row_numbers(table: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    """Drop the unnamed first column 0, 1, 2, … that `DataFrame.to_csv` writes, also if rows were deleted since."""
    first = table.columns[0]
    numbers = table[first]
    unnamed = first.startswith("Unnamed: ") and len(table.columns) > 1 and pd.api.types.is_numeric_dtype(numbers.dtype)
    if unnamed and (numbers % 1 == 0).all() and numbers.is_monotonic_increasing and numbers.is_unique:
        notes.append("The unnamed first column of row numbers was left out.")
        return table.drop(columns=first)
    return table


def _decimal_commas(table: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    """Columns of text such as "1,5" or "1.234,5" become numbers, if no value of theirs can be meant in another way."""
    changed = []
    for column in table.columns:
        if pd.api.types.is_numeric_dtype(table[column].dtype):
            continue
        texts = table[column].dropna().astype(str).str.strip()
        commas = texts[texts.str.contains(",", regex=False)]
        if len(commas) == 0 or not texts.str.fullmatch(_DECIMAL_COMMA).all() or commas.str.fullmatch(_THOUSANDS).all():
            continue  # the reader of numbers names the culprit
        plain = texts.str.replace(".", "", regex=False).str.replace(",", ".", regex=False)
        table[column] = pd.to_numeric(plain).reindex(table.index)
        changed.append(column)
    if changed:
        notes.append(f"The decimal comma was understood in {', '.join(changed)}.")
    return table
