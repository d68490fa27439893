"""What tests of the command line share besides fixtures."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from tamedit.data.simulate import simulate


class Answer(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Answer]


def csv(path: Path, frame: pd.DataFrame) -> Path:
    frame.to_csv(path)
    return path


def meter(hours: int = 300) -> pd.DataFrame:
    return simulate(hours=hours, seed=1).frame()


@contextmanager
def untouched(folder: Path) -> Iterator[None]:
    """Nothing is added to, taken from or changed in a folder."""

    def content() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    before, folders = content(), {path for path in folder.rglob("*") if path.is_dir()}
    yield
    assert content() == before
    assert {path for path in folder.rglob("*") if path.is_dir()} == folders
