"""From a file or DataFrame to a table: its columns as they are, and what was assumed.

The index of the table is the number of the row as the user sees it (the header is row 1), so that every later sentence
can name it. Of several files it runs on from one to the next, and `row_at` says which row of which file it is.
"""

import io
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd

from tamedit.data.reading import csv_text, large_csv
from tamedit.data.reading.contents import PARQUET, SMALL, Content, contents, decoded
from tamedit.errors import UserError


class Files(str):
    """What to call several files in a sentence; it knows in which of them a row stands."""

    names: tuple[str, ...] = ()
    before: tuple[int, ...] = ()  # rows of the files before each

    def row(self, number: int) -> str:
        place = bisect_right(self.before, number - 1) - 1
        return f"{number - self.before[place]} of {self.names[place]}"


def row_at(number: object, where: str) -> str:
    """ "7 of meter.csv": a row for a sentence."""
    return where.row(int(number)) if isinstance(where, Files) else f"{number} of {where}"  # type: ignore[call-overload]


@dataclass
class Table:
    """A table, what to call it in a sentence, and what was assumed so far."""

    frame: pd.DataFrame
    where: str
    notes: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)  # what was seen in the rows, apart from what was assumed
    written: Callable[[str], pd.Series] | None = None  # a column as it stands in a CSV
    id: str | None = None  # the column of meters, where the files themselves are the meters

    def keep_names(self, column: str) -> None:
        """Names of meters as they are written: 001 is not 1, and NA or - is a name; only an empty cell is missing."""
        if self.written is None:
            return
        values = self.frame[column]
        if pd.api.types.is_numeric_dtype(values.dtype) or values.isna().any():
            values = self.written(column).reindex(values.index)
        if isinstance(values.dtype, pd.CategoricalDtype):
            self.frame = self.frame.assign(**{column: values})
            return
        names = values.str.strip()
        self.frame = self.frame.assign(**{column: names.where(names != "")})


def table_of(content: bytes, name: str) -> Table:
    """A table from the content of a CSV that is in memory."""
    return load_content(Content(name, name, lambda: io.BytesIO(content)))


def load_table(source: str | Path | pd.DataFrame | Table) -> Table:
    """A table from a path or DataFrame; one that was loaded before stays as it is, and a copy is read."""
    if isinstance(source, Table):
        return replace(source, notes=[*source.notes], findings=[*source.findings])
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
    inside = contents(path)
    if len(inside) > 1:
        raise UserError(f"{path} contains {len(inside)} tables; unpack it, and give the one that is meant.")
    return load_content(inside[0])


def load_content(content: Content) -> Table:
    """A table from one file, or from one in an archive."""
    ending = Path(content.name).suffix.lower()
    if ending in PARQUET:
        return Table(_from_parquet(content.read(), content.path), content.name)
    start = content.read(SMALL + 1)
    if not start:
        raise UserError(f"{content.path} is empty; give a CSV or Parquet file with a header and rows.")
    notes: list[str] = []
    if len(start) > SMALL:
        found = large_csv.from_large(content, start, notes)
        if found is not None:
            return Table(found.frame, content.name, content.notes + notes, [*content.findings], found.written)
        start = content.read()
    text = decoded(start, content.path, notes)
    parsed = csv_text.from_text(text, content.path, notes)
    return Table(parsed.frame, content.name, content.notes + notes, [*content.findings], parsed.written)


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
    csv_text.refuse_repeated_columns(list(frame.columns), "the DataFrame")
    return frame.set_axis(pd.RangeIndex(len(frame)), axis=0)


def _from_parquet(content: bytes, path: str) -> pd.DataFrame:
    try:
        frame = pd.read_parquet(io.BytesIO(content))
    except Exception as error:  # pyarrow raises many kinds for damaged files
        raise UserError(f"{path} is not a readable Parquet file; export it again, or give a CSV.") from error
    if len(frame) == 0:
        raise UserError(f"{path} has no rows; give a file with readings.")
    return _from_frame(frame)
