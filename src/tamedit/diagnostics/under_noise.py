"""Reference magnitudes under noise: which share of a run's own p99 makes the best bounds, found by training it again.

A run without bounds, with noise, on public or simulated data shows the p99 of ‖c‖, |γ|, |β|, |α|. The same run is trained again
with bounds of several shares of that p99, and each model is scored on held-out windows:

    score = exp(mean of ln RMSE over imputation and forecast)

The best share is what the preset medium shall mean, so the reference is p99 · share / 0.9. A p99 alone, or one without
noise, is far too loose: such bounds hardly ever act. The runs share data, seeds and noise, and differ in the forward pass alone.
"""

import math
import tempfile
from pathlib import Path

from tamedit.data.loading import load_split
from tamedit.data.split import Split
from tamedit.diagnostics.magnitudes import measure_run
from tamedit.errors import UserError
from tamedit.evaluation.evaluate import evaluate
from tamedit.model.bounds import Bounds
from tamedit.model.zoo import TIGHTNESS
from tamedit.runs.config import RunConfig, Speed
from tamedit.runs.folder import DataFacts, load_run
from tamedit.runs.provenance import Reference
from tamedit.tasks.model import Model
from tamedit.training.loop import Progress
from tamedit.training.run import train

SHARES = (1.0, 0.5, 0.25, 0.125)
WINDOWS, SAMPLES = 32, 10


def measure_under_noise(run: Path, public: bool = False, *, progress: Progress | None = None) -> Reference:
    """The reference of a finished run with noise and without bounds; its data must be public or simulated.

    The run must have been trained with reproducible noise (`test_only=True`), since it is trained again for every share.
    `progress` hears of the steps of all these trainings together.
    """
    config, facts = load_run(run)
    if config.privacy is None or not config.privacy.test_only or config.start is not None:
        raise UserError(
            f"{run} cannot be repeated under noise: train it from random weights with noise, without bounds and with "
            "test_only=True, on public or simulated data."
        )
    found = measure_run(run, public=public)
    _, split = load_split(config.source, private=True, study=facts.study, **facts.reading)
    scores = {0.0: _score(run, split)}  # no bounds at all
    for number, share in enumerate(SHARES):
        heard = None if progress is None else _part(progress, number)
        scores[share] = _trained_score(config, facts, split, found.magnitudes.scaled(share), heard)
    best = min(SHARES, key=lambda share: scores[share])
    factor = best / TIGHTNESS["medium"]
    return found.model_copy(
        update={
            "magnitudes": found.magnitudes.scaled(factor),
            "blocks": tuple(block.scaled(factor) for block in found.blocks),
            "share": best,
            "scores": {f"{share:g}": score for share, score in scores.items()},
        }
    )


def _part(progress: Progress, number: int) -> Progress:
    """The steps of one of the trainings, counted from where the one before ended."""
    return lambda step, steps, numbers: progress(number * steps + step, len(SHARES) * steps, numbers)


def _trained_score(
    config: RunConfig, facts: DataFacts, split: Split, bounds: Bounds, progress: Progress | None
) -> float:
    network = config.network.model_copy(update={"bounds": (bounds,)})
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        train(
            split, config.model_copy(update={"network": network}), folder, facts=facts, speed=Speed(), progress=progress
        )
        return _score(folder, split)


def _score(folder: Path, split: Split) -> float:
    tasks = evaluate(Model.load(folder), split, samples=SAMPLES, windows=WINDOWS).to_dict()["tasks"]
    errors = [tasks[task]["model"]["z"]["point_RMSE"] for task in ("imputation", "forecast")]
    score = math.exp(sum(map(math.log, errors)) / len(errors))
    return score if math.isfinite(score) else math.inf
