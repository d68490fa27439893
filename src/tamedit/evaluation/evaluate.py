"""How good is a model on the test split, compared with training-free baselines ("free guesses")?

Two tasks: `imputation` (a random 10 to 50 % of the steps hidden) and `forecast` (the last season hidden, at most three
quarters of the window). Every method sees the same windows and the same masks. Numbers are in the data's units and in z-units
(errors divided by each channel's standard deviation over the training split). They are computed from the data, so they are not
private.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from tamedit.data.split import Split
from tamedit.diffusion.sample import SamplerConfig
from tamedit.evaluation.baselines import BAR
from tamedit.evaluation.gains import METRICS as COMPARED
from tamedit.evaluation.gains import Gain, gain, smallest_gain
from tamedit.evaluation.intervals import LEVEL
from tamedit.evaluation.scores import MAPE_FLOOR, Scores, score
from tamedit.evaluation.trial import Trial, check_samples, forecast_horizon, pick_windows
from tamedit.streams import example_keys
from tamedit.tasks.model import Model
from tamedit.windows.masks import MaskConfig, draw_masks, task_config

__all__ = ["MOST_WINDOWS", "Evaluation", "Row", "Watch", "evaluate", "pick_windows"]

MOST_WINDOWS, RESAMPLES = 128, 1000
Watch = Callable[[str, Trial, torch.Tensor, str, np.ndarray], None]  # task, trial, mask, method, its draws (B, S, L, K)
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
    resamples: int = RESAMPLES
    block: int = 1  # neighbouring windows that are resampled together
    by_meter: bool = False  # or all windows of a meter

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
            "bar": BAR,
            "gains": {
                task: {
                    method: {name: one and asdict(one) for name, one in found.items()}
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
    samples: int = 20,
    horizon: int | None = None,
    windows: int = MOST_WINDOWS,
    seed: int = 0,
    sampler: SamplerConfig | None = None,
    resamples: int = RESAMPLES,
    watch: Watch | None = None,
) -> Evaluation:
    """Score the model and every free baseline on the test split; `resamples` = 0 leaves out the intervals.

    `watch` is shown what every method drew, so that a picture of it needs no second sampling.
    """
    ahead = forecast_horizon(model, horizon)
    check_samples(samples)
    trial = Trial(model, split, windows)
    weights = trial.weights(resamples, seed) if resamples else None
    rows: list[Row] = []
    for task, masks in (("imputation", task_config("random")), ("forecast", task_config("block", ahead))):
        mask = _mask(trial, task, masks, seed)
        for method, drawn, probabilistic in trial.guesses(mask, samples, seed, sampler):
            z, original = score(
                drawn, trial.truth, ~mask.numpy(), trial.deviation, probabilistic=probabilistic, weights=weights
            )
            rows.append(Row(task, method, z, original))
            if watch is not None:
                watch(task, trial, mask, method, drawn)
    return Evaluation(tuple(rows), len(trial.windows), samples, ahead, resamples, trial.block, trial.by_meter)


def _mask(trial: Trial, task: str, config: MaskConfig, seed: int) -> torch.Tensor:
    """(B, L, K), True where a step is observed; the same for all channels."""
    keys = example_keys(seed, f"evaluation {task}", 0, np.asarray(trial.numbers))
    mask = draw_masks(keys, trial.windows.length, config)
    return mask[:, :, None].expand(trial.values.shape)
