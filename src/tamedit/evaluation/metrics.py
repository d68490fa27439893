"""Metrics: a ratio of two sums, and what is done with it.

    metric = finish(Σ numerator / Σ denominator)

taken for each channel and averaged over the channels that have a denominator, or (`pooled`) with both sums taken over all
channels first. Because its inputs are sums, a metric can be computed for all cells, per channel, step or window, and for every
resample of a bootstrap.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from tamedit.evaluation.aggregation import Totals

Values = Float[np.ndarray, "..."]


def _same(ratio: Values) -> Values:
    return ratio


def _one_minus(ratio: Values) -> Values:
    return 1.0 - ratio


@dataclass(frozen=True)
class Metric:
    """One metric by its name in the paper, with what a table has to know of it."""

    name: str
    numerator: str = ""
    denominator: str = "count"
    finish: Callable[[Values], Values] = _same
    pooled: bool = False
    probabilistic: bool = False  # means nothing for a single guess
    band: float | None = None  # of a central interval, which few samples do not reach
    original_only: bool = False  # a share of the data's own level, which z-units take away
    low: float = 0.0
    high: float = np.inf
    best: Literal["least", "most", "neither"] = "least"


POINTWISE = (
    Metric("point_RMSE", "squared_error", finish=np.sqrt),
    Metric("point_MAE", "absolute_error"),
    Metric("point_MAPE", "percentage_error", "above_floor", original_only=True),
    Metric("MAPE_left_out", "below_floor", original_only=True, high=1.0, best="neither"),
    Metric("WAPE", "absolute_error", "absolute_truth", original_only=True),
    Metric(
        "R2", "squared_error", "centred_squared", finish=_one_minus, pooled=True, low=-np.inf, high=1.0, best="most"
    ),
    Metric("CRPS", "crps"),
    Metric("CRPS_CSDI", "csdi_quantile", "absolute_truth", pooled=True, original_only=True),
    Metric("coverage50", "inside50", probabilistic=True, band=0.5, high=1.0, best="neither"),
    Metric("coverage90", "inside90", probabilistic=True, band=0.9, high=1.0, best="neither"),
    Metric("width50", "width50", probabilistic=True, band=0.5, best="neither"),
    Metric("width90", "width90", probabilistic=True, band=0.9, best="neither"),
)
# Of whole stretches, for tasks that hide one (`path_statistics`).
PATHS = (
    Metric("path_total_CRPS", "path_total_crps", "path_count"),
    Metric("path_peak_CRPS", "path_peak_crps", "path_count"),
    Metric("path_energy", "path_energy", "path_count"),
    Metric("path_variogram", "path_variogram", "path_pairs"),
)
# Distances between distributions are not ratios of sums; `distribution` computes them.
DISTRIBUTIONAL = (
    Metric("dist_KL"),
    Metric("dist_JS", high=1.0),
    Metric("dist_WS"),
    Metric("dist_KS", high=1.0),
    Metric("MMD", low=-np.inf),
    Metric("temp_spec_dist"),
)
METRICS = {metric.name: metric for metric in (*POINTWISE, *PATHS, *DISTRIBUTIONAL)}


def by_channel(metric: Metric, sums: Totals) -> Float[np.ndarray, "A K"]:
    """The metric of every channel; NaN where there is nothing to divide by."""
    return metric.finish(_ratio(sums[metric.numerator], sums[metric.denominator]))


def measure(metric: Metric, sums: Totals) -> Float[np.ndarray, " A"]:
    """The metric over channels; NaN where no channel has anything to measure, or where a sample is not a number."""
    top, bottom = sums[metric.numerator], sums[metric.denominator]
    if metric.pooled:
        return metric.finish(_ratio(top.sum(axis=-1), bottom.sum(axis=-1)))
    return over_channels(by_channel(metric, sums), bottom > 0)


def over_channels(values: Float[np.ndarray, "A K"], defined: np.ndarray) -> Float[np.ndarray, " A"]:
    """The mean over the channels in which a metric is defined. NaN there is not forgiven: it comes from the samples."""
    kept = np.broadcast_to(defined, values.shape)
    return _ratio(np.where(kept, values, 0.0).sum(axis=-1), kept.sum(axis=-1).astype(np.float64))


def _ratio(top: Values, bottom: Values) -> Values:
    return np.divide(top, bottom, out=np.full(np.shape(top), np.nan), where=bottom > 0)
