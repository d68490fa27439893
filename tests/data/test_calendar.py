"""Calendar covariates lie on circles and follow the local clock."""

import numpy as np
import pandas as pd

from tamedit.data.calendar import CALENDAR_NAMES, calendar, with_calendar
from tamedit.data.simulate import simulate


def test_known_phases() -> None:
    times = pd.DatetimeIndex(["2024-01-01 00:00", "2024-01-01 06:00", "2024-01-04 12:00"])  # a Monday
    channels = calendar(times)
    assert channels.dtype == np.float32
    np.testing.assert_allclose(channels[0], [0, 1, 0, 1, 0, 1], atol=1e-6)
    np.testing.assert_allclose(channels[1, :2], [1, 0], atol=1e-6)
    np.testing.assert_allclose(channels[2, 2:4], [0, -1], atol=1e-6)  # Thursday noon is the middle of the week


def test_on_the_unit_circle_and_without_jumps() -> None:
    channels = calendar(pd.date_range("2023-01-01", periods=3 * 8766, freq="h")).reshape(-1, 3, 2)
    np.testing.assert_allclose((channels**2).sum(axis=2), 1, atol=1e-5)
    steps = np.abs(np.diff(channels, axis=0)).max(axis=(0, 2))
    assert (steps <= np.array([2 * np.pi / 24, 2 * np.pi / 168, 0.02]) + 1e-4).all()


def test_local_time() -> None:
    utc = pd.DatetimeIndex(["2024-07-01 11:00"]).tz_localize("UTC")
    local = calendar(utc.tz_convert("Europe/London"))
    np.testing.assert_allclose(local[0, :2], [0, -1], atol=1e-6)  # noon in London
    assert not np.allclose(calendar(utc)[0, :2], local[0, :2])


def test_with_calendar_appends_once() -> None:
    series = with_calendar(simulate(meters=2, hours=48))
    assert series.covariates.shape == (96, 6)
    assert series.covariate_names == CALENDAR_NAMES
    np.testing.assert_array_equal(series.covariates[:48], series.covariates[48:])
    assert with_calendar(series) is series
