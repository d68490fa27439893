"""Would the gain over the free baselines hold for other homes? The paired bootstrap over test homes of every run, in one table.

    gain = metric of the best free guess − metric of the run, both on the same resample of the test homes (`evaluation/gains.py`)

Shown is the mean over seeds with the lowest and the highest end of the seeds' 95 % intervals: what every seed agrees on.
"""

from collections.abc import Iterable
from statistics import fmean
from typing import NamedTuple

from tamedit_paper.curve.cells import HARDER, TASKS, arm_of
from tamedit_paper.curve.tables import LEADS, kind, markdown_rows
from tamedit_paper.curve.targets import METRICS
from tamedit_paper.grid.cells import Cell
from tamedit_paper.grid.measures import Runs
from tamedit_paper.grid.results import Result

TITLE = "### Would it hold for other homes?\n"
EXPLAINED = """The gain over the best free guess (free − run, above 0: the run is better), mean over seeds, and the lowest and
highest end of the seeds' 95 % intervals, from 1,000 resamples of the test homes. Runs made before these were recorded are left
out. **Bold**: above 0 in every seed.
"""


class Ends(NamedTuple):
    """A gain and its interval."""

    difference: float
    low: float
    high: float


def gain_of(result: Result, task: str, metric: str) -> Ends | None:
    """The gain over the free guess that is hardest to beat, if the run has recorded it."""
    recorded = (result.evaluation.get("gains") or {}).get(task, {})
    if HARDER not in recorded:  # made before that guess was recorded, which is the hardest to beat
        return None
    known = [Ends(**method[metric]) for method in recorded.values() if method.get(metric)]
    return min(known) if known else None


def homes_table(cells: Iterable[str], runs: Runs) -> str:
    """One row per cell that has recorded its gains; empty if none has."""
    rows = []
    for name in cells:
        cell = Cell.parse(name)
        found = [
            [one for one in (gain_of(result, task, metric) for result in runs.of(name).values()) if one is not None]
            for task in TASKS
            for metric in METRICS.values()
        ]
        if all(found):
            rows.append([arm_of(name), *kind(cell, runs), *map(_text, found), str(len(found[0]))])
    heads = [*LEADS[:-1], *(f"{task}:<br>{shown}" for task in TASKS for shown in METRICS), "seeds"]
    return markdown_rows(heads, rows) if rows else ""


def _text(gains: list[Ends]) -> str:
    low, high = min(one.low for one in gains), max(one.high for one in gains)
    text = f"{fmean(one.difference for one in gains):+.3f} [{low:+.3f}, {high:+.3f}]"
    return f"**{text}**" if low > 0 else text
