"""A large CSV in pieces, by pyarrow: its numbers become numbers at once, its texts a list of different texts and their places.

What this reader gives is what `csv_text` gives. What it does not understand at once (ragged or blank lines, decimal commas,
headers among the rows, other encodings) it leaves to it: it returns None, and `csv_text` answers or says what is wrong.
"""

import io
from typing import Any

import pandas as pd
import pyarrow as pa
from pyarrow import csv as arrow_csv

from tamedit.data.reading.contents import Content
from tamedit.data.reading.csv_text import (
    HEAD,
    MISSING,
    Head,
    Parsed,
    find_head,
    refuse_headless,
    refuse_repeated_columns,
)
from tamedit.errors import UserError

_BLOCK = 4_000_000  # bytes of a piece
_TEXT = pa.dictionary(pa.int32(), pa.string())
# What pandas takes as missing, and what we do.
_NOTHING = [
    "",
    *[
        "#N/A",
        "#N/A N/A",
        "#NA",
        "-1.#IND",
        "-1.#QNAN",
        "-NaN",
        "-nan",
        "1.#IND",
        "1.#QNAN",
        "<NA>",
        "N/A",
        "NA",
        "NULL",
        "NaN",
        "None",
        "n/a",
        "nan",
        "null",
    ],
]
_NOTHING += MISSING
_FALLBACK = (pa.ArrowInvalid, pa.ArrowKeyError, pa.ArrowNotImplementedError, UnicodeDecodeError)


def from_large(content: Content, start: bytes, notes: list[str]) -> Parsed | None:
    """The table of a large file whose first bytes are known; None if it needs the careful reader."""
    noted: list[str] = []
    try:
        text = start[: start.rindex(b"\n")].removeprefix(b"\xef\xbb\xbf").decode("utf-8")
        head = find_head("\n".join(text.split("\n", HEAD)[:HEAD]), content.path, noted)
        refuse_repeated_columns(head.names, content.path)
        refuse_headless(head.names, content.path)
        if not all(head.names):
            return None
        frame = _frame(_arrow(content, head, _kinds(content, head)), head)
        if any(_has_commas(frame[name]) for name in frame):
            return None
    except (*_FALLBACK, UserError, ValueError):
        return None
    notes += noted

    def written(column: str) -> pd.Series:
        found = _arrow(content, head, {column: _TEXT}, only=[column], missing=[""])
        return _frame(found, head)[column]

    return Parsed(frame, written)


def _options(head: Head, kinds: dict[str, Any], only: list[str] | None, missing: list[str]) -> dict[str, Any]:
    return {
        "read_options": arrow_csv.ReadOptions(
            column_names=head.names, skip_rows=head.skipped + 1, block_size=_BLOCK, use_threads=False
        ),
        "parse_options": arrow_csv.ParseOptions(delimiter=head.separator, ignore_empty_lines=False),
        "convert_options": arrow_csv.ConvertOptions(
            null_values=missing,
            strings_can_be_null=True,
            quoted_strings_can_be_null=True,
            column_types=kinds,
            include_columns=only,
            true_values=["True", "TRUE", "true"],
            false_values=["False", "FALSE", "false"],
        ),
    }


def _kinds(content: Content, head: Head) -> dict[str, Any]:
    """The type of every column by its first piece; stamps with an offset from UTC stay text, so that the offset is kept."""
    with content.open() as file, arrow_csv.open_csv(file, **_options(head, {}, None, _NOTHING)) as reader:
        found = {one.name: one.type for one in reader.schema}
    return {name: _kind(kind) for name, kind in found.items()}


def _kind(kind: Any) -> Any:
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        return kind
    if pa.types.is_null(kind):
        return pa.float64()
    return kind if pa.types.is_timestamp(kind) and kind.tz is None else _TEXT


def _arrow(
    content: Content, head: Head, kinds: dict[str, Any], only: list[str] | None = None, missing: list[str] | None = None
) -> pa.Table:
    """All pieces; whole numbers that turn out to be fractions are read again as such."""
    try:
        with content.open() as file:
            options = _options(head, kinds, only, _NOTHING if missing is None else missing)
            with arrow_csv.open_csv(_plain(file), **options) as reader:
                return reader.read_all().unify_dictionaries()
    except pa.ArrowInvalid:
        whole = {name: pa.float64() for name, kind in kinds.items() if pa.types.is_integer(kind)}
        if not whole:
            raise
        return _arrow(content, head, kinds | whole, only, missing)


def _plain(file: Any) -> Any:
    """A file on disk is read by pyarrow itself."""
    return pa.OSFile(file.name) if isinstance(file, io.BufferedReader) and isinstance(file.name, str) else file


def _frame(table: pa.Table, head: Head) -> pd.DataFrame:
    """As pandas has it, column after column, so that no column is held twice for long."""
    columns = {}
    for name in table.column_names:
        series = table.column(name).to_pandas()
        table = table.drop_columns([name])
        if isinstance(series.dtype, pd.CategoricalDtype):
            series = _tidy(series)
        columns[name] = series
    frame = pd.DataFrame(columns, copy=False)
    return frame.set_axis(pd.RangeIndex(head.skipped + 2, head.skipped + 2 + len(frame)), axis=0)


def _has_commas(column: pd.Series) -> bool:
    """Whether texts may be numbers with a comma."""
    if not isinstance(column.dtype, pd.CategoricalDtype):
        return False
    return bool(column.cat.categories.str.fullmatch(r"[-+\d.]*\d,[\d.,]*").any())


def _tidy(series: pd.Series) -> pd.Series:
    """Texts without spaces around them."""
    texts = series.cat.categories
    plain = texts.str.strip()
    if plain.equals(texts):
        return series
    if not plain.is_unique or plain.isin(_NOTHING).any():
        raise ValueError("texts that differ by spaces alone")
    return series.cat.rename_categories(plain)
