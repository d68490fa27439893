"""One column per meter: a wide table whose columns are homes becomes a long one. Never by a guess: the user says so, or is asked.

Rows before the first and after the last reading of a meter are left out, so that every meter has its own beginning and end.
"""

import re
from typing import Literal

import numpy as np
import pandas as pd

from tamedit.data.reading.tables import Table
from tamedit.errors import UserError

ColumnsAre = Literal["meters", "channels"]
METER, VALUE = "meter", "value"
FEWEST = 8  # columns with like names, before we ask
_HOUR = re.compile(r"([a-z]{0,6})[ _-]?(\d{1,2})(?:[:.h]?([0-5]\d))?(?::\d\d)?", re.IGNORECASE).fullmatch
_HEXADECIMAL = re.compile(r"[0-9a-f]{16,}", re.IGNORECASE)


def ask(names: tuple[str, ...], where: str) -> None:
    """Raise the question whether so many columns with like names are meters."""
    stems = [re.sub(r"\d+", "#", _HEXADECIMAL.sub("#", name)) for name in names]
    alike = [
        name for name, stem in zip(names, stems, strict=True) if "#" in stem and stem == max(stems, key=stems.count)
    ]
    if len(alike) < FEWEST or len(alike) < 0.9 * len(names):
        return
    raise UserError(
        f"{_begun(where)} has {len(names)} columns of readings with like names ({alike[0]!r}, {alike[1]!r}, …); "
        "say columns='meters' if each is a meter, or columns='channels' if they are channels of one meter."
    )


def refuse_hours(names: tuple[str, ...], times: pd.Series, where: str) -> None:
    """Raise one sentence if the columns are the hours of a day: neither meters nor channels can be made of them."""
    hours = {(found[1], int(found[2]), found[3]) for name in names if (found := _HOUR(name.strip()))}
    for stem in {one[0].lower() for one in hours}:
        of_stem = [(hour, minute) for own, hour, minute in hours if own.lower() == stem]
        if not set(range(1, 24)) <= {hour for hour, _ in of_stem} or max(of_stem)[0] > 24 + 24 * (stem != ""):
            continue
        apart = np.diff(np.sort(pd.DatetimeIndex(times.dropna()).unique().to_numpy()))
        if len(apart) and np.median(apart) >= np.timedelta64(1, "D"):
            raise UserError(
                f"{_begun(where)} has one row per day and one column per hour ({names[0]!r}, {names[1]!r}, …), which is not "
                "read; bring it to one row per time, with the columns time and value, first."
            )


def _begun(where: str) -> str:
    """The beginning of a sentence; the name of a file stays as it is."""
    return f"The {where[4:]}" if where.startswith("the ") else where


def channels_note(targets: tuple[str, ...]) -> str | None:
    """What is said where several columns were taken to be channels without a word about it."""
    if len(targets) < 2:
        return None
    return "The columns were taken as channels of one meter; if each column is a meter, say columns='meters'."


def as_meters(table: Table, time: str, columns: dict[str, np.ndarray], value: str) -> pd.Series:
    """The table of the meters one below the other, with its column `value` of float32; gives the rows' places in it."""
    known = ~np.isnan(np.stack(list(columns.values())))  # (M, n)
    rows = np.arange(known.shape[1])
    first = np.where(known.any(axis=1), known.argmax(axis=1), 0)
    last = np.where(known.any(axis=1), known.shape[1] - 1 - known[:, ::-1].argmax(axis=1), known.shape[1] - 1)
    inside = (rows >= first[:, None]) & (
        rows <= last[:, None]
    )  # (M, n); stamps may be in any order, rows are kept as a run
    meter, row = np.nonzero(inside)
    names = pd.Index(list(columns), dtype="str")
    frame = table.frame
    long = pd.DataFrame(
        {
            METER: pd.Categorical.from_codes(meter.astype(np.int32), names),
            time: frame[time].take(row).array,
            value: np.stack(list(columns.values()))[meter, row],
        }
    )
    table.frame = long.set_axis(pd.Index(frame.index.to_numpy()[row]), axis=0)
    table.written = None
    return table.frame[value]
