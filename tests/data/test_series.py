"""The series itself: layouts, cuts, and the way back to pandas."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as numbers

from tamedit.data.reader import read
from tamedit.data.series import Series
from tamedit.errors import UserError


def panel() -> pd.DataFrame:
    """Three meters with staggered starts, a gap, and rows out of order."""
    pieces = []
    for name, start, length in (
        ("b", "2024-01-01 03:00", 5),
        ("a", "2024-01-01 00:00", 4),
        ("c", "2024-01-01 02:00", 6),
    ):
        times = pd.date_range(start, periods=length, freq="h")
        pieces.append(pd.DataFrame({"client": name, "timestamp": times, "value": np.arange(length) + ord(name)}))
    return pd.concat(pieces, ignore_index=True).drop(index=[2, 10])


def test_long_layout_is_found() -> None:
    series = read(panel())
    assert series.layout == "long"
    assert series.meters == ("b", "a", "c")
    assert series.offsets.tolist() == [0, 5, 9, 15]
    assert np.flatnonzero(np.isnan(series.values[:, 0])).tolist() == [2, 10]
    assert (series.time_name, series.id_name, series.targets) == ("timestamp", "client", ("value",))
    assert any("2 absent time stamps" in note for note in series.findings)
    assert any("meters were taken from column 'client'" in note for note in series.notes)


def test_long_layout_does_not_depend_on_the_order_of_rows() -> None:
    ordered = read(panel())
    shuffled = read(panel().sample(frac=1, random_state=0))
    for name in "abc":
        left = ordered.select([ordered.meters.index(name)])
        right = shuffled.select([shuffled.meters.index(name)])
        np.testing.assert_array_equal(left.values, right.values)
        assert left.times.equals(right.times)


@pytest.mark.parametrize("kind", ["category", "integer", "text with another name", "index"])
def test_kinds_of_meter_columns(kind: str) -> None:
    frame = panel()
    if kind == "category":
        frame["client"] = frame["client"].astype("category")
    elif kind == "integer":
        frame["client"] = frame["client"].map({"a": 1, "b": 2, "c": 3})
        frame = frame.rename(columns={"client": "meter_id"})
    elif kind == "index":
        frame = frame.set_index(["client", "timestamp"])
    else:
        frame = frame.rename(columns={"client": "Stadtteil"})
    series = read(frame)
    assert len(series.meters) == 3
    assert series.offsets.tolist() == [0, 5, 9, 15]


def test_long_layout_with_several_targets_and_named_columns() -> None:
    frame = panel().assign(gas=1.0, holiday=0.0)
    series = read(frame, id="client", targets=["gas", "value"])
    assert series.values.shape == (15, 2)
    assert series.covariate_names == ()
    assert read(frame, value="gas").targets == ("gas",)


def test_long_frame_round_trip() -> None:
    frame = panel().sort_values("timestamp").reset_index(drop=True)
    series = read(frame)
    back = series.frame()
    assert list(back.columns) == ["client", "timestamp", "value"]
    merged = frame.merge(back, on=["client", "timestamp"], suffixes=("", "_back"))
    assert len(merged) == len(frame)
    np.testing.assert_array_equal(merged["value"], merged["value_back"])
    again = read(back)
    np.testing.assert_array_equal(again.values, series.values)
    assert again.times.equals(series.times)


@settings(deadline=None, max_examples=50)
@given(
    numbers.arrays(
        np.float32,
        st.tuples(st.integers(2, 30), st.integers(1, 3)),
        elements=st.one_of(st.floats(-1e6, 1e6, width=32), st.just(float("nan"))),
    )
)
def test_wide_frame_round_trip(values: np.ndarray) -> None:
    """read ∘ frame is the identity on values and stamps."""
    if np.isnan(values).all(axis=0).any():
        return
    index = pd.date_range("2024-01-01", periods=len(values), freq="h", name="when").as_unit("us")
    frame = pd.DataFrame(values, index=index, columns=[f"c{k}" for k in range(values.shape[1])])
    series = read(frame)
    np.testing.assert_array_equal(series.values, values)
    pd.testing.assert_frame_equal(series.frame(), frame, check_freq=False)
    pd.testing.assert_frame_equal(series.frame(values * 2), frame * 2, check_freq=False)


def test_cuts() -> None:
    series = read(panel())
    picked = series.select([2, 0])
    assert picked.meters == ("c", "b")
    np.testing.assert_array_equal(picked.values[:6], series.values[9:15])
    np.testing.assert_array_equal(picked.values[6:], series.values[:5])
    one = series.select([1])
    part = one.rows(1, 3)
    np.testing.assert_array_equal(part.values, one.values[1:3])
    assert part.times.equals(one.times[1:3])
    assert np.shares_memory(part.values, one.values)
    trimmed = series.between(np.array([1, 4, 0]), np.array([3, 4, 99]))
    assert trimmed.meters == ("b", "c")
    assert trimmed.lengths.tolist() == [2, 6]
    with pytest.raises(UserError, match="cuts a single meter"):
        series.rows(0, 1)
    with pytest.raises(UserError, match="There is no meter 7"):
        series.select([7])
    with pytest.raises(UserError, match="have the shape"):
        series.frame(np.zeros((2, 2)))


def test_inconsistent_parts_are_refused() -> None:
    times = pd.date_range("2024-01-01", periods=3, freq="h")
    empty = np.zeros((3, 0), np.float32)
    with pytest.raises(ValueError, match="must have 3 rows"):
        Series(np.zeros((2, 1)), empty, times, ("",), np.array([0, 3]), ("x",), (), pd.Timedelta("1h"))
    with pytest.raises(ValueError, match="offsets of 1 meters"):
        Series(np.zeros((3, 1)), empty, times, ("",), np.array([0, 2]), ("x",), (), pd.Timedelta("1h"))


def test_future_and_words() -> None:
    series = read(panel())
    assert series.future(2, meter=1)[0] == pd.Timestamp("2024-01-01 04:00")
    assert "15 rows every 1 hour, 3 meters" in repr(series)
    assert len(series) == 15


@pytest.mark.parametrize(
    "idle", [{"time": "t"}, {"id": "m"}, {"covariates": ["c"]}, {"frequency": "15min"}, {"timezone": "UTC"}]
)
def test_an_array_has_no_columns(idle: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=f"{next(iter(idle))}: an array has no columns"):
        read(np.ones((10, 1)), **idle)


def test_names_of_an_arrays_channels() -> None:
    assert read(np.ones(10), value="load").targets == ("load",)
    assert read(np.ones(10), targets="load").targets == ("load",)
    assert read(np.ones((10, 2)), targets=["a", "b"]).targets == ("a", "b")
    with pytest.raises(UserError, match="real numbers, not complex128"):
        read(np.ones((10, 1), dtype=complex))


def test_numbers_of_meters_whose_stamps_do_not_repeat() -> None:
    """Meter 007 was read in 2023, meter 008 in 2024: numbers in blocks are names, and readings are not."""
    stamps = pd.date_range("2023-12-31", periods=48, freq="h")
    frame = pd.DataFrame({"time": stamps, "meter": np.repeat([7, 8], 24), "kwh": np.arange(48.0)})
    assert read(frame).meters == ("7", "8")
    assert read(frame).targets == ("kwh",)
    alone = read(frame[["time", "meter", "kwh"]].assign(meter=7))
    assert (alone.meters, alone.targets) == (("7",), ("kwh",))
    assert read(frame.assign(meter=np.arange(48) % 5)).targets == ("meter", "kwh")
    assert read(frame[["time", "meter"]]).targets == ("meter",), "the only column is what was read"


def test_other_kinds_of_table() -> None:
    stamps = pd.date_range("2024-01-01", periods=30, freq="h", name="time")
    frame = pd.DataFrame({"kwh": np.arange(30.0)}, index=stamps)

    class Polars:
        def to_pandas(self) -> pd.DataFrame:
            return frame

    for same in (frame["kwh"], frame.reset_index().set_index("time", drop=False), Polars()):
        found = read(same)  # type: ignore[arg-type]
        assert found.targets == ("kwh",)
        assert (found.times == stamps).all()
        np.testing.assert_array_equal(found.values[:, 0], np.arange(30))
    masked = read(np.ma.masked_equal(np.array([[1.0], [-999.0], [3.0]]), -999.0))
    np.testing.assert_array_equal(masked.values[:, 0], [1, np.nan, 3])
    assert read(frame.assign(tariff=1.0), targets="kwh", covariates="tariff").covariate_names == ("tariff",)
    with pytest.raises(UserError, match=r"cannot be made from builtins\.dict"):
        read({})  # type: ignore[arg-type]


def test_covariates_follow_their_rows_and_are_held_within_a_meter() -> None:
    stamps = pd.date_range("2024-01-01", periods=4, freq="h")
    frame = pd.DataFrame(
        {
            "meter": np.repeat(["a", "b"], 4),
            "time": [*stamps, *stamps],
            "kwh": np.arange(8.0),
            "tariff": [np.nan, 1, np.nan, 2, np.nan, 3, np.nan, np.nan],
        }
    )
    mixed = frame.iloc[[1, 6, 3, 0, 7, 2, 4, 5]]
    held = read(mixed, id="meter", targets="kwh", covariates="tariff", missing_covariates="hold")
    np.testing.assert_array_equal(held.values[:, 0], np.arange(8))
    np.testing.assert_array_equal(held.covariates[:, 0], [1, 1, 1, 2, 3, 3, 3, 3])
