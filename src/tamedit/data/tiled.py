"""Rows that repeat: what all meters of a fleet share is kept once, and looks like an array with a copy for every meter."""

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd


def _numbers(rows: Any, count: int) -> np.ndarray:
    """The numbers of the rows that are asked for, by numbers or by a mask; refused as an array would refuse them."""
    rows = np.asarray(rows)
    if rows.dtype == bool:
        if rows.shape != (count,):
            raise IndexError(f"a mask of the shape {rows.shape} does not fit {count} rows")
        return np.flatnonzero(rows)
    if rows.size and rows.dtype.kind not in "iu":
        raise IndexError(f"rows are asked for by whole numbers, a slice or a mask, not by {rows.dtype}")
    if rows.size and not -count <= rows.min() <= rows.max() < count:
        raise IndexError(f"there is no row {rows.max()} or {rows.min()} among {count} rows")
    return rows.astype(np.int64)


class Tiled:
    """`times` copies of `base` (R, V), one below the other, of which only the rows that are asked for are made."""

    ndim = 2

    def __init__(self, base: np.ndarray, times: int) -> None:
        self.base, self.times = base, times
        self.shape, self.dtype = (len(base) * times, *base.shape[1:]), base.dtype

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> np.ndarray:
        rows = np.arange(*rows.indices(len(self))) if isinstance(rows, slice) else _numbers(rows, len(self))
        found: np.ndarray = self.base[rows % max(len(self.base), 1)]
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.tile(self.base, (self.times, 1)).astype(dtype or self.dtype)


def of_dense(asked: Callable[[Any, Any], Any]) -> Callable[["TiledStamps", Any], Any]:
    """An operator of an index, for tiled stamps; Python asks no object for operators by `__getattr__`."""
    return lambda one, other: asked(one.dense, other.dense if isinstance(other, TiledStamps) else other)


class TiledStamps:
    """`copies` times the stamps of `base`: a `DatetimeIndex` of the stamps of all rows, of which only `base` is kept.

    Rows that are asked for (a number, a slice, numbers, a mask) come as a plain `DatetimeIndex`, or a `Timestamp`. What the
    copies have in common (zone, unit, least, largest, conversion) is asked of `base`. Anything else that an index can do is
    asked of `dense`, which has a stamp for every row.

    Not promised: it is no subclass of `pd.Index`, so pandas takes it as a list of stamps (`dense` is an index), and code that
    asks `isinstance` must ask for both. It has no frequency and no name. What changes an index makes a plain one.
    """

    def __init__(self, base: pd.DatetimeIndex, copies: int) -> None:
        self.base = base if base.freq is None else base[np.arange(len(base))]  # tiled stamps have no frequency
        self.copies = copies

    @property
    def dense(self) -> pd.DatetimeIndex:
        """A stamp for every row."""
        return self[np.arange(len(self))]

    @property
    def tz(self) -> Any:
        return self.base.tz

    @property
    def unit(self) -> str:
        return str(self.base.unit)

    @property
    def shape(self) -> tuple[int]:
        return (len(self),)

    def __len__(self) -> int:
        return len(self.base) * self.copies

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, slice):
            first, last, step = rows.indices(len(self))
            before = first - first % max(len(self.base), 1)  # the rows of the copies above
            if step > 0 and first <= last <= before + len(self.base):  # within one copy: a view
                return self.base[first - before : last - before : step]
            return self.base[np.arange(first, last, step) % len(self.base)]
        return self.base[_numbers(rows, len(self)) % max(len(self.base), 1)]

    def __iter__(self) -> Iterator[pd.Timestamp]:
        for _ in range(self.copies):
            yield from self.base

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.dense, dtype=dtype)

    __add__, __sub__ = of_dense(operator.add), of_dense(operator.sub)
    __radd__ = of_dense(lambda one, other: other + one)
    __rsub__ = of_dense(lambda one, other: other - one)
    __eq__, __ne__ = of_dense(operator.eq), of_dense(operator.ne)
    __lt__, __le__, __gt__, __ge__ = (of_dense(one) for one in (operator.lt, operator.le, operator.gt, operator.ge))
    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"TiledStamps({self.copies} x {self.base!r})"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in ("base", "copies"):  # asked before they are there, by `copy` and `pickle`
            raise AttributeError(name)
        return getattr(self.dense, name)

    def min(self) -> pd.Timestamp:
        """The first of all."""
        return self.base.min() if self.copies else self.dense.min()

    def max(self) -> pd.Timestamp:
        """The last of all."""
        return self.base.max() if self.copies else self.dense.max()

    def equals(self, other: Any) -> bool:
        """Whether another index, tiled or not, has the same stamps in the same order."""
        if isinstance(other, TiledStamps) and len(other.base) == len(self.base):
            return self.copies == other.copies and bool(self.base.equals(other.base))
        return bool(self.dense.equals(other.dense if isinstance(other, TiledStamps) else other))

    def append(self, other: Any) -> pd.DatetimeIndex:
        """A plain index with the stamps of others behind these."""
        several = other if isinstance(other, list | tuple) else [other]
        return self.dense.append([one.dense if isinstance(one, TiledStamps) else one for one in several])

    def tz_localize(self, zone: Any, **how: Any) -> "TiledStamps":
        """The same by the clock, in another zone or none."""
        return TiledStamps(self.base.tz_localize(zone, **how), self.copies)

    def tz_convert(self, zone: Any) -> "TiledStamps":
        """The same moments, by the clock of another zone."""
        return TiledStamps(self.base.tz_convert(zone), self.copies)


def tiled_stamps(base: pd.DatetimeIndex, copies: int) -> pd.DatetimeIndex | TiledStamps:
    """Stamps that several meters share, kept once; those of a single meter as they are."""
    return base if copies == 1 else TiledStamps(base, copies)
