"""The path of a home before the network has seen it: a simulated home that resembles the vector u, brought to u's own marginal.

The simulator (public) makes a pool of homes with random traits. For each wanted home the most similar traits are chosen by spread
and correlations, and simulated anew for the dates that were asked for: so no two homes share a path. Its load is multiplied, hour
by hour of the day, by the population's profile over the pool's. With x this load,
ℓ_p its mean over piece p of as many rows as an example of the population had, and ℓ its mean over the dates of the study,

    path_t = lower + level · ℓ_p(t) / ℓ · g(x_t / ℓ_p(t)),      g = exp( a · (log ratio + Δ(rank of the ratio within the home)) )

where Δ is the difference of two quantile functions of log ratios, the population's minus the pool's. The power a gives the home
the spread of u, the least ratios become u's share of zeros, and g is divided by its mean. So sizes, spread and shape are those of
the population on average, and homes differ as simulated ones do. The order of hours, days and seasons is the simulator's, as
far as its correlations are not above those of u (`tasks/habits.py`).
"""

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int64
from numpy.typing import ArrayLike

from tamedit.data.simulate import simulate_homes
from tamedit.privacy.population import BINS, RATIOS, Population, parts_of
from tamedit.runs.simulated_pool import YEAR_HOURS, Pool, minutes_of, season_place
from tamedit.tasks.habits import with_habits

POINTS = 512
RANKS = (np.arange(POINTS) + 0.5) / POINTS
POWERS = np.geomspace(0.1, 4.0, 60)
CORRECTIONS = 12
ALIKE = [1, 3, 4]  # of u: spread and the two correlations


def resembling(pool: Pool, wanted: Float[np.ndarray, "H K 5"]) -> Int64[np.ndarray, "H K"]:
    """For each home and channel the place in the pool with the closest spread and correlations."""
    scale = pool.vectors[:, ALIKE].std(axis=0)
    apart = (((wanted[:, :, None, ALIKE] - pool.vectors[:, ALIKE]) / scale) ** 2).sum(axis=-1)  # (H, K, P)
    return np.asarray(apart.argmin(axis=-1))


def quantiles_of(histogram: ArrayLike) -> Float[np.ndarray, " points"]:
    """The quantile function of a histogram of logarithms of ratios, at equal ranks."""
    return np.interp(RANKS, np.concatenate([[0.0], np.cumsum(histogram)]), np.linspace(*RATIOS, BINS + 1))


def shaped(
    ratios: Float[np.ndarray, "H T"],
    shift: Float[np.ndarray, " points"],
    spreads: Float[np.ndarray, " H"],
    zeros: Float[np.ndarray, " H"],
) -> Float[np.ndarray, "H T"]:
    """g of the ratios: mean 1, about the wanted spread and share of zeros in every row."""
    order = np.argsort(np.argsort(ratios, axis=1, kind="stable"), axis=1, kind="stable")
    ranks = (order + 0.5) / ratios.shape[1]
    logs = np.log(np.maximum(ratios, 1e-6)) + np.interp(ranks, RANKS, shift)
    every = max(logs.shape[1] // POINTS, 1)
    few = np.sort(logs, axis=1)[:, every // 2 :: every]  # (H, about 512) enough to find the power
    kept = np.linspace(0.0, 1.0, few.shape[1]) >= zeros[:, None]  # what will not be zero
    stretched = np.exp(POWERS[:, None, None] * few) * kept
    mean, square = (np.sum(one, axis=2) / kept.sum(axis=1) for one in (stretched, stretched**2))
    spread = np.sqrt(np.maximum(square / mean**2 - 1.0, 0.0))  # (60, H), rises with the power
    rest = np.sqrt(np.maximum((spreads**2 + 1.0) * (1.0 - zeros) - 1.0, 1e-6))  # the spread of what is not zero
    power = np.array([np.interp(one, own, POWERS) for one, own in zip(rest, spread.T, strict=True)])
    answer = np.where(ranks < zeros[:, None], 0.0, np.exp(power[:, None] * logs))
    return np.asarray(answer / answer.mean(axis=1, keepdims=True))


def studied(times: pd.DatetimeIndex, population: Population) -> Bool[np.ndarray, " T"]:
    """Rows at a time of the year that the population's study covers; all rows where it covers a year or none of them."""
    begin, end = pd.Timestamp(population.within.begin), pd.Timestamp(population.within.end)
    every = np.ones(len(times), dtype=np.bool_)
    if end - begin >= pd.Timedelta(days=360):
        return every
    first, last, day = begin.dayofyear, end.dayofyear, times.dayofyear.to_numpy()
    inside = (day >= first) & (day <= last) if first <= last else (day >= first) | (day <= last)
    return inside if inside.any() else every


def with_mean(
    path: Float[np.ndarray, "H T"], wanted: Float[np.ndarray, " H"], most: float, rows: slice | Int64[np.ndarray, " R"]
) -> Float[np.ndarray, "H T"]:
    """The path times a number per home, cut at `most`, so that its mean over these rows is the wanted one."""
    factor = np.ones(len(path))
    for _ in range(CORRECTIONS):
        found = np.minimum(factor[:, None] * path[:, rows], most).mean(axis=1)
        factor *= wanted / np.maximum(found, 1e-12)
    return np.asarray(np.minimum(factor[:, None] * path, most))


def beginnings(
    population: Population,
    wanted: Float[np.ndarray, "H K 5"],
    numbers: Int64[np.ndarray, " H"],
    times: pd.DatetimeIndex,
    step_seconds: float,
    pool: Pool,
    seed: int,
    level_of: slice | None = None,
) -> Float[np.ndarray, "H T K"]:
    """A path for every home at these times. Each is made for a year at least, so that the level is not that of one season.

    `level_of`: rows over which the mean of the first channel is to be the wanted level exactly; they may end after the times.
    """
    within, minutes = population.within, minutes_of(step_seconds)
    needed = max(len(times), 0 if level_of is None else level_of.stop)
    hours = max(-(-needed * minutes // 60), YEAR_HOURS)
    step = pd.Timedelta(seconds=step_seconds)
    longer = pd.date_range(times[0], periods=hours * 60 // minutes, freq=step)
    covered = studied(longer, population)
    place = season_place(longer, step_seconds, within.period)
    part = parts_of(place, within.period)
    piece = np.minimum(np.arange(len(longer)) // within.rows, max(len(longer) // within.rows - 1, 0))
    begins, sizes = np.flatnonzero(np.diff(piece, prepend=-1)), np.bincount(piece)
    chosen, levels, spreads = resembling(pool, wanted), population.levels(wanted), population.spreads(wanted)
    answer = np.empty((len(wanted), len(times), wanted.shape[1]))
    for channel in range(wanted.shape[1]):
        made = simulate_homes(
            pool.traits[chosen[:, channel]],
            hours,
            str(times[0].tz_localize(None)),
            seed,
            minutes=minutes,
            numbers=numbers * wanted.shape[1] + channel,
        )
        habits = np.clip(np.array(population.profile[channel]) / pool.profile, 0.2, 5.0)
        load = made.values.reshape(len(wanted), -1).astype(np.float64) * habits[part]
        own = np.maximum(np.add.reduceat(load, begins, axis=1) / sizes, 1e-9)[
            :, piece
        ]  # (H, T') mean of the row's piece
        relative = own / np.maximum(load[:, covered].mean(axis=1, keepdims=True), 1e-9)
        shift = quantiles_of(population.histogram[channel]) - quantiles_of(pool.histogram)
        zeros = np.clip(wanted[:, channel, 2], 0.0, 0.95)
        ratios = shaped(load / own, shift, spreads[:, channel], zeros)
        own_numbers = numbers * wanted.shape[1] + channel
        ratios = with_habits(ratios, relative, wanted[:, channel, 3:], place, within.rows, own_numbers, seed)
        path = levels[:, channel, None] * relative * ratios
        most = within.upper[channel] - within.lower[channel]
        if level_of is not None and channel == 0:
            path = with_mean(path, levels[:, 0], most, level_of)
        answer[:, :, channel] = within.lower[channel] + np.minimum(path, most)[:, : len(times)]
    return answer
