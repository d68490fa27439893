"""Windows are views, and stay inside their meter."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamedit.data.reader import read
from tamedit.data.series import Series
from tamedit.errors import UserError
from tamedit.windows.cut import cut, cut_blocks


def fleet(lengths: list[int], channels: int = 1, missing: float = 0.0) -> Series:
    import pandas as pd

    generator = np.random.default_rng(0)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    values = np.arange(offsets[-1] * channels, dtype=np.float32).reshape(-1, channels)
    values[generator.random(values.shape) < missing] = np.nan
    times = pd.date_range("2024-01-01", periods=int(offsets[-1]), freq="h")
    names = tuple(f"m{i}" for i in range(len(lengths)))
    channel_names = tuple(f"c{i}" for i in range(channels))
    empty = np.zeros((int(offsets[-1]), 0), np.float32)
    return Series(values, empty, times, names, offsets, channel_names, (), pd.Timedelta("1h"))


@given(st.lists(st.integers(1, 60), min_size=1, max_size=6), st.integers(1, 30), st.integers(1, 9))
@settings(max_examples=80, deadline=None)
def test_windows_are_all_the_strides_inside_each_meter(lengths: list[int], length: int, stride: int) -> None:
    series = fleet(lengths)
    if max(lengths) < length:
        with pytest.raises(UserError, match="longest series has"):
            cut(series, length, stride)
        return
    windows = cut(series, length, stride)
    expected = [
        series.offsets[meter] + start
        for meter, rows in enumerate(lengths)
        for start in range(0, rows - length + 1, stride)
    ]
    assert windows.starts.tolist() == expected
    values, _ = windows.gather(np.arange(len(windows)))
    assert np.array_equal(values.numpy()[:, :, 0], np.array(expected)[:, None] + np.arange(length))
    meters = windows.meter_of()
    assert all(
        series.offsets[m] <= s and s + length <= series.offsets[m + 1] for m, s in zip(meters, expected, strict=True)
    )


def test_windows_that_are_mostly_missing_are_left_out() -> None:
    series = fleet([40])
    series.values[5:15] = np.nan
    kept = cut(series, 10, 5, least_present=0.5)
    assert kept.starts.tolist() == [0, 10, 15, 20, 25, 30]
    series.values[:] = np.nan
    with pytest.raises(UserError, match="None of the"):
        cut(series, 10, 5)


def test_a_hundred_thousand_windows_cost_no_copy() -> None:
    series = fleet([100_095], channels=7)
    tracemalloc.start()
    windows = cut(series, 96, 1)
    current, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(windows) == 100_000
    assert current < 1.1e6 < series.values.nbytes * 96 / 200  # 8 bytes a window; copies would take 269 MB


def test_reading_and_cutting_keeps_gaps() -> None:
    import pandas as pd

    frame = pd.DataFrame({"v": np.arange(60.0)}, index=pd.date_range("2024-01-01", periods=60, freq="h")).drop(
        index=pd.Timestamp("2024-01-01 05:00")
    )
    values, _ = cut(read(frame), 10, 10).gather(np.array([0]))
    assert np.isnan(values[0, 5, 0])
    assert np.isfinite(values[0, [4, 6], 0]).all()


@pytest.mark.parametrize("channels", [1, 3, 7])
def test_whether_a_block_is_kept_depends_on_that_block_alone(channels: int) -> None:
    """Blocks with exactly half of their cells are a tie, which what other blocks hold must not decide."""
    generator = np.random.default_rng(1)
    series, rows = fleet([40 * 168], channels), 168
    for block in range(1, 40):
        cells = np.ones(rows * channels, dtype=np.float32)
        cells[generator.permutation(len(cells))[: len(cells) // 2]] = np.nan
        series.values[block * rows : (block + 1) * rows] = cells.reshape(rows, channels)
    for missing in (0.0, 0.01, 0.02, 0.03, 0.04):
        series.values[:rows] = np.where(generator.random((rows, channels)) < missing, np.nan, 1.0)
        assert len(cut_blocks(series, rows, rows)) == 40
