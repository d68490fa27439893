"""Statistics of one fleet, for many weightings of its homes at once: row r of `weights` is one (resampled) fleet."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from tamedit.evaluation.fidelity.measures import QUANTILES
from tamedit.evaluation.fidelity.portrait import Portrait, pooled_quantiles

GROUP, DRAWS = 10, 8  # homes of a group, groups drawn per week
Weights = Float[np.ndarray, "R H"]
Values = dict[str, Float[np.ndarray, " R"]]


def weighted(values: Float[np.ndarray, "H C"], weights: Weights) -> Float[np.ndarray, "R C"]:
    """Weighted means over the homes that have a number; NaN if none has."""
    seen = np.isfinite(values)
    total = weights @ np.where(seen, values, 0.0)
    count = weights @ seen.astype(np.float64)
    return np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)


def scale(portrait: Portrait) -> float:
    """The mean level of the homes, above zero: what readings are divided by before logarithms are taken."""
    found = float(np.abs(portrait.level).mean())
    return found if found > 0 else 1.0


def levels(portrait: Portrait, weights: Weights) -> Values:
    logs = portrait.log_level
    means = weighted(np.stack([logs, logs**2], axis=1), weights)
    spread = np.sqrt(np.maximum(means[:, 1] - means[:, 0] ** 2, 0.0) * len(logs) / (len(logs) - 1))
    return {"log_level_mean": means[:, 0], "log_level_sd": spread}


def duration(portrait: Portrait, weights: Weights) -> Values:
    found = _exact_first(portrait.fleet.values, np.array(QUANTILES) / 100, weights)
    return {f"duration_p{q}": found[:, at] for at, q in enumerate(QUANTILES)}


def ramps(portrait: Portrait, weights: Weights) -> Values:
    found = _exact_first(portrait.ramps, np.array([0.5, 0.99]), weights)
    return {"ramp_p50": found[:, 0], "ramp_p99": found[:, 1]}


def correlations(portrait: Portrait, weights: Weights) -> Values:
    period = portrait.fleet.period
    means = weighted(portrait.autocorrelation[:, [0, period - 1, 7 * period - 1]], weights)
    return {f"autocorrelation_{name}": means[:, at] for at, name in enumerate(("step", "day", "week"))}


def peaks_and_zeros(portrait: Portrait, weights: Weights) -> Values:
    means = weighted(np.stack([portrait.peak, portrait.zeros], axis=1), weights)
    return {"peak": means[:, 0], "zeros": means[:, 1]}


STATISTICS: tuple[Callable[[Portrait, Weights], Values], ...] = (levels, duration, correlations, ramps, peaks_and_zeros)


def coincidence(portrait: Portrait, seed: int = 0) -> float | None:
    """Mean over weeks, and random groups of 10 homes in each, of max_t Σ_h x_ht / Σ_h max_t x_ht; None for fewer homes.

    Homes of a group have a whole week without a gap. The groups have one size because a larger fleet has a smaller coincidence.
    """
    weeks = portrait.fleet.weeks
    whole = np.isfinite(weeks).all(axis=2)  # (H, W)
    generator, found = np.random.default_rng(seed), []
    for week in np.flatnonzero(whole.sum(axis=0) >= GROUP):
        there = np.flatnonzero(whole[:, week])
        groups = np.argsort(generator.random((DRAWS, len(there))), axis=1)[:, :GROUP]
        drawn = weeks[there[groups], week]  # (draws, group, L)
        alone = drawn.max(axis=2).sum(axis=1)
        found.append(np.divide(drawn.sum(axis=1).max(axis=1), alone, out=np.full(DRAWS, np.nan), where=alone > 0))
    known = np.concatenate(found) if found else np.empty(0)
    known = known[np.isfinite(known)]
    return float(known.mean()) if len(known) else None


def _exact_first(
    values: Float[np.ndarray, "H T"], points: Float[np.ndarray, " Q"], weights: Weights
) -> Float[np.ndarray, "R Q"]:
    """Pooled quantiles; the first row, in which every home counts once, from the readings themselves."""
    found = pooled_quantiles(values, points, weights)
    found[0] = np.nanquantile(values, points)
    return found
