"""All metrics of one method at one task, in z-units and in the data's own: statistics, aggregation, metric in a row.

samples, truth, scored cells  →  statistics (one number per cell, or per path)  →  aggregation (sums per window)  →  metrics, with
intervals
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from tamedit.evaluation.aggregation import in_units, resampled, totals
from tamedit.evaluation.cell_statistics import cell_statistics, hidden_cells, reached
from tamedit.evaluation.distribution import DEGREES as UNITS
from tamedit.evaluation.distribution import distribution_distances
from tamedit.evaluation.intervals import bootstrap_interval
from tamedit.evaluation.metrics import METRICS, PATHS, POINTWISE, Metric, measure, over_channels
from tamedit.evaluation.path_statistics import path_statistics, scored_paths

MAPE_FLOOR = 0.1  # of the channel's standard deviation over the training split
# Names that were there first; tables and other programs read them.
SHORT_NAMES = {"rmse": "point_RMSE", "mae": "point_MAE", "crps": "CRPS"}


@dataclass(frozen=True)
class Scores:
    """Metrics by name, in one unit; None where there is nothing to measure."""

    values: Mapping[str, float | None]
    intervals: Mapping[str, tuple[float, float] | None] = field(default_factory=dict)
    resampled: Mapping[str, Float[np.ndarray, " R"]] = field(default_factory=dict, repr=False, compare=False)

    def __getitem__(self, name: str) -> float | None:
        return self.values[SHORT_NAMES.get(name, name)]

    @property
    def rmse(self) -> float | None:
        return self["rmse"]

    @property
    def mae(self) -> float | None:
        return self["mae"]

    @property
    def crps(self) -> float | None:
        return self["crps"]

    @property
    def coverage50(self) -> float | None:
        return self["coverage50"]

    @property
    def coverage90(self) -> float | None:
        return self["coverage90"]

    def to_dict(self) -> dict[str, Any]:
        """Every metric under its name and its short name, and 95 % intervals under `intervals`."""
        short = {name: self[name] for name in SHORT_NAMES}
        intervals = {name: None if ends is None else list(ends) for name, ends in self.intervals.items()}
        return {**short, **self.values, "intervals": intervals}


def score(
    samples: Float[np.ndarray, "B S L K"],
    truth: Float[np.ndarray, "B L K"],
    hidden: Bool[np.ndarray, "B L K"],
    deviation: Float[np.ndarray, " K"],
    *,
    probabilistic: bool = True,
    independent_halves: bool | None = None,
    weights: Float[np.ndarray, "R B"] | None = None,
    floor: float = MAPE_FLOOR,
    paths: bool = False,
) -> tuple[Scores, Scores]:
    """(in z-units, in the data's units). Cells without truth (NaN) do not count; `deviation` makes z-units.

    `independent_halves`: antithetic samples (the default of those that are probabilistic). `weights`: resamples of the
    windows from `bootstrap_weights`; without them, or with a single window, there are no intervals. `paths`: whether the
    hidden cells of a window are one stretch, so that path scores exist.
    """
    halves = probabilistic if independent_halves is None else independent_halves
    cells = hidden_cells(samples, truth, hidden)
    sums = {**totals(cells, cell_statistics(cells, floor * deviation, independent_halves=halves), "window")}
    if paths:
        sums |= path_statistics(scored_paths(samples, truth, hidden), independent_halves=halves)
    extra = weights if weights is not None and len(truth) > 1 else None
    apart = distribution_distances(cells, samples, truth, extra)
    draws = np.vstack([np.ones((1, len(truth))), *([] if extra is None else [extra])])
    results = []
    for scale, original in ((deviation, False), (np.ones_like(deviation), True)):
        drawn_sums = resampled(draws, in_units(sums, scale))
        columns = {
            metric.name: measure(metric, drawn_sums)
            for metric in (*POINTWISE, *(PATHS if paths else ()))
            if (original or not metric.original_only)
            and (probabilistic or not metric.probabilistic)
            and (metric.band is None or reached(metric.band, samples.shape[1]))
        }
        for name, distance in apart.items():
            columns[name] = over_channels(distance.values / scale ** UNITS.get(name, 0), distance.defined)
        results.append(_scores(columns))
    return results[0], results[1]


def _scores(columns: Mapping[str, Float[np.ndarray, " R"]]) -> Scores:
    """The first entry of a column is the estimate, the others are resamples."""
    values: dict[str, float | None] = {}
    intervals: dict[str, tuple[float, float] | None] = {}
    for name, metric in METRICS.items():
        column = columns.get(name)
        known = column is not None and bool(np.isfinite(column[0]))
        values[name] = float(column[0]) if known and column is not None else None
        intervals[name] = _interval(metric, column) if known and column is not None else None
    return Scores(values, intervals, {name: column[1:] for name, column in columns.items()})


def _interval(metric: Metric, column: Float[np.ndarray, " R"]) -> tuple[float, float] | None:
    if len(column) < 2:
        return None
    return bootstrap_interval(float(column[0]), column[1:], metric.low, metric.high)
