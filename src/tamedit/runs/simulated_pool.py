"""A pool of simulated homes, described as a population describes private ones: public, to compare with and to begin from."""

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal

import numpy as np
import pandas as pd
from jaxtyping import Float, Int64

from tamedit.data.simulate import INTERVALS, Region, simulate, simulate_homes
from tamedit.data.traits import draw_homes
from tamedit.privacy.population import (
    LONGEST_PROFILE,
    Population,
    Prior,
    Within,
    channel_moments,
    features,
    unit_level,
)

POOL = 1024
REGIONS, REGION_HOMES = 24, 48
WIDER = 2.0  # real fleets differ from simulated ones by more than regions differ from one another
ALONE = 0.5  # deviation of a moment by itself, over that between regions
LEAST_SHARE, LEAST_DEVIATION = 0.1, 2e-4  # the least such deviation: a share of the moment's mean, and a number
LARGEST = 50.0  # a reading over the typical level
YEAR_HOURS = 24 * 365
TOGETHER = 2**20  # readings that are looked at together


@dataclass(frozen=True)
class Pool:
    """Simulated homes: traits and the mean u of each; covariances of u and the means of h and of profiles, over all pieces."""

    traits: Float[np.ndarray, "P 20"]
    vectors: Float[np.ndarray, "P 5"]
    within_homes: Float[np.ndarray, "5 5"]  # between the pieces of one home
    covariance: Float[np.ndarray, "5 5"]  # between all pieces
    histogram: Float[np.ndarray, " bins"]
    profile: Float[np.ndarray, " parts"]


def minutes_of(step_seconds: float) -> int:
    """Minutes of a simulated row. The simulator knows three; other rows are made as if they were hours."""
    minutes = step_seconds / 60
    return int(minutes) if minutes in INTERVALS else 60


def season_place(times: pd.DatetimeIndex, step_seconds: float, period: int) -> Int64[np.ndarray, " N"]:
    """The place of each stamp within a season, counted in rows from a Monday at midnight by the clock."""
    seconds = times.dayofweek * 86_400 + times.hour * 3600 + times.minute * 60 + times.second
    return np.asarray(seconds // step_seconds, dtype=np.int64) % period


def simulated_pool(minutes: int, rows: int, period: int, seed: int = 0) -> Pool:
    """A year of every home of the pool, in pieces of `rows`."""
    return _pool_of(POOL, minutes, rows, period, seed)


@cache
def _pool_of(homes: int, minutes: int, rows: int, period: int, seed: int) -> Pool:
    traits, made = _pool_load(homes, minutes, seed)
    rows = min(rows, made.shape[1])
    number = made.shape[1] // rows
    pieces = made[:, : number * rows].reshape(-1, rows, 1)
    most, few = float(pieces.max()), max(TOGETHER // rows, 1)
    parts = [features(pieces[at : at + few].astype(np.float64), 0.0, most, period) for at in range(0, len(pieces), few)]
    vectors, shape, profile = (np.concatenate(one) for one in zip(*parts, strict=True))
    by_home = vectors[:, 0].reshape(homes, number, -1)
    apart = (by_home - by_home.mean(axis=1, keepdims=True)).reshape(-1, by_home.shape[2])
    within = apart.T @ apart / max(homes * (number - 1), 1)
    means = shape[:, 0].mean(axis=0), 1.0 + profile[:, 0].mean(axis=0)
    return Pool(traits, by_home.mean(axis=1), within, np.cov(vectors[:, 0].T), *means)


@lru_cache(maxsize=1)
def _pool_load(homes: int, minutes: int, seed: int) -> tuple[Float[np.ndarray, "P 20"], Float[np.ndarray, "P T"]]:
    """Traits and a year of every home of the pool."""
    traits = draw_homes(homes, np.random.default_rng([seed, 14]))
    made = simulate_homes(traits, YEAR_HOURS, "2023-01-02", seed, minutes=minutes)
    return traits, made.values.reshape(homes, -1)


@cache
def regions_prior(minutes: int, rows: int, period: int, seed: int = 0) -> Prior:
    """How the moments of fleets differ: fleets of simulated regions with other appliances, hours and climates.

    The covariance is that between regions times WIDER², and a diagonal for ways to differ that the simulator does not know.
    Nothing is known of the mean level, which depends on the unit of the readings.
    """
    moments = np.stack([_region_moments(one, minutes, rows, period, seed) for one in range(REGIONS)])
    apart = moments - moments.mean(axis=0)
    mean, between = moments.mean(axis=0), apart.T @ apart / (REGIONS - 1)
    alone = np.maximum(ALONE * np.sqrt(np.diag(between)), LEAST_SHARE * np.abs(mean) + LEAST_DEVIATION)
    covariance = WIDER**2 * between + np.diag(alone**2)
    covariance[0, 0] = 100.0
    return Prior(mean, covariance)


def _region_moments(number: int, minutes: int, rows: int, period: int, seed: int) -> Float[np.ndarray, " moments"]:
    """The moments of a year of homes of a random region, in pieces of `rows`."""
    load = _region_load(number, minutes, seed).astype(np.float64)
    rows = min(rows, load.shape[1])
    pieces = load[:, : load.shape[1] // rows * rows].reshape(-1, rows, 1)
    upper = np.array([LARGEST * float(np.nanmean(pieces))])
    vectors, shape, profile = features(pieces, np.zeros(1), upper, period)
    u = vectors[:, 0]
    return channel_moments(
        u.mean(axis=0), np.cov(u.T), shape[:, 0].mean(axis=0), profile[:, 0].mean(axis=0) / LONGEST_PROFILE
    )


@lru_cache(maxsize=REGIONS)
def _region_load(number: int, minutes: int, seed: int) -> Float[np.ndarray, "H T"]:
    """A year of the homes of a random region."""
    stream = np.random.default_rng([seed, number, 15])
    factors = dict(
        zip(("standby", "habits", "appliances", "heating"), np.exp(0.4 * stream.standard_normal(4)), strict=True)
    )
    climate = {"heated": stream.uniform(0.0, 0.5), "warmer": stream.normal(0.0, 3.0), "later": stream.normal(0.0, 0.7)}
    variety = float(stream.uniform(0.1, 0.5))
    made = simulate(
        REGION_HOMES,
        YEAR_HOURS,
        "2023-01-02",
        1000 + number,
        spike_rate=0,
        negative_rate=0,
        outage_rate=0,
        variety=variety,
        minutes=minutes,
        region=Region(**factors, **climate),
    )
    return made.values.reshape(REGION_HOMES, -1)


def simulated_population(
    level: tuple[float, ...], minutes: int, rows: int, period: int, origin: Literal["public", "private", "nonprivate"]
) -> Population:
    """The pool as a population of channels with these levels; `origin` says where the levels came from."""
    pool, channels = simulated_pool(minutes, rows, period), len(level)
    upper = tuple(LARGEST * one for one in level)
    mean = np.tile(pool.vectors.mean(axis=0), (channels, 1))
    mean[:, 0] = unit_level(1.0 / LARGEST)
    return Population(
        mean=tuple(mean.ravel().tolist()),
        covariance=tuple(map(tuple, np.kron(np.eye(channels), pool.covariance).tolist())),
        histogram=(tuple(pool.histogram.tolist()),) * channels,
        profile=(tuple(pool.profile.tolist()),) * channels,
        within=Within(
            lower=(0.0,) * channels, upper=upper, period=period, rows=rows, begin="2023-01-01", end="2023-12-31"
        ),
        origin=origin,
    )
