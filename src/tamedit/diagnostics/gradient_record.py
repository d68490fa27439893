"""What a run recorded of its gradients, read back: mapped from disk, column by column, never all in memory.

Everything here was measured on training data without noise: it is not private.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tamedit.errors import UserError
from tamedit.evaluation.seeds import changed
from tamedit.model.bounds import Bounds
from tamedit.runs.config import RunConfig
from tamedit.runs.folder import NOT_PRIVATE, load_run
from tamedit.training.metrics_log import MetricsLog
from tamedit.training.recorder import GRADIENTS, HEADER, TIME_ROW, TIMES, gradient_row, whole_rows

Norm = Literal["total", "cond", "other"]
NORMS: tuple[Norm, ...] = ("total", "cond", "other")


@dataclass(frozen=True, eq=False)
class Record:
    """The record of one run."""

    folder: Path
    label: str
    config: RunConfig
    clip: float | None  # C; None for a run that clips nothing
    parts: tuple[tuple[str, str], ...]  # ("block 1", "cond"), …: the columns of rows["parts"]
    rows: np.ndarray  # one per example: step, total, cond, other, factor, parts
    times: np.ndarray  # one per step: step, seconds
    metrics: list[dict[str, float]]

    @property
    def bounded(self) -> bool:
        return any(bounds != Bounds() for bounds in self.config.network.bounds)

    @property
    def private(self) -> bool:
        return self.config.privacy is not None

    @property
    def arm(self) -> str:
        """Which of the paper's arms the run belongs to."""
        if not self.private:
            return "Non-DP, bounded" if self.bounded else "Non-DP"
        return "DP-aware" if self.bounded else "DP-vanilla"

    def norms(self, which: Norm) -> np.ndarray:
        """(n,) the finite norms of all recorded examples."""
        values = np.asarray(self.rows[which], dtype=np.float64)
        return values[np.isfinite(values)]

    def factors(self) -> np.ndarray:
        """(n,) η of all recorded examples; 0 where a gradient was not finite."""
        return np.asarray(self.rows["factor"], dtype=np.float64)

    def part_norms(self, column: int) -> np.ndarray:
        """(n,) the finite norms of one part of the network."""
        values = np.asarray(self.rows["parts"][:, column], dtype=np.float64)
        return values[np.isfinite(values)]


def read_record(folder: Path) -> Record:
    """The record of a run that `tamedit train` began; it may still be running, or have been killed."""
    folder = Path(folder)
    config, _ = load_run(folder)
    place = folder / NOT_PRIVATE
    header = _header(place / HEADER)
    parts = tuple((str(part), str(path)) for part, path in header["parts"])
    own = place / "metrics.jsonl" if config.privacy is not None else folder / "metrics.jsonl"
    return Record(
        folder=folder,
        label=folder.resolve().name,
        config=config,
        clip=header["clip"],
        parts=parts,
        rows=whole_rows(place / GRADIENTS, gradient_row(len(parts))),
        times=whole_rows(place / TIMES, TIME_ROW),
        metrics=MetricsLog(own).read(),
    )


def _header(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise UserError(
            f"{path.parent.parent} has no record of its gradients ({path.name} is missing); train it again with diagnose_every=1."
        )
    try:
        header: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if header["version"] != 1:
            raise ValueError("another version")
        return header | {"parts": header["parts"], "clip": header["clip"]}
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} is damaged or from another version; train the run again.") from error


def read_records(folders: Sequence[Path]) -> list[Record]:
    """The records of several runs; their labels differ."""
    records = [read_record(folder) for folder in folders]
    names = [record.label for record in records]
    if len(set(names)) == len(names):
        return records
    return [replace(record, label=str(record.folder)) for record in records]


def differences(one: RunConfig, other: RunConfig) -> list[str]:
    """In what two runs differ besides the bounds: the paper compares arms that differ in nothing else."""
    free = {"network.bounds", "network.operator"}
    return [name for name in changed(one.model_dump(mode="json"), other.model_dump(mode="json")) if name not in free]
