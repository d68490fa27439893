"""A fleet of homes: who they are, that each is its own, and that the answer is the one that was asked for."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tamedit.data.calendar import calendar
from tamedit.errors import UserError
from tamedit.privacy.population import Population, features
from tamedit.runs.simulated_pool import Pool, simulated_pool, simulated_population
from tamedit.tasks import fleet as fleets
from tamedit.tasks.beginnings import beginnings, quantiles_of, shaped, studied, with_mean
from tamedit.tasks.fleet import Fleet, make_homes, who
from tamedit.tasks.habits import in_order_of

pytestmark = pytest.mark.usefixtures("small_pool")
HOUR = 3600.0


def asked(**change: Any) -> Fleet:
    given = {"homes": 6, "start": pd.Timestamp("2024-02-27"), "days": 9, "seed": 3, "step_seconds": HOUR, "length": 168}
    return Fleet(**(given | {"period": 24, "calendar": True, "redraw": False} | change))


def people(channels: int = 1, minutes: int = 60, period: int = 24, rows: int = 168) -> Population:
    return simulated_population((0.4,) * channels, minutes, rows, period, "public")


def never(*_: object) -> None:
    raise AssertionError("nothing was to be drawn by the network")


def homes(fleet: Fleet, population: Population, draw: Any = never, skip: int = 0) -> np.ndarray:
    return np.concatenate(list(make_homes(fleet, population, draw, skip)))


def noise(values: Any, observed: Any, covariates: Any, names: np.ndarray) -> Any:
    """A network that answers from the name of a window alone, alike in all channels."""
    drawn = np.stack([np.random.default_rng(int(name)).random(values.shape[1]) for name in names])
    return values.nan_to_num(0.0) * 0 + values.new_tensor(drawn)[:, :, None]


def test_a_home_depends_on_the_seed_and_its_number_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for fleet, draw in ((asked(), never), (asked(redraw=True), noise)):
        monkeypatch.setattr(fleets, "GROUP", 64)
        every = homes(fleet, people(), draw)
        np.testing.assert_array_equal(homes(fleet, people(), draw), every)
        np.testing.assert_array_equal(homes(replace(fleet, homes=2), people(), draw), every[:2])
        monkeypatch.setattr(fleets, "GROUP", 2)
        np.testing.assert_array_equal(homes(fleet, people(), draw), every)
        np.testing.assert_array_equal(homes(fleet, people(), draw, skip=2), every[4:])
        other = homes(replace(fleet, seed=4), people(), draw)
        assert (np.abs(other - every) > 1e-6).mean() > 0.9
        assert len({one.tobytes() for one in every}) == 6


@pytest.mark.parametrize("minutes", [15, 30, 60])
def test_rows_and_stamps_are_those_that_were_asked_for(minutes: int) -> None:
    """Over the night in which clocks change, and a leap day: stamps are by a clock that does not change."""
    for start in ("2024-02-28", "2024-03-30 00:00", "2024-10-26"):
        fleet = asked(homes=2, start=pd.Timestamp(start), days=3, step_seconds=60.0 * minutes, period=1440 // minutes)
        times = fleet.times
        assert times[0] == pd.Timestamp(start)
        assert times[-1] + pd.Timedelta(minutes=minutes) == pd.Timestamp(start) + pd.Timedelta(days=3)
        assert homes(fleet, people(minutes=minutes, period=1440 // minutes)).shape == (2, 3 * 1440 // minutes, 1)


def test_rows_that_the_simulator_cannot_make() -> None:
    for step, period, days in ((86400.0, 7, 1), (86400.0, 7, 30), (6 * HOUR, 4, 5), (600.0, 144, 2)):
        fleet = asked(homes=2, days=days, step_seconds=step, period=period)
        made = homes(fleet, people(period=period))
        assert made.shape == (2, days * 86400 / step, 1)
        assert np.isfinite(made).all()


def test_the_network_gets_the_calendar_of_the_days_that_were_asked_for() -> None:
    seen: list[np.ndarray] = []

    def draw(values: Any, observed: Any, covariates: Any, names: np.ndarray) -> Any:
        seen.append(covariates.numpy()[:, 0])
        return noise(values, observed, covariates, names)

    fleet = asked(homes=1, redraw=True)
    homes(fleet, people(), draw)
    first = seen[0]  # of the windows of pass 1: a stride before the start, the start, a stride after it
    days = pd.DatetimeIndex(["2024-02-20", "2024-02-27", "2024-03-05"])
    np.testing.assert_allclose(first[:3], calendar(days), atol=1e-6)


def test_winter_is_winter() -> None:
    """Heating and light: the simulated fleet uses more in January than in July, whenever the fleet begins."""
    year = homes(asked(homes=24, start=pd.Timestamp("2024-04-01"), days=365), people())[:, :, 0]
    month = asked(start=pd.Timestamp("2024-04-01"), days=365).times.month
    assert year[:, month == 1].mean() > 1.1 * year[:, month == 7].mean()
    evening, night = (year.reshape(24, 365, 24)[:, :, hour].mean() for hour in (19, 3))
    assert evening > 1.3 * night


def test_homes_have_the_levels_and_the_marginal_that_were_asked_for() -> None:
    """Half of the spread of another population, and a lower level: the median home has it, and its quantiles, too."""
    usual = people()
    mean, covariance = np.array(usual.mean), np.array(usual.covariance) / 4
    mean[0] += 0.2
    histogram = np.roll(np.array(usual.histogram[0]), -1)
    other = usual.model_copy(
        update={
            "mean": tuple(mean),
            "covariance": tuple(map(tuple, covariance)),
            "histogram": (tuple(histogram),),
        }
    )
    fleet = asked(homes=64, days=364)
    pool = simulated_pool(60, 168, 24)
    wanted = who(fleet, other, pool, np.arange(64))
    made = homes(fleet, other)
    levels = other.levels(wanted)[:, 0]
    np.testing.assert_allclose(
        made[:, :, 0].mean(axis=1), levels, rtol=0.06
    )  # a piece's own level and its shape multiply
    weeks = made.reshape(64 * 52, 168, 1).astype(np.float64)
    u, _, _ = features(weeks, 0.0, other.within.upper[0], 24)
    spread = u[:, 0, 1].reshape(64, 52).mean(axis=1)
    assert np.corrcoef(spread, wanted[:, 0, 1])[0, 1] > 0.9
    assert abs(spread.mean() - wanted[:, 0, 1].mean()) < 0.08


def test_a_yearly_total_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    population = people()
    for days, redraw in ((365, False), (400, True)):
        fleet = asked(homes=20, days=days, yearly=(3000.0, 3300.0), redraw=redraw)
        totals = homes(fleet, population, noise)[:, :, 0].sum(axis=1) * 365 / days
        assert totals.min() >= 3000 * 0.9999
        assert totals.max() <= 3300 * 1.0001
        assert totals.std() > 30, "homes fill the range"
    short = homes(asked(homes=5, yearly=(3000.0, 3300.0)), population)
    longer = homes(asked(homes=5, days=365, yearly=(3000.0, 3300.0)), population)
    np.testing.assert_allclose(short, longer[:, : short.shape[1]], rtol=1e-5)  # part of a year of that total
    with pytest.raises(UserError, match="too rare"):
        homes(asked(yearly=(1e6, 2e6)), population)


def test_cut_paths_still_have_the_mean() -> None:
    path = np.random.default_rng(0).gamma(1.0, 1.0, (3, 500))
    made = with_mean(path, np.array([0.2, 1.0, 1.5]), 3.0, slice(100, 400))
    np.testing.assert_allclose(made[:, 100:400].mean(axis=1), [0.2, 1.0, 1.5], rtol=1e-3)
    assert made.max() <= 3.0


def test_paths_stay_between_the_bounds_and_zeros_are_those_that_were_asked_for() -> None:
    population = people()
    mean = np.array(population.mean)
    mean[2] = 0.25
    many = population.model_copy(update={"mean": tuple(mean)})
    wanted = np.tile(mean, (4, 1, 1))
    pool, times = simulated_pool(60, 168, 24), asked(days=365).times
    made = beginnings(many, wanted, np.arange(4), times, HOUR, pool, 0)
    np.testing.assert_allclose((made == 0).mean(axis=(1, 2)), 0.25, atol=1e-3)
    within = many.within.model_copy(update={"lower": (-1.0,), "upper": (0.4,)})
    low = beginnings(many.model_copy(update={"within": within}), wanted, np.arange(4), times, HOUR, pool, 0)
    assert low.min() == -1.0
    assert low.max() <= 0.4


def test_shaped_is_the_slow_map() -> None:
    generator = np.random.default_rng(2)
    ratios, spreads = generator.gamma(1.0, 1.0, (3, 2000)), np.array([0.5, 1.0, 1.6])
    zeros = np.array([0.0, 0.1, 0.3])
    made = shaped(ratios, np.zeros(512), spreads, zeros)
    np.testing.assert_allclose(made.mean(axis=1), 1.0)
    np.testing.assert_allclose(made.std(axis=1), spreads, rtol=0.05)
    np.testing.assert_allclose((made == 0).mean(axis=1), zeros, atol=1e-3)
    for one, row in zip(made, ratios, strict=True):  # more stays more
        assert (np.diff(one[np.argsort(row)]) >= 0).all()


def test_quantiles_of_a_histogram() -> None:
    flat = quantiles_of(np.full(40, 1 / 40))
    np.testing.assert_allclose(flat, -5 + 9 * (np.arange(512) + 0.5) / 512, atol=1e-9)
    one = np.zeros(40)
    one[10] = 1.0
    assert (quantiles_of(one) >= -5 + 9 * 10 / 40).all()
    assert (quantiles_of(one) <= -5 + 9 * 11 / 40).all()


def test_dates_of_the_study() -> None:
    times = pd.date_range("2024-01-01", "2024-12-31 23:00", freq="h")

    def covered(begin: str, end: str) -> np.ndarray:
        within = people().within.model_copy(update={"begin": begin, "end": end})
        return studied(times, people().model_copy(update={"within": within}))

    assert covered("2016-01-01", "2018-06-30").all()
    winter = covered("2016-11-01", "2017-02-28")
    assert set(times[winter].month) == {11, 12, 1, 2}
    assert set(times[covered("2016-06-01", "2016-06-30")].month) <= {5, 6}


def test_several_channels_keep_the_dependence_of_the_network_and_of_the_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beginnings are simulated apart; the network draws both channels together, and its order in time is what is kept."""
    two, begun = people(channels=2), []
    monkeypatch.setattr(fleets, "beginnings", lambda *given: begun.append(beginnings(*given)) or begun[-1])
    made = homes(asked(homes=8, days=28, redraw=True), two, noise)
    ranks = np.argsort(np.argsort(made, axis=1), axis=1)
    together = [np.corrcoef(one[:, 0], one[:, 1])[0, 1] for one in ranks]
    assert min(together) > 0.99
    before = begun[0][:, 168 : 168 + made.shape[1]].astype(np.float32)  # a window stands before the start
    np.testing.assert_array_equal(np.sort(made, axis=1), np.sort(before, axis=1))
    covariance = np.kron(np.array([[1.0, 0.98], [0.98, 1.0]]), np.array(people().covariance))
    tied = two.model_copy(update={"covariance": tuple(map(tuple, covariance))})
    vectors = who(asked(homes=400), tied, _still(), np.arange(400))
    assert np.corrcoef(vectors[:, 0, 0], vectors[:, 1, 0])[0, 1] > 0.95


def _still() -> Pool:
    pool = simulated_pool(60, 168, 24)
    return replace(pool, within_homes=np.zeros((5, 5)))


def test_in_order_of() -> None:
    values, order = np.array([[[5.0], [1.0], [3.0], [2.0]]]), np.array([[[0.1], [0.4], [0.2], [0.3]]])
    np.testing.assert_array_equal(in_order_of(values, order)[0, :, 0], [1.0, 5.0, 2.0, 3.0])
