"""A table that was sent becomes one meter as the model reads it; what is asked about it becomes a series again. All in memory."""

import numpy as np
import pandas as pd

from tamedit.data.reading.tables import Table, table_of
from tamedit.data.series import Series
from tamedit.errors import UserError
from tamedit.runs.artifact import ModelSpec
from tamedit.serve.messages import ROWS, Points, TableAnswer
from tamedit.serve.page_words import for_page
from tamedit.statics import columns_of, words_of
from tamedit.tasks.model import Model

COMPRESSED = (b"\x1f\x8b", b"PK\x03\x04", b"PAR1", b"BZh", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ")


def table_answer(model: Model, content: bytes, name: str, meter: str | None, column: str | None) -> TableAnswer:
    """One meter of a CSV: the first, or the one with this name."""
    if content.startswith(COMPRESSED):
        raise UserError(f"{name} is packed or no text; unpack it and send the CSV.")
    if not content.strip():
        raise UserError(f"{name} is empty; send a CSV with a header and rows.")
    table = table_of(content, name)
    known = _named(table, model.spec, column)
    series = model.read(table, **known)
    columns = _columns(table, series)
    notes = [for_page(note) for note in (*series.notes, *series.findings)]
    if series.targets != model.spec.targets:
        notes.append(f"The column {', '.join(series.targets)} was read as {', '.join(model.spec.targets)}.")
    place = 0 if meter is None else _place(series, meter)
    first, end = int(series.offsets[place]), int(series.offsets[place + 1])
    if end - first > ROWS:
        first = end - ROWS
        notes.append(f"Only the last {ROWS:,} rows are shown; tamedit impute reads all.")
    return TableAnswer(
        meters=list(series.meters),
        meter=series.meters[place],
        columns=columns,
        series=points_of(series, first, end),
        step_seconds=series.frequency.total_seconds(),
        notes=notes,
    )


def _named(table: Table, spec: ModelSpec, column: str | None) -> dict[str, list[str]]:
    """Which columns to read: the model's, the one that was chosen, or the only numbers there are."""
    present = set(table.frame.columns)
    if column is not None:
        if column not in present:
            raise UserError(f"There is no column {column!r}; choose one of {', '.join(map(str, table.frame.columns))}.")
        return {"targets": [column]}
    if set(spec.targets) <= present or len(spec.targets) > 1:
        return {}
    numeric = [str(one) for one in table.frame.columns if pd.api.types.is_float_dtype(table.frame[one].dtype)]
    numeric = numeric or [
        str(one) for one in table.frame.columns if pd.api.types.is_numeric_dtype(table.frame[one].dtype)
    ]
    return {"targets": numeric[-1:]} if numeric else {}


def _columns(table: Table, series: Series) -> list[str]:
    roles = {series.time_name, series.id_name, *series.covariate_names, *dict(series.static)}
    numeric = (one for one in table.frame.columns if pd.api.types.is_numeric_dtype(table.frame[one].dtype))
    return [str(one) for one in numeric if one not in roles]


def _place(series: Series, meter: str) -> int:
    if meter not in series.meters:
        raise UserError(f"There is no meter {meter!r}; choose one of those in the table.")
    return series.meters.index(meter)


def points_of(series: Series, first: int, end: int) -> Points:
    """Rows of a series as they are sent. Numbers are those of single precision, written in full."""
    return Points.model_construct(
        times=stamps(series.times[first:end]),
        values={name: readings(series.values[first:end, k]) for k, name in enumerate(series.targets)},
        covariates={name: series.covariates[first:end, v].tolist() for v, name in enumerate(series.covariate_names)},
    )


def stamps(times: pd.DatetimeIndex) -> list[str]:
    """2024-01-31T06:00:00, with the offset from UTC where there is one."""
    return [time.isoformat() for time in times]


def readings(values: np.ndarray) -> list[float | None]:
    """JSON knows no NaN."""
    return [None if np.isnan(value) else value for value in values.tolist()]


def series_of(model: Model, points: Points) -> Series:
    """The series that was sent, if the model can read it; its rows are those of the points."""
    frame = pd.DataFrame({"time": list(points.times)})
    if clash := {"time"} & {*points.values, *points.covariates}:
        raise UserError(f"A channel cannot be called {min(clash)!r}; rename it.")
    for name, column in points.values.items():
        frame[name] = np.array([np.nan if value is None else value for value in column], dtype=np.float64)
    for name, known in points.covariates.items():
        frame[name] = np.array(known, dtype=np.float64)
    given = [points.covariates.get(name) for name in columns_of(model.spec.static)]
    if given and all(given):  # categories were sent as numbers
        for name, words in words_of(model.spec.static, np.array(given, dtype=np.float64).T).items():
            frame[name] = words
    if len(points.values) != len(model.spec.targets):
        raise UserError(
            f"The series has {len(points.values)} channels and the model {len(model.spec.targets)} "
            f"({', '.join(model.spec.targets)}); send the same."
        )
    series = model.read(frame, time="time", targets=list(points.values))
    if len(series) != len(points.times):
        raise UserError(
            f"The stamps do not follow one another at regular steps: {len(points.times)} were sent, and there are "
            f"{len(series)} steps from the first to the last; send every step, with null where a reading is missing."
        )
    return series
