"""Scores of whole paths against slow loops, the library's own forms, closed forms, and what they must tell apart."""

import math

import numpy as np
import pytest
import scoringrules
from scipy import stats

from tamedit.evaluation.aggregation import in_units
from tamedit.evaluation.intervals import bootstrap_weights
from tamedit.evaluation.metrics import PATHS
from tamedit.evaluation.path_statistics import path_statistics, scored_paths
from tamedit.evaluation.scores import score

NAMES = ("path_total_crps", "path_peak_crps", "path_energy", "path_variogram")


def loop_crps(samples: list[float], truth: float) -> float:
    count = len(samples)
    first = sum(abs(x - truth) for x in samples) / count
    pairs = sum(abs(x - other) for x in samples for other in samples)
    return first - (pairs / (2 * count * (count - 1)) if count > 1 else 0.0)


def loop_energy(samples: np.ndarray, truth: np.ndarray) -> float:
    """(M, n) and (n,): the definition, sample by sample."""
    count = len(samples)
    first = sum(math.dist(x, truth) for x in samples) / count
    pairs = sum(math.dist(x, other) for x in samples for other in samples)
    return (first - (pairs / (2 * count * (count - 1)) if count > 1 else 0.0)) / math.sqrt(len(truth))


def loop_variogram(samples: np.ndarray, truth: np.ndarray, steps: np.ndarray) -> float:
    """The kernel form of the fair score: E (v − o)² − ½ E (v − v')² for every pair of steps."""
    total = weight = 0.0
    count = len(samples)
    for i in range(len(truth)):
        for j in range(i):
            w, o = 1 / (steps[i] - steps[j]), abs(truth[i] - truth[j]) ** 0.5
            v = [abs(x[i] - x[j]) ** 0.5 for x in samples]
            fair = sum((one - o) ** 2 for one in v) / count
            if count > 1:
                fair -= sum((one - other) ** 2 for one in v for other in v) / (2 * count * (count - 1))
            total, weight = total + w * fair, weight + w
    return total / weight if weight else 0.0


@pytest.mark.parametrize(("drawn", "halves"), [(1, False), (5, False), (6, True), (7, True)])
def test_every_statistic_is_that_of_a_loop(drawn: int, halves: bool) -> None:
    """Stretches of different places and lengths, with gaps in the truth, a single cell, and none at all."""
    rng = np.random.default_rng(drawn)
    truth, samples = rng.normal(size=(5, 12, 2)), rng.normal(size=(5, drawn, 12, 2))
    scored = np.zeros(truth.shape, dtype=bool)
    for window, (first, last) in enumerate([(0, 12), (3, 9), (8, 12), (5, 6), (0, 0)]):
        scored[window, first:last] = True
    truth[0, 4, 0] = truth[1, 3, 1] = truth[2, :, 1] = np.nan
    found = path_statistics(scored_paths(samples, truth, scored), independent_halves=halves)
    for window in range(5):
        for channel in range(2):
            steps = np.flatnonzero(scored[window, :, channel] & np.isfinite(truth[window, :, channel]))
            y, x = truth[window, steps, channel], samples[window][:, steps, channel]
            assert found["path_count"][window, channel] == (len(steps) > 0)
            assert found["path_pairs"][window, channel] == (len(steps) > 1)
            if not len(steps):
                assert all(found[name][window, channel] == 0 for name in NAMES)
                continue
            parts = np.split(x, 2) if halves and drawn % 2 == 0 else [x]
            wanted = {
                "path_total_crps": [loop_crps([one.mean() for one in part], y.mean()) for part in parts],
                "path_peak_crps": [loop_crps([one.max() for one in part], y.max()) for part in parts],
                "path_energy": [loop_energy(part, y) for part in parts],
                "path_variogram": [loop_variogram(part, y, steps) for part in parts],
            }
            for name, values in wanted.items():
                assert found[name][window, channel] == pytest.approx(np.mean(values), abs=1e-12), name


def test_energy_and_variogram_are_the_librarys() -> None:
    rng = np.random.default_rng(0)
    truth, samples = rng.normal(size=(6, 8, 1)), rng.normal(size=(6, 9, 8, 1))
    found = path_statistics(scored_paths(samples, truth, np.isfinite(truth)), independent_halves=False)
    lag = np.abs(np.subtract.outer(np.arange(8), np.arange(8))).astype(float)
    weights = np.where(lag > 0, 1 / np.maximum(lag, 1), 0.0)
    weights /= weights.sum()
    theirs = scoringrules.vs_ensemble(
        truth[..., 0], samples[..., 0], w=np.broadcast_to(weights, (6, 8, 8)), p=0.5, estimator="fair"
    )
    np.testing.assert_allclose(found["path_variogram"][:, 0], theirs)
    energy = scoringrules.es_ensemble(truth[..., 0], samples[..., 0], estimator="fair")
    np.testing.assert_allclose(found["path_energy"][:, 0], energy / math.sqrt(8))


def gaussian_crps(deviation: float, truth: np.ndarray) -> np.ndarray:
    """Gneiting and Raftery 2007, mean 0."""
    z = truth / deviation
    crps: np.ndarray = deviation * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi))
    return crps


@pytest.mark.parametrize("antithetic", [False, True])
def test_the_totals_crps_is_the_closed_form_of_a_gaussian(antithetic: bool) -> None:
    """The mean of n independent N(0, 1) cells is N(0, 1 / n), also from antithetic pairs within halves."""
    rng = np.random.default_rng(1)
    noise = rng.standard_normal((20_000, 3, 4, 1))
    samples = np.concatenate([noise, -noise if antithetic else rng.standard_normal(noise.shape)], axis=1)
    truth = np.full((20_000, 4, 1), 0.3)
    found = path_statistics(scored_paths(samples, truth, truth > 0), independent_halves=antithetic)["path_total_crps"]
    wanted = float(gaussian_crps(0.5, np.array(0.3)))
    assert abs(found.mean() - wanted) < 4 * found.std() / math.sqrt(found.size)


@pytest.mark.parametrize("name", NAMES)
def test_fair_scores_do_not_depend_on_the_number_of_samples(name: str) -> None:
    rng = np.random.default_rng(2)
    truth = rng.standard_normal((8_000, 3, 1))
    few, many = (
        path_statistics(
            scored_paths(rng.standard_normal((8_000, count, 3, 1)), truth, np.isfinite(truth)), independent_halves=False
        )[name]
        for count in (2, 12)
    )
    assert abs((few - many).mean()) < 4 * (few - many).std() / math.sqrt(8_000)


def walks(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Stationary and strongly correlated along the second last axis, N(0, 1) in every cell."""
    noise = rng.standard_normal(shape)
    path = np.empty(shape)
    path[..., 0, :] = noise[..., 0, :]
    for step in range(1, shape[-2]):
        path[..., step, :] = 0.95 * path[..., step - 1, :] + math.sqrt(1 - 0.95**2) * noise[..., step, :]
    return path


def test_independent_draws_lose_where_the_truth_is_correlated_though_their_cells_are_right() -> None:
    rng = np.random.default_rng(3)
    truth, joint, apart = walks(rng, 300, 24, 1), walks(rng, 300, 20, 24, 1), rng.standard_normal((300, 20, 24, 1))
    weights, all_cells = bootstrap_weights(300, 100), np.ones_like(truth, dtype=bool)
    (good, _), (poor, _) = (
        score(one, truth, all_cells, np.ones(1), independent_halves=False, weights=weights, paths=True)
        for one in (joint, apart)
    )
    assert good.crps == pytest.approx(poor.crps, rel=0.03)  # cell by cell nobody can tell them apart
    for metric in PATHS:
        difference = poor.resampled[metric.name] - good.resampled[metric.name]
        assert (difference > 0).all(), metric.name
    assert (poor["path_total_CRPS"] or 0) > 1.15 * (good["path_total_CRPS"] or 0)
    assert (poor["path_variogram"] or 0) > 2 * (good["path_variogram"] or 0)


def test_units_are_what_scaling_the_data_would_give() -> None:
    rng = np.random.default_rng(4)
    truth, samples = rng.normal(size=(4, 6, 2)), rng.normal(size=(4, 4, 6, 2))
    scale = np.array([0.3, 50.0])
    sums, scaled = (
        path_statistics(scored_paths(samples / unit, truth / unit, np.isfinite(truth)), independent_halves=True)
        for unit in (np.ones(2), scale)
    )
    for name, values in in_units(sums, scale).items():
        np.testing.assert_allclose(values, scaled[name], rtol=1e-9, atol=1e-12)


def test_a_length_alone_changes_no_score_of_a_constant_error() -> None:
    for length in (2, 30):
        truth = np.zeros((1, length, 1))
        z, _ = score(truth[:, None] + 0.7, truth, truth == 0, np.ones(1), probabilistic=False, paths=True)
        assert [z[metric.name] for metric in PATHS] == pytest.approx([0.7, 0.7, 0.7, 0.0])


def test_without_a_stretch_there_are_no_path_scores_and_a_bad_sample_is_not_forgiven() -> None:
    rng = np.random.default_rng(5)
    truth, samples = rng.normal(size=(3, 6, 1)), rng.normal(size=(3, 4, 6, 1))
    plain, _ = score(samples, truth, np.isfinite(truth), np.ones(1))
    assert {plain[metric.name] for metric in PATHS} == {None}
    nothing, _ = score(samples, truth, np.zeros(truth.shape, dtype=bool), np.ones(1), paths=True)
    assert {nothing[metric.name] for metric in PATHS} == {None}
    single, _ = score(samples, truth, np.arange(6)[None, :, None] == truth * 0 + 2, np.ones(1), paths=True)
    assert single["path_variogram"] is None
    assert single["path_total_CRPS"] == pytest.approx(single.crps)
    samples[1, 2, 3, 0] = np.nan
    broken, _ = score(samples, truth, np.isfinite(truth), np.ones(1), paths=True)
    assert {broken[metric.name] for metric in PATHS} == {None}
