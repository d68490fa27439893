"""Everything that a report shows, measured once: the data, the record of training, scores, and what was drawn."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tamedit.data.describe import describe
from tamedit.data.loading import load_split
from tamedit.data.series import Series
from tamedit.diagnostics.compare import Comparison, compare
from tamedit.diagnostics.gradient_record import read_record
from tamedit.evaluation.baselines import BAR
from tamedit.evaluation.evaluate import RESAMPLES, Evaluation, Progress, evaluate
from tamedit.evaluation.reliability import Curve, reliability
from tamedit.evaluation.task_table import Question
from tamedit.evaluation.trial import Trial
from tamedit.figures.plots import Band, plain
from tamedit.figures.report_figures import clock, line_name, spread, window_band
from tamedit.formatting import deep
from tamedit.privacy.entries import FILE_NAME as LEDGER
from tamedit.privacy.statement import side_by_side
from tamedit.runs.agreement import after_the_ledger, check_agreement
from tamedit.runs.config import RunConfig
from tamedit.runs.folder import NOT_PRIVATE, load_run
from tamedit.tasks.model import Model
from tamedit.training.recorder import HEADER

PICTURES = 3  # windows that are drawn for each task
WINDOWS, SAMPLES = 64, 20


@dataclass(frozen=True, eq=False)
class Findings:
    """What a report is made of."""

    run: Path
    model: Model
    config: RunConfig
    facts: dict[str, Any]  # of the whole series, from `describe`
    test: Series
    privacy: dict[str, Any]  # the statement as data
    units: dict[str, dict[str, Any]]  # the same for every unit; empty without a ledger
    comparison: Comparison | None  # of this run alone; None if it kept no record
    evaluation: Evaluation
    curves: dict[tuple[str, str], Curve]  # by task and method
    bands: dict[str, list[Band]]  # by task
    seed: int

    @property
    def name(self) -> str:
        return self.run.resolve().name

    @property
    def epsilon(self) -> float | None:
        """ε of the run's own unit; None without a finite one."""
        return deep(self.privacy, "epsilon", "headline")


def find(
    run: Path,
    *,
    source: str | None = None,
    samples: int = SAMPLES,
    windows: int = WINDOWS,
    seed: int = 0,
    device: str = "auto",
    progress: Progress | None = None,
) -> Findings:
    """Read a run's folder and put its model to the test; `source`: where its data is now, if not where it was."""
    config, facts = load_run(run)
    model = Model.load(run, device)
    series, split = load_split(source or config.source, study=facts.study_for(source), **facts.reading)
    privacy, units = _privacy(run, model)
    comparison = _record(run)
    watcher = Watcher(seed)
    evaluation = evaluate(model, split, samples=samples, windows=windows, seed=seed, watch=watcher, progress=progress)
    return Findings(
        run=Path(run),
        model=model,
        config=config,
        facts=describe(series),
        test=model.read(split.test),
        privacy=privacy,
        units=units,
        comparison=comparison,
        evaluation=evaluation,
        curves=watcher.curves,
        bands=watcher.bands,
        seed=seed,
    )


def _privacy(run: Path, model: Model) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The statement and ε for every unit, from the ledger; what `model.json` says where there is no ledger."""
    said = dict(model.spec.privacy)
    if not said.get("private") or not (Path(run) / LEDGER).is_file():
        return said, {}
    record, everything = check_agreement(run)
    units = side_by_side(record, everything=everything, not_covered=after_the_ledger(run))
    return units[record.segments[-1].plan.unit], units


def _record(run: Path) -> Comparison | None:
    """The run's own record of losses, times and gradients; None if its folder came without one."""
    if not (Path(run) / NOT_PRIVATE / HEADER).is_file():
        return None
    record = read_record(run)
    return compare([replace(record, label=plain(record.label))])


@dataclass
class Watcher:
    """Looks on while every method is scored: keeps reliability curves, and pictures of a few windows.

    The windows are spread evenly over the test part, never chosen by how good they look.
    """

    seed: int
    curves: dict[tuple[str, str], Curve] = field(default_factory=dict)
    bands: dict[str, list[Band]] = field(default_factory=dict)
    _drawn: dict[int, np.ndarray] = field(default_factory=dict)  # the model's, of the windows to be shown

    def __call__(self, task: str, trial: Trial, question: Question, method: str, drawn: np.ndarray) -> None:
        scored = question.scored.numpy()
        if method in ("model", BAR):
            self.curves[task, method] = reliability(drawn, trial.truth, scored, trial.weights(RESAMPLES, self.seed))
        if method == "model":
            self._drawn = {window: drawn[window] for window, _ in self._shown(trial, scored)}
        if method == "free_fill":
            self.bands[task] = [
                self._band(trial, question, window, channel, drawn[window, 0])
                for window, channel in self._shown(trial, scored)
            ]

    @staticmethod
    def _shown(trial: Trial, scored: np.ndarray) -> list[tuple[int, int]]:
        """(window, channel) of the pictures: channels in turn, windows evenly over those that hide something known."""
        channels = spread(trial.truth.shape[2], PICTURES)
        known = (scored & np.isfinite(trial.truth)).any(axis=1)  # (B, K)
        shown = []
        for number, at in enumerate((np.arange(PICTURES) + 0.5) / PICTURES):
            channel = channels[number % len(channels)]
            able = np.flatnonzero(known[:, channel])
            if len(able):
                shown.append((int(able[int(at * len(able))]), channel))
        return list(dict.fromkeys(shown))

    def _band(self, trial: Trial, question: Question, window: int, channel: int, fill: np.ndarray) -> Band:
        series, start = trial.windows.series, int(trial.windows.starts[window])
        times = clock(series)[start : start + trial.windows.length]
        name = line_name(series, int(trial.windows.meter_of()[window]), channel)
        observed, scored = (part[window, :, channel].numpy() for part in (question.observed, question.scored))
        first = times[int((observed | scored).argmax())]  # what is neither is not shown
        return window_band(
            f"{name}, from {first:%d %B %Y, %H:%M}",
            times,
            trial.truth[window, :, channel],
            observed,
            scored,
            self._drawn[window][:, :, channel],
            fill[:, channel],
            series.targets[channel],
        )
