"""Stitching: every wanted cell once, observed cells untouched, meters apart, any length, always an end."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import Float
from torch import Tensor

from tamedit.diffusion.starts import OneOf
from tamedit.tasks.stitch import LEAST_KNOWN, Line, fill, window_starts


def count_of(samples: int | OneOf) -> int:
    """How many samples a draw is asked for: one of each window in later passes, where each sample has its own context."""
    return 1 if isinstance(samples, OneOf) else samples


class Recorder:
    """A draw that is a known function of the window: row number · 10 + channel (read off the covariates) + sample / 1000.

    It refuses to see anything but observed values, and remembers what it was asked.
    """

    def __init__(self) -> None:
        self.windows: list[np.ndarray] = []
        self.shares: list[float] = []
        self.names: list[tuple[int, int]] = []  # of the window, and which of its samples (-1: all of them)

    def __call__(
        self, values: Tensor, observed: Tensor, covariates: Tensor, windows: np.ndarray, samples: int | OneOf
    ) -> Tensor:
        assert torch.isfinite(values[observed]).all()
        assert len(values) == len(observed) == len(covariates) == len(windows)
        self.windows += list(covariates[:, :, 0].numpy().astype(int))
        self.shares += observed.double().mean(dim=(1, 2)).tolist()
        numbers = samples.numbers if isinstance(samples, OneOf) else np.full(len(windows), -1)
        self.names += [(int(name), int(number)) for name, number in zip(windows, numbers, strict=True)]
        channel = torch.arange(values.shape[2])
        drawn = covariates[:, None, :, :1] * 10 + channel
        drawn = drawn + torch.arange(count_of(samples))[None, :, None, None] / 1000
        return torch.where(observed[:, None], values[:, None], drawn)


def make_line(missing: np.ndarray, lengths: list[int]) -> Line:
    """Observed cells hold −1, covariate 0 the row number."""
    values = np.where(missing, np.nan, -1.0).astype(np.float32)
    rows = np.arange(len(values), dtype=np.float32)[:, None]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Line(values, rows, offsets, tuple(f"meter {number}" for number in range(len(lengths))))


def expected(wanted: np.ndarray) -> np.ndarray:
    rows, channels = np.nonzero(wanted)
    return rows * 10 + channels


@st.composite
def lines(draw: st.DrawFn) -> tuple[Line, np.ndarray, int]:
    length = draw(st.integers(2, 12))
    lengths = draw(st.lists(st.integers(length, 6 * length), min_size=1, max_size=4))
    channels = draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows = sum(lengths)
    missing = rng.random((rows, channels)) < draw(st.sampled_from([0.0, 0.05, 0.3, 0.9, 1.0]))
    for _ in range(draw(st.integers(0, 3))):  # gaps, some of them longer than a window
        first = int(rng.integers(rows))
        missing[first : first + int(rng.integers(1, 4 * length))] = True
    wanted = missing & (rng.random((rows, channels)) < draw(st.sampled_from([0.1, 0.6, 1.0])))
    return make_line(missing, lengths), wanted, length


@settings(max_examples=150, deadline=None)
@given(lines(), st.integers(1, 3))
def test_every_wanted_cell_is_filled_with_its_own_row_and_channel(
    case: tuple[Line, np.ndarray, int], samples: int
) -> None:
    line, wanted, length = case
    before = line.values.copy()
    record = Recorder()
    drawn = fill(line, wanted, length, samples, record)
    assert drawn.shape == (samples, wanted.sum())
    # Later passes draw one sample a context, so that the mark of the sample is 0 there.
    np.testing.assert_allclose(np.floor(drawn + 1e-3), np.tile(expected(wanted), (samples, 1)), atol=1e-3)
    np.testing.assert_array_equal(line.values, before)
    for rows in record.windows:  # no window crosses from one meter to the next
        assert len(np.unique(np.searchsorted(line.offsets, rows, side="right"))) == 1
        np.testing.assert_array_equal(np.diff(rows), 1)
    if not wanted.any():
        assert record.windows == []


@settings(max_examples=60, deadline=None)
@given(lines())
def test_no_noise_is_used_twice(case: tuple[Line, np.ndarray, int]) -> None:
    line, wanted, length = case
    record = Recorder()
    fill(line, wanted, length, 3, record)
    assert len(set(record.names)) == len(record.names)


@settings(max_examples=60, deadline=None)
@given(lines())
def test_a_meter_does_not_depend_on_other_meters(case: tuple[Line, np.ndarray, int]) -> None:
    """Streams of the last meter are the same alone and among others, in every pass."""
    line, wanted, length = case
    first = int(line.offsets[-2])
    alone = Line(line.values[first:], line.covariates[first:], line.offsets[-2:] - first, line.meters[-1:])
    starts = window_starts(line.offsets, length)
    np.testing.assert_array_equal(
        line.window_names(starts[starts >= first]), alone.window_names(window_starts(alone.offsets, length))
    )
    both, one = Recorder(), Recorder()
    together = fill(line, wanted, length, 2, both)
    apart = fill(alone, wanted[first:], length, 2, one)
    np.testing.assert_allclose(np.floor(together[:, np.nonzero(wanted)[0] >= first] + 1e-3), np.floor(apart + 1e-3))
    others = Line(line.values[:first], line.covariates[:first], line.offsets[:-1], line.meters[:-1])
    rest = Recorder()
    if first:
        fill(others, wanted[:first], length, 2, rest)
    assert sorted(both.names) == sorted(one.names + rest.names)


def of_stream(
    values: Tensor, observed: Tensor, covariates: Tensor, windows: np.ndarray, samples: int | OneOf
) -> Float[Tensor, "W S L K"]:
    """Draws that depend on the stream and on what is known, as those of a model do."""
    numbers = samples.numbers if isinstance(samples, OneOf) else np.zeros(len(windows), dtype=np.int64)
    shape = (count_of(samples), *values.shape[1:])
    streams = [np.random.default_rng([int(name), int(one)]) for name, one in zip(windows, numbers, strict=True)]
    noise = np.stack([stream.random(shape) for stream in streams])
    level = torch.where(observed, values, 0.0).mean(dim=(1, 2))
    drawn = torch.from_numpy(noise).float() + level[:, None, None, None]
    return torch.where(observed[:, None], values[:, None], drawn)


@pytest.mark.parametrize("known_rows", [0, 9, 30])
def test_a_sparse_meter_is_filled_alone_as_beside_another(known_rows: int) -> None:
    """The same seed, the same fill: a meter with hardly a reading does not wait for the gaps of its neighbour."""
    missing = np.ones((200, 1), dtype=bool)
    missing[20 : 20 + known_rows] = False
    beside = np.random.default_rng(0).random((150, 1)) < 0.2
    alone = fill(make_line(missing, [200]), missing, 48, 3, of_stream)
    line = make_line(np.concatenate([missing, beside]), [200, 150])
    both = fill(line, np.isnan(line.values), 48, 3, of_stream)
    np.testing.assert_array_equal(both[:, : missing.sum()], alone)


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 40), st.lists(st.integers(0, 200), min_size=1, max_size=4))
def test_windows_cover_every_meter(length: int, extra: list[int]) -> None:
    offsets = np.concatenate([[0], np.cumsum([length + more for more in extra])])
    starts = window_starts(offsets, length)
    assert (np.diff(starts) > 0).all()
    covered = np.zeros(offsets[-1], dtype=int)
    for start in starts:
        covered[start : start + length] += 1
    assert (covered >= 1).all()
    assert set(offsets[:-1]) <= set(starts)
    assert set(offsets[1:] - length) <= set(starts)


class Walk:
    """Every window's every sample is one constant, drawn anew for each window: a path that changes has crossed a seam."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(
        self, values: Tensor, observed: Tensor, covariates: Tensor, windows: np.ndarray, samples: int | OneOf
    ) -> Tensor:
        constants = torch.from_numpy(
            np.random.default_rng(self.calls).random((len(values), count_of(samples), 1, 1))
        ).float()
        self.calls += 1
        return torch.where(observed[:, None], values[:, None], constants.expand(-1, -1, *values.shape[1:]))


@pytest.mark.parametrize("gap", [1, 5, 12, 24])
@pytest.mark.parametrize("first", [0, 7, 30, 61, 80])
def test_a_gap_of_half_a_window_is_one_draw(gap: int, first: int) -> None:
    missing = np.zeros((120, 1), dtype=bool)
    missing[first : first + gap] = True
    drawn = fill(make_line(missing, [120]), missing, 48, 4, Walk())
    assert (drawn == drawn[:, :1]).all()
    assert len(np.unique(drawn[:, 0])) == 4


@pytest.mark.parametrize("horizon", [3, 24, 36])
def test_a_horizon_within_a_window_is_one_draw(horizon: int) -> None:
    missing = np.zeros((48 + horizon, 1), dtype=bool)
    missing[48:] = True
    drawn = fill(make_line(missing, [48 + horizon]), missing, 48, 4, Walk())
    assert (drawn == drawn[:, :1]).all()


def test_long_gaps_are_entered_from_their_edges_and_each_sample_sees_its_own_path() -> None:
    missing = np.zeros((400, 1), dtype=bool)
    missing[50:350] = True
    line = make_line(missing, [400])
    own: list[Tensor] = []

    def draw(values: Tensor, observed: Tensor, covariates: Tensor, windows: np.ndarray, samples: int | OneOf) -> Tensor:
        if isinstance(samples, OneOf):
            own.append(values[observed & (values > 0)])
        base = torch.arange(1, count_of(samples) + 1)[None, :, None, None].float()
        if isinstance(samples, OneOf):  # continue the path: the largest value that is seen
            seen = torch.where(observed, values, 0.0).amax(dim=(1, 2))
            base = seen[:, None, None, None]
        return torch.where(observed[:, None], values[:, None], base.expand(-1, -1, *values.shape[1:]))

    drawn = fill(line, missing, 40, 3, draw)
    np.testing.assert_array_equal(drawn, np.repeat([[1.0], [2.0], [3.0]], 300, axis=1))
    assert own


def test_windows_know_enough_where_that_is_possible() -> None:
    missing = np.zeros((300, 1), dtype=bool)
    missing[100:260] = True
    record = Recorder()
    fill(make_line(missing, [300]), missing, 40, 2, record)
    assert min(record.shares) >= LEAST_KNOWN


def test_nothing_known_at_all() -> None:
    missing = np.ones((500, 2), dtype=bool)
    drawn = fill(make_line(missing, [500]), missing, 48, 2, Recorder())
    np.testing.assert_allclose(np.floor(drawn[0] + 1e-3), expected(missing))


def test_a_silent_meter_beside_a_speaking_one() -> None:
    missing = np.zeros((200, 1), dtype=bool)
    missing[100:] = True
    drawn = fill(make_line(missing, [100, 100]), missing, 48, 2, Recorder())
    np.testing.assert_allclose(np.floor(drawn[0] + 1e-3), expected(missing))


def test_many_meters_take_few_calls() -> None:
    """Windows of many meters go through the network together."""
    rng = np.random.default_rng(0)
    missing = rng.random((300 * 50, 1)) < 0.1
    calls = []

    def draw(values: Tensor, observed: Tensor, covariates: Tensor, windows: np.ndarray, samples: int | OneOf) -> Tensor:
        calls.append(len(values))
        return torch.where(observed[:, None], values[:, None], 1.0).expand(-1, count_of(samples), -1, -1)

    drawn = fill(make_line(missing, [50] * 300), missing, 48, 2, draw)
    assert (drawn == 1).all()
    assert max(calls) == 64
    assert len(calls) < 40


def test_a_long_gap_of_one_channel_is_entered_from_its_edges_though_another_is_complete() -> None:
    """The draw is the mean of what the window shows of a channel, 0 if that is nothing: no zero may come out."""

    def mean(values: Tensor, observed: Tensor, covariates: Tensor, windows: np.ndarray, samples: int | OneOf) -> Tensor:
        known = torch.where(observed, values, 0.0).sum(1, keepdim=True) / observed.sum(1, keepdim=True).clamp_min(1)
        return torch.where(observed, values, known.expand_as(values))[:, None].expand(-1, count_of(samples), -1, -1)

    values = np.column_stack([np.ones(200), np.full(200, 400.0)]).astype(np.float32)
    values[40:160, 1] = np.nan
    line = Line(values, np.zeros((200, 1), np.float32), np.array([0, 200]), ("",))
    filled = fill(line, np.isnan(values), 24, 2, mean)
    assert filled.shape == (2, 120)
    np.testing.assert_array_equal(filled, 400.0)
