"""Statistics of paths: one number per window and channel, computed from whole samples of its scored stretch.

Cells that are each drawn well need not make a good path. If draws of neighbouring cells are independent, their highs and lows
cancel, and the spread of the day's total is much too narrow. Of a stretch y_1 … y_n and its samples x:

    path_total_crps    CRPS of the mean of the stretch (the total, per step, so that lengths compare)
    path_peak_crps     CRPS of the maximum of the stretch
    path_energy        (E‖X − y‖ − ½ E‖X − X'‖) / √n
    path_variogram     Σ_{i<j} w_ij (|y_i − y_j|^½ − E|X_i − X_j|^½)² / Σ_{i<j} w_ij,     w_ij = 1 / |i − j|

`path_count` counts stretches, `path_pairs` those with two cells or more, which a variogram needs. Cells without a truth do not
count. All are *fair*: their expectation does not depend on the number of samples. With v the ½-powers of one pair in M samples
and s² their variance, the fair square is (|y_i − y_j|^½ − mean v)² − s² / M. Samples are compared with each other within
independent halves only (`cell_statistics`). A single guess is a sample by itself: its CRPS is the absolute error of the total or
the peak, its energy score the root mean squared error of the path.

Statistics here are sums per window already, (B, K), so they join the sums of cells (`aggregation`) as they are.
"""

from dataclasses import dataclass

import numpy as np
import scoringrules
from jaxtyping import Bool, Float, Int64

from tamedit.evaluation.cell_statistics import fair_crps, independent_parts

PerPath = Float[np.ndarray, " N"]
PATH_STATISTICS = ("path_total_crps", "path_peak_crps", "path_energy", "path_variogram")
PATH_DEGREES = dict.fromkeys(PATH_STATISTICS, 1)  # a squared difference of square roots has the unit of the data
NUMBERS_AT_ONCE = 4_000_000  # that a pairwise comparison of samples may hold


@dataclass(frozen=True, eq=False)
class Paths:
    """The scored stretches of B windows and K channels, those with a truth: N of them, each moved to begin at 0."""

    window: Int64[np.ndarray, " N"]
    channel: Int64[np.ndarray, " N"]
    truth: Float[np.ndarray, "N D"]  # 0 where nothing counts
    samples: Float[np.ndarray, "N S D"]  # 0 where nothing counts
    counts: Bool[np.ndarray, "N D"]
    shape: tuple[int, int]


def scored_paths(
    samples: Float[np.ndarray, "B S L K"], truth: Float[np.ndarray, "B L K"], scored: Bool[np.ndarray, "B L K"]
) -> Paths:
    """Every window's and channel's stretch from its first to its last scored cell with a truth, in double precision."""
    known = np.moveaxis(scored & np.isfinite(truth), 1, 2)  # (B, K, L)
    window, channel = np.nonzero(known.any(axis=2))
    kept = known[window, channel]  # (N, L)
    length = kept.shape[1]
    first, last = kept.argmax(axis=1), length - 1 - kept[:, ::-1].argmax(axis=1)
    step = first[:, None] + np.arange(int((last - first).max(initial=-1)) + 1)  # (N, D)
    place = np.minimum(step, length - 1)
    counts = np.take_along_axis(kept, place, axis=1) & (step < length)
    drawn = samples[window[:, None], :, place, channel[:, None]]  # (N, D, S)
    real = truth[window[:, None], place, channel[:, None]]
    return Paths(
        window,
        channel,
        np.where(counts, real, 0.0).astype(np.float64),
        np.moveaxis(np.where(counts[:, :, None], drawn, 0.0).astype(np.float64), 1, 2),
        counts,
        (truth.shape[0], truth.shape[2]),
    )


def path_statistics(paths: Paths, *, independent_halves: bool) -> dict[str, Float[np.ndarray, "B K"]]:
    """Every statistic of every path, in the data's units, 0 where a window's channel has none."""
    halves = independent_parts(paths.samples, independent_halves)
    number = paths.counts.sum(axis=1).astype(np.float64)
    beyond = np.where(paths.counts, 0.0, -np.inf)  # what does not count is no peak

    def mean_over_halves(values: list[PerPath]) -> PerPath:
        mean: PerPath = np.mean(values, axis=0)
        return mean

    total, peak = paths.truth.sum(axis=1) / number, (paths.truth + beyond).max(axis=1, initial=-np.inf)
    totals = [fair_crps(half.sum(axis=2) / number[:, None], total) for half in halves]
    peaks = [fair_crps((half + beyond[:, None]).max(axis=2, initial=-np.inf), peak) for half in halves]
    energies = [_energy(half, paths.truth) / np.sqrt(number) for half in halves]
    variograms = [_variogram(half, paths.truth, paths.counts) for half in halves]
    found = {
        "path_count": np.ones(len(number)),
        "path_pairs": (number > 1).astype(np.float64),
        "path_total_crps": mean_over_halves(totals),
        "path_peak_crps": mean_over_halves(peaks),
        "path_energy": mean_over_halves(energies),
        "path_variogram": mean_over_halves(variograms),
    }
    return {name: _table(paths, values) for name, values in found.items()}


def _table(paths: Paths, values: PerPath) -> Float[np.ndarray, "B K"]:
    table = np.zeros(paths.shape)
    table[paths.window, paths.channel] = values
    return table


def _energy(samples: Float[np.ndarray, "N M D"], truth: Float[np.ndarray, "N D"]) -> PerPath:
    """E‖X − y‖ − ½ E‖X − X'‖; a few paths at a time, since all pairs of samples are held at once."""
    count = samples.shape[1]
    if count == 1:
        norm: PerPath = np.linalg.norm(samples[:, 0] - truth, axis=1)
        return norm
    at_once = max(NUMBERS_AT_ONCE // max(count * count * samples.shape[2], 1), 1)
    pieces = [
        scoringrules.es_ensemble(truth[first : first + at_once], samples[first : first + at_once], estimator="fair")
        for first in range(0, len(truth), at_once)
    ]
    return np.concatenate([np.empty(0), *pieces])


def _variogram(
    samples: Float[np.ndarray, "N M D"], truth: Float[np.ndarray, "N D"], counts: Bool[np.ndarray, "N D"]
) -> PerPath:
    """Lag by lag, so that no more than the samples themselves is held; 0 for a path of a single cell.

    The library's fair estimator holds M² D² numbers per path. The tests compare the two.
    """
    draws = samples.shape[1]
    total, weight = np.zeros(len(truth)), np.zeros(len(truth))
    for lag in range(1, samples.shape[2]):
        both = counts[:, lag:] & counts[:, :-lag]  # (N, D − lag)
        real = np.sqrt(np.abs(truth[:, lag:] - truth[:, :-lag]))
        drawn = np.sqrt(np.abs(samples[:, :, lag:] - samples[:, :, :-lag]))  # (N, M, D − lag)
        square = np.square(real - drawn.mean(axis=1))
        if draws > 1:
            square -= drawn.var(axis=1, ddof=1) / draws
        total += np.where(both, square, 0.0).sum(axis=1) / lag
        weight += both.sum(axis=1) / lag
    return np.divide(total, weight, out=np.zeros_like(total), where=weight > 0)
