"""Several files as one table: a folder, a pattern or a list of files, each of them a meter, or all of them parts of one table.

A file of one meter has no column of meters: then the name of the file is the meter's. Files that have such a column are parts of
one table, and so are files of which the user says so. Files whose names are dates could be either, so the user is asked.

A run must find its data again by one text. That is the folder or the pattern as the user wrote it. If a shell has written it out,
it is the pattern of all files with their ending in their folder, if it is these. No name of a meter is in it, because
which meters there are is private.
"""

import os
import re
from collections.abc import Sequence
from glob import glob, has_magic
from pathlib import Path
from typing import Literal, TypeAlias

import pandas as pd

from tamedit.data.reading.columns import ID_NAMES, PARTS_OF_TIME, plain_name
from tamedit.data.reading.contents import TABLES, contents
from tamedit.data.reading.tables import Files, Table, load_content
from tamedit.errors import UserError

Several: TypeAlias = Sequence[str | Path]
FilesAre = Literal["meters", "parts"]
METER = "meter"
_YEAR = re.compile(r"(?<!\d)(19|20)\d\d(?!\d{3})")


def is_url(source: object) -> bool:
    """Whether this is the address of a page, which we do not fetch."""
    return isinstance(source, str) and re.match(r"[a-z][a-z0-9+.-]+://", source, re.IGNORECASE) is not None


def refuse_url(source: object) -> None:
    """Raise one sentence if this is an address."""
    if is_url(source):
        raise UserError(f"{source} is an address, and TameDiT fetches no data; download the file, and give its path.")


def one_text(sources: Several, private: bool) -> str:
    """The text by which a run finds several files again."""
    paths = [str(one) for one in sources]
    for one in paths:
        refuse_url(one)
    if len(paths) == 1:
        return paths[0]
    folders, endings = {str(Path(one).parent) for one in paths}, {Path(one).suffix for one in paths}
    if len(folders) == len(endings) == 1:
        pattern = str(Path(folders.pop()) / f"*{endings.pop()}")
        if sorted(map(str, _matching(pattern))) == sorted(str(Path(one)) for one in paths):
            return pattern
    if private:
        raise UserError(
            "A private run keeps the name of its data, and the names of these files may say who takes part; put the files into a "
            "folder of their own and give that, or write a pattern in quotation marks, such as 'meters/*.csv'."
        )
    return os.pathsep.join(paths)


def files_of(source: object) -> list[Path] | None:
    """The files of a folder, a pattern, a list or a text of `one_text`, by their names; None if it is one file."""
    if isinstance(source, list | tuple):
        if not source or not all(isinstance(one, str | Path) for one in source):
            raise UserError("A list must contain the paths of files, and at least one; give CSV or Parquet paths.")
        return [Path(one) for one in source]
    if not isinstance(source, str | Path):
        return None
    refuse_url(source)
    path = Path(source)
    if path.is_dir():
        found = sorted(one for one in path.iterdir() if _is_table(one))
        if not found:
            raise UserError(f"{path} is a folder without a table; give a folder with CSV, Parquet or Excel files.")
        return found
    text = str(source)
    if path.exists() or not (has_magic(text) or os.pathsep in text):
        return None
    found = _matching(text) if has_magic(text) else [Path(one) for one in text.split(os.pathsep)]
    if not found:
        raise UserError(f"No file matches {text}; check the folder and the pattern.")
    return found


def place_of(source: str | Path) -> Path:
    """A file, or the folder of several: what a ledger of the data lies beside."""
    path = Path(source)
    if path.is_dir():
        return path.resolve()
    if not path.exists() and has_magic(str(source)):
        kept = Path(*[part for part in path.parts[:-1] if not has_magic(part)])
        return kept.resolve()
    if not path.exists() and os.pathsep in str(source):
        return Path(str(source).split(os.pathsep)[0]).parent.resolve()
    return path.resolve() if path.is_symlink() else path  # another name of a data set has the same ledger


_FIGURES = re.compile(r"\d+")  # a stamp and a reading have more of them than a sentence


def load_files(paths: Sequence[Path], wanted_id: str | None, files_are: FilesAre | None) -> Table:
    """One table of all files, with a column of meters if the files are meters."""
    tables, names = [], []
    paths, left_out = _without_remarks(paths)
    for path in paths:
        for content in _all_of(path, paths):
            tables.append(content)
            names.append(_stem(content.where))
    where = Files(tables[0].where if len(tables) == 1 else f"the {len(tables)} files")
    where.names = tuple(table.where for table in tables)
    ends = [int(table.frame.index[-1]) + 1 for table in tables]
    where.before = tuple(sum(ends[:at]) for at in range(len(ends)))
    _check_columns(tables)
    joined = Table(_joined([table.frame for table in tables], where.before), where)
    if left_out:  # how many is no public fact: one meter may decide it
        many = left_out > 1
        joined.findings.append(
            f"{left_out} text file{'s' * many} without a table {'were' if many else 'was'} left out of the folder."
        )
    for table in tables:
        joined.notes += [note for note in table.notes if note not in joined.notes]
        joined.findings += [note for note in table.findings if note not in joined.findings]
    if _are_meters(tables, names, wanted_id, files_are):
        _name_meters(joined, names, [len(table.frame) for table in tables])
    else:
        _keep_written(joined, tables, where.before)
    return joined


def _without_remarks(paths: Sequence[Path]) -> tuple[list[Path], int]:
    """The files without texts such as README.txt that hold no table with readings, if other tables are there; and how many."""
    texts = [path for path in paths if path.suffix.lower() == ".txt"]
    if not texts or len(texts) == len(paths):
        return list(paths), 0
    remarks = [path for path in texts if not _holds_rows(path)]
    return [path for path in paths if path not in remarks], len(remarks)


def _holds_rows(path: Path) -> bool:
    """Whether a text has a header of two columns or more and rows; one with lines of numbers that cannot be read is no remark."""
    try:
        return all(len(load_content(one).frame.columns) > 1 for one in contents(path))
    except UserError:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        return any(len(_FIGURES.findall(line)) > 3 for line in lines)


def _all_of(path: Path, paths: Sequence[Path]) -> list[Table]:
    """The tables of one file; a mistake in one of several is one of a file that may not belong there."""
    try:
        return [load_content(content) for content in contents(path)]
    except UserError as error:
        if len(paths) == 1 or not path.exists():
            raise
        raise UserError(f"{str(error).rstrip('.')}; or if it holds no readings, {_move_away(path)}.") from error


def _move_away(path: str | Path) -> str:
    """What to do with a file that does not belong to the others."""
    return f"move it away, or name the others with a pattern, such as '{Path(path).parent}/home*.csv'"


def _joined(frames: list[pd.DataFrame], before: tuple[int, ...]) -> pd.DataFrame:
    numbers = [frame.index.to_series() + rows for frame, rows in zip(frames, before, strict=True)]
    texts = {
        name
        for frame in frames
        for name in frame.columns
        if not pd.api.types.is_numeric_dtype(frame[name].dtype)
        and not pd.api.types.is_datetime64_any_dtype(frame[name])
    }
    alike = [
        frame.astype(
            {name: "str" if len(frames) > 1 else frame[name].dtype for name in texts if frame[name].notna().any()}
        )
        for frame in frames
    ]
    return pd.concat(alike, ignore_index=True).set_axis(pd.Index(pd.concat(numbers).to_numpy()), axis=0)


def _are_meters(tables: list[Table], names: list[str], wanted_id: str | None, files_are: FilesAre | None) -> bool:
    if files_are is not None:
        return files_are == "meters"
    if wanted_id is not None or any(_names_meters(tables, column) for column in tables[0].frame.columns):
        return False
    if (
        len(names) > 1
        and all(_YEAR.search(name) for name in names)
        and len({re.sub(r"\d", "", name) for name in names}) == 1
    ):
        raise UserError(
            f"The files {names[0]!r}, {names[1]!r} … may be parts of one meter or meters of their own; say files='parts' or "
            "files='meters'."
        )
    return True


def _names_meters(tables: list[Table], column: str) -> bool:
    """Whether a column names meters in every file: by its name, and as text or as numbers that stay the same for long."""
    if plain_name(column) not in ID_NAMES or plain_name(column) in PARTS_OF_TIME:
        return False
    for table in tables:
        values = table.frame[column]
        whole = pd.api.types.is_integer_dtype(values.dtype) and 8 * values.nunique() <= len(values)
        if not whole and pd.api.types.is_numeric_dtype(values.dtype):
            return False
    return True


def _name_meters(joined: Table, names: list[str], rows: list[int]) -> None:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UserError(f"Two files are called {twice!r}, and the name of a file names its meter; rename one of them.")
    if METER in joined.frame.columns:
        raise UserError(
            f"Each file was taken to be one meter, but there is a column {METER!r} already; say id={METER!r}, or rename it."
        )
    codes = pd.Series(range(len(names)), dtype="int32").repeat(rows)
    joined.frame.insert(0, METER, pd.Categorical.from_codes(codes, pd.Index(names, dtype="str")))
    joined.id = METER
    joined.notes.append("Each file was taken to be one meter, whose name is the file's.")


def _keep_written(joined: Table, tables: list[Table], before: tuple[int, ...]) -> None:
    """Names of meters as they are written, of all files."""
    if any(table.written is None for table in tables):
        return

    def written(column: str) -> pd.Series:
        parts = [table.written(column).astype("str") for table in tables if table.written is not None]
        return pd.concat([part.set_axis(part.index + rows) for part, rows in zip(parts, before, strict=True)])

    joined.written = written


def _check_columns(tables: list[Table]) -> None:
    """All tables have the columns of most of them."""
    kinds = [frozenset(table.frame.columns) for table in tables]
    usual = max(dict.fromkeys(kinds), key=kinds.count)
    first = tables[kinds.index(usual)]
    for table, kind in zip(tables, kinds, strict=True):
        if kind != usual:
            raise UserError(
                f"{table.where} has the columns {', '.join(table.frame.columns[:8])} and {first.where} "
                f"{', '.join(first.frame.columns[:8])}; give all files the same columns, or move {table.where} away if it holds "
                "no readings."
            )


def _matching(pattern: str) -> list[Path]:
    return sorted(Path(one) for one in glob(pattern) if _is_table(Path(one)))


def _is_table(path: Path) -> bool:
    return path.is_file() and path.suffix.lower() in TABLES and not path.name.startswith(".")


def _stem(name: str) -> str:
    """meters/home_7.csv.gz is home_7."""
    stem = name
    while Path(stem).suffix.lower() in TABLES:
        stem = Path(stem).stem
    return stem
