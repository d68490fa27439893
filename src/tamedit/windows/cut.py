"""A series becomes windows: views of it, never copies.

A window is one number, the row at which it starts; a batch is gathered when it is needed. 100,000 windows cost 800 kB
whatever their length. No window crosses from one meter to the next.

Two layouts. `cut`: overlapping windows at a stride, as in the paper. `cut_blocks`: the series is cut into disjoint blocks,
each an example, and windows are drawn inside a block. One day, one week or one meter then lies in one example, so that a
guarantee for it needs less noise.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from tamedit.data.series import Series
from tamedit.errors import UserError

TOGETHER = 4_000_000  # rows that are looked at together


@dataclass(frozen=True, eq=False)
class Windows:
    """Windows of `length` rows of a series, by their first rows."""

    series: Series
    starts: Int64[np.ndarray, " N"]
    length: int
    spans: Int64[np.ndarray, " N"] | None = None  # rows that an example owns, if more than one window fits into it

    def __len__(self) -> int:
        return len(self.starts)

    def shifts(self, indices: Int64[np.ndarray, " B"], uniform: Float[np.ndarray, " B"]) -> Int64[np.ndarray, " B"]:
        """Where windows begin inside their examples; every place is equally likely."""
        if self.spans is None:
            return np.zeros(len(indices), dtype=np.int64)
        places = self.spans[indices] - self.length + 1
        return np.minimum((uniform * places).astype(np.int64), places - 1)

    def gather(
        self, indices: Int64[np.ndarray, " B"], shifts: Int64[np.ndarray, " B"] | int = 0
    ) -> tuple[Float[Tensor, "B L K"], Float[Tensor, "B L V"]]:
        """Values (NaN = missing) and covariates of some windows: the only copy there is."""
        rows = (self.starts[indices] + shifts)[:, None] + np.arange(self.length)  # (B, L)
        return torch.from_numpy(self.series.values[rows]), torch.from_numpy(self.series.covariates[rows])

    def meter_of(self) -> Int64[np.ndarray, " N"]:
        """Which meter each window belongs to."""
        return np.searchsorted(self.series.offsets, self.starts, side="right").astype(np.int64) - 1


def cut(series: Series, length: int, stride: int, least_present: float = 0.5) -> Windows:
    """All windows at multiples of `stride` within each meter that have at least a share `least_present` of their cells.

    Raises a UserError if no meter is long enough.
    """
    sizes = np.diff(series.offsets)
    if not (sizes >= length).any():
        longest = int(sizes.max(initial=0))
        raise UserError(
            f"The longest series has {longest} rows, but a window needs {length}; give a longer series or a shorter window, "
            f"such as window={max(longest // 8, 8)}."
        )
    starts = np.concatenate(
        [np.arange(first, last - length + 1, stride, dtype=np.int64) for first, last in pairwise(series.offsets)]
    )
    kept = _present(series, starts, np.full_like(starts, length), least_present)
    return Windows(series, starts[kept], length)


def cut_blocks(
    series: Series,
    length: int,
    block: int | None,
    *,
    align: int = 1,
    phase: Int64[np.ndarray, " M"] | None = None,
    least_present: float = 0.5,
) -> Windows:
    """Disjoint blocks of `block` rows (None: every meter is one block), windows of `length` drawn inside.

    Blocks of meter m begin at the first row whose place in a period of `align` rows is 0; `phase[m]` is the place of the
    meter's first row. A remainder at the end that is shorter than a block is not used. A block is left out if less than a share
    `least_present` of its cells is there; that depends on nothing but the block itself.
    """
    phases = np.zeros(len(series.meters), dtype=np.int64) if phase is None else phase
    starts, spans = [], []
    for meter, (first, last) in enumerate(pairwise(series.offsets.tolist())):
        begin = first + int(-phases[meter] % align)
        size = last - begin if block is None else block
        if size >= length:
            mine = np.arange(begin, last - size + 1, size, dtype=np.int64)
            starts.append(mine)
            spans.append(np.full_like(mine, size))
    if not starts:
        raise UserError(
            f"No meter has a block of {block or length} rows (the longest has {int(np.diff(series.offsets).max(initial=0))}); "
            "give a longer series, a shorter `window` or a smaller `unit`."
        )
    all_starts, all_spans = np.concatenate(starts), np.concatenate(spans)
    if not len(all_starts):
        raise UserError(
            f"No whole block of {block or length} rows fits into the training part; give a longer series, or a smaller unit, "
            "such as unit='day'."
        )
    kept = _present(series, all_starts, all_spans, least_present)
    return Windows(series, all_starts[kept], length, all_spans[kept])


def with_readings(windows: Windows, least_present: float = 0.5) -> Windows:
    """The examples that have at least a share `least_present` of their cells."""
    spans = np.full_like(windows.starts, windows.length) if windows.spans is None else windows.spans
    kept = _present(windows.series, windows.starts, spans, least_present)
    return replace(windows, starts=windows.starts[kept], spans=None if windows.spans is None else spans[kept])


def trimmed(windows: Windows) -> Windows:
    """Blocks without the rows before their first and after their last reading, as far as a window still fits.

    A meter that joined a study late has its windows where it has readings. That depends on nothing but the block itself.
    """
    assert windows.spans is not None
    starts, spans = windows.starts.copy(), windows.spans.copy()
    for some, low, high in _pieces(windows.starts, windows.spans):
        ends, rows = windows.starts[some] + windows.spans[some] - low, np.arange(high - low + 1)
        known = np.append(np.isfinite(windows.series.values[low:high]).any(axis=1), False)
        later = np.minimum.accumulate(np.where(known, rows, len(known))[::-1])[
            ::-1
        ]  # the first reading at or after a row
        earlier = np.maximum.accumulate(np.where(known, rows, -1))  # the last one at or before it
        begin = windows.starts[some] - low
        begin = np.clip(later[begin], begin, ends - windows.length)
        last = np.clip(earlier[ends - 1] + 1, begin + windows.length, ends)
        starts[some], spans[some] = begin + low, last - begin
    return replace(windows, starts=starts, spans=spans)


def _pieces(starts: np.ndarray, spans: np.ndarray) -> Iterator[tuple[slice, int, int]]:
    """Some examples at a time, with the rows between which they lie: what is computed of all rows at once is small."""
    at_once = max(1, TOGETHER // max(int(spans.max(initial=1)), 1))
    for first in range(0, len(starts), at_once):
        some = slice(first, first + at_once)
        yield some, int(starts[some].min()), int((starts[some] + spans[some]).max())


def _present(series: Series, starts: np.ndarray, spans: np.ndarray, least: float) -> np.ndarray:
    """Which examples have at least a share `least` of their cells."""
    # Whole numbers: a sum of shares would round by what other blocks hold, and decide an even tie by it.
    kept = np.zeros(len(starts), dtype=bool)
    for some, low, high in _pieces(starts, spans):
        present = np.concatenate([[0], np.cumsum(np.isfinite(series.values[low:high]).sum(axis=1))])
        begin, size = starts[some] - low, spans[some]
        kept[some] = present[begin + size] - present[begin] >= least * size * series.values.shape[1]
    if not kept.any():
        raise UserError(
            f"None of the {len(starts)} windows of {int(spans.min())} rows or more has {least:.0%} of its values; "
            "give a series with fewer gaps, a shorter `window`, or the true extent of the study when you train (`study`)."
        )
    return kept
