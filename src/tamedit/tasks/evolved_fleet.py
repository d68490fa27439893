"""Homes of a run that was made by private evolution, as one long table with the columns of `Model.generate(homes=…)`."""

from pathlib import Path

import pandas as pd

from tamedit.errors import UserError
from tamedit.training.private.evolution import POPULATION, Population, evolved_homes

START, DAYS = "2024-01-01", 365


def is_evolved(run: Path) -> bool:
    """Whether a folder holds an evolved population and no network."""
    return (run / POPULATION).is_file()


def evolved_table(run: Path, homes: int, start: str | None, days: int | None, seed: int) -> pd.DataFrame:
    """Home, time and the target of the run."""
    first = pd.to_datetime(START if start is None else start, errors="coerce")
    if not isinstance(first, pd.Timestamp):
        raise UserError(f"start={start!r} is not a date; write it as 2024-01-31.")
    made = evolved_homes(
        Population.load(run), homes, str(first.tz_localize(None)), DAYS if days is None else days, seed
    )
    return made.frame().rename(columns={made.id_name or "meter": "home"})
