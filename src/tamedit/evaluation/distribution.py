"""Distances between what was drawn and what is real, channel by channel, for all windows and for every resample of them.

Each channel leaves tables that are additive over windows (histograms, counts below a grid, kernel sums of pairs of
windows, spectra), so that weights (R, B) give the distances of R resamples without another look at the cells. All
distances but Wasserstein-1 are free of units.

The Wasserstein and Kolmogorov–Smirnov distances of all windows are exact (scipy's); their resamples are read from the two
distribution functions at a grid of 256 quantiles of the numbers themselves. MMD looks at no more than 512 cells of a
channel, drawn with a seed: real cells, and independently of them sampled cells, one sample per cell.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int64

from tamedit.evaluation import distances
from tamedit.evaluation.cell_statistics import Cells
from tamedit.evaluation.spectrum import spectral_distance, window_spectra

GRID, MMD_CELLS = 256, 512
NAMES = ("dist_KL", "dist_JS", "dist_WS", "dist_KS", "MMD", "temp_spec_dist")
DEGREES = {"dist_WS": 1}  # the others have no unit

Weights = Float[np.ndarray, "R B"]
Column = Float[np.ndarray, " R"]


@dataclass(frozen=True, eq=False)
class Distance:
    """One distance, by resample and channel; in some channels it may not be defined."""

    values: Float[np.ndarray, "R K"]
    defined: Bool[np.ndarray, " K"]


def distribution_distances(
    cells: Cells,
    samples: Float[np.ndarray, "B S L K"],
    truth: Float[np.ndarray, "B L K"],
    weights: Weights | None = None,
    seed: int = 0,
) -> dict[str, Distance]:
    """Every distance between samples and truth: over hidden cells, the spectral one over whole windows.

    The first row is of all windows, exactly; the others, if `weights` are given, are of resamples.
    """
    windows, _, channels = cells.shape
    every = np.ones((1, windows))
    draws = every if weights is None else np.vstack([every, weights])
    values = {name: np.full((len(draws), channels), np.nan) for name in NAMES}
    for channel in range(channels):
        part = _Channel(cells, channel)
        if len(part.real) == 0:
            continue
        values["dist_KL"][:, channel], values["dist_JS"][:, channel] = _histogram_distances(part, draws)
        values["dist_WS"][:, channel], values["dist_KS"][:, channel] = _rank_distances(part, draws)
        values["MMD"][:, channel] = _mmd(part, draws, np.random.default_rng([seed, channel]))
    size = np.bincount(cells.channel, minlength=channels)
    values["temp_spec_dist"], spectral = _spectral(samples, truth, draws)
    defined = {"MMD": size > 1, "temp_spec_dist": spectral}
    return {name: Distance(values[name], defined.get(name, size > 0)) for name in NAMES}


class _Channel:
    """The hidden cells of one channel: real numbers, drawn numbers, and the windows they belong to."""

    def __init__(self, cells: Cells, channel: int) -> None:
        kept = cells.channel == channel
        self.windows = cells.shape[0]
        self.window: Int64[np.ndarray, " N"] = cells.window[kept]
        self.real: Float[np.ndarray, " N"] = cells.truth[kept]
        self.drawn: Float[np.ndarray, "N S"] = cells.samples[kept]
        self.finite = bool(np.isfinite(self.drawn).all())

    def counts(self, bins: np.ndarray, size: int) -> Float[np.ndarray, "B G"]:
        """How many numbers of every window fall into every bin; `bins` (N,) or (N, S)."""
        window = self.window if bins.ndim == 1 else np.repeat(self.window, bins.shape[1])
        table = np.bincount(window * size + bins.ravel(), minlength=self.windows * size)
        return table.reshape(self.windows, size).astype(np.float64)


def _histogram_distances(part: _Channel, draws: Weights) -> tuple[Column, Column]:
    """Kullback–Leibler and Jensen–Shannon."""
    if not part.finite:
        return np.full(len(draws), np.nan), np.full(len(draws), np.nan)
    edges = distances.histogram_edges(part.real)
    p, q = (
        distances.shares(draws @ part.counts(distances.bin_numbers(numbers, edges), distances.BINS))
        for numbers in (part.real, part.drawn)
    )
    return distances.kl_divergence(p, q), distances.js_distance(p, q)


def _rank_distances(part: _Channel, draws: Weights) -> tuple[Column, Column]:
    """Wasserstein-1 and Kolmogorov–Smirnov."""
    if not part.finite:
        return np.full(len(draws), np.nan), np.full(len(draws), np.nan)
    flat = part.drawn.ravel()
    grid = np.quantile(np.concatenate([part.real, part.drawn[:, 0], part.drawn[:, -1]]), np.linspace(0, 1, GRID))
    grid[0], grid[-1] = min(grid[0], flat.min()), max(grid[-1], flat.max())
    below = []
    for numbers in (part.real, part.drawn):
        bins = np.minimum(np.searchsorted(grid, numbers, side="left"), GRID - 1)
        counted = draws @ np.cumsum(part.counts(bins, GRID), axis=1)  # numbers at or below a grid point
        total = counted[:, -1:]
        below.append(np.divide(counted, total, out=np.full(counted.shape, np.nan), where=total > 0))
    apart = np.abs(below[0] - below[1])  # (R, G)
    wasserstein, kolmogorov_smirnov = np.trapezoid(apart, grid, axis=1), apart.max(axis=1)
    wasserstein[0] = distances.wasserstein(part.real, flat)
    kolmogorov_smirnov[0] = distances.kolmogorov_smirnov(part.real, flat)
    return wasserstein, kolmogorov_smirnov


def _mmd(part: _Channel, draws: Weights, generator: np.random.Generator) -> Column:
    """MMD² over pairs of cells; a resample weighs a pair by how often its two windows were drawn."""
    first, second = (np.sort(generator.permutation(len(part.real))[:MMD_CELLS]) for _ in range(2))
    column = generator.integers(part.drawn.shape[1], size=len(second))
    x, y = part.real[first][:, None], part.drawn[second, column][:, None]
    width = distances.median_bandwidth(x)
    own, other = part.window[first], part.window[second]

    def mean(a: np.ndarray, b: np.ndarray, left: np.ndarray, right: np.ndarray, same: bool) -> Column:
        table = distances.kernel(a, b, width)
        (rows, row_starts, row_sizes), (columns, column_starts, column_sizes) = (
            np.unique(side, return_index=True, return_counts=True) for side in (left, right)
        )
        pairs = np.outer(row_sizes, column_sizes).astype(np.float64)
        if same:  # a cell with itself is left out
            np.fill_diagonal(table, 0.0)
            pairs -= np.diag(row_sizes)
        sums = np.add.reduceat(np.add.reduceat(table, row_starts, axis=0), column_starts, axis=1)
        top, bottom = (((draws[:, rows] @ sides) * draws[:, columns]).sum(axis=1) for sides in (sums, pairs))
        return np.divide(top, bottom, out=np.full(top.shape, np.nan), where=bottom > 0)

    return mean(x, x, own, own, True) + mean(y, y, other, other, True) - 2 * mean(x, y, own, other, False)


def _spectral(
    samples: Float[np.ndarray, "B S L K"], truth: Float[np.ndarray, "B L K"], draws: Weights
) -> tuple[Float[np.ndarray, "R K"], Bool[np.ndarray, " K"]]:
    """A constant channel has no spectrum, and neither has one whose every window has a gap."""
    real, drawn = window_spectra(samples, truth)  # (B, K, F)
    defined = ~((real.sum(axis=(0, 2)) == 0) | (drawn.sum(axis=(0, 2)) == 0))
    values = [spectral_distance(draws @ real[:, k], draws @ drawn[:, k]) for k in range(truth.shape[2])]
    return np.stack(values, axis=1), defined
