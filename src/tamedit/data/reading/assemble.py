"""From a table to the parts of a series: which column is what, numbers checked, rows put on the grid."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from tamedit.data.reading import grid, stamps
from tamedit.data.reading.columns import MissingCovariates, Roles, Wanted, find_roles, loses_digits, numbers, too_fine
from tamedit.data.reading.tables import Table, load_table
from tamedit.errors import UserError


@dataclass(frozen=True)
class Parts:
    """Everything that makes a series."""

    values: np.ndarray
    covariates: np.ndarray
    grid: grid.Grid
    meters: tuple[str, ...]
    targets: tuple[str, ...]
    covariate_names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    layout: Literal["wide", "long"] = "wide"
    time_name: str = "time"
    id_name: str = "meter"
    id_guessed: bool = False


def from_array(array: np.ndarray, targets: Sequence[str] | None = None) -> Parts:
    """(N, time, channels) becomes N meters; (time, channels) and (time,) one. Hourly stamps are added."""
    if isinstance(array, np.ma.MaskedArray):
        array = np.ma.filled(array.astype(np.float64), np.nan)
    if array.ndim not in (1, 2, 3) or 0 in array.shape:
        raise UserError(f"An array must have the shape (N, time, channels) and contain readings, not {array.shape}.")
    if (not np.issubdtype(array.dtype, np.number) and array.dtype != bool) or np.iscomplexobj(array):
        raise UserError(f"An array must contain real numbers, not {array.dtype}.")
    panel = array.reshape((1,) * (array.ndim == 2) + array.shape) if array.ndim > 1 else array.reshape(1, -1, 1)
    count, length, channels = panel.shape
    names = tuple(targets) if targets is not None else tuple(f"channel_{k + 1}" for k in range(channels))
    if len(names) != channels:
        raise UserError(f"{len(names)} targets are named, but the array has {channels} channels; name each.")
    bad = np.argwhere(np.isinf(panel) | (np.abs(panel) > np.finfo(np.float32).max))
    if len(bad):
        where = tuple(int(i) for i in bad[0])
        raise UserError(f"The array contains an infinite value at position {where}; write NaN for a missing reading.")
    hours = pd.date_range("2000-01-01", periods=length, freq="h").as_unit("us")
    times = pd.DatetimeIndex(np.tile(hours.to_numpy(), count))
    made_up = grid.Grid(
        position=np.arange(count * length),
        times=times,
        offsets=np.arange(count + 1, dtype=np.int64) * length,
        step=grid.Step("elapsed", 3_600_000_000),
        notes=(),
    )
    several = array.ndim == 3
    rounded = [too_fine(f"channel {name!r}") for k, name in enumerate(names) if loses_digits(panel[:, :, k])]
    return Parts(
        values=panel.reshape(count * length, channels).astype(np.float32),
        covariates=np.zeros((count * length, 0), np.float32),
        grid=made_up,
        meters=tuple(str(i) for i in range(count)) if several else ("",),
        targets=names,
        notes=("An array has no time stamps: hourly stamps from 2000-01-01 on were added.",),
        findings=tuple(rounded),
        layout="long" if several else "wide",
    )


def from_table(source: str | Path | pd.DataFrame, wanted: Wanted) -> Parts:
    """A table as `load_table` gives it, on its grid."""
    table = load_table(source)
    roles = find_roles(table, wanted)
    if roles.id is not None:
        table.keep_names(roles.id)
    readings = _ordered(table, roles, wanted.timezone)
    raw = {
        name: numbers(table.frame[name], table.where, table.findings) for name in (*roles.targets, *roles.covariates)
    }
    built = grid.build(readings, wanted.frequency)
    table.notes += built.notes
    table.findings += built.findings
    parts = Parts(
        values=_scatter([raw[name] for name in roles.targets], readings.order, built),
        covariates=_scatter([raw[name] for name in roles.covariates], readings.order, built),
        grid=built,
        meters=readings.meters,
        targets=roles.targets,
        covariate_names=roles.covariates,
        layout="wide" if roles.id is None else "long",
        time_name=roles.time,
        id_name=roles.id or "meter",
        id_guessed=roles.id_guessed,
    )
    _inspect(parts, table)
    covariates = _complete(parts, table, wanted.missing_covariates)
    return replace(parts, covariates=covariates, notes=tuple(table.notes), findings=tuple(table.findings))


def _ordered(table: Table, roles: Roles, timezone: str | None) -> grid.Readings:
    """Stamps parsed, meters numbered by first appearance, rows sorted, duplicates refused."""
    frame, where = table.frame, table.where
    if roles.id is None:
        codes = np.zeros(len(frame), dtype=np.int64)
        meters: tuple[str, ...] = ("",)
    else:
        nameless = frame[roles.id].isna().to_numpy()
        if nameless.any():
            row = frame.index[int(np.argmax(nameless))]
            raise UserError(f"Row {row} of {where} has no meter in column {roles.id!r}; name it or delete the row.")
        codes, names = pd.factorize(frame[roles.id])
        meters = tuple(str(name) for name in names)
    times = stamps.parse(frame[roles.time], where, table.notes, table.findings)
    times = stamps.to_zone(times, codes, timezone, table)
    if len(times) == 1:
        raise UserError(f"{where} has only one row; at least two readings at different times are needed.")
    microseconds = grid.microseconds(times)
    order = np.lexsort((microseconds, codes))
    if ((codes[1:] == codes[:-1]) & (np.diff(microseconds) < 0)).any():
        table.findings.append("The rows were not in time order; they were sorted.")
    readings = grid.Readings(times[order], codes[order], meters, order, where)
    _refuse_twice(readings, frame.index, several=roles.id is not None)
    return readings


def _refuse_twice(readings: grid.Readings, rows: pd.Index, several: bool) -> None:
    """Two readings of one meter at one time: which is right?"""
    codes, microseconds = readings.codes, grid.microseconds(readings.times)
    twice = (codes[1:] == codes[:-1]) & (microseconds[1:] == microseconds[:-1])
    if not twice.any():
        return
    index = int(np.argmax(twice))
    remedies = ["delete one of the rows"]
    if not several:
        remedies.append("name the column of meters with id= if there are several meters")
    if readings.times.tz is None:
        remedies.append("name the time zone with timezone='Europe/London' (or yours) if clocks went back")
    first, second = sorted(rows[readings.order[index : index + 2]])
    raise UserError(
        f"The time {readings.times[index]}{readings.of_meter(index)} appears twice in {readings.where} (rows {first} "
        f"and {second}); {', or '.join(remedies)}."
    )


def _scatter(columns: list[np.ndarray], order: np.ndarray, built: grid.Grid) -> np.ndarray:
    """Put columns of readings into the rows of the grid; rows without a reading are NaN."""
    table = np.full((int(built.offsets[-1]), len(columns)), np.nan, dtype=np.float32)
    for k, column in enumerate(columns):
        table[built.position, k] = column[order]
    return table


def _inspect(parts: Parts, table: Table) -> None:
    """Refuse channels without a reading; say which channels never change and which meters are silent."""
    observed = ~np.isnan(parts.values)
    for k, name in enumerate(parts.targets):
        column = parts.values[observed[:, k], k]
        if len(column) == 0:
            raise UserError(f"Column {name!r} of {table.where} has no reading at all; leave it out with targets=.")
        if column.min() == column.max():
            table.findings.append(f"Column {name!r} never changes (it is always {column[0]:g}).")
    silent = np.add.reduceat(observed.any(axis=1).astype(np.int64), parts.grid.offsets[:-1]) == 0
    if silent.any():
        first = parts.meters[int(np.argmax(silent))]
        table.findings.append(f"{silent.sum()} of {len(silent)} meters have no reading, the first is {first!r}.")


def _complete(parts: Parts, table: Table, how: MissingCovariates) -> np.ndarray:
    """Covariates are known at every step: refuse gaps, hold the last known value (the first one at the start), or take 0."""
    missing, offsets = np.isnan(parts.covariates), parts.grid.offsets
    if not missing.any():
        return parts.covariates
    if how == "zero":
        return np.nan_to_num(parts.covariates)
    if how == "hold":
        groups = np.repeat(np.arange(len(parts.meters)), np.diff(offsets))
        held = pd.DataFrame(parts.covariates).groupby(groups).ffill().groupby(groups).bfill().to_numpy(dtype=np.float32)
        if not np.isnan(held).any():
            table.findings.append(
                f"{missing.sum():,} missing values of covariates were filled with the last known value."
            )
            return held
    row, k = (int(i) for i in np.argwhere(missing)[0])
    meter = grid.of_meter(parts.meters, int(np.searchsorted(offsets, row, side="right") - 1))
    raise UserError(
        f"The covariate {parts.covariate_names[k]!r} has no value at {parts.grid.times[row]}{meter} in {table.where}; "
        "covariates must be known at every step: fill it, or pass missing_covariates='hold'."
    )
