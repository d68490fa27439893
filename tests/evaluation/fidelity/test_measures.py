"""Each measure against a closed form or a slow, obviously right computation, on homes with gaps."""

import numpy as np
import pandas as pd
import pytest
from scipy import linalg, signal

from tamedit.data.reader import read
from tamedit.data.series import Series
from tamedit.evaluation.fidelity import distances_of, statistics_of
from tamedit.evaluation.fidelity.convolutions import embed, frechet, moments
from tamedit.evaluation.fidelity.homes_grid import Fleet, fleet, within, without_gaps
from tamedit.evaluation.fidelity.judges import days_ahead, discriminate, folds_of, predict, ridge, some
from tamedit.evaluation.fidelity.portrait import Portrait, autocorrelation, pooled_quantiles

MONDAY = pd.Timestamp("2024-01-01")


def with_gaps(homes: int = 4, weeks: int = 3, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    values = generator.gamma(2.0, 0.3, (homes, 168 * weeks))
    values[generator.random(values.shape) < 0.01] = np.nan
    return values


def portrait(values: np.ndarray) -> Portrait:
    return Portrait(Fleet(values, MONDAY, 24))


def test_homes_lie_on_one_grid_that_begins_on_a_monday() -> None:
    early = pd.DataFrame({"home": "a", "time": pd.date_range("2024-01-03", periods=400, freq="h"), "kwh": 1.0})
    late = pd.DataFrame({"home": "b", "time": pd.date_range("2024-01-05 07:00", periods=400, freq="h"), "kwh": 2.0})
    series: Series = read(pd.concat([early, late]), id="home")
    found = fleet(series)
    assert found.start == MONDAY
    assert np.flatnonzero(np.isfinite(found.values[0])).tolist() == list(range(48, 448))
    assert np.flatnonzero(np.isfinite(found.values[1])).tolist() == list(range(4 * 24 + 7, 4 * 24 + 407))
    part = within(series, pd.Timestamp("2024-01-04"), 2)
    assert part.lengths.tolist() == [48, 17]
    assert part.times.min() == pd.Timestamp("2024-01-04")
    assert part.times.max() == pd.Timestamp("2024-01-05 23:00")


def test_gaps_are_filled_by_a_line() -> None:
    rows = np.array([[np.nan, 1.0, np.nan, 3.0, np.nan]])
    assert without_gaps(rows).tolist() == [[1.0, 1.0, 2.0, 3.0, 3.0]]


def test_autocorrelation_is_that_of_a_loop_over_pairs() -> None:
    values = with_gaps()
    found = autocorrelation(values, 30)
    for home in range(len(values)):
        x = values[home] - np.nanmean(values[home])
        for lag in (1, 7, 24, 30):
            assert found[home, lag - 1] == pytest.approx(np.nanmean(x[:-lag] * x[lag:]) / np.nanmean(x * x))
    assert np.isnan(autocorrelation(np.ones((1, 50)), 3)).all()


def test_profiles_peaks_zeros_and_levels() -> None:
    values = with_gaps()
    values[0, :100] = 0.0
    found, first = portrait(values), values[0]
    assert found.level[0] == pytest.approx(np.nanmean(first))
    hours = np.arange(len(first)) % 24
    for hour in (0, 5, 23):
        assert found.daily_profile[0, hour] == pytest.approx(np.nanmean(first[hours == hour]) / np.nanmean(first))
    assert found.weekly_profile[1, 30] == pytest.approx(np.nanmean(values[1, 30::168]) / np.nanmean(values[1]))
    assert found.zeros[0] == pytest.approx((first == 0).sum() / np.isfinite(first).sum())
    days = [day for day in first.reshape(-1, 24) if np.isfinite(day).all()]
    assert found.peak[0] == pytest.approx(np.mean([day.max() for day in days]))
    at = np.bincount([int(day.argmax()) for day in days], minlength=24) / len(days)
    np.testing.assert_allclose(found.peak_time[0], at)


def test_the_spectrum_of_a_daily_wave_is_one_line() -> None:
    wave = 1 + np.sin(2 * np.pi * np.arange(336) / 24)
    found = portrait(np.stack([wave, wave])).spectrum[0]
    assert found[6] == pytest.approx(1.0)  # 7 periods a week; frequency 0 is left out
    noise = np.random.default_rng(0).standard_normal((2, 168))
    power = signal.periodogram(noise[0], detrend="constant")[1][1:]
    np.testing.assert_allclose(portrait(noise).spectrum[0], power / power.sum())


def test_weighted_statistics_are_those_of_a_repeated_home() -> None:
    values = with_gaps()
    weights = np.array([[1.0, 1, 1, 1], [2.0, 1, 0, 1]])
    repeated = values[[0, 0, 1, 3]]
    assert pooled_quantiles(values, np.array([0.5, 0.9]), weights)[1] == pytest.approx(
        np.nanquantile(repeated, [0.5, 0.9]), rel=0.01
    )
    found = statistics_of.levels(portrait(values), weights)
    logs = np.log(np.nanmean(repeated, axis=1))
    assert found["log_level_mean"][1] == pytest.approx(logs.mean())
    assert found["log_level_sd"][1] == pytest.approx(logs.std(ddof=1))
    assert statistics_of.duration(portrait(values), weights)["duration_p90"][0] == pytest.approx(
        np.nanquantile(values, 0.9)
    )
    steps = np.abs(np.diff(values, axis=1))
    assert statistics_of.ramps(portrait(values), weights)["ramp_p99"][0] == pytest.approx(np.nanquantile(steps, 0.99))


def test_coincidence_is_one_for_equal_homes_and_a_tenth_for_peaks_apart() -> None:
    equal = np.tile(np.random.default_rng(0).random(336), (12, 1))
    assert statistics_of.coincidence(portrait(equal)) == pytest.approx(1.0)
    apart = np.tile(np.eye(10, 168), (1, 2))
    assert statistics_of.coincidence(portrait(apart)) == pytest.approx(0.1)
    assert statistics_of.coincidence(portrait(equal[:9])) is None


def test_distances_of_means() -> None:
    one, two = with_gaps(seed=1), with_gaps(homes=5, seed=2)
    first, second = portrait(one), portrait(two)
    ones = np.ones((1, 4)), np.ones((1, 5))
    apart = np.abs(first.daily_profile.mean(axis=0) - second.daily_profile.mean(axis=0)).mean()
    assert distances_of.DISTANCES["daily_profile"](first, ones[0], second, ones[1])[0] == pytest.approx(apart)
    total = np.abs(first.peak_time.mean(axis=0) - second.peak_time.mean(axis=0)).sum() / 2
    assert distances_of.DISTANCES["peak_hour"](first, ones[0], second, ones[1])[0] == pytest.approx(total)


def test_frechet_is_the_formula_with_scipys_root() -> None:
    generator = np.random.default_rng(0)
    x, y = generator.standard_normal((200, 5)), 2 * generator.standard_normal((100, 5)) + 1
    a, b = np.cov(x.T, ddof=0), np.cov(y.T, ddof=0)
    expected = np.square(x.mean(0) - y.mean(0)).sum() + np.trace(a + b - 2 * np.real(linalg.sqrtm(a @ b)))
    assert frechet(moments(x, np.ones(200)), moments(y, np.ones(100))) == pytest.approx(expected / 5)


def test_the_embedding_is_fixed_and_independent_of_other_weeks() -> None:
    weeks = np.random.default_rng(0).random((600, 168))
    np.testing.assert_allclose(embed(weeks)[550:553], embed(weeks[550:553]), rtol=1e-5, atol=1e-6)


def test_ridge_solves_its_normal_equations_and_finds_a_line() -> None:
    x = np.random.default_rng(0).standard_normal((5000, 2))
    centre, level, slope = ridge(x, x @ [[1.0], [-2.0]] + 3, np.ones(5000), 0.01)
    assert (level - centre @ slope)[0] == pytest.approx(3, abs=0.05)
    np.testing.assert_allclose(slope[:, 0], [1 / 1.01, -2 / 1.01], rtol=0.02)


def test_homes_are_folded_whole_and_rows_chosen_per_home() -> None:
    assert np.bincount(folds_of(23, 0)).tolist() == [5, 5, 5, 4, 4]
    home = np.repeat([0, 1, 2], [5, 1, 9])
    assert np.bincount(home[some(home, 3, 0)]).tolist() == [3, 1, 3]


def test_judges_on_what_is_certain() -> None:
    generator = np.random.default_rng(0)
    noise = Fleet(generator.gamma(2.0, 1.0, (30, 504)), MONDAY, 24)
    wave = np.tile(1 + 0.5 * np.sin(2 * np.pi * np.arange(504) / 24), (10, 1)) * generator.gamma(5, 1, (10, 1))
    regular = Fleet(wave, MONDAY, 24)
    real, synthetic = discriminate(noise, regular, 1.0)
    assert (real.mean() + synthetic.mean()) / 2 > 0.98
    assert predict(regular, None).mean() < 0.02  # a wave forecasts itself
    assert predict(noise, None).mean() == pytest.approx(np.sqrt(0.5), rel=0.15)  # √variance / mean of this gamma
    assert predict(regular, noise).mean() > 3 * predict(regular, None).mean()
    features, wanted, home, level = days_ahead(regular, 0)
    assert features.shape == (len(home), 3 * 24 + 7)
    np.testing.assert_allclose(features[:, :24], wanted, rtol=1e-9)
    np.testing.assert_allclose(wanted * level[:, None], regular.days[home, 7], rtol=1e-9)  # every day is the same


def test_nearest_homes_of_copies_are_at_zero() -> None:
    values = with_gaps(6)
    alone = distances_of.nearest(portrait(values), portrait(values), 6)
    assert (alone > 0.1).all()
    doubled = portrait(np.concatenate([values, values]))
    assert distances_of.nearest(portrait(values), doubled, 12).max() < 1e-5
    assert np.isfinite(distances_of.nearest(portrait(values), doubled, 6)).sum() == 6
