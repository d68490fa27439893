"""How good is a model on the test split, beside guesses that cost nothing?

Two tasks: `imputation` (a random 10 to 50 % of the steps hidden) and `forecast` (the last day hidden). Every method sees
the same windows and the same masks. Numbers are in the data's units and in z-units (errors divided by each channel's
standard deviation over the training split). They are computed from the data, so they are not private.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from tamedit.data.calendar import network_covariates
from tamedit.data.series import Series
from tamedit.data.split import Split
from tamedit.diffusion.sample import SamplerConfig
from tamedit.errors import UserError
from tamedit.evaluation.baselines import BASELINES, free_probabilistic, own_units
from tamedit.evaluation.scores import Scores, aggregate, cell_statistics
from tamedit.streams import example_keys
from tamedit.tasks.model import Model
from tamedit.windows.cut import Windows, cut
from tamedit.windows.masks import draw_masks, task_config

MOST_WINDOWS = 128


@dataclass(frozen=True)
class Row:
    """One method at one task."""

    task: str
    method: str
    z: Scores
    original: Scores

    def to_dict(self) -> dict[str, Any]:
        return {"task": self.task, "method": self.method, "z": self.z.to_dict(), "original": self.original.to_dict()}


@dataclass(frozen=True)
class Evaluation:
    """Every method at every task."""

    rows: tuple[Row, ...]
    windows: int
    samples: int
    horizon: int

    def of(self, task: str, method: str) -> Row:
        return next(row for row in self.rows if (row.task, row.method) == (task, method))

    def to_dict(self) -> dict[str, Any]:
        tasks: dict[str, dict[str, Any]] = {}
        for row in self.rows:
            tasks.setdefault(row.task, {})[row.method] = {"z": row.z.to_dict(), "original": row.original.to_dict()}
        return {
            "tasks": tasks,
            "windows": self.windows,
            "samples": self.samples,
            "forecast_horizon": self.horizon,
            "private": False,
            "note": "Computed from the test data without noise: not private.",
        }


def pick_windows(series: Series, length: int, most: int) -> Windows:
    """At most `most` windows, spread evenly over the test split."""
    longest = int(series.lengths.max(initial=0))
    if longest < length:
        raise UserError(
            f"The test part has {longest} rows at most and the model's window needs {length}; give a longer series or train "
            "with a shorter window (--window)."
        )
    every = cut(series, length, stride=max(length // 8, 1))
    kept = np.unique(np.linspace(0, len(every) - 1, min(most, len(every))).astype(np.int64))
    return Windows(series, every.starts[kept], length)


def _deviation(values: np.ndarray) -> np.ndarray:
    """(K,) standard deviation of every channel; 1 for a channel that never changes or has no reading."""
    known = np.isfinite(values)
    count = np.maximum(known.sum(axis=0), 1)
    clean = np.where(known, values, 0.0).astype(np.float64)
    mean = clean.sum(axis=0) / count
    deviation = np.sqrt(np.where(known, np.square(clean - mean), 0.0).sum(axis=0) / count)
    usable = deviation > 1e-8 * np.maximum(1.0, np.abs(mean))
    return np.where(usable, deviation, 1.0)


def evaluate(
    model: Model,
    split: Split,
    *,
    samples: int = 20,
    horizon: int | None = None,
    windows: int = MOST_WINDOWS,
    seed: int = 0,
    sampler: SamplerConfig | None = None,
) -> Evaluation:
    """Score the model and every free baseline on the test split."""
    length, period = model.spec.network.length, model.spec.examples.period
    longest = 3 * length // 4
    if horizon is not None and not 1 <= horizon <= longest:
        raise UserError(
            f"horizon={horizon} must lie between 1 and {longest}, three quarters of the model's window of {length}."
        )
    if samples < 4:
        raise UserError(f"samples={samples} must be at least 4, so that CRPS can be estimated without bias.")
    ahead = horizon or min(period, longest)
    chosen = pick_windows(network_covariates(model.read(split.test), model.spec.calendar), length, windows)
    deviation = _deviation(split.train.values)
    rows: list[Row] = []
    for task, masks in (("imputation", task_config("random")), ("forecast", task_config("block", ahead))):
        rows += _task_rows(model, task, chosen, masks, deviation, samples, seed, sampler)
    return Evaluation(tuple(rows), len(chosen), samples, ahead)


def _task_rows(
    model: Model,
    task: str,
    windows: Windows,
    masks: Any,
    deviation: np.ndarray,
    samples: int,
    seed: int,
    sampler: SamplerConfig | None,
) -> list[Row]:
    """Rows of one task: the model, the free probabilistic guess, and the free guesses."""
    numbers = np.arange(len(windows), dtype=np.int64)
    values, covariates = windows.gather(numbers)
    mask = draw_masks(example_keys(seed, f"evaluation {task}", 0, numbers), windows.length, masks)
    present = torch.isfinite(values)
    observed, hidden = present & mask[:, :, None], (present & ~mask[:, :, None]).numpy()
    truth = torch.nan_to_num(values).numpy()
    visible = torch.where(observed, values, 0.0)
    period = model.spec.examples.period

    def row(method: str, drawn: torch.Tensor, probabilistic: bool) -> Row:
        statistics = cell_statistics(drawn.numpy(), truth, independent_halves=probabilistic)
        ones = np.ones_like(deviation)
        z, original = (aggregate(statistics, hidden, scale, probabilistic) for scale in (deviation, ones))
        return Row(task, method, z, original)

    drawn = model.draw(visible, observed, covariates, numbers, samples, seed, sampler)
    fill = BASELINES["free_fill"](visible, observed, period)
    _, scale = own_units(model.scaling).units(visible, observed)
    free = free_probabilistic(fill, scale, observed, samples, seed)
    if model.spec.non_negative:  # a public fact is free for the bar as well
        free = free.clamp_min(0)
    return [
        row("model", drawn, True),
        row("free_probabilistic", free, True),
        *(row(name, guess(visible, observed, period)[:, None], False) for name, guess in BASELINES.items()),
    ]
