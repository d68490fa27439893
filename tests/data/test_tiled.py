"""Stamps that are kept once look like the index that has one for every row."""

import copy
import operator
import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest

from tamedit.data.reader import read
from tamedit.data.split import split_by_study, split_by_time
from tamedit.data.study import Study
from tamedit.data.tiled import Tiled, TiledStamps, tiled_stamps
from tamedit.runs.layout import clock_changes

COPIES, ROWS = 4, 50


@pytest.fixture(params=[None, "Europe/London"])
def base(request: pytest.FixtureRequest) -> pd.DatetimeIndex:
    """Over the end of summer time, when an hour of the clock comes twice."""
    return pd.date_range("2023-10-28 10:00", periods=ROWS, freq="h", tz=request.param)


@pytest.fixture
def pair(base: pd.DatetimeIndex) -> tuple[TiledStamps, pd.DatetimeIndex]:
    dense = base[np.tile(np.arange(ROWS), COPIES)]
    return TiledStamps(base, COPIES), dense


@pytest.mark.parametrize(
    "rows",
    [
        slice(None),
        slice(3, 9),
        slice(ROWS, 2 * ROWS),
        slice(2 * ROWS + 3, 3 * ROWS, 4),
        slice(ROWS - 5, ROWS + 5),
        slice(10, 190, 7),
        slice(-3, None),
        slice(None, None, -1),
        slice(9, 3),
        slice(150, 999),
        slice(200, 300),
        np.array([0, 199, 50, -1, -200]),
        np.array([[1, 2, 3], [151, 152, 0]])[1],
        np.array([], dtype=np.int64),
        np.arange(ROWS * COPIES) % 3 == 0,
        [7, 107],
    ],
    ids=str,
)
def test_the_rows_that_are_asked_for(pair: tuple[TiledStamps, pd.DatetimeIndex], rows: object) -> None:
    tiled, dense = pair
    found, wanted = tiled[rows], dense[rows]
    assert isinstance(found, pd.DatetimeIndex)
    assert found.dtype == wanted.dtype
    assert found.freq is None
    assert found.equals(wanted)


@pytest.mark.parametrize("row", [0, 49, 50, 199, -1, -200])
def test_one_row(pair: tuple[TiledStamps, pd.DatetimeIndex], row: int) -> None:
    tiled, dense = pair
    assert tiled[row] == dense[row]
    assert isinstance(tiled[np.int64(row)], pd.Timestamp)


@pytest.mark.parametrize("rows", [200, -201, [0, 200], np.ones(199, bool), 1.0, [1.5, 2.5]], ids=str)
def test_rows_that_are_not_there(pair: tuple[TiledStamps, pd.DatetimeIndex], rows: object) -> None:
    for stamps in pair:
        with pytest.raises(IndexError):
            stamps[rows]


def test_whatever_an_index_can_do(pair: tuple[TiledStamps, pd.DatetimeIndex]) -> None:
    tiled, dense = pair
    assert len(tiled) == len(dense)
    assert (tiled.tz, tiled.unit, tiled.shape) == (dense.tz, dense.unit, dense.shape)
    assert (tiled.min(), tiled.max()) == (dense.min(), dense.max())
    assert list(tiled) == list(dense)
    assert np.array_equal(tiled.asi8, dense.asi8)
    assert np.array_equal(tiled.dayofweek, dense.dayofweek)
    assert np.array_equal(np.asarray(tiled), np.asarray(dense))
    assert tiled.equals(dense)
    assert tiled.equals(tiled_stamps(tiled.base, COPIES))
    assert not tiled.equals(tiled_stamps(tiled.base, COPIES + 1))
    assert not tiled.equals(tiled_stamps(tiled.base + pd.Timedelta(1, "h"), COPIES))
    assert (tiled == dense).all()
    assert tiled.rename("time").name == "time"
    for convert in (lambda one: one.tz_localize(None), lambda one: one.tz_localize(None).tz_localize("UTC")):
        assert convert(tiled).equals(convert(dense))
    if dense.tz is not None:
        assert tiled.tz_convert("UTC").equals(dense.tz_convert("UTC"))
    pd.testing.assert_frame_equal(pd.DataFrame({"time": tiled.dense}), pd.DataFrame({"time": dense}))


def test_operators(pair: tuple[TiledStamps, pd.DatetimeIndex]) -> None:
    tiled, dense = pair
    middle = dense[20]
    for asked in (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne, operator.sub):
        for other in (middle, dense[::-1], TiledStamps(dense[::-1], 1)):
            wanted = asked(dense, dense[::-1] if isinstance(other, TiledStamps) else other)
            assert np.array_equal(asked(tiled, other), wanted), asked
    assert np.array_equal((tiled <= middle).reshape(COPIES, ROWS).sum(axis=1), [21] * COPIES)
    assert (tiled + pd.Timedelta(1, "h")).equals(dense + pd.Timedelta(1, "h"))
    assert (pd.Timedelta(1, "h") + tiled).equals(pd.Timedelta(1, "h") + dense)
    assert (middle - tiled).equals(middle - dense)


def test_stamps_behind_others(pair: tuple[TiledStamps, pd.DatetimeIndex]) -> None:
    tiled, dense = pair
    for mixed, plain in ((tiled, dense), ([tiled, dense[:3]], [dense, dense[:3]])):
        assert tiled.append(mixed).equals(dense.append(plain))
    assert dense.append(tiled.dense).equals(dense.append(dense))


def test_no_copies_are_an_empty_index(base: pd.DatetimeIndex) -> None:
    none = TiledStamps(base, 0)
    assert len(none) == len(none.dense) == len(none[[]]) == 0
    assert none.min() is none.max() is pd.NaT
    with pytest.raises(IndexError):
        none[0]


def test_rows_that_repeat() -> None:
    tiled = Tiled(np.arange(12.0).reshape(6, 2), 3)
    dense = np.asarray(tiled)
    mask = np.arange(18) % 5 == 0
    for rows in (mask, [17, 0, -18], slice(4, 15, 3), 7, [], np.array([[1, 2], [16, 17]])):
        assert np.array_equal(tiled[rows], dense[np.asarray(rows, int) if isinstance(rows, list) else rows])
    for wrong in (18, -19, [0, 18], mask[1:], 1.0):
        with pytest.raises(IndexError):
            tiled[wrong]


def test_copies_of_it(pair: tuple[TiledStamps, pd.DatetimeIndex]) -> None:
    tiled, dense = pair
    for again in (copy.deepcopy(tiled), pickle.loads(pickle.dumps(tiled))):
        assert isinstance(again, TiledStamps)
        assert again.equals(dense)


def test_a_single_meter_has_plain_stamps(base: pd.DatetimeIndex) -> None:
    assert tiled_stamps(base, 1) is base


@pytest.mark.parametrize("zone", [None, "Europe/London"])
def test_a_series_with_either(zone: str | None) -> None:
    """Whatever a study makes of a fleet is the same with stamps kept once and with one stamp per row."""
    study = Study.stating(("2023-10-20", "2023-11-10"))
    assert study is not None
    hours = pd.date_range("2023-10-21", periods=24 * 15, freq="h", tz=zone)
    pieces = [pd.DataFrame({"id": name, "time": hours[first:], "load": 1.0}) for first, name in enumerate("abc")]
    laid = study.lay(read(pd.concat(pieces), timezone=zone))
    assert isinstance(laid.times, TiledStamps)
    plain = replace(laid, times=laid.times.dense)
    assert laid.aligned
    assert plain.aligned
    assert laid.span == plain.span
    assert laid.phase_seconds == plain.phase_seconds
    assert clock_changes(laid) == clock_changes(plain) == (zone is not None)
    pd.testing.assert_frame_equal(laid.frame(), plain.frame())
    for cut in (partial(split_by_study, study=study), split_by_time):
        for part in ("train", "validation", "test"):
            left, right = getattr(cut(laid), part), getattr(cut(plain), part)
            assert isinstance(left.times, TiledStamps)  # and it stays so
            assert left.times.equals(right.times)
            assert left.values.tobytes() == right.values.tobytes()
            assert left.future(5, meter=1).equals(right.future(5, meter=1))
    for chosen in ([2, 0], [1], []):
        assert laid.select(chosen).times[:].equals(plain.select(chosen).times)
    starts, stops = np.array([3, 0, 5]), np.array([400, 0, 90])
    assert laid.between(starts, stops).times[:].equals(plain.between(starts, stops).times)
