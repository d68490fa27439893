"""Aggregation: sums of statistics over every axis but the wanted one, channels kept apart.

Everything that is summed here is additive over windows. So a bootstrap over windows never looks at a cell again: a
resample is a row of weights (how often each window was drawn), and weights (R, B) times window sums (B, K) are the sums of
R resamples at once.
"""

from collections.abc import Mapping
from typing import Literal

import numpy as np
from jaxtyping import Float

from tamedit.evaluation import cell_statistics
from tamedit.evaluation.cell_statistics import Cells, PerCell
from tamedit.evaluation.path_statistics import PATH_DEGREES

DEGREES = cell_statistics.DEGREES | PATH_DEGREES
Axis = Literal["window", "step"]
Totals = Mapping[str, Float[np.ndarray, "_ K"]]  # groups, channels


def totals(cells: Cells, statistics: Mapping[str, PerCell], axis: Axis | None = None) -> Totals:
    """Sums by channel (1, K), or by channel at every window (B, K) or every step (L, K)."""
    windows, steps, channels = cells.shape
    places = {None: 1, "window": windows, "step": steps}[axis]
    place = {None: np.zeros_like(cells.window), "window": cells.window, "step": cells.step}[axis]
    group = place * channels + cells.channel
    return {
        name: np.bincount(group, values, minlength=places * channels).astype(np.float64).reshape(places, channels)
        for name, values in statistics.items()
    }


def in_units(sums: Totals, scale: Float[np.ndarray, " K"]) -> Totals:
    """The sums of data divided by `scale`: a channel's standard deviation for z-units, ones for the data's own."""
    return {name: values / scale ** DEGREES.get(name, 0) for name, values in sums.items()}


def resampled(weights: Float[np.ndarray, "R B"], window_sums: Totals) -> Totals:
    """Sums (R, K) of every resample."""
    return {name: weights @ values for name, values in window_sums.items()}
