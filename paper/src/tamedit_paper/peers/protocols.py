"""The evaluation protocols of other papers, under their own names, so that our numbers compare with published ones.

tslib   Time-Series-Library (TimesNet): every cell is hidden independently with probability 12.5, 25, 37.5 or 50 %, windows of 96;
        MSE and MAE of one guess (here the sample mean) over all hidden cells of all channels, in z-units.
csdi    CSDI: every cell is hidden independently with probability 10, 50 or 90 %, and a forecast; RMSE and MAE of the sample
        median over all hidden cells in z-units, and CRPS_CSDI: quantiles 0.05 … 0.95, 2 · pinball loss, divided by Σ |y| in the
        data's units.

Peers go through every test window; `windows` bounds how many evenly spread ones are taken here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tamedit.data.split import Split
from tamedit.diffusion.sample import SamplerConfig
from tamedit.errors import UserError
from tamedit.evaluation.aggregation import in_units, resampled, totals
from tamedit.evaluation.cell_statistics import cell_statistics, hidden_cells
from tamedit.evaluation.evaluate import MOST_WINDOWS, NOTE, RESAMPLES
from tamedit.evaluation.intervals import bootstrap_interval
from tamedit.evaluation.metrics import METRICS, Metric, measure
from tamedit.evaluation.trial import Trial, check_samples, forecast_horizon
from tamedit.streams import example_keys, uniforms
from tamedit.tasks.model import Model
from tamedit_paper.peers.published import published


@dataclass(frozen=True)
class Protocol:
    """What is hidden, and what is measured of it."""

    shares: tuple[float, ...]
    metrics: tuple[Metric, ...]
    length: int | None = None  # of the windows, if the protocol says so
    forecast: bool = False


PROTOCOLS: dict[str, Protocol] = {
    "tslib": Protocol(
        shares=(0.125, 0.25, 0.375, 0.5),
        metrics=(
            Metric("MSE", "squared_error", pooled=True),
            Metric("MAE", "absolute_error_of_mean", pooled=True),
        ),
        length=96,
    ),
    "csdi": Protocol(
        shares=(0.1, 0.5, 0.9),
        metrics=(
            METRICS["CRPS_CSDI"],
            Metric("RMSE", "squared_error_of_median", finish=np.sqrt, pooled=True),
            Metric("MAE", "absolute_error", pooled=True),
        ),
        forecast=True,
    ),
}


@dataclass(frozen=True)
class ProtocolRow:
    """One method at one task of a protocol."""

    task: str
    method: str
    values: dict[str, float | None]
    intervals: dict[str, tuple[float, float] | None]

    def to_dict(self) -> dict[str, Any]:
        return {**self.values, "intervals": self.intervals}


@dataclass(frozen=True)
class ProtocolResult:
    """Every method at every task of a protocol, and what was published for the same data."""

    protocol: str
    rows: tuple[ProtocolRow, ...]
    windows: int
    samples: int
    source: str | None = None  # name of the data set, for published numbers

    def of(self, task: str, method: str) -> ProtocolRow:
        return next(row for row in self.rows if (row.task, row.method) == (task, method))

    def to_dict(self) -> dict[str, Any]:
        tasks: dict[str, dict[str, Any]] = {}
        for row in self.rows:
            tasks.setdefault(row.task, {})[row.method] = row.to_dict()
        return {
            "protocol": self.protocol,
            "tasks": tasks,
            "published": [one.to_dict() for one in published(self.source or "", self.protocol)],
            "windows": self.windows,
            "samples": self.samples,
            "private": False,
            "note": NOTE,
        }


def cell_masks(shape: tuple[int, int, int], share: float, protocol: str, seed: int) -> Bool[Tensor, "B L K"]:
    """False with probability `share`, every cell on its own, every window from its own stream."""
    windows, length, channels = shape
    keys = example_keys(seed, f"protocol {protocol} {share}", 0, np.arange(windows, dtype=np.int64))
    return (uniforms(keys, length * channels) > share).view(windows, length, channels)


def spoken_share(share: float) -> str:
    return f"{100 * share:g} %"


def evaluate_protocol(
    model: Model,
    split: Split,
    name: str,
    *,
    samples: int = 20,
    horizon: int | None = None,
    windows: int = MOST_WINDOWS,
    seed: int = 0,
    sampler: SamplerConfig | None = None,
    resamples: int = RESAMPLES,
    source: str | None = None,
) -> ProtocolResult:
    """Score the model and every free baseline as a peer would. `source` names the data for published numbers."""
    if name not in PROTOCOLS:
        raise UserError(f"protocol {name!r} is not known; choose one of {', '.join(PROTOCOLS)}.")
    protocol = PROTOCOLS[name]
    length = model.spec.network.length
    if protocol.length not in (None, length):
        raise UserError(
            f"The protocol {name} has windows of {protocol.length}, but the model was trained on windows of {length}; train it "
            f"with window={protocol.length}."
        )
    check_samples(samples)
    ahead = forecast_horizon(model, split.test, horizon)
    trial = Trial(model, split, windows)
    every = np.ones((1, len(trial.windows)))
    draws = np.vstack([every, trial.weights(resamples, seed)])
    rows = [
        _row(trial, protocol, task, mask, guess, draws)
        for task, mask in _tasks(trial, protocol, name, ahead, seed)
        for guess in trial.guesses(mask, samples, seed, sampler)
    ]
    return ProtocolResult(name, tuple(rows), len(trial.windows), samples, source)


def _tasks(
    trial: Trial, protocol: Protocol, name: str, ahead: int, seed: int
) -> Iterator[tuple[str, Bool[Tensor, "B L K"]]]:
    windows, length, channels = trial.truth.shape
    for share in protocol.shares:
        yield spoken_share(share), cell_masks((windows, length, channels), share, name, seed)
    if protocol.forecast:
        seen = torch.arange(length) < length - ahead
        yield f"forecast {ahead}", seen[None, :, None].expand(windows, length, channels)


def _row(
    trial: Trial,
    protocol: Protocol,
    task: str,
    mask: Bool[Tensor, "B L K"],
    guess: tuple[str, Float[np.ndarray, "B S L K"], bool],
    draws: Float[np.ndarray, "R B"],
) -> ProtocolRow:
    method, drawn, probabilistic = guess
    cells = hidden_cells(drawn, trial.truth, ~mask.numpy())
    statistics = cell_statistics(cells, np.zeros_like(trial.deviation), independent_halves=probabilistic)
    sums = totals(cells, statistics, "window")
    in_z = in_units(sums, trial.deviation)
    values: dict[str, float | None] = {}
    intervals: dict[str, tuple[float, float] | None] = {}
    for metric in protocol.metrics:
        column = measure(metric, resampled(draws, sums if metric.original_only else in_z))
        known = bool(np.isfinite(column[0]))
        values[metric.name] = float(column[0]) if known else None
        enough = known and len(column) > 1 and draws.shape[1] > 1
        intervals[metric.name] = bootstrap_interval(float(column[0]), column[1:], 0.0, np.inf) if enough else None
    return ProtocolRow(task, method, values, intervals)
