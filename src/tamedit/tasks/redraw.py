"""The network redraws a path, a part at a time, each part given what stands around it.

A path is cut into blocks of a season. The windows of the network hold m blocks; with residues of a block's number mod m,

    pass 1   windows at block 0          hidden: residues 1, 3, … up to m − 2
    pass 2   windows at block 1          hidden: residues 2, 4, … up to m − 1
    pass 3   windows in the middle       hidden: the residues that are left

so every block is drawn once, and never stands at the end of its window: it is drawn given the blocks on both of its sides (Gibbs
sampling). What the path was before decides what the blocks of pass 1 see; the others see drawn blocks, too. Windows of a pass do
not depend on one another, so they are drawn together: nothing is rolled forward, and nothing drifts.
"""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

TOGETHER = 512  # windows that are drawn at once
HOMES, PASSES = 2**24, 2**22  # room for windows in the name of a draw
Draw = Callable[[Tensor, Tensor, Tensor, np.ndarray], Tensor]  # values, observed, covariates, names -> (W, L, K)


def block_rows(length: int, period: int) -> int:
    """Rows of a block: a season, or a third of a window that has fewer than three."""
    return period if length >= 3 * period else max(length // 3, 1)


def stride_rows(length: int, period: int) -> int:
    """Rows from one window to the next: whole blocks, at most a window."""
    block = block_rows(length, period)
    return length // block * block


def passes(blocks: int) -> Iterator[tuple[int, list[int]]]:
    """For each pass: the block at which its windows begin, and which of their blocks are hidden."""
    middle = (blocks + 1) // 2
    odd = list(range(1, blocks - 1, 2))
    drawn = {*odd, *(1 + place for place in odd)}
    yield 0, odd
    yield 1, odd
    yield middle, [place for place in range(blocks) if (place + middle) % blocks not in drawn]


def redrawn(
    path: Float[np.ndarray, "H T K"],
    covariates: Float[np.ndarray, "T C"],
    numbers: Int64[np.ndarray, " H"],
    draw: Draw,
    length: int,
    period: int,
    fixed: int = 0,
    constant: Float[np.ndarray, "H S"] | None = None,
) -> Float[np.ndarray, "H T K"]:
    """The path with every block drawn anew that lies at least a stride from both ends; the first `fixed` rows stay.

    `constant`: covariates that are the same in all rows of a home; they stand before the others.
    """
    block, stride = block_rows(length, period), stride_rows(length, period)
    path = path.astype(np.float32)
    for number, (first, hidden) in enumerate(passes(stride // block)):
        starts = np.arange(first * block, path.shape[1] - stride + 1, stride)
        rows = starts[:, None] + np.arange(stride)  # (W, stride)
        hide = np.isin(np.arange(stride) // block, hidden)[None] & (rows >= fixed)  # (W, stride)
        names = (numbers[:, None] * HOMES + number * PASSES + np.arange(len(starts))).ravel()
        windows = path[:, rows].reshape(-1, stride, path.shape[2])
        of_window = None if constant is None else np.repeat(constant, len(starts), axis=0)
        made = _drawn(windows, hide, covariates[rows], names, draw, length, of_window)
        made = made.reshape(len(path), *rows.shape, path.shape[2])
        path[:, rows] = np.where(hide[None, :, :, None], made, path[:, rows])
    return path


def _drawn(
    values: Float[np.ndarray, "N L K"],
    hide: Bool[np.ndarray, "W L"],
    covariates: Float[np.ndarray, "W L C"],
    names: Int64[np.ndarray, " N"],
    draw: Draw,
    length: int,
    constant: Float[np.ndarray, "N S"] | None = None,
) -> Float[np.ndarray, "N L K"]:
    """All windows of a pass; a window that is longer than whole blocks has rows at its end that nobody observed."""
    windows, more, answer = len(hide), length - values.shape[1], np.empty_like(values)
    seen, known = (np.pad(one, ((0, 0), (0, more), *tail)) for one, tail in ((~hide, ()), (covariates, ((0, 0),))))
    for first in range(0, len(values), TOGETHER):
        part = values[first : first + TOGETHER]
        place = np.arange(first, first + len(part)) % windows  # windows of a home lie side by side
        observed = torch.from_numpy(np.repeat(seen[place][:, :, None], values.shape[2], axis=2))
        padded = torch.from_numpy(np.pad(part, ((0, 0), (0, more), (0, 0))))
        beside = known[place]
        if constant is not None:
            own = np.repeat(constant[first : first + len(part), None].astype(np.float32), length, axis=1)
            beside = np.concatenate([own, beside], axis=2)
        found = draw(
            padded.masked_fill(~observed, torch.nan),
            observed,
            torch.from_numpy(beside),
            names[first : first + len(part)],
        )
        answer[first : first + len(part)] = found[:, : values.shape[1]].numpy()
    return answer
