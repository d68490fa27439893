"""One ledger file, opened for appending: locked while it is written, each line chained to the line before."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tamedit.errors import Resumable, UserError
from tamedit.privacy.accountant import Mechanism
from tamedit.privacy.entries import TRAINING, Record, chained, include, parse, torn_charge


class Chain:
    """A ledger file and what it says so far.

    Attributes:
        record: everything in the file that was read or written here.
        head: the hash of the last line, which depends on all lines before.
    """

    def __init__(self, path: Path, remedy: str = "choose a folder that you may write to") -> None:
        self.path, self.record, self.head = path, Record([]), ""
        self._bytes, self._lines = 0, 0  # of the file that `record` contains
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        except OSError as error:
            raise UserError(f"Cannot write {path}: {error.strerror}; {remedy}.") from error

    def hold(self) -> None:
        """Lock the file until `close`; an error if another process has."""
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UserError(
                f"Another process is training in {self.path.parent}: wait for it, or choose another folder."
            ) from error

    @contextmanager
    def locked(self) -> Iterator[bool]:
        """Lock the file for a moment, and read what others have written in between; yields whether there was anything."""
        fcntl.flock(self._handle, fcntl.LOCK_EX)
        try:
            yield self.catch_up()
        finally:
            fcntl.flock(self._handle, fcntl.LOCK_UN)

    def catch_up(self) -> bool:
        """Read what is new. Whoever calls this has the lock, so an incomplete last line is what a crash left: it is repaired."""
        content = self._rest()
        if not content:
            return False
        self.head, torn = parse(content, self.path, self.record, self.head, self._lines + 1)
        self._bytes += len(content)
        self._lines += content.count(b"\n")
        if not content.endswith(b"\n"):
            self._write(b"\n")
        if torn is not None:
            paid = torn_charge(torn, self.record) if self.record.segments else Mechanism(0.0, 0.0, 0)
            self.append("repair", count=paid.count, rate=paid.sampling_rate, noise=paid.noise_multiplier, what=TRAINING)
        return True

    def append(self, kind: str, **content: Any) -> None:
        """Write a line to the disk; when this returns, it is there."""
        line = {"type": kind, **content}
        line["check"] = chained(self.head, line)
        self._write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
        self.head = line["check"]
        include(line, self.record, self.path)

    def flush_folder(self) -> None:
        """A new file survives a power cut only when its folder's entry is on the disk too."""
        handle = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def close(self) -> None:
        """Close the file, and with it release the lock."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def _rest(self) -> bytes:
        """What of the file was not read yet, through the locked handle."""
        parts, at = [], self._bytes
        while part := os.pread(self._handle, 1 << 20, at):
            parts.append(part)
            at += len(part)
        return b"".join(parts)

    def _write(self, content: bytes) -> None:
        """Write all bytes at once where the system allows it, then flush them to disk."""
        try:
            while content:
                written = os.write(self._handle, content)
                self._bytes += written
                self._lines += content[:written].count(b"\n")
                content = content[written:]
            os.fsync(self._handle)
        except OSError as error:
            raise Resumable(
                f"Cannot write {self.path}: {error.strerror}; free some space, then resume the run."
            ) from error
