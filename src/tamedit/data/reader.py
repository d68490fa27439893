"""From a file, a frame or an array to a `Series`."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd

from tamedit.data.reading import assemble, streamed
from tamedit.data.reading.attributes import Attributes
from tamedit.data.reading.columns import MissingCovariates, Wanted
from tamedit.data.reading.meter_columns import ColumnsAre
from tamedit.data.reading.resample import Aggregate
from tamedit.data.reading.several import FilesAre, Several
from tamedit.data.reading.tables import Table
from tamedit.data.series import Series
from tamedit.errors import UserError
from tamedit.statics import Given


def read(
    source: str | Path | pd.DataFrame | np.ndarray | Several | Table,
    *,
    time: str | None = None,
    id: str | None = None,
    value: str | None = None,
    targets: Sequence[str] | None = None,
    covariates: Sequence[str] = (),
    frequency: str | None = None,
    timezone: str | None = None,
    missing_covariates: MissingCovariates = "refuse",
    columns: ColumnsAre | None = None,
    files: FilesAre | None = None,
    missing: float | str | Sequence[float | str] = (),
    round: str | None = None,
    resample: str | None = None,
    aggregate: Aggregate | None = None,
    static: Given | Attributes | None = None,
) -> Series:
    """A series from a CSV, Parquet or Excel file, several of them, a DataFrame, or an array of shape (N, time, channels).

    Several files are a list, a folder or a pattern ("meters/*.csv"). Each is a meter, named by its file, unless they have a
    column of meters.

    Columns that are not named are found: the stamps by name and content, the meters by name (or as the text column of
    a table whose stamps repeat), the targets as all other columns. What was assumed is said in `notes`.

    Arguments
        time         column of time stamps
        id           column of meter names: the long layout (one row per meter and stamp)
        value        the one target column, the same as targets=[value]
        targets      columns to fill, forecast and generate
        covariates   columns that are known at every step, also in the future (holidays, tariffs)
        frequency    step between rows ("1h", "15min", "1D", "1MS"); the most common step if not given
        timezone     such as "Europe/London": stamps without an offset are local times there, others are converted
        missing_covariates   "refuse" a covariate with gaps, "hold" its last known value, or take it as "zero" (private runs do)
        columns      "meters" if every column of readings is a meter, "channels" if they are channels of one (asked if unclear)
        files        "meters" if every file is a meter, "parts" if the files are parts of one table (asked if unclear)
        missing      numbers and words that stand for a missing reading, such as -999 or "error"
        round        stamps with jitter are rounded to this, such as "1min"
        resample     another step, such as "1h"; `aggregate` says how: "sum" for energy, "mean" for power
        static       attributes of a meter as a whole, with their categories: {"tariff": ("flat", "night")}, "tariff=flat|night",
                     or, except for private runs, without them: then they are those in the table

    Nothing is filled in: rows of the grid without a reading are NaN.
    """
    if value is not None and targets is not None:
        raise UserError(f"value={value!r} and targets={list(targets)} were both given; name the targets once.")
    if missing_covariates not in get_args(MissingCovariates):
        raise UserError(f"missing_covariates={missing_covariates!r} is not known; choose 'refuse', 'hold' or 'zero'.")
    if (resample is None) != (aggregate is None):
        raise UserError(
            "`resample` and `aggregate` belong together: say resample='1h' with aggregate='sum' for energy or aggregate='mean' "
            "for power."
        )
    for name, given, known in (
        ("columns", columns, get_args(ColumnsAre)),
        ("files", files, get_args(FilesAre)),
        ("aggregate", aggregate, get_args(Aggregate)),
    ):
        if given is not None and given not in known:
            raise UserError(f"{name}={given!r} is not known; choose {' or '.join(map(repr, known))}.")
    attributes = Attributes.of(static)
    if missing_covariates == "zero":  # as in private runs: nothing is refused for what stands in the rows
        attributes = replace(attributes, lenient=True)
    named = value if value is not None else targets
    names = (named,) if isinstance(named, str) else None if named is None else tuple(named)
    if isinstance(source, np.ndarray):
        told: dict[str, object] = {
            "time": time,
            "id": id,
            "covariates": covariates,
            "frequency": frequency,
            "timezone": timezone,
        }
        told |= {
            "static": static,
            "columns": columns,
            "files": files,
            "missing": missing,
            "round": round,
            "resample": resample,
        }
        if idle := [name for name, given in told.items() if given]:
            raise UserError(
                f"{', '.join(idle)}: an array has no columns, and its rows are taken as hours; give a table with stamps instead."
            )
        parts = assemble.from_array(source, names)
    else:
        wanted = Wanted(
            time=time,
            id=id,
            targets=names,
            covariates=(covariates,) if isinstance(covariates, str) else tuple(covariates),
            frequency=frequency,
            timezone=timezone,
            missing_covariates=missing_covariates,
            columns=columns,
            files=files,
            missing=tuple(missing) if isinstance(missing, Sequence) and not isinstance(missing, str) else (missing,),
            round=round,
            resample=resample,
            aggregate=aggregate,
            static=attributes,
        )
        parts = assemble.from_table(source, wanted)
    return _series_of(parts, missing_covariates)


def read_fleet(path: Path, **reading: Any) -> Series | None:
    """A large Parquet file with the rows of all meters on one grid, its values on disk; None where `read` must read it."""
    named = [name for name in ("time", "id", "frequency") if name in reading]
    targets = (reading["value"],) if "value" in reading else reading.get("targets")
    targets = (targets,) if isinstance(targets, str) else targets
    if set(reading) - {"time", "id", "frequency", "value", "targets", "missing_covariates"}:
        return None
    wanted = Wanted(targets=None if targets is None else tuple(targets), **{name: reading[name] for name in named})
    parts = streamed.from_file(path, wanted)
    return None if parts is None else _series_of(parts, "zero")


def _series_of(parts: assemble.Parts, missing_covariates: MissingCovariates) -> Series:
    return Series(
        values=parts.values,
        covariates=parts.covariates,
        times=parts.grid.times,
        meters=parts.meters,
        offsets=parts.grid.offsets,
        targets=parts.targets,
        covariate_names=parts.covariate_names,
        frequency=parts.grid.step.frequency,
        notes=parts.notes,
        inferred=parts.notes,
        findings=parts.findings,
        layout=parts.layout,
        time_name=parts.time_name,
        id_name=parts.id_name,
        id_guessed=parts.id_guessed,
        step=parts.grid.step,
        clock=parts.clock,
        reach=int(np.diff(parts.grid.offsets).max(initial=0)) if missing_covariates == "hold" or parts.static else 0,
        static=parts.static,
        static_guessed=parts.static_guessed,
    )


def check_reading(method: Callable[..., Any], given: Iterable[str]) -> None:
    """Refuse a keyword that neither the method nor `read`, to which it passes keywords on, knows: at the call it was given to."""
    parameters = [one for each in (method, read) for one in inspect.signature(each).parameters.values()]
    known = [one.name for one in parameters if one.kind is one.KEYWORD_ONLY]
    for name in given:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(known)}."
            raise TypeError(f"{method.__name__}() got an unexpected keyword argument {name!r}; {hint}")


def read_csv(
    path: str | Path | Several,
    *,
    time: str | None = None,
    id: str | None = None,
    value: str | None = None,
    targets: Sequence[str] | None = None,
    covariates: Sequence[str] = (),
    frequency: str | None = None,
    timezone: str | None = None,
    missing_covariates: MissingCovariates = "refuse",
    columns: ColumnsAre | None = None,
    files: FilesAre | None = None,
    missing: float | str | Sequence[float | str] = (),
    round: str | None = None,
    resample: str | None = None,
    aggregate: Aggregate | None = None,
    static: Given | Attributes | None = None,
) -> Series:
    """A series from a CSV file, a folder or several files: `read` with a path."""
    return read(
        path,
        time=time,
        id=id,
        value=value,
        targets=targets,
        covariates=covariates,
        frequency=frequency,
        timezone=timezone,
        missing_covariates=missing_covariates,
        columns=columns,
        files=files,
        missing=missing,
        round=round,
        resample=resample,
        aggregate=aggregate,
        static=static,
    )
