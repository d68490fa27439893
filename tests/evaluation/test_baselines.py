"""Free baselines against slow loops."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tamedit.data.scaling import Scaling
from tamedit.evaluation.baselines import BASELINES, free_probabilistic, own_units, seasonal_draws


def slow_line(values: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """One channel."""
    known = np.flatnonzero(observed)
    return np.interp(np.arange(len(values)), known, values[known]) if len(known) else np.zeros(len(values))


def slow_naive(values: np.ndarray, observed: np.ndarray, period: int) -> np.ndarray:
    filled, line = values.copy(), slow_line(values, observed)
    for step in range(len(values)):
        if observed[step]:
            continue
        earlier = [s for s in range(step - period, -1, -period) if observed[s]]
        later = [s for s in range(step + period, len(values), period) if observed[s]]
        filled[step] = values[(earlier + later)[0]] if earlier + later else line[step]
    return filled


def slow_mean(values: np.ndarray, observed: np.ndarray, period: int) -> np.ndarray:
    filled, line = values.copy(), slow_line(values, observed)
    for step in range(len(values)):
        if not observed[step]:
            same = [values[s] for s in range(step % period, len(values), period) if observed[s]]
            filled[step] = np.mean(same) if same else line[step]
    return filled


def slow_free(values: np.ndarray, observed: np.ndarray, period: int) -> np.ndarray:
    line, mean = slow_line(values, observed), slow_mean(values, observed, period)
    if period <= 1:
        return line
    filled = values.copy()
    for step in range(len(values)):
        if observed[step]:
            continue
        before = [s for s in range(step) if observed[s]]
        after = [s for s in range(step + 1, len(values)) if observed[s]]
        short = before and after and after[0] - before[-1] - 1 <= period / 4
        filled[step] = line[step] if short else mean[step]
    return filled


ORACLES = {
    "linear_interpolation": lambda values, observed, period: slow_line(values, observed),
    "seasonal_naive": slow_naive,
    "seasonal_mean": slow_mean,
    "free_fill": slow_free,
}


@pytest.mark.parametrize("name", list(BASELINES))
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 40), st.integers(1, 12), st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]))
def test_against_a_loop(name: str, seed: int, length: int, period: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(2, length, 2))
    observed = rng.random((2, length, 2)) < share
    rubbish = np.where(observed, values, np.nan)  # what is not observed is never read
    filled = BASELINES[name](torch.from_numpy(rubbish), torch.from_numpy(observed), period).numpy()
    for b in range(2):
        for k in range(2):
            expected = ORACLES[name](values[b, :, k], observed[b, :, k], period)
            np.testing.assert_allclose(filled[b, :, k], expected, rtol=1e-6, atol=1e-9)


def test_free_probabilistic_is_the_fill_with_the_windows_own_deviation() -> None:
    rng = np.random.default_rng(0)
    values = torch.from_numpy(rng.normal(5, 2, size=(4, 50, 1)).astype(np.float32))
    observed = torch.from_numpy(rng.random((4, 50, 1)) < 0.6)
    fill = BASELINES["free_fill"](values, observed, 12)
    scaling = Scaling("instance", (0.0,), (3.0,), (50.0,), 10.0, "none")
    _, scale = own_units(scaling).units(values, observed)
    for window in range(4):
        own = values[window][observed[window]].numpy().std()
        assert scale[window].item() == pytest.approx(own, rel=1e-4)
    drawn = free_probabilistic(fill, scale, observed, 2000, seed=1)
    assert drawn.shape == (4, 2000, 50, 1)
    torch.testing.assert_close(drawn.mean(dim=1), fill, atol=1e-4, rtol=1e-4)  # pairs cancel
    seen = observed[:, None].expand_as(drawn)
    assert torch.equal(drawn[seen], fill[:, None].expand_as(drawn)[seen])
    spread = drawn.std(dim=1)[~observed]
    wanted = scale.expand(4, 50, 1)[~observed]
    torch.testing.assert_close(spread, wanted, rtol=0.1, atol=0.0)
    assert free_probabilistic(fill, scale, observed, 5, seed=1).shape[1] == 5


def test_the_bar_does_not_move_with_the_floor_and_the_reference_serves_empty_windows() -> None:
    values = torch.randn(2, 20, 1)
    observed = torch.ones(2, 20, 1, dtype=torch.bool)
    observed[1] = False
    scales = [
        own_units(Scaling(mode, (1.0,), (3.0,), (floor,), relative, "public")).units(values, observed)[1]
        for mode, floor, relative in (("instance", 0.0, 0.0), ("instance", 9.0, 0.5), ("nonprivate", 9.0, 0.5))
    ]
    assert torch.equal(scales[0], scales[1])
    assert torch.equal(scales[0], scales[2])
    assert scales[0][1].item() == 3.0


@pytest.mark.parametrize(("length", "period"), [(20, 6), (7, 24), (12, 1), (9, 2)])
def test_seasonal_draws_are_alike_among_the_cells_around_the_same_phase(length: int, period: int) -> None:
    rng = np.random.default_rng(3)
    values = torch.from_numpy(rng.permutation(2 * length * 2).reshape(2, length, 2).astype(np.float32))
    observed = torch.from_numpy(rng.random((2, length, 2)) < 0.5)
    fill = torch.full_like(values, -7.0)
    rubbish = torch.where(observed, values, torch.nan)  # what is not observed is never read
    drawn = seasonal_draws(rubbish, observed, torch.where(observed, values, fill), period, 4000, seed=2)
    for b in range(2):
        for t in range(length):
            for k in range(2):
                apart = [min((s - t) % period, (t - s) % period) for s in range(length)]
                around = [float(values[b, s, k]) for s in range(length) if apart[s] <= 1 and observed[b, s, k]]
                if observed[b, t, k]:
                    around = [float(values[b, t, k])]
                found, counts = np.unique(drawn[b, :, t, k].numpy(), return_counts=True)
                assert set(found) == set(around or [-7.0])
                expected = 4000 / max(len(around), 1)
                assert np.abs(counts - expected).max() <= 5 * np.sqrt(expected)
