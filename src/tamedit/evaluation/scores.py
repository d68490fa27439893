"""Scores of samples against the truth, over hidden cells: statistics, then aggregation, then the metric.

    statistics    a number a cell: squared error of the sample mean, absolute error of the sample median, CRPS
    aggregation   the mean over the hidden cells of a channel, then over channels
    metric        RMSE = √(mean squared error) of each channel, averaged over channels; MAE and CRPS likewise

CRPS is the fair (unbiased) ensemble estimator, E|X − y| − ½ E|X − X'|. Of antithetic samples the two halves are each made
of independent draws, so the estimator is taken within each half and averaged. For a single number a cell (a baseline that
is not probabilistic) CRPS is the absolute error. Interval ends stand at position p (S + 1) of the sorted samples, so that
an ensemble that is right has the nominal coverage in expectation however few its samples (from 19 on for 90 %).
"""

from dataclasses import asdict, dataclass

import numpy as np
import scoringrules
from jaxtyping import Bool, Float

Cells = Float[np.ndarray, "B L K"]


@dataclass(frozen=True)
class CellStatistics:
    """What is known of every cell once samples and truth are there."""

    squared: Cells  # of the mean
    absolute: Cells  # of the median
    crps: Cells
    inside50: Cells  # 1 where the central 50 % of the samples hold the truth
    inside90: Cells


def cell_statistics(samples: Float[np.ndarray, "B S L K"], truth: Cells, independent_halves: bool) -> CellStatistics:
    """Statistics of an ensemble of at least one sample; of an antithetic one of at least four."""
    count = samples.shape[1]
    halves = np.split(samples, 2, axis=1) if independent_halves and count % 2 == 0 else [samples]
    if independent_halves and count < 4:
        raise ValueError(f"{count} samples in halves leave no two independent ones; draw at least 4")
    crps = np.mean([_crps(half, truth) for half in halves], axis=0)
    low90, low50, median, high50, high90 = np.quantile(samples, [0.05, 0.25, 0.5, 0.75, 0.95], axis=1, method="weibull")
    return CellStatistics(
        squared=np.square(samples.mean(axis=1) - truth),
        absolute=np.abs(median - truth),
        crps=crps,
        inside50=((low50 <= truth) & (truth <= high50)).astype(truth.dtype),
        inside90=((low90 <= truth) & (truth <= high90)).astype(truth.dtype),
    )


def _crps(samples: Float[np.ndarray, "B S L K"], truth: Cells) -> Cells:
    if samples.shape[1] == 1:
        return np.abs(samples[:, 0] - truth)
    score: Cells = scoringrules.crps_ensemble(truth, samples, m_axis=1, estimator="pwm")
    return score


@dataclass(frozen=True)
class Scores:
    """The metrics of one method at one task, in one unit; None where there is nothing to measure."""

    rmse: float | None
    mae: float | None
    crps: float | None
    coverage50: float | None
    coverage90: float | None

    def to_dict(self) -> dict[str, float | None]:
        return asdict(self)


def aggregate(
    statistics: CellStatistics, hidden: Bool[np.ndarray, "B L K"], scale: Float[np.ndarray, " K"], probabilistic: bool
) -> Scores:
    """Metrics over hidden cells, errors divided by `scale` (K,): ones for the data's own units."""

    count = hidden.sum(axis=(0, 1))
    kept = count > 0
    if not kept.any():
        return Scores(None, None, None, None, None)

    def by_channel(cells: Cells) -> Float[np.ndarray, " K"]:
        total = np.where(hidden, cells, 0.0).sum(axis=(0, 1), dtype=np.float64)
        channels: np.ndarray = total[kept] / count[kept]
        return channels

    return Scores(
        rmse=float(np.mean(np.sqrt(by_channel(statistics.squared)) / scale[kept])),
        mae=float(np.mean(by_channel(statistics.absolute) / scale[kept])),
        crps=float(np.mean(by_channel(statistics.crps) / scale[kept])),
        coverage50=float(np.mean(by_channel(statistics.inside50))) if probabilistic else None,
        coverage90=float(np.mean(by_channel(statistics.inside90))) if probabilistic else None,
    )
