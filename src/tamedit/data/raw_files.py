"""What a publisher offers (a file, a zip archive or a folder), file by file; and how much of it has been read."""

import io
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

MEGABYTE = 2**20
Progress = Callable[[int, int], None]  # megabytes that were read, and megabytes in all


def raw_files(
    raw: Path, wanted: re.Pattern[str], progress: Progress | None = None, *, whatever_name: bool = False
) -> Iterator[tuple[str, IO[bytes]]]:
    """The files with these names, in order, each open while it is the one at hand. `progress` hears of the bytes read.

    `whatever_name`: a file that is named itself is taken in any case. A file in an archive is counted as it is when unpacked,
    one that is compressed by itself (.gz) as it lies there.
    """
    if raw.is_dir():
        paths = [path for path in sorted(raw.rglob("*")) if path.is_file() and wanted.search(path.name)]
    elif zipfile.is_zipfile(raw):
        with zipfile.ZipFile(raw) as archive:
            members = [archive.getinfo(name) for name in sorted(archive.namelist()) if not name.startswith("__MACOSX")]
            members = [member for member in members if wanted.search(Path(member.filename).name)]
            heard = _Heard(sum(member.file_size for member in members), progress)
            for member in members:
                with archive.open(member) as packed:
                    yield Path(member.filename).name, heard.reading(packed)
        return
    else:
        paths = [raw] if whatever_name or wanted.search(raw.name) else []
    heard = _Heard(sum(path.stat().st_size for path in paths), progress)
    for path in paths:
        with open(path, "rb") as file:
            yield path.name, heard.reading(file)


class _Heard:
    """Counts the bytes of several files and tells them by the megabyte."""

    def __init__(self, size: int, progress: Progress | None) -> None:
        self.done, self.progress, self.all = 0, progress, -(-size // MEGABYTE)
        self.told = -1
        if size:
            self.add(0)

    def add(self, count: int) -> None:
        self.done += count
        megabytes = min(-(-self.done // MEGABYTE), self.all)
        if self.progress is not None and megabytes > self.told:
            self.told = megabytes
            self.progress(megabytes, self.all)

    def reading(self, file: IO[bytes]) -> IO[bytes]:
        return io.BufferedReader(_Counted(file, self.add), MEGABYTE)


class _Counted(io.RawIOBase):
    """A file whose bytes are counted as they are read."""

    def __init__(self, file: IO[bytes], heard: Callable[[int], None]) -> None:
        self.file, self.heard = file, heard

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        found = self.file.read(len(buffer))
        buffer[: len(found)] = found
        self.heard(len(found))
        return len(found)
