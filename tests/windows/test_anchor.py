"""The free fill against a slow loop that anyone can read."""

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tamedit.windows.anchor import free_fill, linear_interpolation, seasonal_mean, seasonal_naive


def slow_line(values: np.ndarray, seen: np.ndarray) -> np.ndarray:
    where = np.flatnonzero(seen)
    if len(where) == 0:
        return np.zeros_like(values)
    return np.interp(np.arange(len(values)), where, values[where])


def slow_fill(values: np.ndarray, seen: np.ndarray, period: int) -> np.ndarray:
    line, result = slow_line(values, seen), np.zeros_like(values)
    for step in range(len(values)):
        if seen[step]:
            result[step] = values[step]
            continue
        before, after = np.flatnonzero(seen[:step]), np.flatnonzero(seen[step:])
        short = len(before) and len(after) and (step + after[0]) - before[-1] - 1 <= period / 4
        same_phase = [values[other] for other in range(step % period, len(values), period) if seen[other]]
        result[step] = line[step] if short or not same_phase or period == 1 else np.mean(same_phase)
    return result


@st.composite
def windows(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, int]:
    batch, length, channels = draw(st.integers(1, 4)), draw(st.integers(1, 40)), draw(st.integers(1, 3))
    generator = np.random.default_rng(draw(st.integers(0, 2**31)))
    values = generator.normal(size=(batch, length, channels))
    seen = generator.random(values.shape) < draw(st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]))
    return values, seen, draw(st.integers(1, 15))


@given(windows())
@settings(max_examples=150, deadline=None)
def test_the_free_fill_is_the_slow_loop(case: tuple[np.ndarray, np.ndarray, int]) -> None:
    values, seen, period = case
    hidden_garbage = np.where(seen, values, np.nan)
    filled = free_fill(torch.from_numpy(hidden_garbage), torch.from_numpy(seen), period).numpy()
    for example in range(len(values)):
        for channel in range(values.shape[2]):
            expected = slow_fill(values[example, :, channel], seen[example, :, channel], period)
            np.testing.assert_allclose(filled[example, :, channel], expected, atol=1e-12)


@given(windows())
@settings(max_examples=60, deadline=None)
def test_lines_and_seasons(case: tuple[np.ndarray, np.ndarray, int]) -> None:
    values, seen, period = case
    tensors = torch.from_numpy(np.where(seen, values, np.inf)), torch.from_numpy(seen)
    line = linear_interpolation(*tensors).numpy()
    mean, mean_known = (x.numpy() for x in seasonal_mean(*tensors, period))
    naive, naive_known = (x.numpy() for x in seasonal_naive(*tensors, period))
    np.testing.assert_array_equal(mean_known, naive_known)
    for b, t, k in np.ndindex(values.shape):
        np.testing.assert_allclose(line[b, t, k], slow_line(values[b, :, k], seen[b, :, k])[t], atol=1e-12)
        phase = [s for s in range(t % period, values.shape[1], period) if seen[b, s, k]]
        assert mean_known[b, t, k] == bool(phase)
        if phase:
            np.testing.assert_allclose(mean[b, t, k], values[b, phase, k].mean(), atol=1e-12)
            latest = [s for s in phase if s <= t]
            assert naive[b, t, k] == values[b, latest[-1] if latest else phase[0], k]


@given(windows())
@settings(max_examples=60, deadline=None)
def test_observed_cells_are_kept_and_examples_do_not_mix(case: tuple[np.ndarray, np.ndarray, int]) -> None:
    values, seen, period = case
    tensors = torch.from_numpy(values), torch.from_numpy(seen)
    filled = free_fill(*tensors, period)
    assert torch.equal(filled[tensors[1]], tensors[0][tensors[1]])
    alone = torch.cat([free_fill(tensors[0][i : i + 1], tensors[1][i : i + 1], period) for i in range(len(values))])
    assert torch.equal(filled, alone)


def test_nothing_observed_gives_zero() -> None:
    assert not free_fill(torch.full((2, 10, 3), torch.nan), torch.zeros(2, 10, 3, dtype=torch.bool), 4).any()


def test_an_empty_batch_is_no_error() -> None:
    empty = torch.zeros(0, 10, 2), torch.zeros(0, 10, 2, dtype=torch.bool)
    assert free_fill(*empty, 4).shape == seasonal_naive(*empty, 4)[0].shape == (0, 10, 2)
