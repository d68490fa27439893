"""Redrawing a path: every block once, never at an edge of its window, given what stands around it."""

from typing import Any

import numpy as np
import pytest
import torch

from tamedit.tasks import redraw
from tamedit.tasks.redraw import block_rows, passes, redrawn, stride_rows


@pytest.mark.parametrize("blocks", range(3, 40))
def test_every_block_is_hidden_once_and_inside_its_window(blocks: int) -> None:
    drawn = [(first + place) % blocks for first, hidden in passes(blocks) for place in hidden]
    assert sorted(drawn) == list(range(blocks))
    assert all(0 < place < blocks - 1 for _, hidden in passes(blocks) for place in hidden)


@pytest.mark.parametrize(("length", "period"), [(168, 24), (100, 24), (72, 24), (71, 24), (8, 24), (512, 96), (30, 1)])
def test_blocks_fit_into_windows(length: int, period: int) -> None:
    block, stride = block_rows(length, period), stride_rows(length, period)
    assert stride % block == 0
    assert 3 * block <= stride <= length
    assert block == period or length < 3 * period


def counting(seen: list[tuple[np.ndarray, np.ndarray]]) -> Any:
    """A network that fills what is hidden with 1000, and notes what it saw."""

    def draw(values: torch.Tensor, observed: torch.Tensor, covariates: torch.Tensor, names: np.ndarray) -> torch.Tensor:
        assert bool(torch.isnan(values[~observed]).all()), "hidden readings must not reach the network"
        seen.append((names.copy(), covariates.numpy().copy()))
        return torch.where(observed, values, 1000.0)

    return draw


@pytest.mark.parametrize("length", [168, 100, 8])
def test_all_between_a_stride_at_both_ends_is_drawn_anew(length: int) -> None:
    stride, rows = stride_rows(length, 24), 6 * stride_rows(length, 24)
    path = np.arange(2 * rows * 2, dtype=np.float64).reshape(2, rows, 2) / 1e4
    made = redrawn(path, np.zeros((rows, 3), np.float32), np.arange(2), counting([]), length, 24)
    assert (made[:, stride:-stride] == 1000).all()
    fixed = redrawn(path, np.zeros((rows, 3), np.float32), np.arange(2), counting([]), length, 24, fixed=stride)
    np.testing.assert_array_equal(fixed[:, :stride], path[:, :stride].astype(np.float32))
    assert (fixed[:, stride:-stride] == 1000).all()


def test_windows_have_names_of_their_own_and_the_covariates_of_their_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[np.ndarray, np.ndarray]] = []
    monkeypatch.setattr(redraw, "TOGETHER", 5)  # windows of a home fall into several draws
    rows = 168 * 4
    known = np.arange(rows, dtype=np.float32)[:, None]
    redrawn(np.zeros((3, rows, 1)), known, np.array([0, 7, 2**19]), counting(seen), 168, 24)
    names = np.concatenate([one for one, _ in seen])
    assert len(set(names.tolist())) == len(names) == 3 * (4 + 3 + 3)
    for name, covariates in zip(names, np.concatenate([one for _, one in seen]), strict=True):
        number, window = divmod(int(name) % redraw.HOMES, redraw.PASSES)
        first = (list(passes(7))[number][0] * 24) + 168 * window
        np.testing.assert_array_equal(covariates[:, 0], np.arange(first, first + 168))


def test_a_drawn_path_is_continuous() -> None:
    """A network that interpolates what it sees leaves no step where blocks meet."""

    def draw(values: torch.Tensor, observed: torch.Tensor, covariates: torch.Tensor, names: np.ndarray) -> torch.Tensor:
        answer = values.clone()
        for window in range(len(values)):
            there = observed[window, :, 0].numpy()
            rows = np.arange(len(there))
            answer[window, :, 0] = torch.from_numpy(np.interp(rows, rows[there], values[window, there, 0].numpy()))
        return answer

    rows = 168 * 5
    path = np.sin(2 * np.pi * np.arange(rows) / 168)[None, :, None]
    made = redrawn(path, np.zeros((rows, 0), np.float32), np.arange(1), draw, 168, 24)
    assert np.abs(np.diff(made[0, :, 0])).max() <= np.abs(np.diff(path[0, :, 0])).max() * 1.01
