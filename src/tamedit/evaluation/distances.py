"""Distances between two sets of numbers, ignoring their order: formulas only.

    KL(p ‖ q) = Σ p ln(p / q)                        nats; p the real data, q the drawn
    JS(p, q)  = √(½ KL₂(p ‖ m) + ½ KL₂(q ‖ m))       m = (p + q) / 2, base 2: a distance within [0, 1]
    MMD²      = E k(x, x') + E k(y, y') − 2 E k(x, y)   k(a, b) = exp(−|a − b|² / 2h²), pairs of different members

KL and JS compare histograms of 50 bins on edges taken from the real data. The two outer bins are open, so that what is
drawn beyond the real range counts. A bin's share is (share + ε) / (1 + 50 ε) with ε = 10⁻⁶, which keeps KL finite.
Wasserstein-1 and Kolmogorov–Smirnov distances are scipy's, on the numbers themselves.
"""

import numpy as np
from jaxtyping import Float
from scipy import special, stats

BINS, SMOOTHING = 50, 1e-6

Numbers = Float[np.ndarray, " N"]


def histogram_edges(real: Numbers, bins: int = BINS) -> Float[np.ndarray, " E"]:
    """bins + 1 rising edges from the least to the greatest number; around a constant, half a unit (or a millionth) wide."""
    low, high = float(real.min()), float(real.max())
    margin = max(0.5, 1e-6 * abs(low)) if high - low <= 1e-12 * abs(low) else 0.0
    return np.linspace(low - margin, high + margin, bins + 1)


def bin_numbers(values: Float[np.ndarray, "..."], edges: Float[np.ndarray, " E"]) -> np.ndarray:
    """Which bin every number falls into; the outer bins are open."""
    return np.searchsorted(edges[1:-1], values, side="right")


def shares(counts: Float[np.ndarray, "*A G"]) -> Float[np.ndarray, "*A G"]:
    """Smoothed shares of the bins; NaN where nothing was counted."""
    total = counts.sum(axis=-1, keepdims=True)
    part = np.divide(counts, total, out=np.full(counts.shape, np.nan), where=total > 0)
    return (part + SMOOTHING) / (1 + SMOOTHING * counts.shape[-1])


def kl_divergence(p: Float[np.ndarray, "*A G"], q: Float[np.ndarray, "*A G"]) -> Float[np.ndarray, "*A"]:
    """Of shares along the last axis, in nats."""
    return np.asarray(np.maximum(special.rel_entr(p, q).sum(axis=-1), 0.0))


def js_distance(p: Float[np.ndarray, "*A G"], q: Float[np.ndarray, "*A G"]) -> Float[np.ndarray, "*A"]:
    """Of shares along the last axis: 0 if they are the same, 1 if they have nothing in common."""
    middle = (p + q) / 2
    bits = (kl_divergence(p, middle) + kl_divergence(q, middle)) / (2 * np.log(2))
    return np.asarray(np.sqrt(np.clip(bits, 0.0, 1.0)))


def wasserstein(real: Numbers, drawn: Float[np.ndarray, " M"]) -> float:
    """Wasserstein-1: how far a unit of probability has to be carried on average."""
    return float(stats.wasserstein_distance(real, drawn))


def kolmogorov_smirnov(real: Numbers, drawn: Float[np.ndarray, " M"]) -> float:
    """The greatest difference of the two distribution functions."""
    return float(stats.ks_2samp(real, drawn, method="asymp").statistic)


def squared_distances(x: Float[np.ndarray, "N D"], y: Float[np.ndarray, "M D"]) -> Float[np.ndarray, "N M"]:
    """|x_i − y_j|² of all pairs; of single numbers without the cancellation of the general formula."""
    if x.shape[1] == 1:
        return np.square(x - y.T)
    square = np.square(x).sum(axis=1)[:, None] + np.square(y).sum(axis=1) - 2 * x @ y.T
    return np.maximum(square, 0.0)


def median_bandwidth(x: Float[np.ndarray, "N D"]) -> float:
    """The median distance of two different members; the mean one if most members are equal; 0 if all are."""
    apart = np.sqrt(squared_distances(x, x)[np.triu_indices(len(x), 1)])
    if apart.size == 0:
        return 0.0
    return float(np.median(apart)) or float(apart.mean())


def kernel(x: Float[np.ndarray, "N D"], y: Float[np.ndarray, "M D"], bandwidth: float) -> Float[np.ndarray, "N M"]:
    """k of all pairs. A bandwidth of 0 tells equal from different."""
    apart = squared_distances(x, y)
    if bandwidth == 0:
        return (apart == 0).astype(apart.dtype)
    return np.exp(apart / (-2 * bandwidth**2))
