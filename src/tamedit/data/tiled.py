"""Rows that repeat: what all meters of a fleet share is kept once, and looks like an array with a copy for every meter."""

from typing import Any

import numpy as np


class Tiled:
    """`times` copies of `base` (R, V), one below the other, of which only the rows that are asked for are made."""

    ndim = 2

    def __init__(self, base: np.ndarray, times: int) -> None:
        self.base, self.times = base, times
        self.shape, self.dtype = (len(base) * times, *base.shape[1:]), base.dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> np.ndarray:
        if isinstance(rows, slice):
            rows = np.arange(*rows.indices(len(self)))
        found: np.ndarray = self.base[np.asarray(rows) % len(self.base)]
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.tile(self.base, (self.times, 1)).astype(dtype or self.dtype)
