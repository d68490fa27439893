"""Statistics: one number per hidden cell, computed from its samples and its truth.

The hidden cells of all windows are laid flat (N of them): a cell knows its window, its step and its channel, so that any
axis can be summed over later (`aggregation`). Cells whose truth is missing do not count.

    squared_error      (mean of the samples − y)²
    absolute_error     |median of the samples − y|
    squared_error_of_median, absolute_error_of_mean    what some peers report
    percentage_error   absolute_error / |y| where |y| reaches the floor, else 0;    `above_floor` counts those cells
    crps               fair ensemble estimator, E|X − y| − ½ E|X − X'|
    csdi_quantile      mean over the levels 0.05 … 0.95 of 2 · pinball loss, as CSDI's evaluation has it
    inside50, width50  whether the central 50 % of the samples contain y, and how wide that interval is;    the same for 90 %
    centred_squared    (y − the channel's mean over the hidden cells)²
    absolute_truth     |y|

Of antithetic samples the two halves are each made of independent draws, so CRPS is taken within each half and averaged. Of
a single number per cell (a baseline that is not probabilistic) CRPS is the absolute error. Interval ends and the median stand
at position p (S + 1) of the sorted samples, so that an ensemble of independent draws that is right has the nominal coverage in
expectation however few its samples (from 19 on for 90 %). Antithetic pairs cover a little more: 52.4 and 90.7 % with S = 20, 50.5
and 90.1 % with 100.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scoringrules
from jaxtyping import Bool, Float, Int64

PerCell = Float[np.ndarray, " N"]
POINTS = (0.05, 0.25, 0.5, 0.75, 0.95)
CSDI_LEVELS = np.arange(1, 20) / 20
# The power of the data's scale by which a statistic grows; statistics not listed do not grow.
DEGREES = {
    "squared_error": 2,
    "squared_error_of_median": 2,
    "centred_squared": 2,
    "absolute_error": 1,
    "absolute_error_of_mean": 1,
    "crps": 1,
    "csdi_quantile": 1,
    "absolute_truth": 1,
    "width50": 1,
    "width90": 1,
}


@dataclass(frozen=True, eq=False)
class Cells:
    """The hidden cells of B windows of L steps and K channels: where each lies, its truth and its samples."""

    window: Int64[np.ndarray, " N"]
    step: Int64[np.ndarray, " N"]
    channel: Int64[np.ndarray, " N"]
    truth: PerCell
    samples: Float[np.ndarray, "N S"]
    shape: tuple[int, int, int]

    def __len__(self) -> int:
        return len(self.truth)


def hidden_cells(
    samples: Float[np.ndarray, "B S L K"], truth: Float[np.ndarray, "B L K"], hidden: Bool[np.ndarray, "B L K"]
) -> Cells:
    """The cells that are hidden and have a truth, in double precision."""
    window, step, channel = np.nonzero(hidden & np.isfinite(truth))
    return Cells(
        window,
        step,
        channel,
        truth[window, step, channel].astype(np.float64),
        samples[window, :, step, channel].astype(np.float64),
        (truth.shape[0], truth.shape[1], truth.shape[2]),
    )


def cell_statistics(cells: Cells, floor: Float[np.ndarray, " K"], *, independent_halves: bool) -> dict[str, PerCell]:
    """Every statistic of every cell, in the data's units. `floor`: smallest |y| of each channel that MAPE divides by."""
    truth, halves = cells.truth, independent_parts(cells.samples, independent_halves)
    ordered = in_order(cells.samples)
    low90, low50, median, high50, high90 = central(ordered)
    from_mean, absolute, magnitude = cells.samples.mean(axis=1) - truth, np.abs(median - truth), np.abs(truth)
    # An exact zero is never divided by, not even where a channel has no floor.
    above = (magnitude >= floor[cells.channel]) & (magnitude > 0)
    return {
        "count": np.ones(len(cells)),
        "squared_error": np.square(from_mean),
        "squared_error_of_median": np.square(absolute),
        "absolute_error": absolute,
        "absolute_error_of_mean": np.abs(from_mean),
        "percentage_error": np.divide(absolute, magnitude, out=np.zeros_like(absolute), where=above),
        "above_floor": above.astype(np.float64),
        "below_floor": 1.0 - above,
        "crps": np.mean([fair_crps(half, truth) for half in halves], axis=0),
        "csdi_quantile": _csdi_quantile(ordered, truth),
        "inside50": ((low50 <= truth) & (truth <= high50)).astype(np.float64),
        "inside90": ((low90 <= truth) & (truth <= high90)).astype(np.float64),
        "width50": high50 - low50,
        "width90": high90 - low90,
        "centred_squared": np.square(truth - _channel_mean(cells)[cells.channel]),
        "absolute_truth": magnitude,
    }


def independent_parts(samples: Float[np.ndarray, "N S *D"], halves: bool) -> list[Float[np.ndarray, "N M *D"]]:
    """Samples that are independent of each other within each part: the two halves of antithetic samples, else all together."""
    count = samples.shape[1]
    if halves and count < 4:
        raise ValueError(f"{count} samples in halves leave no two independent samples; draw at least 4")
    return np.split(samples, 2, axis=1) if halves and count % 2 == 0 else [samples]


def in_order(samples: Float[np.ndarray, "N S"]) -> Float[np.ndarray, "N S"]:
    """The samples of every cell sorted; all NaN where one is."""
    ordered = np.sort(samples, axis=1)
    ordered[np.isnan(ordered[:, -1])] = np.nan  # sorted to the end, a sample that is not a number would go unseen
    return ordered


def reached(level: float, samples: int) -> bool:
    """Whether the ends of a central interval lie among S samples; 90 % from 19 on. Outermost samples would cover less."""
    return (1 - level) / 2 * (samples + 1) > 1 - 1e-9


def central(ordered: Float[np.ndarray, "N S"], points: Sequence[float] = POINTS) -> list[PerCell]:
    """The 5, 25, 50, 75 and 95 % points (or others) at positions p (S + 1): numpy's method "weibull"."""
    count = ordered.shape[1]
    return [_at(ordered, point * (count + 1) - 1) for point in points]


def _at(ordered: Float[np.ndarray, "N S"], position: float) -> PerCell:
    """The value at a fractional place among the sorted samples."""
    last = ordered.shape[1] - 1
    position = min(max(position, 0.0), float(last))
    below = min(int(position), max(last - 1, 0))
    above = min(below + 1, last)
    value: PerCell = ordered[:, below] + (position - below) * (ordered[:, above] - ordered[:, below])
    return value


def fair_crps(samples: Float[np.ndarray, "N S"], truth: PerCell) -> PerCell:
    """E|X − y| − ½ E|X − X'| of independent samples; of a single one, the absolute error."""
    if samples.shape[1] == 1:
        return np.abs(samples[:, 0] - truth)
    score: PerCell = scoringrules.crps_ensemble(truth, samples, estimator="pwm")
    return score


def _csdi_quantile(ordered: Float[np.ndarray, "N S"], truth: PerCell) -> PerCell:
    """CSDI's quantiles stand at positions p (S − 1), as torch.quantile has them."""
    total = np.zeros_like(truth)
    for level in CSDI_LEVELS:
        error = truth - _at(ordered, level * (ordered.shape[1] - 1))
        total += 2 * np.maximum(level * error, (level - 1) * error)
    return total / len(CSDI_LEVELS)


def _channel_mean(cells: Cells) -> Float[np.ndarray, " K"]:
    channels = cells.shape[2]
    count = np.bincount(cells.channel, minlength=channels)
    mean: np.ndarray = np.bincount(cells.channel, cells.truth, minlength=channels) / np.maximum(count, 1)
    return mean
