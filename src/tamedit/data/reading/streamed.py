"""A long Parquet file of a fleet, read piece by piece into an array on disk: 88 million readings need no table in memory.

The rows of a file (meter, stamp, readings) arrive in record batches. A first pass learns the meters, in order of their first row,
and the first and last stamp. A second pass puts every reading at

    row = number of the meter · R + (stamp − first stamp) / step        R: rows from the first stamp to the last

of an array of missing values on disk. All meters then lie on one grid, each surrounded by missing rows. `assemble` gives every
meter its own extent instead; once both are laid on the grid of a study (`study.py`) they are the same.

Roles, notes and step come from the first batch, by the same functions as for a table in memory. Whatever is not plain (a stamp
off the grid, one that appears twice, another most common step, names or readings that are missing or no numbers, a time zone,
covariates) is left to those functions: the answer is None, and they read the file and say what is wrong.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from tamedit.data.reading import assemble
from tamedit.data.reading.columns import Wanted
from tamedit.data.reading.grid import FEWEST_TO_JUDGE, Grid, microseconds
from tamedit.data.tiled import tiled_stamps
from tamedit.errors import UserError
from tamedit.files import on_disk

LARGE = 4_000_000  # rows, from which a file is read in pieces
HEAD, PIECE = 200_000, 1_000_000
SPARSE = 3  # rows of the common grid per reading, from which the meters do not lie side by side
_LARGEST = float(np.finfo(np.float32).max)


class _NotPlain(Exception):
    """The file needs the reader of tables."""


@dataclass(frozen=True)
class _Piece:
    """Some rows of the file."""

    meters: np.ndarray  # (n,) numbers of the meters
    stamps: np.ndarray  # (n,) microseconds
    readings: list[np.ndarray]  # K times (n,) float32


class _Pieces:
    """The rows of the file in pieces, with meters numbered in the order of their first row."""

    def __init__(self, file: pq.ParquetFile, parts: assemble.Parts) -> None:
        self.file, self.parts = file, parts
        self.numbers: dict[object, int] = {}

    def of(self, targets: Sequence[str]) -> Iterator[_Piece]:
        """With the readings of these targets."""
        columns = [self.parts.id_name, self.parts.time_name, *targets]
        for batch in self.file.iter_batches(PIECE, columns=columns):
            yield _Piece(self._meters(batch), self._stamps(batch), [self._readings(batch, k) for k in targets])

    def _meters(self, batch: pa.RecordBatch) -> np.ndarray:
        column = batch.column(self.parts.id_name)
        if column.null_count:
            raise _NotPlain
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        coded = column.dictionary_encode()  # names in the order of their first row
        places = [self.numbers.setdefault(name, len(self.numbers)) for name in coded.dictionary.to_pylist()]
        found: np.ndarray = np.array(places, dtype=np.int64)[coded.indices.to_numpy(zero_copy_only=False)]
        return found

    def _stamps(self, batch: pa.RecordBatch) -> np.ndarray:
        column = batch.column(self.parts.time_name)
        if column.null_count:
            raise _NotPlain
        return microseconds(pd.DatetimeIndex(column.to_numpy(zero_copy_only=False)))

    def _readings(self, batch: pa.RecordBatch, name: str) -> np.ndarray:
        values = batch.column(name).to_numpy(zero_copy_only=False).astype(np.float64)
        if (np.abs(values) > _LARGEST).any():
            raise _NotPlain
        return values.astype(np.float32)


def from_file(path: Path, wanted: Wanted) -> assemble.Parts | None:
    """The parts of a series on one grid, its values on disk; None if the file is small or not plain."""
    if path.suffix.lower() not in (".parquet", ".pq") or not path.is_file() or wanted.covariates or wanted.timezone:
        return None
    try:
        with pq.ParquetFile(path, pre_buffer=False) as file:  # it would keep all that was read
            if file.metadata.num_rows < LARGE:
                return None
            return _parts(file, wanted)
    except (_NotPlain, UserError, pa.ArrowException, OSError):
        return None


def _parts(file: pq.ParquetFile, wanted: Wanted) -> assemble.Parts:
    first = next(file.iter_batches(HEAD)).to_pandas()
    head = assemble.from_table(first, wanted)
    _check_plain(file.schema_arrow, head)
    pieces, step = _Pieces(file, head), head.grid.step.size
    ends = [(int(piece.stamps.min()), int(piece.stamps.max())) for piece in pieces.of(()) if len(piece.stamps)]
    begin, end = min(low for low, _ in ends), max(high for _, high in ends)
    rows, meters = (end - begin) // step + 1, len(pieces.numbers)
    if meters * rows > SPARSE * file.metadata.num_rows:
        raise _NotPlain
    values = on_disk((meters * rows, len(head.targets)))
    seen = np.zeros(meters * rows, dtype=bool)
    for start in range(0, len(values), PIECE):
        values[start : start + PIECE] = np.nan
    for piece in pieces.of(head.targets):
        away = piece.stamps - begin
        place = piece.meters * rows + away // step
        if (away % step).any() or seen[place].any():
            raise _NotPlain
        seen[place] = True
        if not (np.diff(place) > 0).all() and (np.diff(np.sort(place)) == 0).any():
            raise _NotPlain
        for k, readings in enumerate(piece.readings):
            values[place, k] = readings
    _check_step(seen.reshape(meters, rows))
    if not all(_any_reading(values[:, k]) for k in range(values.shape[1])):
        raise _NotPlain
    stamps = head.grid.step.stamps(begin + step * np.arange(rows), head.grid.times)
    return assemble.Parts(
        values=values,
        covariates=np.zeros((len(values), 0), np.float32),
        grid=Grid(
            np.zeros(0, np.int64),
            tiled_stamps(stamps, meters),
            np.arange(meters + 1, dtype=np.int64) * rows,
            head.grid.step,
        ),
        meters=tuple(str(name) for name in pieces.numbers),
        targets=head.targets,
        notes=head.notes,
        layout="long",
        time_name=head.time_name,
        id_name=head.id_name,
    )


def _check_plain(schema: pa.Schema, head: assemble.Parts) -> None:
    """Long, its meters named by a column that says so, elapsed steps, stamps without a zone, numbers."""
    stamp = schema.field(head.time_name).type if head.time_name in schema.names else None
    kinds = [schema.field(name).type for name in head.targets]
    if (
        head.layout != "long"
        or head.id_guessed
        or head.grid.step.kind != "elapsed"
        or stamp is None
        or not pa.types.is_timestamp(stamp)
        or stamp.tz is not None
        or head.id_name not in schema.names
        or not all(pa.types.is_floating(kind) or pa.types.is_integer(kind) for kind in kinds)
    ):
        raise _NotPlain


def _check_step(seen: np.ndarray) -> None:
    """The step of the first batch is that of all: the most common distance within a meter, and no meter's is a multiple of it."""
    counts = np.zeros(seen.shape[1] + 1, dtype=np.int64)
    for meter in seen:
        places = np.flatnonzero(meter)
        apart = np.diff(places)
        counts += np.bincount(apart, minlength=len(counts))
        if len(places) >= FEWEST_TO_JUDGE and int(np.gcd.reduce(apart)) > 1:
            raise _NotPlain
    if counts.argmax() != 1:
        raise _NotPlain


def _any_reading(column: np.ndarray) -> bool:
    return any(bool(np.isfinite(column[start : start + PIECE]).any()) for start in range(0, len(column), PIECE))
