"""Statistics and their metrics against closed forms, slow loops and numbers worked out by hand."""

import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tamedit.evaluation.aggregation import in_units, resampled, totals
from tamedit.evaluation.cell_statistics import DEGREES, Cells, cell_statistics, central, hidden_cells
from tamedit.evaluation.intervals import bootstrap_weights
from tamedit.evaluation.metrics import METRICS, POINTWISE, by_channel, measure
from tamedit.evaluation.scores import Scores, score


def flat(samples: np.ndarray, truth: np.ndarray) -> Cells:
    """Cells of one channel and one step: samples (B, S), truth (B,)."""
    everything = np.ones((len(truth), 1, 1), dtype=bool)
    return hidden_cells(samples[:, :, None, None], truth[:, None, None], everything)


def statistic(name: str, samples: np.ndarray, truth: np.ndarray, halves: bool = False) -> np.ndarray:
    return cell_statistics(flat(samples, truth), np.zeros(1), independent_halves=halves)[name]


def gaussian_crps(mean: float, deviation: float, truth: float) -> float:
    """Gneiting and Raftery 2007: σ (z (2Φ(z) − 1) + 2φ(z) − 1/√π)."""
    z = (truth - mean) / deviation
    return float(deviation * (z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - 1 / np.sqrt(np.pi)))


@pytest.mark.parametrize("count", [2, 5, 20])
def test_crps_of_independent_samples_is_unbiased(count: int) -> None:
    rng = np.random.default_rng(count)
    crps = statistic("crps", 0.2 + 1.5 * rng.standard_normal((40_000, count)), np.full(40_000, 0.7))
    assert abs(crps.mean() - gaussian_crps(0.2, 1.5, 0.7)) < 4 * crps.std() / np.sqrt(crps.size)


@pytest.mark.parametrize("count", [4, 20])
def test_crps_of_antithetic_samples_is_unbiased_within_halves_and_not_pooled(count: int) -> None:
    rng = np.random.default_rng(count)
    noise = rng.standard_normal((40_000, count // 2))
    samples, truth = 0.2 + 1.5 * np.concatenate([noise, -noise], axis=1), np.full(40_000, 0.7)
    closed = gaussian_crps(0.2, 1.5, 0.7)
    halves, pooled = (statistic("crps", samples, truth, halves) for halves in (True, False))
    assert abs(halves.mean() - closed) < 4 * halves.std() / np.sqrt(halves.size)
    # A pair z and −z is farther apart than two independent draws, so that pooling flatters the ensemble.
    assert closed - pooled.mean() > 8 * pooled.std() / np.sqrt(pooled.size)


def test_crps_is_proper() -> None:
    """The right forecast beats one that is too narrow, one too wide and one beside the truth."""
    rng = np.random.default_rng(0)
    truth, noise = rng.standard_normal(20_000), rng.standard_normal((20_000, 10))

    def mean(centre: float, width: float) -> float:
        return float(statistic("crps", centre + width * noise, truth).mean())

    assert mean(0, 1) < min(mean(0, 0.6), mean(0, 1.6), mean(0.5, 1))


def test_two_antithetic_samples_are_too_few() -> None:
    with pytest.raises(ValueError, match="at least 4"):
        statistic("crps", np.zeros((1, 2)), np.zeros(1), halves=True)


@pytest.mark.parametrize("count", [19, 20, 100])
def test_coverage_of_an_ensemble_that_is_right_is_nominal_and_its_width_is_known(count: int) -> None:
    rng = np.random.default_rng(count)
    truth, samples = rng.standard_normal((100, 200, 1)), rng.standard_normal((100, count, 200, 1))
    z, _ = score(samples, truth, np.ones_like(truth, dtype=bool), np.ones(1), independent_halves=False)
    assert z.coverage50 == pytest.approx(0.5, abs=0.015)
    assert z.coverage90 == pytest.approx(0.9, abs=0.01)
    if count == 100:
        assert z["width50"] == pytest.approx(2 * stats.norm.ppf(0.75), rel=0.03)
        assert z["width90"] == pytest.approx(2 * stats.norm.ppf(0.95), rel=0.03)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 25), st.integers(0, 10**6))
def test_quantiles_are_numpys(count: int, seed: int) -> None:
    samples = np.random.default_rng(seed).normal(size=(7, count))
    expected = np.quantile(samples, [0.05, 0.25, 0.5, 0.75, 0.95], axis=1, method="weibull")
    np.testing.assert_allclose(central(np.sort(samples, axis=1)), expected, atol=1e-12)


@pytest.mark.parametrize("count", [1, 4, 20])
def test_csdi_form_is_csdis_loop_and_for_one_guess_the_absolute_error(count: int) -> None:
    rng = np.random.default_rng(count)
    samples, truth = rng.normal(3, 2, (5, count, 6, 2)), rng.normal(3, 2, (5, 6, 2))
    hidden = rng.random((5, 6, 2)) < 0.5
    loss = 0.0
    for level in np.arange(0.05, 1.0, 0.05):
        guess = torch.quantile(torch.from_numpy(samples), float(level), dim=1).numpy()
        loss += 2 * np.abs((guess - truth) * hidden * ((truth <= guess) * 1.0 - level)).sum() / 19
    _, original = score(samples, truth, hidden, np.ones(2), probabilistic=False)
    assert original["CRPS_CSDI"] == pytest.approx(loss / np.abs(truth * hidden).sum())
    if count == 1:
        total = np.abs(samples[:, 0] - truth)[hidden].sum()
        assert original["CRPS_CSDI"] == pytest.approx(total / np.abs(truth)[hidden].sum())


def test_by_hand() -> None:
    truth = np.array([[[1.0, 10.0], [2.0, 20.0]], [[3.0, 30.0], [4.0, 40.0]]])  # (2, 2, 2)
    guess = truth + np.array([[[1.0, 0.0], [99.0, 2.0]], [[-3.0, 99.0], [0.0, 4.0]]])
    hidden = np.array([[[1, 1], [0, 1]], [[1, 0], [1, 1]]], dtype=bool)
    _, original = score(guess[:, None], truth, hidden, np.ones(2), probabilistic=False)
    mae = (4 / 3 + 6 / 3) / 2
    # Channel means of the hidden truth: 8/3 and 70/3.
    around = sum((np.array([1, 3, 4]) - 8 / 3) ** 2) + sum((np.array([10, 20, 40]) - 70 / 3) ** 2)
    expected = {
        "point_RMSE": (np.sqrt((1 + 9 + 0) / 3) + np.sqrt((0 + 4 + 16) / 3)) / 2,
        "point_MAE": mae,
        "point_MAPE": ((1 + 1 + 0) / 3 + (0 + 0.1 + 0.1) / 3) / 2,
        "MAPE_left_out": 0.0,
        "WAPE": (4 / 8 + 6 / 70) / 2,
        "R2": 1 - 30 / around,
        "CRPS": mae,
        "CRPS_CSDI": 10 / 78,
        "coverage50": None,
        "width90": None,
    }
    assert {name: original[name] for name in expected} == pytest.approx(expected)
    assert original.to_dict()["rmse"] == original["point_RMSE"]
    z, _ = score(guess[:, None], truth, hidden, np.array([2.0, 4.0]), probabilistic=False)
    assert z.mae == pytest.approx((4 / 3 / 2 + 6 / 3 / 4) / 2)
    assert z["R2"] == pytest.approx(1 - (10 / 4 + 20 / 16) / (14 / 3 / 4 + (around - 14 / 3) / 16))
    assert z["point_MAPE"] is z["WAPE"] is z["CRPS_CSDI"] is None


def test_mean_for_squares_and_median_for_absolutes() -> None:
    samples, truth = np.array([[0.0, 0.0, 0.0, 4.0, 6.0]]), np.ones(1)  # mean 2, median 0
    wanted = {"squared_error": 1, "absolute_error": 1, "squared_error_of_median": 1, "absolute_error_of_mean": 1}
    samples = samples * 2  # mean 4
    wanted |= {"squared_error": 9, "absolute_error_of_mean": 3}
    assert {name: statistic(name, samples, truth).item() for name in wanted} == pytest.approx(wanted)


def test_every_axis_agrees_with_a_loop() -> None:
    rng = np.random.default_rng(0)
    samples, truth = rng.normal(2, 1, (4, 6, 5, 3)), rng.normal(2, 1, (4, 5, 3))
    hidden = rng.random((4, 5, 3)) < 0.7
    cells = hidden_cells(samples, truth, hidden)
    statistics = cell_statistics(cells, np.zeros(3), independent_halves=True)
    squared = np.where(hidden, np.square(samples.mean(axis=1) - truth), np.nan)
    rmse = METRICS["point_RMSE"]
    np.testing.assert_allclose(
        by_channel(rmse, totals(cells, statistics))[0], np.sqrt(np.nanmean(squared, axis=(0, 1)))
    )
    by_step = measure(rmse, totals(cells, statistics, "step"))
    np.testing.assert_allclose(by_step, np.nanmean(np.sqrt(np.nanmean(squared, axis=0)), axis=1))
    windows = totals(cells, statistics, "window")
    np.testing.assert_allclose(measure(rmse, windows), np.nanmean(np.sqrt(np.nanmean(squared, axis=1)), axis=1))
    # A resample is the same as repeating its windows.
    weights = bootstrap_weights(4, 3, seed=1)
    for metric in POINTWISE:
        if metric.name == "R2":  # its level is that of all windows
            continue
        drawn = measure(metric, resampled(weights, windows))
        for row, value in zip(weights, drawn, strict=True):
            picked = np.repeat(np.arange(4), row.astype(int))
            again = hidden_cells(samples[picked], truth[picked], hidden[picked])
            sums = totals(again, cell_statistics(again, np.zeros(3), independent_halves=True))
            np.testing.assert_allclose(value, measure(metric, sums)[0])


@settings(max_examples=25, deadline=None)
@given(st.floats(0.01, 100), st.integers(0, 1000))
def test_units_are_what_scaling_the_data_would_give(factor: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    samples, truth = rng.normal(1, 1, (3, 4, 4, 2)), rng.normal(1, 1, (3, 4, 2))
    cells, scaled = (
        hidden_cells(samples / unit, truth / unit, np.ones_like(truth, dtype=bool)) for unit in (1.0, factor)
    )
    floor = np.array([0.5, 0.0])
    direct = totals(scaled, cell_statistics(scaled, floor / factor, independent_halves=True), "window")
    sums = totals(cells, cell_statistics(cells, floor, independent_halves=True), "window")
    assert set(DEGREES) <= set(sums)
    for name, values in in_units(sums, np.full(2, factor)).items():
        np.testing.assert_allclose(values, direct[name], rtol=1e-6, atol=1e-9)


def test_channels_without_hidden_cells_and_cells_without_truth_do_not_count() -> None:
    truth, hidden = np.zeros((3, 8, 2)), np.zeros((3, 8, 2), dtype=bool)
    hidden[:, :, 0] = True
    guess = np.stack([np.ones((3, 8)), np.full((3, 8), np.nan)], axis=-1)[:, None]
    _, original = score(guess, truth, hidden, np.array([1.0, np.nan]), probabilistic=False)
    assert original.rmse == 1.0
    missing = truth.copy()
    missing[1:, :, 0] = np.nan
    _, original = score(guess, missing, hidden, np.ones(2), probabilistic=False)
    assert original.rmse == 1.0
    nothing, _ = score(guess, truth, np.zeros_like(hidden), np.ones(2), probabilistic=False)
    assert {value for name, value in nothing.values.items() if name != "temp_spec_dist"} == {None}
    silent, _ = score(guess, np.full_like(truth, np.nan), hidden, np.ones(2), probabilistic=False)
    assert set(silent.values.values()) == {None}


def test_a_sample_that_is_not_a_number_is_not_forgiven() -> None:
    rng = np.random.default_rng(0)
    samples, truth = rng.normal(size=(3, 4, 8, 2)), rng.normal(size=(3, 8, 2))
    samples[1, 2, 3, 0] = np.nan
    z, original = score(samples, truth, np.ones_like(truth, dtype=bool), np.ones(2), weights=bootstrap_weights(3, 20))
    for name in ("point_RMSE", "point_MAE", "CRPS", "dist_KL", "dist_JS", "dist_WS", "dist_KS", "temp_spec_dist"):
        assert z[name] is None, name
    json.dumps([z.to_dict(), original.to_dict()], allow_nan=False)


def test_mape_leaves_out_what_is_too_near_to_zero_and_says_how_much() -> None:
    truth = np.array([0.0, 0.05, 1.0, 2.0]).reshape(1, 4, 1)
    _, original = score((truth + 0.5)[:, None], truth, np.ones_like(truth, dtype=bool), np.ones(1), probabilistic=False)
    assert original["point_MAPE"] == pytest.approx((0.5 + 0.25) / 2)
    assert original["MAPE_left_out"] == 0.5
    assert original["WAPE"] == pytest.approx(2 / 3.05)
    zero = np.zeros((1, 4, 1))
    _, original = score(zero[:, None], zero, zero == 0, np.ones(1), probabilistic=False, floor=0.0)
    assert original["point_MAPE"] is original["WAPE"] is original["R2"] is original["CRPS_CSDI"] is None
    assert original["MAPE_left_out"] == 1.0


@pytest.mark.parametrize("windows", [1, 2, 5])
def test_constants_single_windows_and_zeros_give_numbers_or_nothing(windows: int) -> None:
    for level in (0.0, 7.0, 1e20):
        truth = np.full((windows, 6, 2), level)
        samples = np.repeat(truth[:, None], 4, axis=1)
        weights = bootstrap_weights(windows, 10)
        z, original = score(samples, truth, np.ones_like(truth, dtype=bool), np.ones(2), weights=weights)
        json.dumps([z.to_dict(), original.to_dict()], allow_nan=False)
        for name in ("rmse", "mae", "crps", "dist_KL", "dist_JS", "dist_WS", "dist_KS", "MMD"):
            assert z[name] == pytest.approx(0.0, abs=1e-12), name
        assert z["coverage50"] == 1.0
        assert z["coverage90"] is z["width90"] is None, "four samples reach no 90 %"
        assert z["R2"] is z["temp_spec_dist"] is None
        assert (z.intervals["CRPS"] is None) == (windows < 5)


def test_scores_compare_by_their_numbers() -> None:
    assert Scores({"CRPS": 1.0}) == Scores({"CRPS": 1.0})
    assert Scores({"CRPS": 1.0}).crps == 1.0


@pytest.mark.parametrize("drawn", [1, 20])
def test_every_metric_but_the_pooled_is_the_mean_of_its_channels_in_both_units(drawn: int) -> None:
    rng = np.random.default_rng(5)
    deviation, spread = np.array([0.5, 40.0]), np.array([1.0, 30.0])
    truth = spread * (2 + rng.normal(size=(12, 16, 2)))
    samples = spread * (2.3 + rng.normal(size=(12, drawn, 16, 2)))
    hidden = rng.random((12, 16, 2)) < 0.4
    options = {"probabilistic": drawn > 1, "independent_halves": drawn > 1, "paths": True}
    whole = score(samples, truth, hidden, deviation, **options)
    each = [
        score(samples[..., k : k + 1], truth[..., k : k + 1], hidden[..., k : k + 1], deviation[k : k + 1], **options)
        for k in range(2)
    ]
    compared = set()
    for unit in (0, 1):
        for name, metric in METRICS.items():
            parts = [one[unit][name] for one in each]
            # Which sample of a cell MMD takes is drawn anew for every channel: only of one sample it is the same.
            if metric.pooled or None in parts or (name == "MMD" and drawn > 1):
                continue
            assert whole[unit][name] == pytest.approx(np.mean(parts), rel=1e-9), (unit, name)
            compared.add(name)
    left_out = {"R2", "CRPS_CSDI"} | ({"MMD"} if drawn > 1 else {"coverage50", "coverage90", "width50", "width90"})
    assert compared == set(METRICS) - left_out
