"""Homes of a run that was made by private evolution: asked for and written as those of a model are (`tasks/fleet_table.py`)."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from jaxtyping import Float

from tamedit.tasks.fleet import GROUP, Fleet
from tamedit.tasks.fleet_table import checked, homes_table
from tamedit.training.private.evolution import POPULATION, Population, evolved_groups


def is_evolved(run: Path) -> bool:
    """Whether a folder holds an evolved population and no network."""
    return (run / POPULATION).is_file()


def asked_of_evolution(
    run: Path, homes: int, start: str | None, days: int | None, seed: int
) -> tuple[Fleet, Population]:
    """The request, checked, and the population of the run."""
    population = Population.load(run)
    homes, first, days = checked(homes, start, days, (population.target,))
    seconds, period = 60.0 * population.minutes, 24 * 60 // population.minutes
    fleet = Fleet(homes, first, days, seed, seconds, length=period, period=period, calendar=False, redraw=False)
    return fleet, population


def evolved_fleet(fleet: Fleet, population: Population, skip: int = 0) -> Iterator[Float[np.ndarray, "H T 1"]]:
    """Group after group of homes; `skip` groups that were made before."""
    given = (population, fleet.homes, str(fleet.start), fleet.days, fleet.seed)
    for made in evolved_groups(*given, group=GROUP, skip=skip):
        yield made.values.reshape(-1, fleet.rows, 1)


def evolved_table(run: Path, homes: int, start: str | None, days: int | None, seed: int) -> pd.DataFrame:
    """Home, time and the target of the run, with the columns of `Model.generate(homes=…)`."""
    fleet, population = asked_of_evolution(run, homes, start, days, seed)
    return homes_table(fleet, evolved_fleet(fleet, population), (population.target,))
