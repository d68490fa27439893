"""A source becomes a series and its split."""

from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from tamedit.data import sources
from tamedit.data.calendar import without_calendar
from tamedit.data.series import Series, read
from tamedit.data.split import Split, split_by_time
from tamedit.errors import UserError

Data: TypeAlias = str | Path | pd.DataFrame | np.ndarray | Series
IN_MEMORY = "a table in memory"  # the source of a run that was not read from a file


def load_split(source: Data, *, private: bool = False, **reading: Any) -> tuple[Series, Split]:
    """The series and its split: a named data set by its own rule, anything else by time (70, 15 and 15 %).

    `private`: for training with a guarantee, for which no reading may be carried to another place by cleaning.
    """
    if isinstance(source, str) and source == IN_MEMORY:
        raise UserError(
            "This run was fitted on a table in memory, so its data is not on disk; save it as a file and name that with `data`, "
            "or use tamedit.evaluation in Python."
        )
    if isinstance(source, str) and source in sources.SOURCES:
        series = sources.load_any(source, private=private, **reading)
        return series, sources.split(source, series)
    series = without_calendar(_series(source, **reading))
    return series, split_by_time(series)


def _series(source: Data, **reading: Any) -> Series:
    if isinstance(source, str):
        return sources.load_any(source, **reading)
    if not isinstance(source, Series):
        return read(source, **reading)
    if reading:
        raise UserError(f"{', '.join(reading)} say how to read a table, and this is a series already; leave them out.")
    return source
