"""The record that a run keeps of its gradients, one row per example. None of it is private.

    gradients.bin    step, ‖g‖, ‖g_cond‖, ‖g_other‖, η, and the norm of every part of the network, cond and other apart
    times.bin        step, seconds
    gradients.json   what the rows hold, and that nothing of it is private

Rows have a fixed size and are only ever appended, so an incomplete end is dropped, and a resumed run removes the rows newer than
its checkpoint. Rows in memory are written every few seconds, and before every checkpoint.
"""

import json
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch

from tamedit.errors import UserError
from tamedit.files import write_text
from tamedit.model.dit import is_conditioning
from tamedit.privacy.engine import ClippedSum

GRADIENTS, TIMES, HEADER = "gradients.bin", "times.bin", "gradients.json"
STATEMENT = "Measured on the training data without noise: not private, and not to leave with a model."
TIME_ROW = np.dtype([("step", "<i4"), ("seconds", "<f4")])
FLUSH_SECONDS = 5.0


def part_of(name: str) -> str:
    """Where in the network a parameter sits: input, block 1, …, output."""
    first, *rest = name.split(".")
    if first == "blocks":
        return f"block {int(rest[0]) + 1}"
    return "output" if first in {"final_adaln", "output"} else "input"


def path_of(name: str) -> str:
    """θ_cond or θ_other."""
    return "cond" if is_conditioning(name) else "other"


def gradient_row(parts: int) -> np.dtype:
    """One example of `gradients.bin`; everything little-endian. Steps count from 1."""
    names = ("total", "cond", "other", "factor")
    return np.dtype([("step", "<i4"), *((name, "<f4") for name in names), ("parts", "<f4", (parts,))])


def whole_rows(path: Path, row: np.dtype) -> np.ndarray:
    """The rows of a file, not read into memory; what follows the first incomplete or unwritten row is left out."""
    count = path.stat().st_size // row.itemsize if path.exists() else 0
    if not count:
        return np.empty(0, row)
    rows = np.memmap(path, row, "r", shape=(count,))
    bad = np.flatnonzero(np.diff(rows["step"], prepend=1) < 0)  # steps never fall; unwritten ones are 0
    return rows[: bad[0]] if len(bad) else rows


class Recorder:
    """Keeps per-example norms and step times of a run on disk, a few seconds of them in memory.

    `every` n-th step is recorded, none if it is 0. `clip` and `clipping` say how the run clips (None: not at all). Times are
    recorded always, except where a private run records no step: a step's time tells how large its batch was. With several
    processes the rows are those of the first process's share of a batch.
    """

    def __init__(
        self, folder: Path, names: Iterable[str], *, every: int, clip: float | None = None, clipping: str | None = None
    ) -> None:
        labels = [(part_of(name), path_of(name)) for name in names]
        parts = [(part, path) for part in dict.fromkeys(part for part, _ in labels) for path in ("cond", "other")]
        self.folder, self.every, self.clipping = Path(folder), every, clipping
        self.part = torch.tensor([parts.index(label) for label in labels])
        self.rows = {GRADIENTS: gradient_row(len(parts)), TIMES: TIME_ROW}
        self.waiting: dict[str, list[np.ndarray]] = {name: [] for name in self.rows}
        self.header = {"private": False, "statement": STATEMENT, "version": 1}
        self.header |= {"parts": [list(part) for part in parts], "clip": clip, "clipping": clipping}
        self.elsewhere, self.flushed = 0.0, time.monotonic()

    def due(self, step: int) -> bool:
        """Whether the examples of a step, counted from 0, are recorded."""
        return self.every > 0 and (step + 1) % self.every == 0

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Time spent inside is for the record only and does not count as part of the step."""
        started = time.perf_counter()
        yield
        self.elsewhere += time.perf_counter() - started

    def examples(self, step: int, result: ClippedSum) -> None:
        """The rows of a step, counted from 0."""
        squares = torch.stack(list(result.parameter_norms.values())).square()  # (P, U)
        parts = squares.new_zeros(self.rows[GRADIENTS]["parts"].shape[0], squares.shape[1])
        parts.index_add_(0, self.part.to(squares.device), squares)
        rows = np.zeros(squares.shape[1], self.rows[GRADIENTS])
        rows["step"] = step + 1
        columns = {
            "total": result.norms,
            **result.group_norms,
            "factor": self._factors(result),
            "parts": parts.sqrt().T,
        }
        for name, values in columns.items():
            rows[name] = values.float().cpu().numpy()
        self.waiting[GRADIENTS].append(rows)

    def _factors(self, result: ClippedSum) -> torch.Tensor:
        """η: the factor by which an example's gradient was shortened."""
        if self.clipping is None:
            return torch.ones_like(result.norms)
        if self.clipping != "groups":
            return next(iter(result.factors.values()))
        kept = [(result.factors[group] * norms).square() for group, norms in result.group_norms.items()]
        return torch.where(result.norms > 0, torch.stack(kept).sum(0).sqrt() / result.norms, 1.0).nan_to_num(0.0)

    def step(self, step: int, seconds: float) -> None:
        """What a step took, counted from 1."""
        if self.every == 0 and self.clipping is not None:
            return
        self.waiting[TIMES].append(np.array([(step, seconds - self.elsewhere)], TIME_ROW))
        self.elsewhere = 0.0
        if time.monotonic() - self.flushed > FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write the rows in memory."""
        for name, waiting in self.waiting.items():
            if waiting:
                try:
                    with open(self.folder / name, "ab") as file:
                        file.write(np.concatenate(waiting).tobytes())
                except OSError as error:
                    place, why = self.folder / name, error.strerror or error
                    raise UserError(
                        f"Cannot write {place} ({why}); free some space, then continue with resume=True."
                    ) from error
                waiting.clear()
        self.flushed = time.monotonic()

    def rewind(self, step: int) -> None:
        """Drop what came after `step` and incomplete rows; drop everything if the format differs."""
        header = json.dumps(self.header, indent=2) + "\n"
        place = self.folder / HEADER
        known = place.is_file() and place.read_text(encoding="utf-8") == header
        for name, row in self.rows.items():
            if (self.folder / name).exists():
                kept = np.searchsorted(whole_rows(self.folder / name, row)["step"], step, "right") if known else 0
                with open(self.folder / name, "rb+") as file:
                    file.truncate(int(kept) * row.itemsize)
        if not known:
            write_text(place, header)
