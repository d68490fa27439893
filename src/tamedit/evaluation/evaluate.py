"""How good is a model on the test split, compared with training-free baselines ("free guesses")?

Five tasks (`task_table`): gap filling, forecasts, cold starts with one and two known seasons, long gaps. Every method sees the
same windows and the same masks. Numbers are in the data's units and in z-units (errors divided by each channel's standard
deviation over the training split). They are computed from the data, so they are not private.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from tamedit.data.split import Split
from tamedit.diffusion.sample import SamplerConfig
from tamedit.evaluation.baselines import BAR
from tamedit.evaluation.gains import METRICS as COMPARED
from tamedit.evaluation.gains import Gain, gain, smallest_gain
from tamedit.evaluation.intervals import LEVEL
from tamedit.evaluation.scores import MAPE_FLOOR, Scores, score
from tamedit.evaluation.task_table import NAMES, Layout, Question, Task, chosen_tasks
from tamedit.evaluation.trial import Trial, check_samples, forecast_horizon, pick_windows
from tamedit.streams import example_keys
from tamedit.tasks.frames import Horizon
from tamedit.tasks.model import Model

__all__ = ["MOST_WINDOWS", "Evaluation", "Progress", "Row", "Watch", "evaluate", "pick_windows"]

MOST_WINDOWS, RESAMPLES = 128, 1000
Watch = Callable[[str, Trial, Question, str, np.ndarray], None]  # task, trial, masks, method, its draws (B, S, L, K)
Progress = Callable[[int, int], None]  # windows that the model has drawn so far, and in the end
NOTE = "Computed from the test data, in units of the training data, without noise: not private."


@dataclass(frozen=True)
class Row:
    """One method at one task."""

    task: str
    method: str
    z: Scores
    original: Scores


@dataclass(frozen=True)
class Evaluation:
    """Every method at every task."""

    rows: tuple[Row, ...]
    windows: int
    samples: int
    horizon: int
    resamples: int = RESAMPLES  # 0: too few windows for an interval
    block: int = 1  # neighbouring windows that are resampled together
    by_meter: bool = False  # or all windows of a meter
    words: Mapping[str, str] = field(default_factory=dict)  # by task: what is hidden
    left_out: Mapping[str, str] = field(default_factory=dict)  # by task: why it was not asked

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.task for row in self.rows))

    def of(self, task: str, method: str) -> Row:
        return next(row for row in self.rows if (row.task, row.method) == (task, method))

    def free(self, task: str) -> dict[str, Scores]:
        """The training-free baselines, in z-units."""
        return {row.method: row.z for row in self.rows if row.task == task and row.method != "model"}

    def gains(self, task: str) -> dict[str, dict[str, Gain | None]]:
        """The model's gain over every free guess, by method and metric."""
        own = self.of(task, "model").z
        return {
            method: {name: gain(own, guess, name) for name in COMPARED} for method, guess in self.free(task).items()
        }

    def gain_over_bar(self, task: str, metric: str) -> Gain | None:
        """The gain over the free distribution."""
        return gain(self.of(task, "model").z, self.of(task, BAR).z, metric)

    def smallest_gain(self, task: str, metric: str) -> tuple[str, Gain] | None:
        """The gain over the free guess that is hardest to beat."""
        return smallest_gain(self.of(task, "model").z, self.free(task), metric)

    def to_dict(self) -> dict[str, Any]:
        tasks: dict[str, dict[str, Any]] = {}
        for row in self.rows:
            tasks.setdefault(row.task, {})[row.method] = {"z": row.z.to_dict(), "original": row.original.to_dict()}
        return {
            "tasks": tasks,
            "task_words": dict(self.words),
            "left_out": dict(self.left_out),
            "bar": BAR,
            "gains": {
                task: {
                    method: {name: one and asdict(one) | {"outcome": one.outcome} for name, one in found.items()}
                    for method, found in self.gains(task).items()
                }
                for task in tasks
            },
            "windows": self.windows,
            "samples": self.samples,
            "forecast_horizon": self.horizon,
            "mape_floor": MAPE_FLOOR,  # of a channel's standard deviation
            "bootstrap": {
                "resamples": self.resamples,
                "of": "meters" if self.by_meter else "windows",
                "block": self.block,
                "level": LEVEL,
            },
            "private": False,
            "note": NOTE,
        }


def evaluate(
    model: Model,
    split: Split,
    *,
    tasks: Iterable[str] = NAMES,
    samples: int = 20,
    horizon: Horizon | None = None,
    windows: int = MOST_WINDOWS,
    seed: int = 0,
    sampler: SamplerConfig | None = None,
    resamples: int = RESAMPLES,
    watch: Watch | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Score the model and every free baseline on the test split; `resamples` = 0 leaves out the intervals.

    `tasks`: names from `task_table`. A task that the model's window is too short for is left out, and the result says why.
    `horizon`: what the task `forecast` hides: steps, or a duration such as "24h". `watch` is shown what every method drew, so
    that a picture of it needs no second sampling. `progress(done, total)` counts the windows that the model has drawn, over
    all tasks.
    """
    ahead = forecast_horizon(model, split.test, horizon)
    check_samples(samples)
    layout = Layout(model.spec.network.length, model.spec.examples.period, ahead)
    kept, left_out = chosen_tasks(tasks, layout)
    trial = Trial(model, split, windows)
    weights = trial.weights(resamples, seed) if resamples else None
    count = _Count(len(kept) * len(trial.windows), progress)
    rows: list[Row] = []
    for task in kept:
        question = _question(trial, task, layout, seed)
        scored, missing = question.scored.numpy(), question.missing.numpy()[:, None]
        for method, drawn, probabilistic in trial.guesses(question.observed, samples, seed, sampler, count):
            # What is neither seen nor scored is left as it was, so that no score of whole windows counts it.
            counted = np.where(missing, trial.truth[:, None], drawn) if missing.any() else drawn
            z, original = score(
                counted,
                trial.truth,
                scored,
                trial.deviation,
                probabilistic=probabilistic,
                weights=weights,
                paths=task.paths,
            )
            rows.append(Row(task.name, method, z, original))
            if watch is not None:
                watch(task.name, trial, question, method, drawn)
    words = {task.name: task.words(layout) for task in kept}
    drawn_together = (0 if weights is None else len(weights), trial.block, trial.by_meter)
    return Evaluation(tuple(rows), len(trial.windows), samples, ahead, *drawn_together, words, left_out)


def _question(trial: Trial, task: Task, layout: Layout, seed: int) -> Question:
    """What is seen and what is scored, (B, L, K); the same for all channels. Every window has its own stream."""
    keys = example_keys(seed, f"evaluation {task.name}", 0, np.asarray(trial.numbers))
    return task.ask(keys, layout).expand(trial.values.shape[2])


class _Count:
    """Counts windows, and tells."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self.done, self.total, self.progress = 0, total, progress

    def __call__(self, windows: int) -> None:
        self.done += windows
        if self.progress is not None:
            self.progress(self.done, self.total)
