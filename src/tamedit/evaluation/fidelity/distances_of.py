"""Distances between two fleets, for many weightings of their homes at once (row r of either is one pair of resampled fleets).

profiles, autocorrelations    mean over places (or lags) of | mean over real homes − mean over the others |
peak_hour, spectrum           ½ Σ |p − q|: total variation of two distributions that sum to 1, between 0 and 1
frechet                       of embedded home-weeks (`embedding.py`)
nearest                       of homes of one fleet to each other
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from jaxtyping import Float

from tamedit.evaluation.distances import squared_distances
from tamedit.evaluation.fidelity.convolutions import embed, frechet, in_logs, moments
from tamedit.evaluation.fidelity.judges import some
from tamedit.evaluation.fidelity.portrait import Portrait
from tamedit.evaluation.fidelity.statistics_of import Weights, scale, weighted

WEEKS = 12  # per home, that are embedded
Values = Float[np.ndarray, " R"]


def between_means(
    name: str, factor: float, first: Portrait, weights: Weights, second: Portrait, others: Weights
) -> Values:
    """Mean absolute difference of the means of what portraits call `name`; with factor > 0, factor times the sum."""
    means = weighted(getattr(first, name), weights) - weighted(getattr(second, name), others)
    apart = np.abs(means)
    return np.asarray(factor * apart.sum(axis=1) if factor else np.nanmean(apart, axis=1))


def embedded(first: Portrait, weights: Weights, second: Portrait, others: Weights) -> Values:
    """Fréchet distances. Every home weighs the same, whatever the number of its weeks."""
    size, parts = scale(first), []
    for portrait, own in ((first, weights), (second, others)):
        weeks, home = portrait.fleet.home_weeks()
        kept = some(home, WEEKS, 0)
        home = home[kept]
        count = np.bincount(home, minlength=portrait.fleet.homes)
        parts.append((embed(in_logs(weeks[kept], size)), own[:, home] / count[home]))
    deviation = parts[0][0].std(axis=0)
    scaled = [features / np.where(deviation > 1e-9, deviation, 1.0) for features, _ in parts]
    return np.array(
        [
            frechet(moments(scaled[0], one), moments(scaled[1], other))
            for one, other in zip(parts[0][1], parts[1][1], strict=True)
        ]
    )


DISTANCES: dict[str, Callable[[Portrait, Weights, Portrait, Weights], Values]] = {
    "daily_profile": partial(between_means, "daily_profile", 0.0),
    "weekly_profile": partial(between_means, "weekly_profile", 0.0),
    "autocorrelations": partial(between_means, "autocorrelation", 0.0),
    "peak_hour": partial(between_means, "peak_time", 0.5),
    "spectrum": partial(between_means, "spectrum", 0.5),
    "frechet": embedded,
}


def nearest(reference: Portrait, portrait: Portrait, most: int, seed: int = 0) -> Float[np.ndarray, " H"]:
    """The distance of every home to the most similar other home of its fleet; NaN for homes beyond `most` random ones.

    Homes are compared by their character (`portrait.py`), every number of it divided by its standard deviation over the
    reference's homes. More homes lie closer together, so as many homes are taken as the reference has.
    """
    deviation = reference.character.std(axis=0)
    scaled = portrait.character / np.where(deviation > 1e-9, deviation, 1.0)
    chosen = np.sort(np.random.default_rng(seed).permutation(len(scaled))[:most])
    apart = squared_distances(scaled[chosen], scaled[chosen])
    np.fill_diagonal(apart, np.inf)
    found = np.full(len(scaled), np.nan)
    found[chosen] = np.sqrt(apart.min(axis=1))
    return found
