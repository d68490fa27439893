"""Files are complete or absent: each is written next to its final place, flushed, then renamed."""

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamedit.errors import UserError

if TYPE_CHECKING:
    import numpy as np


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path in the folder of `path`; on success it replaces `path`, on failure it is removed.

    A reader sees the old file or the new one, never a part of it, even after Ctrl-C, a full disk or a power cut.
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=path.suffix, dir=path.parent)
    except OSError as error:
        raise UserError(
            f"Cannot write {path}: {error.strerror or error}; choose a folder that you may write to."
        ) from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, path)
    except OSError as error:
        raise UserError(
            f"Cannot write {path}: {error.strerror or error}; free some space or choose another place."
        ) from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()


def check_new_folder(out: Path, made: str) -> None:
    """Raise one sentence if no new folder can be made there; `made`: what it is to hold."""
    place = settled(out)
    try:
        there = place.lstat() if place.is_symlink() or place.exists() else None
    except OSError as error:
        raise UserError(f"Cannot write {out}: {error.strerror or error}; choose another name.") from error
    if there is not None and not stat.S_ISDIR(there.st_mode):
        raise UserError(f"{out} is a file or a link; name a folder that does not exist yet.")
    if there is not None and any(place.iterdir()):
        raise UserError(f"{out} is not empty; {made} needs a folder of its own, so name one that does not exist yet.")
    if there is not None and (place == Path.cwd() or place.is_mount()):
        raise UserError(
            f"{out} is the working directory or a mounted disk, which nothing can replace; name a folder that does not exist yet."
        )
    parent = next(one for one in place.parents if one.exists())
    if not (parent.is_dir() and os.access(parent, os.W_OK)):
        raise UserError(f"Cannot write {out}; choose a folder that you may write to.")


def settled(out: Path) -> Path:
    """The whole path of a new folder, without `.` and `..`. A link at its end stays a link, so that it can be refused."""
    out = Path(out).absolute()
    try:
        return out.resolve() if out.name in ("", "..") else out.parent.resolve() / out.name
    except (OSError, RuntimeError) as error:
        raise UserError(f"Cannot write {out}: {error}; choose another name.") from error


@contextlib.contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """Yield a temporary folder beside `out`; on success it becomes `out`, on failure it is removed."""
    beside, out = None, settled(out)
    above = [one for one in out.parents if not one.exists()]  # the nearest first
    done = False
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=f".{out.name[:40]}-", dir=out.parent))
        yield beside
        beside.chmod(0o755)
        os.replace(beside, out)
        done = True
    except OSError as error:
        raise UserError(
            f"Cannot write {out}: {error.strerror or error}; free some space or choose another place."
        ) from error
    finally:
        if beside is not None:
            shutil.rmtree(beside, ignore_errors=True)
        for one in () if done else above:
            with contextlib.suppress(OSError):
                one.rmdir()


def unreadable(path: Path, error: OSError) -> UserError:
    """The error for a file that exists but may not be read; it is not damaged."""
    return UserError(f"Cannot read {path}: {error.strerror or error}; allow reading it, or name another place.")


def write_text(path: Path, text: str) -> None:
    """Write `text` as UTF-8, all of it or nothing."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_with(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file, which then replaces `path`."""
    with replacing(path) as temporary:
        write(temporary)


def on_disk(shape: tuple[int, ...]) -> "np.memmap[Any, np.dtype[np.float32]]":
    """A float32 array in a temporary file without a name, which goes when the array goes. TMPDIR says where."""
    import numpy as np

    with tempfile.TemporaryFile(prefix="tamedit-") as file:
        return np.memmap(file, dtype=np.float32, mode="w+", shape=shape)
