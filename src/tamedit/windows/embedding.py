"""A home, or a week of it, as a short vector: public, fixed, computed alike on real and on simulated load.

    log of the mean · shares of the 24 hours of the day · logs of four quantiles relative to the mean · autocorrelation at one
    hour and at a day

Every coordinate is clipped and weighted, so the vector is bounded. It is a function of the example's own readings. Readings below
zero count as zero; missing ones are left out.
"""

import numpy as np
from jaxtyping import Float, Int64

HOURS = 24
LEVELS = (1e-3, 100.0)  # kWh per hour: what the mean is clipped to
QUANTILES = (0.1, 0.5, 0.9, 0.99)
SHARE, LEVEL, QUANTILE, MEMORY = 0.2, 1.0, 0.5, 1.5  # weights


def embedding(
    load: Float[np.ndarray, "N L"], first: Int64[np.ndarray, " N"], per_hour: int
) -> Float[np.ndarray, "N E"]:
    """One vector per example; `first`: the row of the day (0 … 24 n − 1) at which each example begins."""
    seen = np.isfinite(load)
    values = np.where(seen, np.maximum(np.where(seen, load, 0.0), 0.0), 0.0)
    mean = np.clip(values.sum(axis=1) / np.maximum(seen.sum(axis=1), 1), *LEVELS)
    hour = (first[:, None] + np.arange(load.shape[1])) // per_hour % HOURS
    place = (np.arange(len(load))[:, None] * HOURS + hour).ravel()
    total, count = (np.bincount(place, one.ravel(), len(load) * HOURS).reshape(-1, HOURS) for one in (values, seen))
    shares = np.where(count > 0, total / np.maximum(count, 1) / mean[:, None], 1.0)
    ordered = np.sort(np.where(seen, values, np.inf), axis=1)
    ranks = [(quantile * np.maximum(seen.sum(axis=1) - 1, 0)).astype(np.int64) for quantile in QUANTILES]
    tails = np.stack([ordered[np.arange(len(load)), rank] for rank in ranks], axis=1) / mean[:, None]
    tails = np.where(np.isfinite(tails), tails, 1.0)
    memory = [_autocorrelation(values, seen, mean, lag * per_hour) for lag in (1, HOURS)]
    return np.concatenate(
        [
            LEVEL * np.log(mean)[:, None],
            SHARE * np.clip(shares, 0.0, 5.0),
            QUANTILE * np.log(np.clip(tails, 0.02, 50.0)),
            MEMORY * np.stack(memory, axis=1),
        ],
        axis=1,
    )


def _autocorrelation(values: np.ndarray, seen: np.ndarray, mean: np.ndarray, lag: int) -> np.ndarray:
    """(N,) of the pairs of readings that are both there, within [−1, 1]; 0 where there is none."""
    if lag >= values.shape[1]:
        return np.zeros(len(values))
    apart = np.where(seen, values - mean[:, None], 0.0)
    pairs = np.maximum((seen[:, lag:] & seen[:, :-lag]).sum(axis=1), 1)
    variance = np.maximum((apart**2).sum(axis=1) / np.maximum(seen.sum(axis=1), 1), 1e-12)
    return np.clip((apart[:, lag:] * apart[:, :-lag]).sum(axis=1) / pairs / variance, -1.0, 1.0)
