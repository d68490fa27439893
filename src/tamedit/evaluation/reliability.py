"""Are intervals calibrated? Nominal level of a central interval against the share of the truth that it contains.

    coverage(c) = P( q_{(1 − c)/2} ≤ y ≤ q_{(1 + c)/2} )          c for an ensemble that is right

Quantiles stand at positions p (S + 1) of the sorted samples, so that an ensemble that is right covers c in expectation
however few its samples; a level that S samples cannot reach (c > 1 − 2 / (S + 1)) is left out. Counted as `evaluation.scores`
counts: by channel, then averaged over channels; so the numbers at 50 and 90 % are its `coverage50` and `coverage90`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from tamedit.evaluation.aggregation import resampled, totals
from tamedit.evaluation.cell_statistics import central, hidden_cells, in_order, reached
from tamedit.evaluation.intervals import bootstrap_interval
from tamedit.evaluation.metrics import Metric, measure

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True)
class Curve:
    """Coverage at several levels with 95 % intervals (None: too few windows to say); None where no truth is known."""

    levels: tuple[float, ...]
    coverage: tuple[float | None, ...]
    intervals: tuple[tuple[float, float] | None, ...]

    def at(self, level: float) -> tuple[float | None, tuple[float, float] | None]:
        """Coverage and interval at one of the levels."""
        place = self.levels.index(level)
        return self.coverage[place], self.intervals[place]

    def to_dict(self) -> dict[str, Any]:
        ends = [None if one is None else list(one) for one in self.intervals]
        return {"levels": list(self.levels), "coverage": list(self.coverage), "intervals": ends}


def reachable(samples: int) -> tuple[float, ...]:
    """The levels whose ends lie among S samples."""
    return tuple(level for level in LEVELS if reached(level, samples))


def reliability(
    samples: Float[np.ndarray, "B S L K"],
    truth: Float[np.ndarray, "B L K"],
    hidden: Bool[np.ndarray, "B L K"],
    weights: Float[np.ndarray, "R B"] | None = None,
) -> Curve:
    """The curve over all hidden cells with a truth. `weights`: resamples of the windows from `bootstrap_weights`."""
    cells = hidden_cells(samples, truth, hidden)
    ordered, levels = in_order(cells.samples), reachable(samples.shape[1])
    inside = {"count": np.ones(len(cells))}
    for level in levels:
        low, high = central(ordered, ((1 - level) / 2, (1 + level) / 2))
        inside[f"{level:.0%}"] = ((low <= cells.truth) & (cells.truth <= high)).astype(np.float64)
    extra = weights if weights is not None and len(truth) > 1 else np.empty((0, len(truth)))
    sums = resampled(np.vstack([np.ones((1, len(truth))), extra]), totals(cells, inside, "window"))
    columns = [measure(Metric(name="coverage", numerator=f"{level:.0%}", high=1.0), sums) for level in levels]
    return Curve(
        levels,
        tuple(float(column[0]) if np.isfinite(column[0]) else None for column in columns),
        tuple(bootstrap_interval(float(one[0]), one[1:], 0.0, 1.0) if len(one) > 1 else None for one in columns),
    )
