"""Would the gain over the free distribution hold for other homes? The paired bootstrap over test homes of every run.

    gain = metric of the free distribution − metric of the run, on the same resample of the test homes (`evaluation/gains.py`)

Shown is the mean over seeds with the lowest and the highest end of the seeds' 95 % intervals: what every seed agrees on.
"""

from dataclasses import dataclass
from statistics import fmean

from tamedit.evaluation.baselines import BAR
from tamedit_paper.grid.measures import Runs


@dataclass(frozen=True)
class HomeGain:
    """A gain over the free distribution, over seeds and homes."""

    mean: float
    low: float
    high: float
    seeds: int

    @property
    def is_better(self) -> bool:
        """Above 0 for every seed's interval."""
        return self.low > 0

    @property
    def is_worse(self) -> bool:
        return self.high < 0

    def __str__(self) -> str:
        return f"{self.mean:+.4f} [{self.low:+.4f}, {self.high:+.4f}]"


def home_gain(runs: Runs, name: str, task: str, metric: str) -> HomeGain | None:
    """The gain of a cell; None if no run of it has recorded one with an interval."""
    recorded = (
        (one.evaluation.get("gains") or {}).get(task, {}).get(BAR, {}).get(metric) for one in runs.of(name).values()
    )
    known = [one for one in recorded if one and one["low"] is not None and one["high"] is not None]
    if not known:
        return None
    return HomeGain(
        fmean(one["difference"] for one in known),
        min(one["low"] for one in known),
        max(one["high"] for one in known),
        len(known),
    )
