"""How certain is a number? Resampling the windows of one run, and Student's t over the seeds of many.

Bootstrap: windows are drawn with replacement and the metric is computed again. Windows that overlap are not independent, so
they are drawn in blocks of neighbours, as long as the overlap or longer (circular block bootstrap, Politis and Romano 1992);
where there are many meters, meters are drawn, each with all of its windows, since windows of a home resemble each other.
Distances between distributions grow under resampling (a resample is coarser than the data), so the interval is the spread of
the resamples laid around the estimate:

    [estimate + q_2.5 % − median,  estimate + q_97.5 % − median]     of the resampled metric, within the metric's range

Few blocks (or meters) vary less in a resample than they do in truth, and their own spread is a guess. k draws of k blocks would
give a mean the variance s²(k − 1) / k² and the quantiles of a normal. A resample is therefore of m draws, m < k, with weights
k / m, so that the interval of a mean is Student's:

    m = (k − 1) · (1.96 / t_{0.975, k − 1})²     z² s² (k − 1) / (k m) = t² s² / k

m must be a whole number. From k = 5 on, rounding it costs little: of independent normal values, 92 to 94 % of the intervals hold
the mean. For k = 4 it would be 77 %, for k = 2 about 34 %. So fewer than FEWEST blocks (or meters) have no interval: there are no
resamples, and what may be said is "unknown".

Seeds: mean ± t_{0.975, n − 1} · s / √n.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int64
from scipy import stats

LEVEL = 0.95
FEWEST = 5  # blocks or groups that can have an interval


def usable_block(windows: int, overlap: int) -> int:
    """Twice the overlap where that leaves enough blocks, never less than the overlap: shorter blocks pretend to know more."""
    return max(min(2 * overlap, windows // FEWEST), overlap, 1)


def draws_of(count: int, level: float = LEVEL) -> int:
    """m, how many of k blocks or groups a resample draws; 0 if k is too small for an interval."""
    if count < FEWEST:
        return 0
    tail = (1 + level) / 2
    narrower = float(stats.norm.ppf(tail) / stats.t.ppf(tail, count - 1))
    return max(round((count - 1) * narrower**2), 1)


def bootstrap_weights(windows: int, resamples: int, block: int = 1, seed: int = 0) -> Float[np.ndarray, "R B"]:
    """The weight of each window in each resample. Rows sum to `windows`; there is none for fewer than FEWEST blocks."""
    draws = draws_of(windows // block)
    if not draws:
        return np.empty((0, windows))
    firsts = np.random.default_rng(seed).integers(windows, size=(resamples, draws))
    drawn = (firsts[:, :, None] + np.arange(block)).reshape(resamples, draws * block) % windows
    rows = np.arange(resamples)[:, None] * windows
    counts = np.bincount((rows + drawn).ravel(), minlength=resamples * windows)
    return counts.reshape(resamples, windows) * (windows / (draws * block))


def group_weights(groups: Int64[np.ndarray, " B"], resamples: int, seed: int = 0) -> Float[np.ndarray, "R B"]:
    """The weight of each window in each resample, when whole groups of windows are drawn; none for fewer than FEWEST groups."""
    _, group = np.unique(groups, return_inverse=True)
    count = int(group.max(initial=-1)) + 1
    draws = draws_of(count)
    if not draws:
        return np.empty((0, len(groups)))
    drawn = np.random.default_rng(seed).multinomial(draws, np.full(count, 1 / count), size=resamples)  # (R, groups)
    return drawn[:, group] * (count / draws)


def bootstrap_interval(
    estimate: float, replicates: Float[np.ndarray, " R"], low: float, high: float, level: float = LEVEL
) -> tuple[float, float] | None:
    """The interval around an estimate; None if most resamples have no value."""
    kept = replicates[np.isfinite(replicates)]
    if not np.isfinite(estimate) or len(kept) < max(len(replicates) // 2, 2):
        return None
    tail = (1 - level) / 2
    lower, middle, upper = np.quantile(kept, [tail, 0.5, 1 - tail])
    ends = np.clip([estimate + lower - middle, estimate + upper - middle], low, high)
    return float(min(ends[0], estimate)), float(max(ends[1], estimate))


@dataclass(frozen=True)
class OverSeeds:
    """A number over independent runs; without an interval if there is only one run."""

    mean: float
    half: float | None
    low: float | None
    high: float | None
    seeds: int

    def __str__(self) -> str:
        return f"{self.mean:.4f}" if self.half is None else f"{self.mean:.4f} ± {self.half:.4f}"


def over_seeds(values: Sequence[float], level: float = LEVEL) -> OverSeeds:
    """Mean and Student's t interval."""
    if not values:
        raise ValueError("no values to combine; give the number of at least one seed")
    mean, count = float(np.mean(values)), len(values)
    if count == 1:
        return OverSeeds(mean, None, None, None, 1)
    half = float(stats.t.ppf((1 + level) / 2, count - 1) * np.std(values, ddof=1) / np.sqrt(count))
    return OverSeeds(mean, half, mean - half, mean + half, count)


def combine(results: Sequence[Mapping[str, Any]], level: float = LEVEL) -> dict[str, Any]:
    """Results of `tamedit evaluate` with different seeds, every metric as {mean, half, low, high, seeds}.

    A metric that is null for any seed stays null. The intervals of the single runs are left out.
    """
    first = results[0]
    merged: dict[str, Any] = {}
    for key, value in first.items():
        if key == "intervals":
            continue
        column = [result[key] for result in results]
        if isinstance(value, Mapping):
            merged[key] = combine(column, level)
        else:
            merged[key] = None if None in column else asdict(over_seeds(column, level))
    return merged
