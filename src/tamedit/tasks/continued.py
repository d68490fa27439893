"""Homes that go on from readings that are given: who they are comes from these, how they go on as any synthetic home does.

    u, h, d   of the readings of a home (`privacy/population.py`), h and d drawn towards the population where readings are few
    begin     a simulated home that resembles u, brought to h; its hours of the day to d, its mean to that of the readings,
              both over the rows that are there
    live      if asked for: every day after the readings drawn anew by the network, which sees the last window of them
              (`tasks/redraw.py`); as for new homes, by default only for what the simulator cannot make

Nothing that was learned in private is touched: this is post-processing of the model. It says nothing about the given readings
themselves, which no guarantee covers.
"""

from collections.abc import Iterator
from dataclasses import replace
from hashlib import blake2b

import numpy as np
import pandas as pd
from jaxtyping import Float

from tamedit.data.calendar import calendar
from tamedit.data.series import Series
from tamedit.errors import UserError
from tamedit.privacy.population import LEAST_LEVEL, Population, features, parts_of
from tamedit.runs.simulated_pool import Pool, minutes_of, season_place, simulated_pool
from tamedit.statics import words_of
from tamedit.tasks.beginnings import beginnings, with_mean
from tamedit.tasks.fleet import Fleet
from tamedit.tasks.habits import in_order_of
from tamedit.tasks.redraw import Draw, redrawn, stride_rows

SEASONS = 2  # with readings, at least
LONGEST = 366 * 86400.0  # seconds of readings that are looked at
SHAPE_ROWS, PROFILE_SEASONS = (
    500,
    7,
)  # readings that weigh as much as the population's shape, and seasons as its profile


def continued(fleet: Fleet, population: Population, series: Series, draw: Draw) -> Iterator[tuple[str, pd.DataFrame]]:
    """The next `fleet.days` of every meter of the series, from the row after its last reading on, by its name."""
    pool = simulated_pool(minutes_of(fleet.step_seconds), population.within.rows, fleet.period)
    most = round(LONGEST / fleet.step_seconds)
    for meter, name in enumerate(series.meters):
        readings = series.values[series.offsets[meter] : series.offsets[meter + 1]].astype(np.float64)
        there = np.flatnonzero(np.isfinite(readings).any(axis=1))
        if not all((np.isfinite(one).sum() >= SEASONS * fleet.period) for one in readings.T):
            raise UserError(
                f"{f'Meter {name!r}' if name else 'The beginning'} has fewer than {SEASONS * fleet.period} readings of "
                f"{' and of '.join(series.targets)}, too few to go on from; give more of them."
            )
        readings = readings[: there[-1] + 1][-most:]
        times = series.times[series.offsets[meter] : series.offsets[meter] + there[-1] + 1]
        own = replace(fleet, start=times[-1] + pd.Timedelta(seconds=fleet.step_seconds))
        number = int.from_bytes(blake2b(name.encode(), digest_size=4).digest(), "little")
        marks = series.marks()[meter]
        made = _home(own, population, pool, readings, number, draw, marks)
        frame = pd.DataFrame(made, columns=list(series.targets))
        frame.insert(0, "time", own.times)
        for attribute, (word,) in words_of(series.static, marks[None]).items():
            frame[attribute] = pd.array([word] * len(frame), dtype="string")
        yield name, frame


def _home(
    fleet: Fleet,
    population: Population,
    pool: Pool,
    readings: Float[np.ndarray, "R K"],
    number: int,
    draw: Draw,
    marks: Float[np.ndarray, " S"],
) -> Float[np.ndarray, "T K"]:
    """One home: its path from its first reading on, and the asked part of it drawn by the network."""
    stride, numbers = stride_rows(fleet.length, fleet.period), np.array([number])
    shown = np.pad(readings, ((max(stride - len(readings), 0), 0), (0, 0)), constant_values=np.nan)
    windows = -(-fleet.rows // stride) + 1 if fleet.redraw else 0  # and one after the end
    times = fleet.times_from(-len(shown), len(shown) + max(windows * stride, fleet.rows))
    begun = _begun(fleet, population, pool, shown, times, numbers)
    asked = slice(stride, stride + fleet.rows)
    if not fleet.redraw:
        return begun[len(shown) :][: fleet.rows].astype(np.float32)
    path = begun[len(shown) - stride :]
    path[:stride] = np.where(np.isfinite(shown[-stride:]), shown[-stride:], path[:stride])
    known = calendar(times[len(shown) - stride :]) if fleet.calendar else np.zeros((len(path), 0), np.float32)
    constant = np.arcsinh(marks)[None]
    lived = redrawn(path[None], known, numbers, draw, fleet.length, fleet.period, fixed=stride, constant=constant)
    drawn: Float[np.ndarray, "T K"] = in_order_of(path[None, asked], lived[:, asked])[0].astype(np.float32)
    return drawn


def _begun(
    fleet: Fleet,
    population: Population,
    pool: Pool,
    shown: Float[np.ndarray, "R K"],
    times: pd.DatetimeIndex,
    numbers: np.ndarray,
) -> Float[np.ndarray, "T K"]:
    """A simulated path with the home's own level, spread, zeros, shape and hours of the day."""
    low, high = np.array(population.within.lower), np.array(population.within.upper)
    place = season_place(times, fleet.step_seconds, fleet.period)
    u, shape, profile = (
        one[0] for one in features(shown[None], low, high, fleet.period, int(place[0]))
    )  # (K, 5), (K, bins), (K, parts)
    seen = np.isfinite(shown).sum(axis=0)[:, None]  # (K, 1)
    weight = seen / (seen + SHAPE_ROWS)
    histogram = weight * shape + (1.0 - weight) * np.array(population.histogram)
    mine = population.model_copy(update={"histogram": tuple(map(tuple, histogram.tolist()))})
    path = beginnings(mine, u[None], numbers, times, fleet.step_seconds, pool, fleet.seed)[0] - low
    seasons = seen / fleet.period
    weight = seasons / (seasons + PROFILE_SEASONS)
    wanted = np.maximum(weight * (1.0 + profile) + (1.0 - weight) * np.array(population.profile), LEAST_LEVEL)
    found = 1.0 + features((path[: len(shown)] + low)[None], low, high, fleet.period, int(place[0]))[2][0]
    path = path * np.clip(wanted / np.maximum(found, LEAST_LEVEL), 0.2, 5.0)[:, parts_of(place, fleet.period)].T
    for channel, most in enumerate(high - low):
        rows = np.flatnonzero(np.isfinite(shown[:, channel]))
        mean = np.clip(shown[rows, channel] - low[channel], 0.0, most).mean(keepdims=True)
        path[:, channel] = with_mean(path[None, :, channel], mean, most, rows)[0]
    begun: Float[np.ndarray, "T K"] = low + path
    return begun
