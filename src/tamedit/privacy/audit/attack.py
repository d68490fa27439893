"""How well scores tell canaries that were in the data from those that were not. These are measurements, not bounds."""

import numpy as np
from jaxtyping import Bool, Float
from scipy.stats import rankdata


def auroc(scores: Float[np.ndarray, " m"], coins: Bool[np.ndarray, " m"]) -> float:
    """The probability that a canary inside scores higher than one outside; ties count half. 0.5 is guessing."""
    inside = int(coins.sum())
    outside = len(coins) - inside
    if not inside or not outside:
        return 0.5
    return float((rankdata(scores)[coins].sum() - inside * (inside + 1) / 2) / (inside * outside))


def true_positive_rate(scores: Float[np.ndarray, " m"], coins: Bool[np.ndarray, " m"], at: float) -> float:
    """The largest share of canaries inside above a threshold that at most a share `at` of those outside reaches."""
    inside, outside = np.sort(scores[coins]), np.sort(scores[~coins])
    if not len(inside) or not len(outside):
        return 0.0
    allowed = int(np.floor(at * len(outside) + 1e-9))
    if allowed >= len(outside):
        return 1.0
    return float((inside > outside[-1 - allowed]).mean())
