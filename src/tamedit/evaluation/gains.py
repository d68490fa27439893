"""How much better is a model than a training-free baseline, and how certain is that?

    gain = metric of the guess − metric of the model          above 0: the model is better

Both are scored on the same windows, and windows differ more from each other than methods do. So the interval is that of the
difference: each resample of the windows (or meters) gives the metric of both, and their difference is one draw of the gain.
"""

import math
from dataclasses import dataclass
from typing import Literal

from tamedit.evaluation.intervals import bootstrap_interval
from tamedit.evaluation.metrics import PATHS
from tamedit.evaluation.scores import Scores

METRICS = ("point_RMSE", "point_MAE", "CRPS", *(metric.name for metric in PATHS))  # the least is the best
Outcome = Literal["better", "worse", "undecided", "unknown"]


@dataclass(frozen=True)
class Gain:
    """A paired difference in z-units with its 95 % interval; without one if nothing was resampled."""

    difference: float
    low: float | None
    high: float | None

    @property
    def outcome(self) -> Outcome:
        """What may be said of the model: "undecided" where the interval contains 0, "unknown" without an interval."""
        if self.low is None or self.high is None:
            return "unknown"
        return "better" if self.low > 0 else "worse" if self.high < 0 else "undecided"

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return f"{self.difference:.4f}"
        return f"{self.difference:.4f} [{self.low:.4f}, {self.high:.4f}]"


def gain(model: Scores, guess: Scores, metric: str) -> Gain | None:
    """The gain in one metric; None where either has no value."""
    own, other = model[metric], guess[metric]
    if own is None or other is None:
        return None
    ends = None
    if len(model.resampled.get(metric, ())):
        differences = guess.resampled[metric] - model.resampled[metric]
        ends = bootstrap_interval(other - own, differences, -math.inf, math.inf)
    return Gain(other - own, *(ends or (None, None)))


def smallest_gain(model: Scores, guesses: dict[str, Scores], metric: str) -> tuple[str, Gain] | None:
    """The gain over the guess that is hardest to beat, and its name."""
    found = {name: gain(model, guess, metric) for name, guess in guesses.items()}
    known = {name: one for name, one in found.items() if one is not None}
    return min(known.items(), key=lambda item: item[1].difference) if known else None
