"""From a table to the parts of a series: which column is what, numbers checked, rows put on the grid."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from tamedit.data.reading import duplicates, grid, meter_columns, resample, stamps
from tamedit.data.reading.attributes import read_attributes
from tamedit.data.reading.columns import MissingCovariates, Roles, Wanted, find_roles
from tamedit.data.reading.numeric import loses_digits, numbers, too_fine
from tamedit.data.reading.several import Several, files_of, load_files
from tamedit.data.reading.tables import Table, load_table, row_at
from tamedit.errors import UserError
from tamedit.statics import Static, columns_of


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
    clock: str = "the stamps"
    static: Static = ()
    static_guessed: bool = False


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


def from_table(source: str | Path | pd.DataFrame | Several | Table, wanted: Wanted) -> Parts:
    """A table as `load_table` gives it, or several files as one, on its grid."""
    files = files_of(source)
    table = load_table(source) if files is None else load_files(files, wanted.id, wanted.files)
    roles = find_roles(table, wanted)
    if roles.id is not None and roles.id != table.id:
        table.keep_names(roles.id)
    times = stamps.parse(table.frame[roles.time], table.where, table.notes, table.findings)
    table.frame = table.frame.assign(**{roles.time: times})
    raw, roles = _numbers(table, roles, wanted)
    readings = _ordered(table, roles, wanted)
    static, marks = read_attributes(table, wanted.static, readings, wanted.missing)
    _check_columns(columns_of(static), roles)
    rows, several = table.frame.index, roles.id is not None
    table.frame = pd.DataFrame(index=rows)  # its columns are read
    readings = duplicates.without_duplicates(readings, raw, rows, several, table.findings)
    frequency = wanted.frequency
    if wanted.resample is not None:
        sums = np.arange(raw.shape[1]) < len(roles.targets) * (wanted.aggregate == "sum")  # covariates are averaged
        readings, raw = resample.resampled(readings, raw, sums, wanted.resample, frequency, table.notes)
        frequency = wanted.resample
    built = grid.build(readings, frequency)
    table.notes += built.notes
    table.findings += built.findings
    laid = _scatter(raw, readings.order, built)
    parts = Parts(
        values=np.ascontiguousarray(laid[:, : len(roles.targets)]),
        covariates=np.ascontiguousarray(laid[:, len(roles.targets) :]),
        grid=built,
        meters=readings.meters,
        targets=roles.targets,
        covariate_names=roles.covariates,
        layout="wide" if roles.id is None else "long",
        time_name=roles.time,
        id_name=roles.id or "meter",
        id_guessed=roles.id_guessed,
        clock="the stamps" if wanted.round is None else f"the stamps rounded to {wanted.round}",
    )
    _inspect(parts, table)
    covariates = _complete(parts, table, wanted.missing_covariates)
    if static:
        constant = np.repeat(marks.astype(np.float32), np.diff(built.offsets), axis=0)
        parts = replace(parts, static=static, static_guessed=wanted.static.guessed)
        parts = replace(parts, covariate_names=(*roles.covariates, *columns_of(static)))
        covariates = np.concatenate([covariates, constant], axis=1)
    return replace(parts, covariates=covariates, notes=tuple(table.notes), findings=tuple(table.findings))


def _check_columns(made: tuple[str, ...], roles: Roles) -> None:
    """Columns of attributes have names of their own."""
    if clash := set(made) & {*roles.targets, *roles.covariates}:
        raise UserError(f"The column {min(clash)!r} has the name of a category of `static`; rename it.")


def _numbers(table: Table, roles: Roles, wanted: Wanted) -> tuple[np.ndarray, Roles]:
    """(n, targets and covariates) as the table says them; columns that are meters are put one below the other."""
    names = (*roles.targets, *roles.covariates)
    if wanted.targets is None:
        meter_columns.refuse_hours(roles.targets, table.frame[roles.time], table.where)
    if wanted.columns != "meters":
        if wanted.columns is None and roles.id is None and wanted.targets is None:
            meter_columns.ask(roles.targets, table.where)
            table.notes += filter(None, [meter_columns.channels_note(roles.targets)])
        raw = np.empty((len(table.frame), len(names)), dtype=np.float32)
        for place, name in enumerate(names):
            raw[:, place] = numbers(table.frame[name], table.where, table.findings, wanted.missing)
        return raw, roles
    if roles.covariates or wanted.static.stated:
        what = "covariates" if roles.covariates else "attributes"
        raise UserError(
            f"columns='meters' has no place for {what}; leave them out, or give a table with one row per meter and time."
        )
    columns = {name: numbers(table.frame[name], table.where, table.findings, wanted.missing) for name in names}
    value = wanted.targets[0] if wanted.targets and wanted.targets[0] not in names else meter_columns.VALUE
    values = meter_columns.as_meters(table, roles.time, columns, value)
    return values.to_numpy()[:, None], Roles(roles.time, meter_columns.METER, (value,), ())


def _ordered(table: Table, roles: Roles, wanted: Wanted) -> grid.Readings:
    """Stamps in their zone, meters numbered by first appearance, rows sorted."""
    frame, where = table.frame, table.where
    if roles.id is None:
        codes = np.zeros(len(frame), dtype=np.int64)
        meters: tuple[str, ...] = ("",)
    else:
        codes, names = pd.factorize(frame[roles.id])
        if (codes < 0).any():
            row = row_at(frame.index[int(np.argmax(codes < 0))], where)
            raise UserError(f"Row {row} has no meter in column {roles.id!r}; name it or delete the row.")
        meters = tuple(str(name) for name in names)
    times = stamps.to_zone(pd.DatetimeIndex(frame[roles.time]), codes, wanted.timezone, table)
    if wanted.round is not None:
        times = resample.rounded(times, wanted.round, table.notes)
    if len(times) == 1:
        raise UserError(f"{where} has only one row; at least two readings at different times are needed.")
    microseconds = grid.microseconds(times)
    sorted_codes = (np.diff(codes) >= 0).all()
    backwards = ((codes[1:] == codes[:-1]) & (np.diff(microseconds) < 0)).any()
    if backwards:
        table.findings.append("The rows were not in time order; they were sorted.")
    if sorted_codes and not backwards:
        return grid.Readings(times, codes, meters, np.arange(len(codes)), where)
    order = np.lexsort((microseconds, codes))
    return grid.Readings(times[order], codes[order], meters, order, where)


def _scatter(raw: np.ndarray, order: np.ndarray, built: grid.Grid) -> np.ndarray:
    """Put rows of readings into the rows of the grid; rows without a reading are NaN."""
    table = np.full((int(built.offsets[-1]), raw.shape[1]), np.nan, dtype=np.float32)
    table[built.position] = raw[order]
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
