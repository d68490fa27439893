"""Time stamps: formats, offsets, clock changes, unordered rows, gaps, months."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamedit.data.reader import read
from tamedit.data.series import Series
from tamedit.errors import UserError


def series_at(stamps: object, **arguments: object) -> Series:
    frame = pd.DataFrame({"time": stamps, "kwh": np.arange(len(list(stamps)), dtype=float)})  # type: ignore[call-overload]
    return read(frame, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "stamps",
    [
        ["2024-01-12T23:00:00", "2024-01-13T00:00:00", "2024-01-13T01:00:00"],
        ["12/01/2024 23:00", "13/01/2024 00:00", "13/01/2024 01:00"],
        ["01/12/2024 23:00", "01/13/2024 00:00", "01/13/2024 01:00"],
        ["12.01.2024 23:00", "13.01.2024 00:00", "13.01.2024 01:00"],
        [1705100400, 1705104000, 1705107600],
        [1705100400000, 1705104000000, 1705107600000],
    ],
)
def test_formats(stamps: list[object]) -> None:
    series = series_at(stamps)
    naive = series.times.tz_localize(None)
    assert list(naive) == list(pd.date_range("2024-01-12 23:00", periods=3, freq="h"))
    assert (series.times.tz is not None) == isinstance(stamps[0], int)


def test_ambiguous_dates_are_read_so_that_the_grid_is_regular() -> None:
    stamps = [f"{day:02d}/03/2024" for day in range(1, 13)]
    series = series_at(stamps)
    assert series.times[1] == pd.Timestamp("2024-03-02")
    assert any("day first" in note for note in series.notes)


@pytest.mark.parametrize("form", ["%d/%m/%Y", "%m/%d/%Y"])
def test_ambiguous_dates_of_months(form: str) -> None:
    months = pd.date_range("2010-01-01", periods=120, freq="MS")
    series = series_at(months.strftime(form))
    assert (series.times == months).all()
    assert series.spoken_step == "1 month"


def test_date_and_time_in_two_columns() -> None:
    frame = pd.DataFrame({"Date": ["16/12/2006", "16/12/2006"], "Time": ["17:24:00", "17:25:00"], "kw": ["4.2", "?"]})
    with pytest.raises(UserError, match=r"Row 1, column 'kw'"):
        read(frame)
    series = read(frame.assign(kw=[4.2, 5.0]))
    assert list(series.times) == [pd.Timestamp("2006-12-16 17:24"), pd.Timestamp("2006-12-16 17:25")]
    assert series.period == 1440


def test_days_years_and_indices() -> None:
    assert series_at([20240131, 20240201, 20240202]).times[1] == pd.Timestamp("2024-02-01")
    years = read(pd.DataFrame({"year": [2000, 2001, 2003], "x": [1.0, 2.0, 3.0]}))
    assert list(years.times.year) == [2000, 2001, 2002, 2003]
    assert years.period == 1
    frame = pd.DataFrame({"x": [1.0, 2.0]}, index=pd.period_range("2024-01", periods=2, freq="M"))
    assert read(frame).times[1] == pd.Timestamp("2024-02-01")


@pytest.mark.parametrize(
    ("form", "shown"),
    [("%Y%m%d%H", "YYYYMMDDHH"), ("%Y%m%d%H%M", "YYYYMMDDHHMM"), ("%Y%m%d%H%M%S", "YYYYMMDDHHMMSS")],
)
@pytest.mark.parametrize("kind", ["int64", "Int64", "float64"])
def test_compact_stamps(form: str, shown: str, kind: str) -> None:
    """They have as many digits as Unix time, and would be read as the year 2034 or 1976."""
    hours = pd.date_range("1999-12-30 22:00", periods=60, freq="h")
    series = series_at(pd.Series(hours.strftime(form).astype("int64"), dtype=kind))
    assert list(series.times) == list(hours)
    assert any(f"'time' were taken to be times written as {shown}" in note for note in series.notes)


def test_numbers_that_are_nearly_compact_stamps() -> None:
    hours_to_24 = [2024010100 + hour for hour in range(1, 25)]
    with pytest.raises(UserError, match=r"Row 23 of the DataFrame has 2024010124 in the time column 'time'"):
        series_at(hours_to_24)
    later = pd.date_range("2034-02-20", periods=200, freq="h", tz="UTC")
    series = series_at((later - pd.Timestamp(0, tz="UTC")) // pd.Timedelta("1s"))
    assert list(series.times) == list(later)


def test_unordered_rows_are_sorted_and_noted() -> None:
    series = series_at(["2024-01-01 02:00", "2024-01-01 00:00", "2024-01-01 01:00"])
    np.testing.assert_array_equal(series.values[:, 0], [1, 2, 0])
    assert any("sorted" in note for note in series.findings)


def test_single_offset_is_kept_and_mixed_offsets_become_utc() -> None:
    fixed = series_at(["2024-01-01T00:00+01:00", "2024-01-01T01:00+01:00"])
    assert fixed.times[0] == pd.Timestamp("2023-12-31 23:00", tz="UTC")
    assert fixed.times[0].hour == 0
    stamps = ["2024-03-31T00:00+00:00", "2024-03-31T02:00+01:00", "2024-03-31T03:00+01:00"]
    mixed = series_at(stamps)
    assert str(mixed.times.tz) == "UTC"
    assert list(mixed.times.hour) == [0, 1, 2]
    assert any("different offsets" in note for note in mixed.findings)
    local = series_at(stamps, timezone="Europe/London")
    assert list(local.times.hour) == [0, 2, 3]
    with pytest.raises(UserError, match=r"Some stamps of the DataFrame have an offset .* and some do not"):
        series_at(["2024-03-31T00:00", "2024-03-31T02:00+01:00", "2024-03-31T03:00+01:00"])


def test_clock_changes_in_a_named_zone(tmp_path: Path) -> None:
    """A naive local file over a whole year loses one hour in March and has one twice in October."""
    local = pd.date_range("2024-01-01", "2024-12-31 23:00", freq="h", tz="Europe/London").tz_localize(None)
    path = tmp_path / "local.csv"
    pd.DataFrame({"time": local, "kwh": np.arange(len(local))}).to_csv(path, index=False)
    with pytest.raises(UserError, match=r"2024-10-27 01:00:00 appears twice .*timezone="):
        read(path)
    series = read(path, timezone="Europe/London")
    assert len(series) == 366 * 24
    np.testing.assert_array_equal(series.values[:, 0], np.arange(366 * 24))
    assert series.times.is_monotonic_increasing
    assert str(series.times.tz) == "Europe/London"
    pd.DataFrame({"time": local, "kwh": np.arange(len(local))}).iloc[::-1].to_csv(path, index=False)  # newest first
    backwards = read(path, timezone="Europe/London")
    np.testing.assert_array_equal(backwards.values, series.values)


def test_stamp_that_does_not_exist() -> None:
    stamps = pd.date_range("2024-03-31", periods=4, freq="h").astype(str)
    with pytest.raises(UserError, match=r"2024-03-31 01:00:00, which does not exist in Europe/London"):
        series_at(stamps, timezone="Europe/London")


def test_repeated_hour_seen_once_is_noted() -> None:
    series = series_at(["2024-10-27 00:00", "2024-10-27 01:00", "2024-10-27 02:00"], timezone="Europe/London")
    assert len(series) == 4  # the second 01:00 is missing
    assert any("summer time" in note for note in series.findings)


def test_days_follow_the_local_calendar() -> None:
    days = pd.date_range("2024-03-29", periods=5, freq="D", tz="Europe/London").delete(3)
    series = series_at(days)
    assert len(series) == 5
    assert set(series.times.hour) == {0}
    assert list(series.future(2).hour) == [0, 0]
    assert series.future(2)[1] == pd.Timestamp("2024-04-04", tz="Europe/London")


@pytest.mark.parametrize(("frequency", "period"), [("MS", 12), ("ME", 12), ("QS", 4), ("YS", 1)])
def test_months(frequency: str, period: int) -> None:
    grid = pd.date_range("2015-01-01", periods=30, freq=frequency)
    series = series_at(grid.delete([5, 6]))
    assert list(series.times) == list(grid)
    assert np.flatnonzero(np.isnan(series.values[:, 0])).tolist() == [5, 6]
    assert series.period == period
    assert list(series.future(3)) == list(pd.date_range(grid[-1], periods=4, freq=frequency)[1:])


@pytest.mark.parametrize(
    ("step", "period"),
    [("h", 24), ("15min", 96), ("30min", 48), ("1min", 1440), ("1D", 7), ("7D", 52), ("2h", 12), ("3D", 1)],
)
def test_periods(step: str, period: int) -> None:
    series = series_at(pd.date_range("2024-01-01", periods=10, freq=step))
    assert series.period == period
    assert series.frequency == pd.Timedelta(step if step[0].isdigit() else "1h")


@given(
    kept=st.lists(st.booleans(), min_size=8, max_size=60),
    step=st.sampled_from(["1h", "15min", "1D", "10s"]),
    order=st.randoms(use_true_random=False),
)
def test_absent_stamps_become_missing_rows(kept: list[bool], step: str, order: object) -> None:
    """Whatever is left out and however rows are shuffled, the grid from the first to the last stamp comes back."""
    grid = pd.date_range("2024-01-01", periods=len(kept), freq=step)
    present = [i for i, keep in enumerate(kept) if keep]
    if len(present) < 2:
        return
    shuffled = list(present)
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    frame = pd.DataFrame({"time": grid[shuffled], "x": [float(i) for i in shuffled]})
    series = read(frame, frequency=step)
    expected = np.array([i if i in set(present) else np.nan for i in range(present[0], present[-1] + 1)])
    np.testing.assert_array_equal(series.values[:, 0], expected.astype(np.float32))
    assert list(series.times) == list(grid[present[0] : present[-1] + 1])
    absent = len(expected) - len(present)
    assert any("absent" in note for note in series.findings) == (absent > 0)


@pytest.mark.parametrize("step", ["15D", "16D", "20D", "28D", "30D", "720h"])
def test_long_fixed_steps_are_no_months(step: str) -> None:
    times = pd.date_range("2020-01-03", periods=20, freq=step)
    frame = pd.DataFrame({"time": times, "x": np.arange(20.0)})
    for series in (read(frame), read(frame, frequency=step)):
        assert list(series.times) == list(times)
        assert series.frequency == pd.Timedelta(step)


def test_dates_with_dots_put_the_day_first() -> None:
    assert list(series_at(["03.04.2024 00:00", "03.04.2024 01:00", "03.04.2024 02:00"]).times.month) == [4, 4, 4]
