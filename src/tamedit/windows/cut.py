"""A series becomes windows: views of it, never copies.

A window is one number, the row at which it starts; a batch is gathered when it is needed. 100,000 windows cost 800 kB
whatever their length. No window crosses from one meter to the next.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from tamedit.data.series import Series
from tamedit.errors import UserError


@dataclass(frozen=True, eq=False)
class Windows:
    """Windows of `length` rows of a series, by their first rows."""

    series: Series
    starts: Int64[np.ndarray, " N"]
    length: int

    def __len__(self) -> int:
        return len(self.starts)

    def gather(self, indices: Int64[np.ndarray, " B"]) -> tuple[Float[Tensor, "B L K"], Float[Tensor, "B L V"]]:
        """Values (NaN = missing) and covariates of some windows: the only copy there is."""
        rows = self.starts[indices, None] + np.arange(self.length)  # (B, L)
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
            f"The longest series has {longest} rows and a window needs {length}; give a longer series or a shorter window "
            f"(--window {max(longest // 4, 1)})."
        )
    starts = np.concatenate(
        [
            np.arange(first, last - length + 1, stride, dtype=np.int64)
            for first, last in zip(series.offsets[:-1], series.offsets[1:], strict=True)
        ]
    )
    present = np.concatenate([[0.0], np.cumsum(np.isfinite(series.values).mean(axis=1))])
    share = (present[starts + length] - present[starts]) / length
    kept = starts[share >= least_present]
    if len(kept) == 0:
        raise UserError(
            f"None of the {len(starts)} windows of {length} rows has {least_present:.0%} of its values; "
            "give a series with fewer gaps or a shorter window (--window)."
        )
    return Windows(series, kept, length)
