"""A source becomes a series and its split."""

from dataclasses import replace
from datetime import timezone
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from tamedit.data import sources
from tamedit.data.calendar import without_calendar
from tamedit.data.reader import read, read_fleet
from tamedit.data.reading.attributes import Attributes, refuse_guessed
from tamedit.data.reading.several import Several
from tamedit.data.reading.tables import Table
from tamedit.data.series import Series
from tamedit.data.split import Split, split_by_study, split_by_time
from tamedit.data.study import Study
from tamedit.errors import UserError

Data: TypeAlias = str | Path | Several | pd.DataFrame | np.ndarray | Table | Series
IN_MEMORY = "a table in memory"  # the source of a run that was not read from a file


def load_split(
    source: Data, *, private: bool = False, study: Study | None = None, **reading: Any
) -> tuple[Series, Split]:
    """The series and its split: a named data set by its own rule, anything else by time (70, 15 and 15 %).

    `private`: for training with a guarantee. Cleaning carries no reading to another place, all meters lie on the grid of a study,
    and which column names the meters is no guess. `study`: its dates, as far as they are stated.
    """
    if isinstance(source, str) and source == IN_MEMORY:
        raise UserError(
            "This run was fitted on a table in memory, so its data is not on disk; save it as a file and name that with `data`, "
            "or use tamedit.evaluation in Python."
        )
    if isinstance(source, str) and source in sources.SOURCES:
        return _named(source, private, study, reading)
    if not private and study is None:
        series = without_calendar(_series(source, **reading))
        return series, split_by_time(series)
    if not isinstance(source, Series | np.ndarray):
        reading = {"missing_covariates": "zero"} | reading
    if private and (attributes := Attributes.of(reading.get("static"))).stated:
        if attributes.guessed:
            refuse_guessed(attributes.names)
        reading = {**reading, "static": replace(attributes, lenient=True)}
    large = read_fleet(Path(source), **reading) if isinstance(source, str | Path) else None
    series = without_calendar(_series(source, **reading) if large is None else large)
    if private and series.id_guessed:
        raise UserError(
            f"Column {series.id_name!r} may or may not name the meters, and a guarantee per meter depends on it; say so with "
            f"id={series.id_name!r}, or name the right column."
        )
    if private and series.static_guessed:
        refuse_guessed(tuple(name for name, _ in series.static))
    if isinstance(series.times.tz, timezone):  # offsets alone: which of them occur depends on the rows
        series = replace(series, times=series.times.tz_convert("UTC"))
    found = (study or Study()).completed(series, exact=isinstance(source, np.ndarray))
    laid = found.lay(series)
    return laid, split_by_study(laid, found)


def _named(source: str, private: bool, study: Study | None, reading: dict[str, Any]) -> tuple[Series, Split]:
    """A named data set, whose extent is known from its publication."""
    known = Study.stating(sources.SOURCES[source].extent)
    if study not in (None, known):
        raise UserError(
            f"{source} is a named data set with dates of its own; leave out `study`, `train_until`, `validate_until`."
        )
    series = sources.load_any(source, private=private, **reading)
    if not private or known is None:
        return series, sources.split(source, series)
    laid = known.lay(series)
    return laid, replace(sources.split(source, laid), study=known)


def _series(source: Data, **reading: Any) -> Series:
    if isinstance(source, str):
        return sources.load_any(source, **reading)
    if not isinstance(source, Series):
        return read(source, **reading)
    if reading:
        raise UserError(f"{', '.join(reading)} say how to read a table, and this is a series already; leave them out.")
    return source
