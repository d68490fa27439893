"""From a path to the texts of tables: gzip, zip and Excel are unpacked, encodings found, what is no table is refused."""

import csv
import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tamedit.errors import UserError

TABLES = (".csv", ".txt", ".tsv", ".gz", ".zip", ".parquet", ".pq", ".xlsx", ".xlsm")  # endings of files in a folder
PARQUET = (".parquet", ".pq")
SMALL = 8_000_000  # bytes; what is larger is not held as text
_SIGNATURES = (
    (b"PAR1", "a Parquet file; rename it to end in .parquet"),
    (b"%PDF", "a PDF; export the table as CSV"),
    (b"\x89PNG", "a PNG picture; export the table as CSV"),
    (b"\xff\xd8\xff", "a JPEG picture; export the table as CSV"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook; save it as .xlsx or CSV"),
    (b"SQLite format 3", "an SQLite database; export the table as CSV"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive; unpack it"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive; unpack it"),
)
_DAMAGED = (OSError, EOFError, zlib.error, zipfile.BadZipFile, lzma.LZMAError, NotImplementedError, RuntimeError)


@dataclass(frozen=True)
class Content:
    """One table that is not read yet: what to call it, and how to open its bytes."""

    path: str  # for sentences
    name: str  # the name of its file
    open: Callable[[], Any]
    notes: list[str] = field(default_factory=list)  # what was assumed in opening it
    findings: list[str] = field(default_factory=list)

    def read(self, most: int = -1) -> bytes:
        try:
            with self.open() as file:
                return file.read(most)
        except PermissionError as error:
            raise UserError(f"Cannot read {self.path}: {error.strerror}; check its permissions.") from error
        except _DAMAGED as error:
            kind = "gzip file" if self.name.endswith(".gz") or isinstance(error, EOFError | zlib.error) else "archive"
            kind = "gzip file" if isinstance(error, gzip.BadGzipFile) else kind
            raise UserError(f"{self.path} is a damaged {kind}; download or compress it again.") from error


def contents(path: Path) -> list[Content]:
    """The tables of a file: one, or those in a zip archive."""
    try:
        with open(path, "rb") as file:
            head = file.read(4)
    except FileNotFoundError as error:
        raise UserError(f"There is no file {path}; check the path.") from error
    except OSError as error:
        raise UserError(f"Cannot read {path}: {error.strerror or error}; check its permissions.") from error
    if head[:2] == b"\x1f\x8b":
        return [Content(str(path), path.name, lambda: gzip.open(path, "rb"))]
    if head == b"PK\x03\x04" and path.suffix.lower() not in PARQUET:
        return list(_of_archive(path))
    return [Content(str(path), path.name, lambda: open(path, "rb"))]


def _of_archive(path: Path) -> Iterator[Content]:
    """The tables in a zip archive; an Excel workbook is a zip archive, too."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = sorted(archive.namelist())
    except _DAMAGED as error:
        raise UserError(f"{path} is a damaged archive; download or compress it again.") from error
    if "xl/workbook.xml" in names:
        workbook = Content(str(path), path.name, lambda: io.BytesIO(_sheet(path, workbook)))
        yield workbook
        return
    inside = [one for one in names if one.lower().endswith((".csv", ".txt", ".tsv")) and not one.startswith("__MACOSX")]
    if not inside:
        raise UserError(f"{path} is a zip archive without a CSV in it; unpack it, and give the tables.")
    for name in inside:
        yield Content(f"{name} in {path}", Path(name).name, partial(_member, path, name))


def _member(path: Path, name: str) -> Any:
    return zipfile.ZipFile(path).open(name)


def _sheet(path: Path, content: Content) -> bytes:
    """The first sheet of a workbook that is not empty, as a CSV with the same rows."""
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise UserError(
            f"{path} is an Excel workbook, and reading it needs openpyxl: pip install 'tamedit[excel]', or save the sheet as CSV."
        ) from error
    try:
        book = load_workbook(path, read_only=True, data_only=True)
        for sheet in book.worksheets:
            rows = [["" if cell is None else str(cell) for cell in row] for row in sheet.iter_rows(values_only=True)]
            width = max((at + 1 for row in rows for at, cell in enumerate(row) if cell), default=0)
            if width:
                _say_sheets(sheet.title, book.sheetnames, content)
                text = io.StringIO(newline="")
                csv.writer(text, lineterminator="\n").writerows(row[:width] if any(row) else [] for row in rows)
                return text.getvalue().encode()
    except (*_DAMAGED, KeyError, ValueError) as error:
        raise UserError(f"{path} is a damaged Excel workbook; save it again, or as CSV.") from error
    raise UserError(f"{path} is an Excel workbook without a filled cell; give one with a header and rows.")


def _say_sheets(taken: str, names: list[str], content: Content) -> None:
    """Which sheet was read. Their names may be those of meters, which are private: they are findings, not assumptions."""
    if len(names) < 2 or content.notes:
        return
    content.notes.append("Only the first filled sheet of the workbook was read.")
    others = ", ".join(repr(name) for name in names if name != taken)
    content.findings.append(f"The sheet {taken!r} was read, and not {others}; save another one as CSV to read it.")


def decoded(content: bytes, path: str, notes: list[str]) -> str:
    """Text of a file: byte-order marks first, then UTF-8, then Western European if it looks like text at all."""
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


def _strict(content: bytes, encoding: str, path: str) -> str:
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path} is not valid {encoding.upper()} text at byte {error.start}; save it as UTF-8."
        ) from error
