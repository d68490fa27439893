"""Negative readings are replaced, everything else stays as it was."""

from dataclasses import replace

import numpy as np
import pandas as pd

from tamedit.data.clean import drop_negatives, moving_average, replace_negatives
from tamedit.data.reader import read
from tamedit.data.series import Series
from tamedit.data.simulate import simulate


def hourly(*columns: np.ndarray) -> Series:
    index = pd.date_range("2024-01-01", periods=len(columns[0]), freq="h", name="time")
    return read(pd.DataFrame({f"c{k}": column for k, column in enumerate(columns)}, index=index))


def test_nothing_to_do() -> None:
    series = hourly(np.arange(50.0))
    np.testing.assert_array_equal(replace_negatives(series).values, series.values)
    assert drop_negatives(series) is series


def test_dropping_looks_at_one_reading_at_a_time() -> None:
    series = simulate(meters=2, hours=500, negative_rate=0.02, seed=3)
    dropped = drop_negatives(series)
    with np.errstate(invalid="ignore"):
        negative = series.values < 0
    assert np.isnan(dropped.values[negative]).all()
    np.testing.assert_array_equal(dropped.values[~negative], series.values[~negative])
    assert f"{negative.sum()} negative readings taken as missing" in dropped.findings[-1]
    assert dropped.reach == 0
    assert replace_negatives(series).reach == 500


def test_only_negatives_change_and_missing_stays_missing() -> None:
    series = simulate(meters=3, hours=3000, seed=1, negative_rate=0.01, outage_rate=0.002)
    with np.errstate(invalid="ignore"):
        negative = series.values < 0
    assert 50 < negative.sum() < 150
    cleaned = replace_negatives(series)
    np.testing.assert_array_equal(cleaned.values[~negative], series.values[~negative])
    assert (cleaned.values[negative] >= 0).all()
    assert np.isnan(cleaned.values).sum() == np.isnan(series.values).sum()
    assert f"{negative.sum()} negative readings" in cleaned.findings[-1]


def test_a_constant_level_is_restored_exactly() -> None:
    values = np.full(400, 2.0)
    values[[0, 100, 101, 399]] = -1
    np.testing.assert_allclose(replace_negatives(hourly(values)).values[:, 0], 2.0, rtol=1e-6)


def test_replacement_is_the_baseline_plus_the_interpolated_deviation() -> None:
    """Against a slow and obvious computation."""
    generator = np.random.default_rng(0)
    values = generator.gamma(2.0, 1.0, 1000).astype(np.float32)
    wrong = [300, 301, 302, 700]
    values[wrong] = -5
    cleaned = replace_negatives(hourly(values)).values[:, 0]
    kept = values.astype(np.float64)
    kept[wrong] = np.nan
    baseline = np.array([np.nanmean(kept[max(0, t - 84) : t + 84]) for t in range(1000)])
    deviation = pd.Series(kept - baseline).interpolate().to_numpy()
    expected = np.maximum(0, baseline + deviation)
    np.testing.assert_allclose(cleaned[wrong], expected[wrong], rtol=1e-5)


def test_meters_and_channels_do_not_mix() -> None:
    series = simulate(meters=2, hours=500, negative_rate=0.02, outage_rate=0.0)
    alone = replace_negatives(series.select([1])).values
    np.testing.assert_array_equal(replace_negatives(series).values[500:], alone)
    both = hourly(np.where(np.arange(60) == 5, -1.0, 3.0), np.arange(60.0))
    np.testing.assert_array_equal(replace_negatives(both).values[:, 1], np.arange(60))


def test_all_negative_becomes_missing_and_long_negative_runs_are_finite() -> None:
    series = hourly(np.full(30, 1.0))
    assert np.isnan(replace_negatives(replace(series, values=-series.values)).values).all()
    values = np.full(3000, 2.0)
    values[500:2500] = -1
    np.testing.assert_allclose(replace_negatives(hourly(values)).values[:, 0], 2.0)


def test_moving_average_ignores_what_is_missing() -> None:
    values = np.array([1.0, np.nan, 3.0, np.nan, np.nan, np.nan, 5.0])
    np.testing.assert_array_equal(moving_average(values, 2), [1, 1, 3, 3, np.nan, np.nan, 5])
