"""From a file to a table: encoding, separator and decimal sign are found, what is not a table is refused.

The index of the table is the number of the row as the user sees it (the header is row 1), so that every later sentence
can name it.
"""

import csv
import gzip
import io
import re
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from tamedit.errors import UserError

_SIGNATURES = (
    (b"PAR1", "a Parquet file; rename it to end in .parquet"),
    (b"PK\x03\x04", "a zip archive or Excel workbook; unpack it, or save the sheet as CSV"),
    (b"%PDF", "a PDF; export the table as CSV"),
    (b"\x89PNG", "a PNG picture; export the table as CSV"),
    (b"\xff\xd8\xff", "a JPEG picture; export the table as CSV"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook; save the sheet as CSV"),
    (b"SQLite format 3", "an SQLite database; export the table as CSV"),
)
_PARQUET_ENDINGS = (".parquet", ".pq")
_MISSING = ["?", "-", "--"]
_HEAD = 1000  # lines in which the header is looked for, below remarks
_DECIMAL_COMMA = r"[-+]?(\d+|\d{1,3}(\.\d{3})*),\d+|[-+]?\d+"
_THOUSANDS = r"[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?"  # "0,250" is none: nobody writes 250 so
_SEPARATOR_NAMES = {";": "semicolons", "\t": "tabs", "|": "vertical bars", ",": "commas"}


@dataclass
class Table:
    """A table, what to call it in a sentence, and what was assumed so far."""

    frame: pd.DataFrame
    where: str
    notes: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)  # what was seen in the rows, apart from what was assumed
    written: Callable[[str], pd.Series] | None = None  # a column as it stands in a CSV

    def keep_names(self, column: str) -> None:
        """Names of meters as they are written: 001 is not 1, and NA or - is a name; only an empty cell is missing."""
        if self.written is None:
            return
        values = self.frame[column]
        if pd.api.types.is_numeric_dtype(values.dtype) or values.isna().any():
            values = self.written(column).reindex(values.index)
        names = values.str.strip()
        self.frame = self.frame.assign(**{column: names.where(names != "")})


def load_table(source: str | Path | pd.DataFrame) -> Table:
    """A table from a path or DataFrame."""
    if isinstance(source, pd.Series):
        source = source.to_frame(str(source.name or "value"))
    elif not isinstance(source, pd.DataFrame) and hasattr(source, "to_pandas"):  # polars, pyarrow and others
        source = source.to_pandas()
    if isinstance(source, pd.DataFrame):
        return Table(_from_frame(source), "the DataFrame")
    if not isinstance(source, str | Path):
        kind = f"{type(source).__module__}.{type(source).__name__}"
        raise UserError(
            f"A table cannot be made from {kind}; give a CSV or Parquet path, a DataFrame or, for a series, a numpy array."
        )
    path = Path(source)
    if path.is_dir():
        raise UserError(f"{path} is a folder; give the CSV or Parquet file in it.")
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise UserError(f"There is no file {path}; check the path.") from error
    except OSError as error:
        raise UserError(f"Cannot read {path}: {error.strerror or error}; check its permissions.") from error
    if not content:
        raise UserError(f"{path} is empty; give a CSV or Parquet file with a header and rows.")
    if path.suffix.lower() in _PARQUET_ENDINGS:
        return Table(_from_parquet(content, path), path.name)
    notes: list[str] = []
    return _from_csv(_decode(content, path, notes), path, notes)


def _from_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """A copy whose index levels that carry time or meters became columns."""
    if len(frame) == 0:
        raise UserError("The DataFrame has no rows; give one with readings.")
    index = frame.index
    if not isinstance(index, pd.MultiIndex) and index.name in frame.columns:  # set_index(…, drop=False)
        frame = frame.reset_index(drop=True)
        index = frame.index
    if isinstance(index, pd.PeriodIndex):
        frame = frame.set_axis(index.to_timestamp(), axis=0)
    if isinstance(index, pd.MultiIndex) or not isinstance(index, pd.RangeIndex):
        unnamed = not isinstance(index, pd.MultiIndex) and index.name is None
        if isinstance(index, pd.MultiIndex | pd.DatetimeIndex | pd.PeriodIndex) or index.name is not None:
            frame = frame.reset_index(names="time" if unnamed and "time" not in frame.columns else None)
    frame = frame.set_axis([str(column) for column in frame.columns], axis=1)
    _refuse_repeated_columns(list(frame.columns), "the DataFrame")
    return frame.set_axis(pd.RangeIndex(len(frame)), axis=0)


def _from_parquet(content: bytes, path: Path) -> pd.DataFrame:
    try:
        frame = pd.read_parquet(io.BytesIO(content))
    except Exception as error:  # pyarrow raises many kinds for damaged files
        raise UserError(f"{path} is not a readable Parquet file; export it again, or give a CSV.") from error
    if len(frame) == 0:
        raise UserError(f"{path} has no rows; give a file with readings.")
    return _from_frame(frame)


def _decode(content: bytes, path: Path, notes: list[str]) -> str:
    """Text of a file: byte-order marks first, then UTF-8, then Western European if it looks like text at all."""
    if content[:2] == b"\x1f\x8b":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise UserError(f"{path} is a damaged gzip file; download or compress it again.") from error
    for signature, what in _SIGNATURES:
        if content.startswith(signature):
            raise UserError(f"{path} is not a CSV but {what}.")
    if content.startswith(b"\xef\xbb\xbf"):
        return _strict(content, "utf-8-sig", path)
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        notes.append("The file was read as UTF-16 text.")
        return _strict(content, "utf-16", path)
    sample = content[:65536]
    if sum(byte < 32 and byte not in b"\t\n\r\f" for byte in sample) > 0.001 * len(sample):
        raise UserError(f"{path} is not a text file (it contains binary data); give a CSV or Parquet file.")
    if content.lstrip()[:1] in (b"<", b"{", b"["):
        kind = "HTML or XML" if content.lstrip()[:1] == b"<" else "JSON"
        raise UserError(f"{path} is not a CSV but {kind}; export the table as CSV.")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        notes.append("The file is not UTF-8; it was read as Western European (Latin-1) text.")
        return content.decode("latin-1")


def _strict(content: bytes, encoding: str, path: Path) -> str:
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path} is not valid {encoding.upper()} text at byte {error.start}; save it as UTF-8."
        ) from error


def _separator(lines: list[str]) -> str:
    """The sign that cuts the header and the first rows into the same number of fields, most fields first."""
    unquoted = [re.sub(r'"[^"]*"', "", line) for line in lines]
    best, fields = ",", 0
    for candidate in (";", "\t", "|", ","):
        counts = {line.count(candidate) for line in unquoted}
        if len(counts) == 1 and (count := counts.pop()) > fields:
            best, fields = candidate, count
    if fields:
        return best
    return max((",", ";", "\t", "|"), key=unquoted[0].count) if unquoted else ","


def _from_csv(text: str, path: Path, notes: list[str]) -> Table:
    lines = text.split("\n", _HEAD)[:_HEAD]
    skipped = 0
    while skipped < len(lines) and (not lines[skipped].strip() or lines[skipped].startswith("#")):
        skipped += 1
    head = [line for line in lines[skipped : skipped + 40] if line.strip()]
    if not head:
        raise UserError(f"{path} contains no table; give a CSV with a header and rows.")
    separator = _separator(head)
    if separator != ",":
        notes.append(f"The columns were taken to be separated by {_SEPARATOR_NAMES[separator]}.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            table = _parsed(text, separator, skipped, na_values=_MISSING, low_memory=False)
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
    _refuse_repeated_columns(_header("\n".join(lines[skipped:]), separator), str(path))
    names = list(table.columns)
    _refuse_headless(names, path)
    nameless = [name for name in table.columns if name.startswith("Unnamed: ") and table[name].isna().all()]
    table = table.drop(columns=nameless).dropna(how="all")
    if len(table) == 0:
        raise UserError(f"{path} has a header but no rows; give a file with readings.")
    table = _decimal_commas(_without_row_numbers(table, notes), notes)

    def written(column: str) -> pd.Series:
        place = names.index(column)
        return _parsed(text, separator, skipped, usecols=[place], dtype=str, keep_default_na=False).iloc[:, 0]

    return Table(table, path.name, notes, written=written)


def _parsed(text: str, separator: str, skipped: int, **more: Any) -> pd.DataFrame:
    """The table, or some columns of it, by the number of the row."""
    table = pd.read_csv(
        io.StringIO(text),
        sep=separator,
        skiprows=skipped,
        index_col=False,
        skip_blank_lines=False,
        skipinitialspace=True,
        **more,
    )
    return table.set_axis(pd.RangeIndex(skipped + 2, skipped + 2 + len(table)), axis=0)


def _refuse_headless(columns: list[str], path: Path) -> None:
    """A first row with a date and a number is a row of readings."""
    dated = any(re.match(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}", name) for name in columns)
    if dated and any(re.fullmatch(r"[-+]?\d+([.,]\d+)?(e[-+]?\d+)?", name) for name in columns):
        raise UserError(f"The first row of {path} is a reading, not a header; add a row with the names of the columns.")


def _header(text: str, separator: str) -> list[str]:
    """The names as they stand in the file: pandas renames one that appears again."""
    rows = csv.reader(re.split(r"[\r\n]+", text), delimiter=separator, skipinitialspace=True)
    return [name.strip() for name in next(rows)]


def _refuse_repeated_columns(columns: list[str], where: str) -> None:
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
