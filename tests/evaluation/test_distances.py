"""Distances against closed forms of Gaussians, and at their ends."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.spatial.distance import jensenshannon

from tamedit.evaluation import distances
from tamedit.evaluation.cell_statistics import hidden_cells
from tamedit.evaluation.distribution import distribution_distances

MANY = 200_000


def mmd(x: np.ndarray, y: np.ndarray, bandwidth: float | None = None) -> float:
    """Unbiased estimate of MMD² (it may be below 0); the bandwidth is the median distance within x, the real data."""
    if min(len(x), len(y)) < 2:
        return float("nan")
    width = distances.median_bandwidth(x) if bandwidth is None else bandwidth
    within = [
        (distances.kernel(part, part, width).sum() - len(part)) / (len(part) * (len(part) - 1)) for part in (x, y)
    ]  # a member with itself is left out
    return float(within[0] + within[1] - 2 * distances.kernel(x, y, width).mean())


def gaussian(mean: float, deviation: float, count: int = MANY) -> np.ndarray:
    """Quantiles of a Gaussian: a sample without chance."""
    grid: np.ndarray = stats.norm.ppf((np.arange(count) + 0.5) / count, mean, deviation)
    return grid


def histograms(real: np.ndarray, drawn: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    edges = distances.histogram_edges(real)
    return tuple(  # type: ignore[return-value]
        distances.shares(np.bincount(distances.bin_numbers(part, edges), minlength=50).astype(float))
        for part in (real, drawn)
    )


@pytest.mark.parametrize(("mean", "deviation"), [(0.3, 1.0), (0.0, 1.2), (0.4, 1.5)])
def test_two_gaussians(mean: float, deviation: float) -> None:
    real, drawn = gaussian(0, 1), gaussian(mean, deviation)
    p, q = histograms(real, drawn)
    kl = np.log(deviation) + (1 + mean**2) / (2 * deviation**2) - 0.5
    assert distances.kl_divergence(p, q) == pytest.approx(kl, rel=0.03)
    # W1 of two Gaussians is E|μ + (σ − 1) Z|, a folded Gaussian's mean.
    wide = deviation - 1
    fold = stats.foldnorm(mean / wide, scale=wide).mean() if wide else mean
    assert distances.wasserstein(real, drawn) == pytest.approx(fold, rel=1e-3)
    grid = np.linspace(-8, 8, 20_001)
    apart = np.abs(stats.norm.cdf(grid) - stats.norm.cdf(grid, mean, deviation)).max()
    assert distances.kolmogorov_smirnov(real, drawn) == pytest.approx(apart, abs=1e-4)
    if deviation == 1:
        assert apart == pytest.approx(2 * stats.norm.cdf(mean / 2) - 1, abs=1e-6)
    density = [stats.norm.pdf(grid), stats.norm.pdf(grid, mean, deviation)]
    assert distances.js_distance(p, q) == pytest.approx(jensenshannon(*density, base=2), rel=0.02)


def test_mmd_of_gaussians() -> None:
    """E k(x, y) of Gaussians is h / √(h² + s²) · exp(−d² / 2 (h² + s²)), s² the sum of the variances."""
    rng = np.random.default_rng(0)
    mean, deviation, width = 0.5, 1.4, 0.9

    def expected(apart: float, variance: float) -> float:
        return float(width / np.sqrt(width**2 + variance) * np.exp(-(apart**2) / (2 * (width**2 + variance))))

    closed = expected(0, 2) + expected(0, 2 * deviation**2) - 2 * expected(mean, 1 + deviation**2)
    drawn = [mmd(rng.normal(size=(300, 1)), rng.normal(mean, deviation, (300, 1)), width) for _ in range(40)]
    assert abs(np.mean(drawn) - closed) < 4 * np.std(drawn) / np.sqrt(40)
    same = [mmd(rng.normal(size=(100, 3)), rng.normal(size=(100, 3))) for _ in range(80)]
    assert abs(np.mean(same)) < 4 * np.std(same) / np.sqrt(80)
    assert min(same) < 0  # unbiased, and so below 0 now and then


def test_median_bandwidth() -> None:
    assert distances.median_bandwidth(np.array([[0.0], [1.0], [3.0]])) == 2.0
    assert distances.median_bandwidth(np.array([[0.0]] * 9 + [[1.0]])) == pytest.approx(9 / 45)  # most are equal
    assert distances.median_bandwidth(np.zeros((5, 1))) == 0.0
    assert mmd(np.zeros((5, 1)), np.zeros((5, 1))) == 0.0
    assert mmd(np.zeros((5, 1)), np.ones((5, 1))) == 2.0
    assert np.isnan(mmd(np.zeros((1, 1)), np.zeros((5, 1))))


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.floats(0, 1e6))
def test_js_is_a_distance_within_0_and_1(seed: int, apart: float) -> None:
    rng = np.random.default_rng(seed)
    p, q = histograms(rng.normal(size=50), rng.normal(apart, 1, size=80))
    there, back = distances.js_distance(p, q), distances.js_distance(q, p)
    assert there == pytest.approx(back)
    assert 0 <= there <= 1
    assert distances.js_distance(p, p) == 0 == distances.kl_divergence(p, p)
    np.testing.assert_allclose(there, jensenshannon(p, q, base=2), atol=1e-6)
    assert np.isfinite(distances.kl_divergence(p, q))


def test_what_lies_beyond_the_real_range_counts() -> None:
    p, q = histograms(np.linspace(0, 1, 100), np.full(100, 50.0))
    assert distances.js_distance(p, q) > 0.95
    assert distances.histogram_edges(np.full(3, 2.0))[[0, -1]].tolist() == [1.5, 2.5]
    assert (np.diff(distances.histogram_edges(np.full(3, 1e20))) > 0).all()


def test_all_windows_and_resamples_agree_with_the_formulas() -> None:
    """What the tables of windows give is what the formulas give for the repeated windows."""
    rng = np.random.default_rng(0)
    truth, samples = rng.normal(size=(6, 90, 2)), rng.normal(0.5, 1.3, size=(6, 4, 90, 2))
    hidden = rng.random(truth.shape) < 0.8
    weights = np.array([[2.0, 0, 1, 1, 2, 0]])
    found = distribution_distances(hidden_cells(samples, truth, hidden), samples, truth, weights)
    picked = np.repeat(np.arange(6), weights[0].astype(int))
    for channel in range(2):
        for row, chosen in enumerate((np.arange(6), picked)):
            kept = hidden[chosen][:, :, channel]
            real = truth[chosen][:, :, channel][kept]
            drawn = np.moveaxis(samples[chosen][..., channel], 1, -1)[kept].ravel()
            value = {name: distance.values[row, channel] for name, distance in found.items()}
            tolerance = 1e-9 if row == 0 else 0.03  # resamples of these two are read from a grid
            assert value["dist_WS"] == pytest.approx(stats.wasserstein_distance(real, drawn), rel=tolerance)
            assert value["dist_KS"] == pytest.approx(stats.ks_2samp(real, drawn).statistic, rel=tolerance)
            edges = distances.histogram_edges(truth[:, :, channel][hidden[:, :, channel]])
            p, q = (
                distances.shares(np.bincount(distances.bin_numbers(part, edges), minlength=50).astype(float))
                for part in (real, drawn)
            )
            assert value["dist_KL"] == pytest.approx(distances.kl_divergence(p, q))
            assert value["dist_JS"] == pytest.approx(distances.js_distance(p, q))
    assert all(distance.defined.all() for distance in found.values())


def test_mmd_of_the_cells_is_the_formula_on_all_of_them() -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(5, 12, 1))
    samples = rng.normal(1, 1, size=(5, 1, 12, 1))
    everything = np.ones_like(truth, dtype=bool)
    found = distribution_distances(hidden_cells(samples, truth, everything), samples, truth)["MMD"].values[0, 0]
    assert found == pytest.approx(mmd(truth.reshape(-1, 1), samples.reshape(-1, 1)))


def test_the_same_seed_the_same_cells() -> None:
    rng = np.random.default_rng(0)
    truth, samples = rng.normal(size=(40, 30, 1)), rng.normal(size=(40, 4, 30, 1))
    cells = hidden_cells(samples, truth, np.ones_like(truth, dtype=bool))  # 1200: more than are looked at
    first, again, other = (
        distribution_distances(cells, samples, truth, seed=seed)["MMD"].values[0, 0] for seed in (0, 0, 1)
    )
    assert first == again != other
