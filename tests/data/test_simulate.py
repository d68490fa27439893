"""The simulator: seeded, of any size, and like a household."""

from hashlib import blake2b
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tamedit.data.series import Series
from tamedit.data.simulate import Region, simulate, simulate_homes
from tamedit.data.traits import NAMES, TRAITS, draw_homes, mutated
from tamedit.errors import UserError


def test_default_has_the_shape_of_the_private_series() -> None:
    series = simulate()
    assert len(series) == 23_136
    assert series.times[0] == pd.Timestamp("2023-01-01")
    assert series.times[-1] == pd.Timestamp("2025-08-21 23:00")
    assert (series.layout, series.targets, series.period) == ("wide", ("kwh",), 24)
    values = series.values[:, 0]
    assert 0 < np.isnan(values).mean() < 0.02
    assert 0 < (values < 0).sum() < 20


def test_same_seed_same_series() -> None:
    np.testing.assert_array_equal(simulate(2, 500, seed=4).values, simulate(2, 500, seed=4).values)
    assert not np.array_equal(simulate(1, 500, seed=4).values, simulate(1, 500, seed=5).values)


def test_a_meter_does_not_depend_on_how_many_there_are() -> None:
    np.testing.assert_array_equal(simulate(2, 400, seed=1).values, simulate(5, 400, seed=1).values[:800])


def test_fleet_is_long() -> None:
    series = simulate(12, 48)
    assert series.layout == "long"
    assert series.meters[3] == "meter_03"
    frame = series.frame()
    assert list(frame.columns) == ["meter", "time", "kwh"]
    assert len(frame) == 12 * 48


def test_without_disturbances_all_is_positive_and_complete() -> None:
    values = simulate(20, 2000, spike_rate=0.0, negative_rate=0.0, outage_rate=0.0).values
    assert (values > 0).all()


def test_rates_are_what_happens() -> None:
    values = simulate(30, 8760, negative_rate=0.01, outage_rate=0.001, outage_hours=20.0).values
    assert (values < 0).mean() == pytest.approx(0.01, rel=0.1)
    assert np.isnan(values).mean() == pytest.approx(1 - np.exp(-0.02), rel=0.2)


def test_looks_like_household_load() -> None:
    """Ranges around published figures of European homes: level, skew, rhythm of the day, winter above summer."""
    load = (
        simulate(100, 8760, spike_rate=0.0, negative_rate=0.0, outage_rate=0.0)
        .values.reshape(100, 8760)
        .astype(np.float64)
    )
    assert 0.25 < np.median(load.mean(axis=1)) < 0.45
    assert 0.7 < np.median(load.std(axis=1) / load.mean(axis=1)) < 1.3
    assert np.median(load) < 0.75 * load.mean()
    assert np.quantile(load, 0.99) > 4 * load.mean()
    centred = load - load.mean(axis=1, keepdims=True)

    def correlation(lag: int) -> float:
        return float(np.median((centred[:, lag:] * centred[:, :-lag]).mean(axis=1) / centred.var(axis=1)))

    assert 0.35 < correlation(1) < 0.65
    assert correlation(24) > 0.15
    assert correlation(24) > correlation(12) + 0.1
    day = load.mean(axis=0).reshape(365, 24)
    assert day[:, 17:21].mean() > 1.8 * day[:, 1:5].mean()
    assert day[:30].mean() > 1.2 * day[170:200].mean()


def test_bad_arguments() -> None:
    for arguments in ({"meters": 0}, {"hours": 1}, {"spike_rate": 2.0}, {"outage_hours": 0.0}, {"start": "soon"}):
        with pytest.raises(UserError):
            simulate(**arguments)  # type: ignore[arg-type]


def test_variety_spreads_the_homes_and_zero_changes_nothing() -> None:
    plain, same = simulate(meters=60, hours=24 * 21, seed=2), simulate(meters=60, hours=24 * 21, seed=2, variety=0.0)
    np.testing.assert_array_equal(plain.values, same.values)
    varied = simulate(meters=60, hours=24 * 21, seed=2, variety=0.8)

    def shapes(series: Series) -> np.ndarray:
        """Log of the lowest decile over the mean of every meter: how much of the load never stops."""
        loads = series.values.reshape(60, -1)
        return np.log(np.nanquantile(loads, 0.1, axis=1) / np.nanmean(loads, axis=1))

    assert shapes(varied).std() > 1.3 * shapes(plain).std()
    with pytest.raises(UserError, match="variety"):
        simulate(hours=100, variety=-1)


@pytest.mark.parametrize("minutes", [30, 15])
def test_shorter_rows_are_the_same_kind_of_home(minutes: int) -> None:
    """About as much energy, more of it in single rows, and the hours within a day as before."""
    hourly, finer = (simulate(200, 24 * 7, seed=6, outage_rate=0, minutes=one) for one in (60, minutes))
    assert finer.period == 24 * 60 // minutes
    assert len(finer) == len(hourly) * 60 // minutes
    assert finer.frequency == pd.Timedelta(minutes=minutes)
    per_hour = finer.values.reshape(-1, 60 // minutes)
    assert np.nanmean(per_hour) == pytest.approx(np.nanmean(hourly.values), rel=0.2)
    assert np.nanstd(finer.values) > np.nanstd(np.nanmean(per_hour, axis=1))
    days = [np.nanmean(one.reshape(-1, 24), axis=0) for one in (np.nanmean(per_hour, axis=1), hourly.values[:, 0])]
    assert np.corrcoef(*days)[0, 1] > 0.95


def test_a_region_differs_as_it_says() -> None:
    usual, cold = (simulate(60, 24 * 28, seed=6, region=one).values for one in (Region(), Region(heated=1, warmer=-5)))
    assert np.nanmean(cold) > 1.3 * np.nanmean(usual)
    late = simulate(60, 24 * 28, seed=6, region=Region(later=3)).values.reshape(-1, 24)
    profile, later = np.nanmean(usual.reshape(-1, 24), axis=0), np.nanmean(late, axis=0)
    assert (later.argmax() - profile.argmax()) % 24 in (2, 3, 4)


def test_other_rows_are_refused() -> None:
    with pytest.raises(UserError, match="minutes=7 must be one of 15, 30, 60"):
        simulate(1, 48, minutes=7)


@pytest.mark.parametrize(
    ("choices", "digest"),
    [
        ({"meters": 3, "hours": 900, "seed": 5}, "c07ff1bd78ebb512"),
        (
            {"meters": 4, "hours": 700, "seed": 7, "variety": 0.5, "minutes": 30, "start": "2024-03-01 05:00"},
            "41b7bcf417825633",
        ),
        (
            {
                "meters": 6,
                "hours": 9600,
                "seed": 1,
                "variety": 0.3,
                "region": Region(1.3, 0.8, 1.2, 1.5, 0.6, -3.0, 0.7),
            },
            "b54301db01292372",
        ),
    ],
)
def test_homes_are_those_of_before_traits_could_be_given(choices: dict[str, Any], digest: str) -> None:
    """Digests of the simulator as it was when it drew its numbers in place: models and results hang on them."""
    assert blake2b(simulate(**choices).values.tobytes(), digest_size=8).hexdigest() == digest


def test_a_given_trait_does_what_its_name_says() -> None:
    home = draw_homes(1, np.random.default_rng(0))
    larger, later = home.copy(), home.copy()
    larger[:, NAMES.index("size")] *= 2
    later[:, NAMES.index("return_home")] = 22.0
    load, more, shifted = (simulate_homes(one, 24 * 200, seed=3).values[:, 0] for one in (home, larger, later))
    assert 1.4 < more.mean() / load.mean() < 2.2
    day = [one.reshape(-1, 24).mean(axis=0) for one in (load, shifted)]
    assert day[1][21:24].mean() > 1.2 * day[0][21:24].mean()
    assert simulate_homes(home, 48).layout == "long"


def test_moved_homes_stay_within_the_ranges_and_move_by_the_width() -> None:
    homes, stream = draw_homes(300, np.random.default_rng(1)), np.random.default_rng(2)
    np.testing.assert_allclose(mutated(homes, 0.0, stream), homes, rtol=1e-9)
    far = mutated(homes, 3.0, stream)
    low = np.array([TRAITS[name].low for name in NAMES])
    high = np.array([TRAITS[name].high for name in NAMES])
    assert ((far >= low) & (far <= high)).all()
    near = mutated(homes, 0.01, stream)
    place = NAMES.index("rise")
    assert (near - homes)[:, place].std() == pytest.approx(0.01 * 8.0, rel=0.2)
