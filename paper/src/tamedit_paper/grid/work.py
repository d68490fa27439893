"""One run from its cell to its result: train (or resume), evaluate, summarise, keep the small file, delete the large ones.

If another process uses the folder of a run, this one waits. As a program (`python -m tamedit_paper.grid.work`) it takes jobs
from its input, one JSON object per line, and answers one line each; it ends when its input ends.
"""

import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from filelock import FileLock

from tamedit.data.split import Split
from tamedit.diagnostics.gradient_record import NORMS, Norm, Record, read_record
from tamedit.diagnostics.tails import summarise
from tamedit.errors import UserError
from tamedit.evaluation.evaluate import evaluate
from tamedit.model.dit import DiffusionTransformer
from tamedit.privacy import accountant
from tamedit.privacy.entries import read as read_ledger
from tamedit.runs.artifact import WEIGHTS
from tamedit.runs.config import RunConfig, Speed
from tamedit.runs.folder import RUN, DataFacts, load_run
from tamedit.runs.recipe import Scale
from tamedit.runs.start import Initial, load_initial_run
from tamedit.tasks.model import Model
from tamedit.training.homes import shipped
from tamedit.training.loop import Progress
from tamedit.training.public import FACTS, split_fleet, train_public
from tamedit.training.run import describe, train
from tamedit.training.scales import make_scaling
from tamedit_paper.grid.cells import Cell
from tamedit_paper.grid.recipes import FLEET, Effort, data_of, effort_of, load_data, public_stage, public_start, recipe
from tamedit_paper.grid.results import NUMBERS_VERSION, Job, Result, agrees, load, save
from tamedit_paper.grid.watching import LOOKS, Watcher, losses_by_time, magnitude_curves

QUANTILES = np.concatenate([np.linspace(0, 0.95, 39)[:-1], 1 - np.geomspace(0.05, 1e-4, 24)])
LOSSES = 60  # points of a loss curve


class Interrupted(Exception):
    """The user asked to stop; the run's checkpoint is on disk."""


def is_done(job: Job, results: Path) -> bool:
    """Whether the result of a job exists and was made by today's configuration."""
    found = load(job.place(results, ".json"))
    return found is not None and agrees(found, configuration(job))


def configuration(job: Job) -> RunConfig:
    cell = Cell.parse(job.cell)
    return recipe(cell, job.scale, job.seed, data_of(cell)[0])


def run(job: Job, results: Path, work: Path, progress: Progress | None = None) -> Result:
    """Make a result, or read it if it exists."""
    folder = job.place(work)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_suffix(".lock")):
        found = load(job.place(results, ".json"))
        config = configuration(job)
        if found is not None and agrees(found, config):
            return found
        result = _make(job, config, folder, work, progress)
        save(result, results)
        shutil.rmtree(folder, ignore_errors=True)
        return result


def _make(job: Job, config: RunConfig, folder: Path, work: Path, progress: Progress | None) -> Result:
    cell = Cell.parse(job.cell)
    effort, (_, split) = effort_of(cell, job.scale), data_of(cell)
    if cell.arm == "untuned" and cell.public == "homes":
        return _result(job, config, _as_shipped(config, split), None, effort, split)
    if cell.arm == "untuned":
        found = public_folder(cell, job.scale, work)
        return _result(job, config, Model.load(found, "cpu"), found, effort, split)
    initial = None
    if cell.public:
        initial = shipped() if cell.public == "homes" else public_model(cell, job.scale, work)
    if folder.exists() and not _continues(folder, config):
        shutil.rmtree(folder)
    speed = Speed(
        threads=1, checkpoint_seconds=30, log_every=5, diagnose_every=1 if config.privacy else effort.look_every
    )
    facts = FACTS if config.source == FLEET else DataFacts()
    resume = (folder / RUN).exists()
    outcome = train(
        split,
        config,
        folder,
        facts=facts,
        speed=speed,
        resume=resume,
        progress=progress,
        initial=initial,
        watch=Watcher(config, folder),
    )
    if not outcome.finished:
        raise Interrupted
    return _result(job, config, Model.load(folder, "cpu"), folder, effort, split)


def _as_shipped(config: RunConfig, split: Split) -> Model:
    """The model that ships with the package, as it would read this data."""
    network = DiffusionTransformer(config.network)
    network.load_state_dict(shipped().weights)
    scaling = make_scaling(config, DataFacts(), split.train)
    return Model(network.eval(), describe(config, DataFacts(), split.train, scaling, None))


def _result(job: Job, config: RunConfig, model: Model, folder: Path | None, effort: Effort, split: Split) -> Result:
    """Score a model, and summarise the folder of its training, if there is one."""
    started = time.perf_counter()
    evaluation = evaluate(
        model,
        split,
        tasks=effort.tasks,
        samples=effort.samples,
        windows=effort.windows,
        sampler=effort.sampler,
    ).to_dict()
    record = None if folder is None else read_record(folder)
    trained = float(np.asarray(record.times["seconds"], dtype=np.float64).sum()) if record else 0.0
    return Result(
        cell=job.cell,
        scale=job.scale,
        seed=job.seed,
        version=NUMBERS_VERSION,
        config=config.model_dump(mode="json"),
        evaluation=_values_alone(evaluation),
        gradients=summarise(record).to_dict() if record else {},
        curves=(_curves(record) | magnitude_curves(folder) if record and folder else {})
        | losses_by_time(model, config, split),
        epsilon=_epsilon(folder, config) if folder else {},
        delta=config.privacy.delta if config.privacy else None,
        seconds={"training": trained, "evaluation": time.perf_counter() - started},
    )


def public_folder(cell: Cell, scale: Scale, work: Path) -> Path:
    """The folder of the finished public stage of a cell, made once for all cells and seeds that begin from it."""
    config, series = public_stage(cell, scale)
    split = load_data(config.source)[1] if cell.public == "household" else split_fleet(series)
    folder = work / "public" / public_start(cell, scale).digest
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.with_suffix(".lock")):
        if not (folder / WEIGHTS).exists() and not train_public(config, split, folder, speed=Speed(threads=1)):
            raise Interrupted
    return folder


def public_model(cell: Cell, scale: Scale, work: Path) -> Initial:
    """The public stage as a start."""
    found = load_initial_run(public_folder(cell, scale, work), public=True)
    return Initial(public_start(cell, scale), found.spec, found.weights)


def _continues(folder: Path, config: RunConfig) -> bool:
    """Whether a folder holds the beginning of this very run."""
    try:
        return load_run(folder)[0] == config
    except UserError:
        return False


def _values_alone(evaluation: dict[str, Any]) -> dict[str, Any]:
    """The metrics without intervals over windows and without the second names that some have."""
    tasks = {
        task: {
            method: {
                unit: {
                    name: value for name, value in scores.items() if name not in ("intervals", "rmse", "mae", "crps")
                }
                for unit, scores in units.items()
            }
            for method, units in methods.items()
        }
        for task, methods in evaluation["tasks"].items()
    }
    return {key: evaluation[key] for key in ("windows", "samples", "forecast_horizon", "gains")} | {"tasks": tasks}


def _curves(record: Record) -> dict[str, list[float]]:
    """Quantiles of the norms and of η, and the training loss thinned to a few points."""
    curves: dict[str, list[float]] = {"quantiles": QUANTILES.tolist()}
    for which in NORMS:
        norms = record.norms(which)
        curves[which] = np.quantile(norms, QUANTILES).tolist() if len(norms) else []
    factors = record.factors() if record.clip is not None else np.array([])
    curves["factor"] = np.quantile(factors, QUANTILES).tolist() if len(factors) else []
    rows = [(row["step"], row["loss"]) for row in record.metrics if np.isfinite(row.get("loss", np.nan))]
    pieces = np.array_split(np.array(rows), min(LOSSES, len(rows))) if rows else []
    curves["cond_p99_by_step"] = _by_step(record, "cond")
    curves["loss_steps"] = [float(piece[-1, 0]) for piece in pieces]
    curves["losses"] = [float(np.median(piece[:, 1])) for piece in pieces]
    return curves


def _by_step(record: Record, which: Norm) -> list[float]:
    """p99 of a norm in each of LOOKS stretches of the training."""
    steps, norms = np.asarray(record.rows["step"]), np.asarray(record.rows[which], dtype=np.float64)
    kept = np.isfinite(norms)
    order = np.argsort(steps[kept], kind="stable")
    pieces = np.array_split(norms[kept][order], LOOKS) if kept.sum() >= LOOKS else []
    return [float(np.quantile(piece, 0.99)) for piece in pieces]


def _epsilon(folder: Path, config: RunConfig) -> dict[str, float | None]:
    """ε of the planned steps for every unit that can be accounted: of the mechanism, whatever was interrupted."""
    if config.privacy is None:
        return {}
    segment = read_ledger(folder).segments[-1]
    plan = segment.plan
    mechanism = accountant.Mechanism(plan.sampling_rate, plan.noise_multiplier, plan.steps)
    found: dict[str, float | None] = {}
    for unit, contribution in segment.contributions.items():
        value = accountant.epsilon(
            [mechanism], plan.delta, contribution.k, contribution.neighbour, with_rdp=False
        ).value
        found[unit] = float(value) if np.isfinite(value) else None
    return found


def main() -> None:
    """Jobs from the input, answers to the output."""
    torch.set_num_threads(1)
    results, work = (Path(argument) for argument in sys.argv[1:3])
    for line in sys.stdin:
        job = Job.model_validate_json(line)
        try:
            run(job, results, work)
            answer: dict[str, Any] = {"job": job.model_dump(), "error": None}
        except Interrupted:
            return
        except (UserError, RuntimeError, ValueError, OSError) as error:
            answer = {"job": job.model_dump(), "error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
