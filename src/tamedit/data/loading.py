"""A source becomes a series and its split."""

from typing import Any

from tamedit.data import sources
from tamedit.data.calendar import without_calendar
from tamedit.data.series import Series
from tamedit.data.split import Split, split_by_time
from tamedit.errors import UserError

IN_MEMORY = "a table in memory"  # the source of a run that was not read from a file


def load_split(source: str, *, private: bool = False, **reading: Any) -> tuple[Series, Split]:
    """The series and its split: a named data set by its own rule, a file by time (70, 15 and 15 %).

    `private`: for training with a guarantee, for which no reading may be carried to another place by cleaning.
    """
    if source == IN_MEMORY:
        raise UserError(
            "This run was fitted on a table in memory, so its data is not on disk; save it as a file and name that with --data, "
            "or use tamedit.evaluation in Python."
        )
    series = sources.load_any(source, private=private, **reading)
    if source in sources.SOURCES:
        return series, sources.split(source, series)
    series = without_calendar(series)
    return series, split_by_time(series)
