"""Samples become tables with the user's own time stamps."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pandas as pd

from tamedit.data.reading import stamps
from tamedit.data.reading.columns import find_time
from tamedit.data.reading.grid import parse_frequency, step_of
from tamedit.data.reading.numeric import numbers
from tamedit.data.reading.tables import Table, load_table
from tamedit.data.series import Series
from tamedit.errors import UserError
from tamedit.streams import step_generator
from tamedit.tasks.enough import quantiles

Future: TypeAlias = str | Path | pd.DataFrame
Horizon: TypeAlias = int | str | timedelta
Quantiles: TypeAlias = Sequence[float] | str  # (0.1, 0.9) or "0.1,0.9"
QUANTILES = (0.05, 0.25, 0.75, 0.95)
MOST_STEPS = 1_000_000  # of a forecast


def quantile_levels(quantiles: Quantiles, all_samples: bool) -> tuple[float, ...] | None:
    """The levels of the answer's quantiles, if they can be; None if every sample is wanted instead."""
    try:
        levels = tuple(float(level) for level in (quantiles.split(",") if isinstance(quantiles, str) else quantiles))
    except (TypeError, ValueError):
        levels = ()
    if not levels or not (np.diff([0, *levels, 1]) > 0).all():
        raise UserError(
            f"quantiles={quantiles!r} is not possible; give increasing numbers between 0 and 1, such as (0.1, 0.5, 0.9)."
        )
    if all_samples and levels != QUANTILES:
        raise UserError(f"quantiles={quantiles!r} and all_samples=True exclude each other; leave one out.")
    return None if all_samples else levels


def steps_ahead(series: Series, horizon: Horizon) -> int:
    """The steps of a horizon that is given as their number or as a duration."""
    step = series.step
    assert step is not None  # a series has one
    steps, rest = 0, 0
    try:
        if isinstance(horizon, int | np.integer) or (isinstance(horizon, str) and horizon.isdecimal()):
            steps = int(horizon)
        elif isinstance(horizon, str | timedelta):
            duration = parse_frequency(horizon, series.times)
            if (duration.kind == "months") == (step.kind == "months"):
                steps, rest = divmod(duration.size, step.size)
    except (UserError, ValueError, OverflowError):
        pass  # said below
    if rest or not 1 <= steps <= MOST_STEPS:
        raise UserError(
            f"horizon={horizon!r} is not a whole number of steps of {series.spoken_step}, from 1 to {MOST_STEPS:,}; give the "
            f"number of steps, or a duration such as {'12MS' if step.kind == 'months' else '24h or 2D'}."
        )
    return steps


def table(
    series: Series,
    drawn_cells: np.ndarray,
    drawn: np.ndarray,
    levels: tuple[float, ...] | None = QUANTILES,
    only_rows: np.ndarray | None = None,
    flags: bool = False,
    stratified: bool = False,
) -> pd.DataFrame:
    """The series with its drawn cells: the median and quantiles at these levels, or every sample where there are none.

    drawn_cells (T, K) marks them, drawn (S, M) holds their samples. A quantile of an observed cell is its value. `flags` adds
    columns that are 1 where a cell was drawn, where the medians stand.
    """
    check_names(series, levels, flags)
    rows = slice(None) if only_rows is None else only_rows
    tables = []
    if levels is None:
        for number, values in enumerate(drawn):
            frame = series.frame(_with(series.values, drawn_cells, values))[rows].copy()
            frame.insert(0, "sample", number)
            tables.append(frame)
    else:
        frame = series.frame(_with(series.values, drawn_cells, np.median(drawn, axis=0)))
        for level, cut in zip(levels, quantiles(drawn, levels, stratified), strict=True):
            values = _with(series.values, drawn_cells, cut)
            for channel, name in enumerate(series.targets):
                frame[_quantile_name(name, level)] = values[:, channel]
        for channel, name in enumerate(series.targets if flags else ()):
            frame[_flag_name(name)] = drawn_cells[:, channel].astype(np.int8)
        tables.append(frame[rows])
    numbered = isinstance(tables[0].index, pd.RangeIndex) or tables[0].index.name is None
    return pd.concat(tables, ignore_index=True) if numbered else pd.concat(tables)


def check_names(series: Series, levels: tuple[float, ...] | None, flags: bool = False) -> None:
    """Reject names that the result needs for its own columns."""
    made = {_quantile_name(name, level) for name in series.targets for level in levels or ()} or {"sample"}
    made |= {_flag_name(name) for name in series.targets} if flags and levels else set()
    if clash := made & {*series.targets, series.time_name, series.id_name}:
        raise UserError(f"The column {min(clash)!r} has the name of a column of the result; rename it.")


def check_window_names(targets: tuple[str, ...]) -> None:
    """The same for a table of generated windows, whose names are the model's."""
    if clash := {"sample", "time"} & {*targets}:
        raise UserError(
            f"The target {min(clash)!r} has the name of a column of the result; rename it in the data and train again."
        )


def _flag_name(target: str) -> str:
    """load_filled."""
    return f"{target}_filled"


def _quantile_name(target: str, level: float) -> str:
    """load_q05, load_q97.5."""
    share = (100 * Decimal(str(level))).normalize()
    return f"{target}_q{'0' * (share < 10)}{share:f}"


def _with(values: np.ndarray, cells: np.ndarray, new: np.ndarray) -> np.ndarray:
    changed = values.copy()
    changed[cells] = new
    return changed


def extended(series: Series, horizon: int, future: Future | None) -> tuple[Series, np.ndarray]:
    """The series with `horizon` empty rows after each meter, and where they are, (T, K)."""
    known = _future_covariates(series, horizon, future)  # (M, H, V)
    values, covariates, times, ahead = [], [], [], []
    for meter in range(len(series.meters)):
        rows = slice(int(series.offsets[meter]), int(series.offsets[meter + 1]))
        values += [series.values[rows], np.full((horizon, len(series.targets)), np.nan, np.float32)]
        covariates += [series.covariates[rows], known[meter]]
        times += [series.times[rows], series.future(horizon, meter)]
        ahead += [np.zeros(rows.stop - rows.start, bool), np.ones(horizon, bool)]
    longer = replace(
        series,
        values=np.concatenate(values),
        covariates=np.concatenate(covariates),
        times=times[0].append(times[1:]),
        offsets=series.offsets + horizon * np.arange(len(series.offsets)),
    )
    return longer, np.repeat(np.concatenate(ahead)[:, None], len(series.targets), axis=1)


def _future_covariates(series: Series, horizon: int, future: Future | None) -> np.ndarray:
    """(M, H, V) known covariates of the rows ahead: attributes go on, others are matched by stamp (and meter), or by order."""
    names = list(series.other_covariates)
    constant = np.repeat(series.marks()[:, None].astype(np.float32), horizon, axis=1)  # (M, H, S)
    if not names:
        if future is not None and not series.static:
            raise UserError("The model has no covariates, so it cannot use a table of future covariates; leave it out.")
        return constant
    given = None if future is None else _future_table(series, future)
    if given is None or not set(names) <= set(given.frame.columns):
        raise UserError(
            f"The model has the covariates {', '.join(names)}; give their next {horizon} rows as a table with `future`."
        )
    clock = _stamps_of(series, given)
    frame = given.frame
    known = np.stack([numbers(frame[name], given.where) for name in names], axis=1)  # (F, V)
    ahead = []
    for meter, meter_name in enumerate(series.meters):
        of_meter = f" of meter {meter_name!r}" if meter_name else ""
        rows = np.arange(len(frame))
        if series.layout == "long" and series.id_name in frame.columns:
            rows = np.flatnonzero(frame[series.id_name].astype(str).to_numpy() == meter_name)
        if clock is not None:
            if clock[rows].dropna().has_duplicates:
                twice = clock[rows][clock[rows].duplicated() & clock[rows].notna()][0]
                raise UserError(
                    f"{given.where[0].upper()}{given.where[1:]} has several rows at {twice}{of_meter}; give one "
                    "row per step and meter"
                    + (f", with the meter's name in the column {series.id_name!r}." if series.layout == "long" else ".")
                )
            rows = rows[clock[rows].notna()]
            found = clock[rows].get_indexer(series.future(horizon, meter))
            rows = np.where(found >= 0, np.append(rows, -1)[found], -1)
        elif len(rows) != horizon:
            raise UserError(
                f"{given.where[0].upper()}{given.where[1:]} has no time stamps, and {len(rows)} rows{of_meter} where "
                f"{horizon} steps are to be forecast; add the column {series.time_name!r}, or give just these rows in order."
            )
        if (rows < 0).any() or not np.isfinite(known[rows]).all():
            raise UserError(
                f"The future covariates {', '.join(names)} must have a value at each of the {horizon} steps from "
                f"{series.future(1, meter)[0]} on{of_meter}; complete the table."
            )
        ahead.append(known[rows])
    return np.concatenate([np.stack(ahead), constant], axis=2).astype(np.float32)


def _future_table(series: Series, future: Future) -> Table:
    """The table of future covariates; stamps in its index become a column."""
    if isinstance(future, pd.DataFrame):
        if future.index.name in future.columns:
            future = future.reset_index(drop=True)
        elif series.time_name not in future.columns and stamps.looks_like_time(future.index.to_series()):
            future = future.rename_axis(series.time_name)
        return replace(load_table(future), where="the future table")
    given = load_table(future)
    if series.layout == "long" and series.id_name in given.frame.columns:
        given.keep_names(series.id_name)
    return given


def _stamps_of(series: Series, future: Table) -> pd.DatetimeIndex | None:
    """The stamps of a table of future covariates, on the series' clock; None if it has none."""
    others = (*series.covariate_names, *series.targets, series.id_name)
    name = series.time_name if series.time_name in future.frame.columns else find_time(future, others)
    if name is None:
        return None
    given = stamps.parse(future.frame[name], future.where, future.notes)
    zone = series.times.tz
    written = not pd.api.types.is_numeric_dtype(future.frame[name].dtype)  # Unix time is always UTC
    if zone is None and given.tz is not None and written:
        raise UserError(
            f"The stamps of {future.where} have an offset from UTC and those of the series have none; write both in one way, or "
            "read the series with `timezone`."
        )
    if zone is None:
        return given.tz_localize(None)
    # A local hour that the clock skips or repeats is not told apart here: it is left out.
    return given.tz_localize(zone, ambiguous="NaT", nonexistent="NaT") if given.tz is None else given.tz_convert(zone)


def at_least(series: Series, length: int) -> tuple[Series, np.ndarray]:
    """Meters shorter than a window get empty rows before their first; and where the real rows are."""
    lengths = series.lengths
    lacking = np.maximum(length - lengths, 0)
    if not lacking.any():
        return series, np.arange(len(series))
    offsets = np.concatenate([[0], np.cumsum(lengths + lacking)]).astype(np.int64)
    kept = np.arange(len(series)) + np.repeat(np.cumsum(lacking), lengths)
    rows = int(offsets[-1])
    values = np.full((rows, len(series.targets)), np.nan, np.float32)
    values[kept] = series.values
    source = np.repeat(series.offsets[:-1], lengths + lacking) + np.maximum(
        np.arange(rows) - np.repeat(offsets[:-1] + lacking, lengths + lacking), 0
    )
    before = np.minimum(np.arange(rows) - np.repeat(offsets[:-1] + lacking, lengths + lacking), 0)
    times = series.times[source].where(before == 0, series.moved(source, before))
    padded = replace(series, values=values, covariates=series.covariates[source], times=times, offsets=offsets)
    return padded, kept


def window_times(
    count: int,
    length: int,
    frequency_seconds: float,
    start: str | pd.Timestamp | None,
    seed: int,
    phase_seconds: float = 0.0,
) -> np.ndarray:
    """(N, L) stamps of generated windows: from `start`, or from the first stamp of any day (`Series.phase_seconds`) on.

    A step of whole months begins each at its first day.
    """
    step = np.timedelta64(round(frequency_seconds * 1e6), "us")
    if start is not None:
        stamp = pd.to_datetime(start, errors="coerce") if isinstance(start, str) else start
        if not isinstance(stamp, pd.Timestamp):
            raise UserError(f"start={start!r} is not a time stamp; write it as 2024-01-31 or 2024-01-31 06:00.")
        first = np.repeat(np.datetime64(stamp.tz_localize(None), "us"), count)
    else:
        days = step_generator(seed, "generated days", 0).integers(0, 366, count)
        first = np.datetime64("2024-01-01", "us") + days * np.timedelta64(1, "D")
    if step_of(frequency_seconds).kind == "months":
        steps = np.arange(length) * np.timedelta64(step_of(frequency_seconds).size, "M")
        return (first.astype("datetime64[M]")[:, None] + steps).astype("datetime64[us]")
    if start is None:
        first = first + (np.datetime64(round(phase_seconds * 1e6), "us") - first) % step
    return first[:, None] + np.arange(length) * step


def windows_table(times: np.ndarray, values: np.ndarray, targets: tuple[str, ...]) -> pd.DataFrame:
    """Generated windows, long: sample, time, targets."""
    count, length = times.shape
    frame = pd.DataFrame(values.reshape(count * length, -1), columns=list(targets))
    frame.insert(0, "time", times.ravel())
    frame.insert(0, "sample", np.repeat(np.arange(count), length))
    return frame
