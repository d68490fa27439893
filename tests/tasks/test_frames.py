"""Rows added before and after a series, and tables made of draws."""

from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamedit.data.calendar import CALENDAR_NAMES, with_calendar, without_calendar
from tamedit.data.reader import read
from tamedit.data.reading.grid import Step
from tamedit.data.series import Series
from tamedit.errors import UserError
from tamedit.tasks.frames import QUANTILES, at_least, extended, quantile_levels, steps_ahead, table, window_times


def panel(lengths: list[int], zone: str | None = None) -> Series:
    parts = []
    for number, length in enumerate(lengths):
        times = pd.date_range(f"2024-03-{28 + number}", periods=length, freq="h", tz=zone)
        parts.append(
            pd.DataFrame({"meter": f"m{number}", "time": times, "x": np.arange(length) + 100.0 * number, "c": number})
        )
    return read(pd.concat(parts), targets=["x"], covariates=["c"])


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(2, 20), min_size=1, max_size=4), st.integers(1, 15))
def test_short_meters_get_empty_rows_before_their_first(lengths: list[int], length: int) -> None:
    series = panel(lengths, "Europe/London")
    padded, kept = at_least(series, length)
    assert (padded.lengths == np.maximum(series.lengths, length)).all()
    np.testing.assert_array_equal(padded.values[kept], series.values)
    assert (padded.times[kept] == series.times).all()
    assert np.isnan(np.delete(padded.values, kept, axis=0)).all()
    for meter in range(len(lengths)):
        rows = slice(padded.offsets[meter], padded.offsets[meter + 1])
        assert (np.diff(padded.times[rows].asi8) == np.diff(series.times[:2].asi8)).all()
        assert (padded.covariates[rows] == meter).all()


@pytest.mark.parametrize(("step", "zone"), [("MS", None), ("ME", None), ("D", "Europe/Berlin"), ("W-FRI", None)])
def test_empty_rows_before_the_first_stay_on_the_calendar(step: str, zone: str | None) -> None:
    longer = pd.date_range("2023-10-10", periods=30, freq=step, tz=zone)
    series = read(pd.DataFrame({"time": longer[20:], "x": np.arange(10.0)}), targets=["x"])
    padded, _ = at_least(series, 30)
    assert (padded.times == longer).all()


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(2, 20), min_size=1, max_size=4), st.integers(1, 15))
def test_empty_rows_after_every_meter(lengths: list[int], horizon: int) -> None:
    series = panel(lengths, "Europe/London")
    future = pd.DataFrame({"c": np.arange(horizon) + 0.5})
    longer, ahead = extended(series, horizon, future)
    assert (longer.lengths == series.lengths + horizon).all()
    np.testing.assert_array_equal(longer.values[~ahead], series.values[:, 0])
    assert np.isnan(longer.values[ahead]).all()
    assert ahead.sum() == horizon * len(lengths)
    np.testing.assert_array_equal(longer.covariates[ahead[:, 0], 0], np.tile(future["c"], len(lengths)))
    for meter in range(len(lengths)):
        stamps = longer.times[longer.offsets[meter] : longer.offsets[meter + 1]]
        assert (stamps[1:] - stamps[:-1] == pd.Timedelta(hours=1)).all()


def test_quantiles_of_few_samples_are_not_too_narrow() -> None:
    """19 samples are what a 90 % interval needs: its ends are the smallest and the largest."""
    series = read(np.array([1.0, np.nan, 3.0]))
    missing = np.isnan(series.values)
    drawn = np.random.default_rng(0).normal(size=(19, 1))
    row = table(series, missing, drawn).iloc[1]
    assert row["channel_1_q05"] == pytest.approx(drawn.min())
    assert row["channel_1_q95"] == pytest.approx(drawn.max())
    assert row["channel_1"] == pytest.approx(np.median(drawn))


def test_names_that_the_answer_needs() -> None:
    series = read(np.ones((3, 2)), targets=["a", "a_q05"])
    nothing = np.zeros((3, 2), dtype=bool)
    with pytest.raises(UserError, match="'a_q05' has the name"):
        table(series, nothing, np.ones((4, 0)))
    assert len(table(series, nothing, np.ones((4, 0)), None)) == 12
    assert len(table(series, nothing, np.ones((4, 0)), (0.1,))) == 3
    with pytest.raises(UserError, match="'sample' has the name"):
        table(read(np.ones((3, 1)), targets=["sample"]), nothing[:, :1], np.ones((4, 0)), None)


def test_the_columns_follow_the_quantiles() -> None:
    series = read(np.array([1.0, np.nan, 3.0]))
    drawn = np.random.default_rng(0).normal(size=(199, 1))
    levels = (0.005, 0.025, 0.07, 0.1, 0.5, 0.975)
    filled = table(series, np.isnan(series.values), drawn, levels)
    names = [f"channel_1_q{share}" for share in ("00.5", "02.5", "07", "10", "50", "97.5")]
    assert list(filled.columns) == ["channel_1", *names]
    expected = np.sort(drawn[:, 0])[[round(200 * level) - 1 for level in levels]]
    np.testing.assert_allclose(filled[names].iloc[1], expected, rtol=1e-6)
    assert (filled[names].iloc[0] == 1).all()


@pytest.mark.parametrize(
    "wrong",
    [(), (0.0, 0.5), (0.5, 1.0), (-0.1,), (0.9, 0.1), (0.5, 0.5), (np.nan,), ("low",), 0.5, None, "", "0.1;0.9"],
)
def test_quantiles_that_cannot_be(wrong: Any) -> None:
    with pytest.raises(UserError, match="is not possible; give increasing numbers between 0 and 1") as refused:
        quantile_levels(wrong, all_samples=False)
    assert "\n" not in str(refused.value)


def test_quantiles_or_every_sample() -> None:
    assert quantile_levels(np.array([0.1, 0.9]), all_samples=False) == (0.1, 0.9)
    assert quantile_levels("0.1, 0.9", all_samples=False) == (0.1, 0.9)
    assert quantile_levels(QUANTILES, all_samples=True) is None
    with pytest.raises(UserError, match="exclude each other"):
        quantile_levels((0.1, 0.9), all_samples=True)


def stamped(step: str, zone: str | None = None) -> Series:
    times = pd.date_range("2024-01-01", periods=10, freq=step, tz=zone)
    return read(pd.DataFrame({"time": times, "x": np.arange(10.0)}), targets=["x"])


@pytest.mark.parametrize(
    ("step", "horizon", "steps"),
    [
        ("h", 24, 24),
        ("h", np.int64(24), 24),
        ("h", "24", 24),
        ("h", "24h", 24),
        ("h", "2D", 48),
        ("h", "90min", None),
        ("h", timedelta(days=1), 24),
        ("15min", "2h", 8),
        ("15min", "10min", None),
        ("D", "2D", 2),
        ("D", "48h", 2),
        ("D", "36h", None),
        ("MS", "12MS", 12),
        ("MS", "1YS", 12),
        ("MS", "30D", None),
        ("h", "1MS", None),
        ("h", 0, None),
        ("h", -3, None),
        ("h", "-24h", None),
        ("h", 2.5, None),
        ("h", None, None),
        ("h", "soon", None),
        ("h", "", None),
        ("h", 1_000_001, None),
        ("h", "9" * 30 + "D", None),
        pytest.param("h", "9" * 5000, None, id="beyond what int() reads"),
    ],
)
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_horizons(step: str, zone: str | None, horizon: Any, steps: int | None) -> None:
    series = stamped(step, zone)
    if steps is not None:
        assert steps_ahead(series, horizon) == steps
        return
    with pytest.raises(UserError, match="is not a whole number of steps of ") as refused:
        steps_ahead(series, horizon)
    assert str(refused.value).startswith(f"horizon={horizon!r}")
    assert ("12MS" in str(refused.value)) == (step == "MS")


def test_calendar_channels_are_left_to_the_model() -> None:
    series = panel([5])
    assert without_calendar(series) is series
    plain = without_calendar(with_calendar(series))
    assert plain.covariate_names == ("c",)
    np.testing.assert_array_equal(plain.covariates, series.covariates)
    assert set(with_calendar(plain).covariate_names) == {"c", *CALENDAR_NAMES}


def test_stamps_of_generated_windows() -> None:
    times = window_times(3, 4, 900, pd.Timestamp("2024-02-29 12:00", tz="Europe/Paris"), 0)
    assert times.shape == (3, 4)
    assert times[2, 3] == np.datetime64("2024-02-29T12:45")
    random = window_times(50, 2, 3600, None, 0)
    assert (random[:, 0] == random[:, 0].astype("datetime64[D]")).all()
    assert len(np.unique(random[:, 0])) > 20
    assert (random == window_times(50, 2, 3600, None, 0)).all()


@pytest.mark.parametrize("step", ["W-FRI", "D", "h", "15min"])
def test_generated_windows_stand_where_the_rows_of_training_did(step: str) -> None:
    stamps = pd.date_range("2023-10-10 06:10", periods=40, freq=step)
    series = read(pd.DataFrame({"time": stamps, "x": np.arange(40.0)}), targets=["x"])
    times = window_times(30, 2, series.frequency.total_seconds(), None, 0, series.phase_seconds)
    apart = (times - stamps[0].to_datetime64()) / series.frequency.to_timedelta64()
    assert (apart == apart.round()).all()
    assert len(np.unique(times[:, 0])) > 10


def test_generated_months_stay_on_the_calendar() -> None:
    month = Step("months", 1).frequency.total_seconds()
    times = window_times(2, 5, month, "2024-11-15", seed=0)
    assert [str(one)[:10] for one in times[0]] == ["2024-11-01", "2024-12-01", "2025-01-01", "2025-02-01", "2025-03-01"]
    quarters = window_times(1, 3, 3 * month, "2024-01-01", seed=0)
    assert [str(one)[:10] for one in quarters[0]] == ["2024-01-01", "2024-04-01", "2024-07-01"]
    drawn = window_times(50, 3, month, None, seed=0)
    assert all(str(one)[8:19] == "01T00:00:00" for one in drawn.ravel())
