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
        f"{where[0].upper()}{where[1:]} has {len(names)} columns of readings with like names ({alike[0]!r}, {alike[1]!r}, …); "
        "say columns='meters' if each is a meter, or columns='channels' if they are channels of one meter."
    )


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
