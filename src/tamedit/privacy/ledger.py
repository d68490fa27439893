"""The ledger: every use of private data is written here before it happens, and never changed afterwards.

One JSON object per line, appended (O_APPEND) and flushed to disk (fsync) before the caller continues. So at every instant, even
after a power cut or `kill -9`,

    steps in the ledger  ≥  steps applied to the model.

    segment   opens a run, a resumed run or another plan in the same folder: the plan, its fingerprint, that of the data, and how
              many examples each unit touches. Nothing is ever reset: the charges of all segments compose.
    charge    pays for `count` releases at rate q with noise multiplier σ. Steps may be paid for in blocks, ahead of time.
    repair    follows a line that a crash left incomplete. Its release cannot have happened, since the write had not returned.
              It is charged anyway, in case the disk reported less than it wrote.

Every line carries a hash of itself and of the line before, so that an edit shows. ε is never stored; entries.py derives it.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from tamedit.errors import UserError
from tamedit.privacy.accountant import Mechanism, epsilon
from tamedit.privacy.entries import FILE_NAME, TRAINING, Record, Segment, chained, merged, parse, torn_charge
from tamedit.privacy.plan import PrivacyPlan
from tamedit.privacy.units import Contribution, Neighbour


class Ledger:
    """A ledger opened for writing, by one process at a time: a lock on the file is held until `close`.

    Attributes:
        record: everything in the file so far.
        prepaid: steps that are paid for and not yet taken.
    """

    def __init__(self, path: Path, handle: int, record: Record, last: str) -> None:
        self.path = path
        self.record = record
        self.prepaid = 0
        self._handle = handle
        self._last = last

    @classmethod
    def open(
        cls,
        folder: Path,
        plan: PrivacyPlan,
        contributions: Mapping[str, Contribution],
        *,
        refused: Mapping[str, str] | None = None,
        data: str = "",
        facts: Mapping[str, Any] | None = None,
        reserve: int = 8,
    ) -> Self:
        """Open (or create) the ledger of a folder and begin a segment.

        `contributions` and `refused` come from `privacy.units.contributions`; `data` is a fingerprint of the data set; `facts`
        are what a statement must mention; `reserve` is the largest number of steps that is paid ahead.
        """
        _agree(plan, contributions)
        path = Path(folder) / FILE_NAME
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        except OSError as error:
            raise UserError(f"Cannot write {path}: {error.strerror}; choose a folder that you may write to.") from error
        try:
            _lock(handle, path)
            content = _content(handle)
            record, last, torn = parse(content, path)
            ledger = cls(path, handle, record, last)
            if content and not content.endswith(b"\n"):
                ledger._write(b"\n")
            if torn is not None:
                ledger._mend(torn)
            ledger._begin(
                Segment(plan, dict(contributions), dict(refused or {}), data, dict(facts or {}), max(1, reserve))
            )
            _flush_folder(path.parent)
        except BaseException:
            os.close(handle)
            raise
        return ledger

    def take(self, left: int | None = None) -> None:
        """Pay for one training step; when this returns, the step may be applied.

        Up to `reserve` steps are paid for at once, but no more than the `left` steps that may still be taken.
        """
        segment = self.record.segments[-1]
        if self.prepaid == 0:
            block = segment.reserve if left is None else max(1, min(segment.reserve, left))
            self.charge(segment.plan.mechanism, TRAINING, block)
            self.prepaid = block
        self.prepaid -= 1

    def charge(self, mechanism: Mechanism, what: str, count: int = 1) -> None:
        """Write a charge for `count` releases to the disk. When this returns, and not before, they may happen."""
        if count < 1:
            raise ValueError(f"a charge pays for at least one release, not {count}")
        paid = Mechanism(mechanism.sampling_rate, mechanism.noise_multiplier, count)
        self._append("charge", count=count, rate=paid.sampling_rate, noise=paid.noise_multiplier, what=what)
        self.record.segments[-1].charges.append((paid, what))

    def close(self) -> None:
        """Release the lock. Steps that are paid for but not taken stay paid."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin(self, segment: Segment) -> None:
        self._append(
            "segment",
            plan=segment.plan.model_dump(mode="json"),
            fingerprint=segment.plan.fingerprint,
            units={unit: asdict(one) for unit, one in segment.contributions.items()},
            refused=segment.refused,
            data=segment.data,
            facts=segment.facts,
            reserve=segment.reserve,
        )
        self.record.segments.append(segment)

    def _mend(self, torn: bytes) -> None:
        paid = torn_charge(torn, self.record) if self.record.segments else Mechanism(0.0, 0.0, 0)
        self._append("repair", count=paid.count, rate=paid.sampling_rate, noise=paid.noise_multiplier, what=TRAINING)
        if self.record.segments:
            self.record.segments[-1].charges.append((paid, TRAINING))

    def _append(self, kind: str, **content: Any) -> None:
        line = {"type": kind, **content}
        line["check"] = chained(self._last, line)
        self._write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
        self._last = line["check"]

    def _write(self, content: bytes) -> None:
        """Write all bytes at once where the system allows it, then flush them to disk."""
        try:
            while content:
                content = content[os.write(self._handle, content) :]
            os.fsync(self._handle)
        except OSError as error:
            raise UserError(
                f"Cannot write {self.path}: {error.strerror}; free some space, then resume the run."
            ) from error


def affordable_steps(record: Record, plan: PrivacyPlan, epsilon_limit: float, most: int | None = None) -> int:
    """How many further steps of `plan` stay within ε at the plan's δ, at most `most` (the planned steps by default).

    ε grows with the number of steps, so bisection finds the answer; the loss distribution of one step is built once.
    """
    k, kind = plan.contributions, plan.neighbour
    if record.segments:
        earlier = record.contribution(plan.unit)
        k = max(k, earlier.k)
        kind = "replacement" if "replacement" in (kind, earlier.neighbour) else "removal"
    return _affordable(tuple(record.mechanisms), plan, epsilon_limit, plan.steps if most is None else most, k, kind)


def _affordable(
    spent: tuple[Mechanism, ...], plan: PrivacyPlan, limit: float, most: int, k: int, kind: Neighbour
) -> int:
    def fits(steps: int) -> bool:
        work = merged([*spent, Mechanism(plan.sampling_rate, plan.noise_multiplier, steps)])
        return epsilon(work, plan.delta, k, kind, with_rdp=False).value <= limit

    if most <= 0 or fits(most):
        return max(0, most)
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _agree(plan: PrivacyPlan, contributions: Mapping[str, Contribution]) -> None:
    own = contributions.get(plan.unit)
    if own is None:
        raise UserError(f"The layout cannot account the unit {plan.unit!r}: choose one of {', '.join(contributions)}.")
    if own.k > plan.contributions or (own.neighbour == "replacement" and plan.neighbour == "removal"):
        raise UserError(
            f"The plan counts {plan.contributions} example(s) per {plan.unit} by {plan.neighbour}, but the layout has {own.k} by "
            f"{own.neighbour}: take both from privacy.units.contribution."
        )


def _content(handle: int) -> bytes:
    """The whole file, through the locked handle."""
    parts, at = [], 0
    while part := os.pread(handle, 1 << 20, at):
        parts.append(part)
        at += len(part)
    return b"".join(parts)


def _lock(handle: int, path: Path) -> None:
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise UserError(
            f"Another process is training in {path.parent}: wait for it, or choose another folder."
        ) from error


def _flush_folder(folder: Path) -> None:
    """A new file survives a power cut only when its folder's entry is on the disk too."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
