"""Fills the missing cells of a series of any length with windows of the model's length.

Windows overlap by half. A *gap* is a run of rows with missing cells. A gap that lies within a window is filled by one window
alone, so that each sample is one coherent path through it: by the window with most known cells around it (the largest share of
known cells, less half of the distance of the gap's middle from the window's). A gap longer than that is filled from its
edges inwards, in passes: what is filled counts as known in the next pass, sample by sample, and windows that touch are
never used for one gap in the same pass. A window is used once a quarter of its cells are known; a meter that has no such
window takes its best one. No meter's fill depends on the others.

Only missing cells are stored: M of them, S samples each.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from tamedit.diffusion.starts import OneOf
from tamedit.tasks.parts import PATHS_AT_ONCE, Progress, parts

LEAST_KNOWN = 0.25
# (values, observed, covariates, window names, samples per window or which one each is) -> draws in the data's units (W, S, L, K)
Draw = Callable[[Tensor, Tensor, Tensor, np.ndarray, int | OneOf], Tensor]


@dataclass(frozen=True, eq=False)
class Line:
    """Meters end to end, as the model reads them, each at least one window long."""

    values: Float[np.ndarray, "T K"]  # NaN = missing
    covariates: Float[np.ndarray, "T V"]
    offsets: Int64[np.ndarray, " M1"]
    meters: tuple[str, ...] = ("",)

    def window_names(self, starts: Int64[np.ndarray, " W"]) -> Int64[np.ndarray, " W"]:
        """The random stream of a window: its meter's name and its place in the meter, whatever other meters there are."""
        meter = np.searchsorted(self.offsets, starts, side="right") - 1
        mine, which = np.unique(meter, return_inverse=True)  # of a fleet, few meters at a time
        named = [self.meters[one].encode() for one in mine]
        streams = [int.from_bytes(blake2b(name, digest_size=7).digest(), "little") for name in named]
        names: np.ndarray = np.array(streams, dtype=np.int64)[which] + starts - self.offsets[meter]
        return names


def window_starts(offsets: Int64[np.ndarray, " M1"], length: int) -> Int64[np.ndarray, " W"]:
    """Half-overlapping windows that end with each meter, and one that starts with it; in rising order."""
    starts = [
        np.union1d(np.arange(last - length, first - 1, -max(length // 2, 1)), [first])
        for first, last in pairwise(offsets)
    ]
    return np.concatenate(starts).astype(np.int64)


def fill(
    line: Line,
    wanted: Bool[np.ndarray, "T K"],
    length: int,
    samples: int,
    draw: Draw,
    progress: Progress | None = None,
) -> Float[np.ndarray, "S M"]:
    """Samples of the wanted missing cells, in the order of `np.nonzero(wanted)`.

    `wanted` marks missing cells to fill; other missing cells of the same gap are filled with them and dropped at the end.
    """
    missing = np.isnan(line.values)
    column = np.full(line.values.shape, -1, dtype=np.int64)
    column[missing] = np.arange(missing.sum())
    filled = np.full((samples, int(missing.sum())), np.nan, dtype=np.float32)
    known = ~missing
    starts = window_starts(line.offsets, length)
    turn = 0
    while (wanted & ~known).any():
        chosen, owner = _assign(known, wanted, line.offsets, starts, length)
        newly = np.zeros_like(known)
        draws = _draw_windows(line, chosen, length, column, filled, known, draw, turn, progress)
        for window, drawn in draws:  # drawn (S, L, K)
            rows = slice(chosen[window], chosen[window] + length)
            mine = (owner[rows] == window)[:, None] & ~known[rows]  # (L, K)
            filled[:, column[rows][mine]] = drawn[:, mine]
            newly[rows] |= mine
        known |= newly
        turn += 1
    return filled[:, column[wanted]]


def _gaps(
    known: Bool[np.ndarray, "T K"], wanted: Bool[np.ndarray, "T K"], offsets: Int64[np.ndarray, " M1"]
) -> tuple[Int64[np.ndarray, " N"], Int64[np.ndarray, " N"]]:
    """First and last row (exclusive) of every run of rows with unknown cells, within a meter, that holds a wanted one."""
    unknown: np.ndarray = np.any(~known, axis=1)
    fresh = np.zeros(len(unknown) + 1, dtype=bool)
    fresh[offsets] = True
    begins = np.flatnonzero(unknown & (fresh[:-1] | ~np.r_[False, unknown[:-1]]))
    ends = np.flatnonzero(unknown & (fresh[1:] | ~np.r_[unknown[1:], False])) + 1
    total = np.concatenate([[0], np.cumsum((wanted & ~known).any(axis=1))])
    needed = total[ends] > total[begins]
    return begins[needed], ends[needed]


def _inside(cells: Bool[np.ndarray, "T K"], starts: Int64[np.ndarray, " W"], length: int) -> Int64[np.ndarray, "W K"]:
    """How many of the cells lie in each window."""
    total = np.concatenate([np.zeros((1, cells.shape[1]), dtype=np.int64), np.cumsum(cells, axis=0)])
    found: Int64[np.ndarray, "W K"] = total[starts + length] - total[starts]
    return found


def _assign(
    known: Bool[np.ndarray, "T K"],
    wanted: Bool[np.ndarray, "T K"],
    offsets: Int64[np.ndarray, " M1"],
    starts: Int64[np.ndarray, " W"],
    length: int,
) -> tuple[Int64[np.ndarray, " U"], Int64[np.ndarray, " T"]]:
    """First rows of the windows of this pass, and for every row the number of the window that fills it (−1: none).

    How much of a window is known counts channel by channel, for the channels that it is to fill: a complete neighbour says
    nothing about the level of a channel that is silent.
    """
    share = _inside(known, starts, length) / length  # (W, K)
    asked = _inside(wanted & ~known, starts, length) > 0
    needed: np.ndarray = np.any(asked, axis=1)
    share = np.where(asked, share, np.inf).min(axis=1)  # (W,)
    usable = needed & (share >= _enough(share, needed, np.searchsorted(offsets, starts, side="right") - 1))
    chosen, share = starts[usable], share[usable]
    begins, ends = _gaps(known, wanted, offsets)
    whole = _window_of_whole_gaps(begins, ends, chosen, share, length)  # (N,), −1 for a gap that fits in no window
    owner = np.full(len(known), -1, dtype=np.int64)
    fits = whole >= 0
    sizes = (ends - begins)[fits]
    inside = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    owner[np.repeat(begins[fits], sizes) + inside] = np.repeat(whole[fits], sizes)
    for begin, end in zip(begins[~fits], ends[~fits], strict=True):
        _enter_long_gap(owner, int(begin), int(end), chosen, share, length)
    used = np.unique(owner[owner >= 0])
    number = np.full(len(chosen) + 1, -1, dtype=np.int64)  # the last entry stands for −1
    number[used] = np.arange(len(used))
    return chosen[used], number[owner]


def _enough(
    share: Float[np.ndarray, " W"], needed: Bool[np.ndarray, " W"], meter: Int64[np.ndarray, " W"]
) -> Float[np.ndarray, " W"]:
    """What a window must know to be used: a quarter, or as much as the best of its meter where none has that much.

    Each meter by itself: its fill is the same whatever other meters are there.
    """
    best = np.full(meter.max(initial=-1) + 1, -np.inf)
    np.maximum.at(best, meter[needed], share[needed])
    return np.asarray(np.minimum(best, LEAST_KNOWN)[meter])


def _window_of_whole_gaps(
    begins: Int64[np.ndarray, " N"],
    ends: Int64[np.ndarray, " N"],
    chosen: Int64[np.ndarray, " W"],
    share: Float[np.ndarray, " W"],
    length: int,
) -> Int64[np.ndarray, " N"]:
    """The best window around each gap, −1 where none holds all of it."""
    first = np.searchsorted(chosen, ends - length, side="left")
    count = np.searchsorted(chosen, begins, side="right") - first
    best, score = np.full(len(begins), -1, dtype=np.int64), np.full(len(begins), -np.inf)
    for offset in range(int(count.max(initial=0))):
        window = np.minimum(first + offset, len(chosen) - 1)
        distance = np.abs((begins + ends) / 2 - chosen[window] - length / 2) / length
        candidate = np.where(offset < count, share[window] - 0.5 * distance, -np.inf)
        best, score = np.where(candidate > score, window, best), np.maximum(candidate, score)
    return best


def _enter_long_gap(
    owner: Int64[np.ndarray, " T"],
    begin: int,
    end: int,
    chosen: Int64[np.ndarray, " W"],
    share: Float[np.ndarray, " W"],
    length: int,
) -> None:
    """Mark the rows of a long gap that this pass fills: windows that know most first, none beside another."""
    first, last = np.searchsorted(chosen, begin - length, side="right"), np.searchsorted(chosen, end, side="left")
    taken = np.zeros(end - begin + 2, dtype=bool)  # the gap's rows, with one more at each end
    for window in first + np.argsort(-share[first:last], kind="stable"):
        low, high = max(int(chosen[window]), begin), min(int(chosen[window]) + length, end)
        if not taken[low - begin : high - begin + 2].any():
            owner[low:high] = window
            taken[low - begin + 1 : high - begin + 1] = True


def _draw_windows(
    line: Line,
    starts: Int64[np.ndarray, " W"],
    length: int,
    column: Int64[np.ndarray, "T K"],
    filled: Float[np.ndarray, "S M"],
    known: Bool[np.ndarray, "T K"],
    draw: Draw,
    turn: int,
    progress: Progress | None,
) -> Iterator[tuple[int, Float[np.ndarray, "S L K"]]]:
    """Draws of each window. In the first turn all samples share one context; later each sample has its own."""
    samples = len(filled)
    at_once = max(PATHS_AT_ONCE // samples, 1)  # later every sample has a context of its own
    for place in parts(len(starts), min(at_once, 64) if turn == 0 else max(at_once // 2, 1), progress):
        part = starts[place, None] + np.arange(length)  # (w, L)
        values = torch.from_numpy(line.values[part])
        observed = torch.from_numpy(known[part])
        covariates = torch.from_numpy(line.covariates[part])
        names = line.window_names(part[:, 0])
        if turn == 0:
            drawn = draw(values, observed, covariates, names, samples)
        else:
            own = torch.from_numpy(
                np.where(column[part] >= 0, filled[:, column[part]], line.values[part])
            )  # (S, w, L, K)
            seen, given = observed.repeat(samples, 1, 1), covariates.repeat(samples, 1, 1)
            apart = np.tile(names + (turn << 40), samples)  # a stream of its own for every window and turn
            which = OneOf(np.repeat(np.arange(samples), len(part)), samples)
            drawn = (
                draw(own.flatten(0, 1), seen, given, apart, which)
                .reshape(samples, len(part), *values.shape[1:])
                .transpose(0, 1)
            )
        for offset in range(len(part)):
            yield place.start + offset, drawn[offset].numpy()
