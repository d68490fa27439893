"""Two rows of one meter at one time: rows that say the same are one row, all others are named at once.

Of rows that differ, one without any reading says nothing: an empty row and an absent one are the same thing.
"""

from dataclasses import replace

import numpy as np
import pandas as pd

from tamedit.data.reading import grid
from tamedit.data.reading.tables import Files, row_at
from tamedit.errors import UserError

SHOWN = 5  # pairs in a sentence


def without_duplicates(
    readings: grid.Readings, raw: np.ndarray, rows: pd.Index, several: bool, findings: list[str]
) -> grid.Readings:
    """Readings in order, each time of a meter once. `raw` (n, K) is what the rows of the table say, in the table's order."""
    codes, microseconds = readings.codes, grid.microseconds(readings.times)
    again = np.zeros(len(codes), bool)
    again[1:] = (codes[1:] == codes[:-1]) & (microseconds[1:] == microseconds[:-1])
    if not again.any():
        return readings
    places = np.flatnonzero(again | np.append(again[1:], False))  # all rows that share their time
    group = np.cumsum(~again)[places]
    said = pd.DataFrame(raw[readings.order[places]])
    empty, said["group"] = said.isna().all(axis=1).to_numpy(), group
    silent = pd.Series(empty).groupby(group).transform("all").to_numpy()
    kept = ~said.duplicated().to_numpy() & (~empty | silent)
    left = pd.Series(group[kept])
    differ = left.duplicated(keep=False).to_numpy()
    if differ.any():
        _refuse(readings, places[kept][differ], left[differ].to_numpy(), rows, several)
    dropped = places[~kept]
    findings.append(
        f"{len(dropped):,} row{'s' * (len(dropped) != 1)} that only repeat{'s' * (len(dropped) == 1)} another row of the same "
        "meter and time left out."
    )
    keep = np.ones(len(codes), bool)
    keep[dropped] = False
    return replace(readings, times=readings.times[keep], codes=codes[keep], order=readings.order[keep])


def _refuse(readings: grid.Readings, places: np.ndarray, group: np.ndarray, rows: pd.Index, several: bool) -> None:
    """Two readings of one meter at one time: which is right?"""
    remedies = ["delete one of the rows"]
    if not several:
        remedies.append("name the column of meters with id= if there are several meters")
    if readings.times.tz is None:
        remedies.append("name the time zone with timezone='Europe/London' (or yours) if clocks went back")
    starts = np.flatnonzero(np.r_[True, group[1:] != group[:-1]])
    shown = []
    for at in starts[:SHOWN]:
        first, second = sorted(rows[readings.order[places[at : at + 2]]])
        pair = f"rows {first} and {second}"
        if isinstance(readings.where, Files):
            pair = f"row {row_at(first, readings.where)} and row {row_at(second, readings.where)}"
        shown.append((f"{readings.times[places[at]]}{readings.of_meter(int(places[at]))}", pair))
    remedy = ", or ".join(remedies)
    if len(starts) == 1:
        raise UserError(
            f"The time {shown[0][0]} appears twice in {readings.where} ({shown[0][1]}) with different readings; {remedy}."
        )
    listed = ", ".join(f"{time} ({pair})" for time, pair in shown) + " …" * (len(starts) > SHOWN)
    raise UserError(
        f"{len(starts):,} times appear twice in {readings.where} with different readings: {listed}; {remedy}."
    )
