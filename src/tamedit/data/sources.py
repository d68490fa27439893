"""Named data sets: where their file is, what it must contain, how it is split, and what is publicly known about it.

A file is looked for in the folder that the variable TAMEDIT_DATA names, then in the user's cache. The two ETT files are
downloaded when they are absent; the other two are downloaded by hand from their publishers and put into our form with
`tamedit data convert`.
"""

import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from tamedit.data.catalogue import IDEAL_TEST, SOURCES, Source, source
from tamedit.data.clean import drop_negatives, replace_negatives
from tamedit.data.convert import convert
from tamedit.data.reader import read
from tamedit.data.reading.several import files_of
from tamedit.data.series import Series
from tamedit.data.split import Split, split_by_meter, split_by_rows, split_by_time
from tamedit.errors import UserError

__all__ = ["SOURCES", "Source", "convert", "fetch", "find", "load", "load_any", "place", "source", "split"]


def cache_folder() -> Path:
    """The user's cache, where downloads and conversions go when TAMEDIT_DATA is not set."""
    import pooch

    return Path(pooch.os_cache("tamedit"))


def place(name: str) -> Path:
    """Where the file of a data set belongs: where it is, else TAMEDIT_DATA, else the cache."""
    wanted = source(name)
    folders = [cache_folder()]
    if os.environ.get("TAMEDIT_DATA"):
        folders.insert(0, Path(os.environ["TAMEDIT_DATA"]).expanduser())
    for folder in folders:
        if (folder / wanted.file).is_file():
            return folder / wanted.file
    return folders[0] / wanted.file


def find(name: str) -> Path:
    """The file of a data set; one sentence says what to do if it is absent or (for downloads) damaged."""
    wanted, path = source(name), place(name)
    if not path.is_file():
        remedy = f"run: tamedit data fetch {name}"
        if wanted.url is None:
            remedy = f"get {wanted.origin}, then run: tamedit data convert {name} RAW"
        raise UserError(f"The data set {name!r} ({wanted.file}) is not on this machine; {remedy}")
    if wanted.url is not None and not has_checksum(path, wanted.sha256):
        raise UserError(
            f"{path} is not the published {wanted.file} (its SHA-256 differs); delete it and run: tamedit data fetch "
            f"{name}"
        )
    return path


def fetch(name: str) -> Path:
    """The file of a data set, downloaded and checked if it is absent and may be downloaded."""
    wanted, path = source(name), place(name)
    if path.is_file() or wanted.url is None:
        return find(name)
    import pooch

    folder = path.parent if os.access(_existing(path.parent), os.W_OK) else cache_folder()
    try:
        pooch.retrieve(wanted.url, known_hash=f"sha256:{wanted.sha256}", fname=wanted.file, path=folder)
    except ValueError as error:
        raise UserError(
            f"The file from {wanted.url} is not the published {wanted.file} (its SHA-256 differs); try again later, or put "
            f"the file into {folder} yourself."
        ) from error
    except OSError as error:
        raise UserError(
            f"{wanted.file} could not be downloaded from {wanted.url}; check the network, or put it into {folder}."
        ) from error
    return folder / wanted.file


def load(name: str, *, private: bool = False) -> Series:
    """A named data set, cleaned (where readings below zero cannot be) and without calendar channels.

    `private`: for training with a guarantee, where cleaning looks at one reading at a time.
    """
    wanted = source(name)
    path = fetch(name)
    series = read(path, frequency=wanted.frequency)
    if len(series.targets) != len(wanted.typical_level):
        raise UserError(
            f"{path} does not contain the data set {name!r}; convert it again with: tamedit data convert {name}"
        )
    if wanted.url is None and not has_checksum(path, wanted.sha256):
        series = replace(series, notes=(*series.notes, f"{wanted.file} differs from our own conversion of {name!r}."))
    if not wanted.non_negative:
        return series
    return drop_negatives(series) if private else replace_negatives(series)


def load_any(source: str, *, private: bool = False, **reading: Any) -> Series:
    """A named data set, or the file of a table; `reading` goes to `read`."""
    if source in SOURCES:
        if reading:
            raise UserError(
                f"{', '.join(reading)} say how to read a file, but {source} is a named data set with its own columns; leave "
                "them out, or give the file's path."
            )
        return load(source, private=private)
    if files_of(source) is None and not Path(source).exists() and not Path(source).suffix:
        raise UserError(
            f"There is no file and no data set {source!r}; give a CSV or Parquet file, a folder of them, or one of "
            f"{', '.join(SOURCES)}."
        )
    return read(source, **reading)


def split(name: str, series: Series) -> Split:
    """The usual split: ETT 12/4/4 months, household 70/15/15 in time, ideal 54 of the homes for test."""
    if name == "etth1":
        return split_by_rows(series, (8640, 2880, 2880))
    if name == "ettm1":
        return split_by_rows(series, (34_560, 11_520, 11_520))
    if source(name).name == "ideal":
        return split_by_meter(series, IDEAL_TEST, validation_share=0.15)
    return split_by_time(series)


def has_checksum(path: Path, sha256: str) -> bool:
    """Whether the file at `path` has this SHA-256."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == sha256


def _existing(folder: Path) -> Path:
    """The folder itself, or the nearest one above it that exists."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder
