"""Splits share no row, keep the order of time, and are the ones that SPEC names."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamedit.data.catalogue import IDEAL_TEST
from tamedit.data.reader import read
from tamedit.data.series import Series
from tamedit.data.sources import split as split_source
from tamedit.data.split import Split, draw_meters, split_by_meter, split_by_rows, split_by_time
from tamedit.errors import UserError


def fleet(lengths: list[int]) -> Series:
    """Every reading is a number of its own, so that rows can be recognised."""
    pieces, first = [], 0
    for number, length in enumerate(lengths):
        times = pd.date_range("2024-01-01", periods=length, freq="h") + pd.Timedelta(days=number)
        pieces.append(
            pd.DataFrame({"id": f"m{number}", "time": times, "x": np.arange(first, first + length, dtype=float)})
        )
        first += length
    return read(pd.concat(pieces))


def readings(split: Split) -> list[float]:
    return np.concatenate([split.train.values, split.validation.values, split.test.values])[:, 0].tolist()


@given(st.lists(st.integers(2, 40), min_size=1, max_size=5))
def test_by_time_every_row_is_used_once_and_in_order(lengths: list[int]) -> None:
    series = fleet(lengths)
    split = split_by_time(series)
    assert sorted(readings(split)) == list(range(sum(lengths)))
    for name in split.test.meters:
        test = split.test.select([split.test.meters.index(name)])
        train = split.train.select([split.train.meters.index(name)])
        assert train.times.max() < test.times.min()


def test_by_time_shares() -> None:
    split = split_by_time(fleet([1000]))
    assert [len(part) for part in (split.train, split.validation, split.test)] == [700, 150, 150]


def test_by_rows_leaves_later_rows_out() -> None:
    split = split_by_rows(fleet([100]), (50, 20, 10))
    assert readings(split) == list(range(80))
    with pytest.raises(UserError, match="needs 110 rows and the shortest meter has 100"):
        split_by_rows(fleet([100]), (50, 50, 10))


def test_by_meter() -> None:
    series = fleet([20, 30, 40, 50, 60])
    split = split_by_meter(series, draw_meters(series, 2, seed=3), validation_share=0.1)
    assert len(split.test.meters) == 2
    assert not set(split.test.meters) & set(split.train.meters)
    assert split.validation.meters == split.train.meters
    np.testing.assert_array_equal(
        split.validation.lengths, np.rint((split.train.lengths + split.validation.lengths) * 0.1)
    )
    assert sorted(readings(split)) == list(range(200))


def test_a_draw_depends_on_names_and_seed_only() -> None:
    series = fleet([10] * 30)
    backwards = series.select(range(29, -1, -1))
    chosen = draw_meters(series, 9, seed=1)
    assert len(chosen) == 9
    assert chosen == draw_meters(backwards, 9, seed=1)
    assert chosen != draw_meters(series, 9, seed=2)


def test_a_meter_more_or_less_moves_no_other_home() -> None:
    """Else two sets of homes that differ in one home would give training sets that differ in dozens."""
    numbers = [int(name.removeprefix("ideal_home")) for name in IDEAL_TEST]
    assert len(numbers) == 54
    names = tuple(f"ideal_home{number:03d}" for number in range(40, 100))
    homes = replace(fleet([10] * 60), meters=names)
    everyone = split_source("ideal", homes)
    for left in range(60):
        others = split_source("ideal", homes.select([one for one in range(60) if one != left]))
        for part in ("train", "validation", "test"):
            with_it, without = set(getattr(everyone, part).meters), set(getattr(others, part).meters)
            assert with_it - without <= {names[left]}
            assert without <= with_it


def test_bad_arguments() -> None:
    series = fleet([20, 20])
    for shares in ((0.5, 0.5), (0.7, 0.2, 0.2), (0.0, 0.5, 0.5), (1.2, -0.1, -0.1)):
        with pytest.raises(UserError, match="three numbers from 0 to 1"):
            split_by_time(series, shares)
    with pytest.raises(UserError, match="three whole numbers"):
        split_by_rows(series, (0, 1, 1))
    with pytest.raises(UserError, match="2 meters for the test must be between 1 and 1"):
        draw_meters(series, 2)
    with pytest.raises(UserError, match="0 of the 2 meters are named"):
        split_by_meter(series, ["nobody"], 0.1)
    with pytest.raises(UserError, match="validation_share"):
        split_by_meter(series, series.meters[:1], 1.0)
