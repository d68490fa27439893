"""Synthetic homes: who they are comes from the model's population, how they live from the simulator or from the network.

    s      the attributes of each home, if the model knows any: those that were asked for, others drawn from their shares
    u      one vector per home given s, drawn from the population (`privacy/population.py`)
    begin  a simulated home that resembles u, brought to the marginal of u (`tasks/beginnings.py`)
    live   if asked for: every day of it drawn anew by the network, given the days around it (`tasks/redraw.py`), and then the
           values of the beginning in the order of time that the network has drawn (a map by ranks)

Loads of homes are best without the last step (docs/synthetic.md has the figures), so it is done by default only for series that
the simulator cannot make: several targets, or rows of other lengths. All of it is post-processing and costs no privacy. Homes are
made in groups of GROUP; a home depends on the seed and on its own number alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float, Int64

from tamedit.data.calendar import calendar
from tamedit.errors import UserError
from tamedit.privacy.population import FEATURES, Population
from tamedit.runs.simulated_pool import Pool, minutes_of, simulated_pool
from tamedit.statics import Static, columns_of
from tamedit.streams import example_keys, normals, uniforms
from tamedit.tasks.beginnings import beginnings
from tamedit.tasks.habits import in_order_of
from tamedit.tasks.redraw import Draw, redrawn, stride_rows

GROUP, CANDIDATES = 64, 256
YEAR = 365 * 86400


@dataclass(frozen=True)
class Fleet:
    """What was asked for, and what the model says of its rows."""

    homes: int
    start: pd.Timestamp
    days: int
    seed: int
    step_seconds: float
    length: int  # rows of a window
    period: int
    calendar: bool
    yearly: tuple[float, float] | None = None  # total of the first channel in a year, from and to
    redraw: bool = True  # whether the network draws every day anew
    static: Static = ()  # attributes that the model knows
    wanted: tuple[tuple[str, str], ...] = ()  # the categories that all homes are to have

    @property
    def rows(self) -> int:
        """Rows of a home."""
        return round(self.days * 86400 / self.step_seconds)

    @property
    def groups(self) -> int:
        """How many groups the homes make."""
        return -(-self.homes // GROUP)

    @property
    def times(self) -> pd.DatetimeIndex:
        """The stamps of a home."""
        return self.times_from(0, self.rows)

    def level_of(self, first: int) -> slice | None:
        """Rows whose mean a yearly total is about: all that were asked for, and a year at least. The start is row `first`."""
        return None if self.yearly is None else slice(first, first + max(self.rows, round(YEAR / self.step_seconds)))

    def times_from(self, first: int, rows: int) -> pd.DatetimeIndex:
        """Stamps of rows counted from the start; negative ones lie before it."""
        step = pd.Timedelta(seconds=self.step_seconds)
        return pd.date_range(self.start + first * step, periods=rows, freq=step)


def make_homes(fleet: Fleet, population: Population, draw: Draw, skip: int = 0) -> Iterator[Float[np.ndarray, "H T K"]]:
    """Group after group of homes, in the units of the data; `skip` groups that were made before."""
    pool = simulated_pool(minutes_of(fleet.step_seconds), population.within.rows, fleet.period)
    for group in range(skip, fleet.groups):
        yield _group(fleet, population, pool, np.arange(group * GROUP, min((group + 1) * GROUP, fleet.homes)), draw)


def marks_of(fleet: Fleet, population: Population, numbers: Int64[np.ndarray, " H"]) -> Float[np.ndarray, "H S"]:
    """s of these homes: 0 or 1 for each category; all 0, "not known", where the population has no attributes."""
    if not population.static:
        return np.zeros((len(numbers), len(columns_of(fleet.static))))
    keys = example_keys(fleet.seed, "attributes", 0, numbers)
    drawn = uniforms(keys, len(population.static)).numpy().astype(np.float64)
    return population.draw_marks(drawn, fleet.wanted)


def who(
    fleet: Fleet, population: Population, pool: Pool, numbers: Int64[np.ndarray, " H"]
) -> Float[np.ndarray, "H K 5"]:
    """The vectors of these homes; with a wanted yearly total, the first of several candidates that has it."""
    size = FEATURES * len(population.within.lower)
    tries = 1 if fleet.yearly is None else CANDIDATES
    noise = normals(example_keys(fleet.seed, "homes", 0, numbers), tries * size).numpy().astype(np.float64)
    marks = np.repeat(marks_of(fleet, population, numbers), tries, axis=0) if population.static else None
    drawn = population.draw(noise.reshape(-1, size), pool.within_homes, marks).reshape(
        len(numbers), tries, -1, FEATURES
    )
    if fleet.yearly is None:
        return drawn[:, 0]
    total = (population.levels(drawn)[..., 0] + population.within.lower[0]) * YEAR / fleet.step_seconds
    fits = (total >= fleet.yearly[0]) & (total <= fleet.yearly[1])
    if not fits.any(axis=1).all():
        raise UserError(
            f"Homes with a yearly total of {fleet.yearly[0]:g} to {fleet.yearly[1]:g} are too rare in this model's population; "
            "ask for a wider range of `level`."
        )
    return np.asarray(drawn[np.arange(len(numbers)), fits.argmax(axis=1)])


def _group(
    fleet: Fleet, population: Population, pool: Pool, numbers: Int64[np.ndarray, " H"], draw: Draw
) -> Float[np.ndarray, "H T K"]:
    wanted, step = who(fleet, population, pool, numbers), fleet.step_seconds
    if not fleet.redraw:
        begun = beginnings(population, wanted, numbers, fleet.times, step, pool, fleet.seed, fleet.level_of(0))
        return begun.astype(np.float32)
    stride = stride_rows(fleet.length, fleet.period)
    rows = (-(-fleet.rows // stride) + 2) * stride  # a window before the start, and whole windows after the end
    times = fleet.times_from(-stride, rows)
    begun = beginnings(population, wanted, numbers, times, step, pool, fleet.seed, fleet.level_of(stride))
    covariates = calendar(times) if fleet.calendar else np.zeros((rows, 0), np.float32)
    constant = np.arcsinh(marks_of(fleet, population, numbers))  # as all covariates of a network
    lived = redrawn(begun, covariates, numbers, draw, fleet.length, fleet.period, constant=constant)
    asked = slice(stride, stride + fleet.rows)
    return in_order_of(begun[:, asked], lived[:, asked]).astype(np.float32)
