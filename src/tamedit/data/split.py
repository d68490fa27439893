"""Chronological splits: the training part comes before the test part, or from other meters."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tamedit.data.series import Series
from tamedit.data.study import Study
from tamedit.errors import UserError


@dataclass(frozen=True)
class Split:
    """Three parts of a series that share no row."""

    train: Series
    validation: Series
    test: Series
    study: Study | None = None  # whose dates cut it, if all meters lie on its grid


def split_by_time(series: Series, shares: Sequence[float] = (0.7, 0.15, 0.15)) -> Split:
    """Every meter cut by its own rows: the first part for training, then validation, then test."""
    if (
        len(shares) != 3
        or any(not 0 <= share <= 1 for share in shares)
        or abs(sum(shares) - 1) > 1e-6
        or shares[0] == 0
    ):
        raise UserError(
            f"The shares {tuple(shares)} must be three numbers from 0 to 1 that sum to 1, the first above 0."
        )
    lengths = series.lengths
    first = np.rint(lengths * shares[0]).astype(np.int64)
    second = np.rint(lengths * (shares[0] + shares[1])).astype(np.int64)
    return _cut(series, first, second, lengths)


def split_by_rows(series: Series, counts: Sequence[int] = (8640, 2880, 2880)) -> Split:
    """Every meter cut after a fixed number of rows; later rows are not used."""
    if len(counts) != 3 or any(count < 0 for count in counts) or counts[0] == 0:
        raise UserError(f"The counts {tuple(counts)} must be three whole numbers of rows, the first above 0.")
    shortest = int(series.lengths.min())
    if shortest < sum(counts):
        raise UserError(
            f"A split into {counts[0]} + {counts[1]} + {counts[2]} rows needs {sum(counts)} rows and the shortest "
            f"meter has {shortest}; ask for fewer, or split by shares."
        )
    edges = np.cumsum(counts)
    return _cut(series, *(np.full(len(series.meters), edge, dtype=np.int64) for edge in edges))


def split_by_study(laid: Series, study: Study) -> Split:
    """Every meter cut at the dates of the study on whose grid the series was laid."""
    first, second = (np.full(len(laid.meters), border, dtype=np.int64) for border in study.borders(laid))
    return replace(_cut(laid, first, second, laid.lengths), study=study)


def split_by_meter(series: Series, test: Collection[str], validation_share: float) -> Split:
    """Test on other meters: all rows of those named in `test`.

    The last `validation_share` of the rows of every other meter is for validation, what comes before for training. Where a
    meter goes depends only on its own name. Adding or removing a meter moves no other meter; a guarantee needs that.
    """
    if not 0 <= validation_share < 1:
        raise UserError(f"validation_share={validation_share} must be at least 0 and below 1.")
    chosen = np.array([meter in test for meter in series.meters])
    if chosen.all() or not chosen.any():
        raise UserError(
            f"{int(chosen.sum())} of the {len(chosen)} meters are named for the test; name at least one, but not all."
        )
    rest = series.select(np.flatnonzero(~chosen).tolist())
    edges = np.rint(rest.lengths * (1 - validation_share)).astype(np.int64)
    return Split(
        train=rest.between(np.zeros_like(edges), edges),
        validation=rest.between(edges, rest.lengths),
        test=series.select(np.flatnonzero(chosen).tolist()),
    )


def draw_meters(series: Series, count: int, seed: int = 0) -> frozenset[str]:
    """The names of `count` meters, whatever their order: for made-up homes, since all of them decide on every one."""
    meters = len(series.meters)
    if not 0 < count < meters:
        raise UserError(f"{count} meters for the test must be between 1 and {meters - 1}: the series has {meters}.")
    drawn = np.random.default_rng(seed).permutation(meters)[:count]
    by_name = sorted(series.meters)
    return frozenset(by_name[one] for one in drawn)


def _cut(series: Series, first: np.ndarray, second: np.ndarray, third: np.ndarray) -> Split:
    return Split(
        train=series.between(np.zeros_like(first), first),
        validation=series.between(first, second),
        test=series.between(second, third),
    )
