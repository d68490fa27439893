"""Trains a model in a folder: the split series and a configuration in, `model.safetensors` out.

run.json, reading.json   the configuration and how the data was read, written first
checkpoint.safetensors   the state, replaced as the run goes on
metrics.jsonl            losses; of a private run in the folder not-private, which must not leave with the model
ledger.jsonl             of a private run: what was spent
model.safetensors, model.json   the model, written when the run is finished
"""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict
from safetensors import SafetensorError

from tamedit.data.calendar import network_covariates
from tamedit.data.scaling import Scaling, fit_scaling
from tamedit.data.series import Series
from tamedit.data.sources import SOURCES
from tamedit.data.split import Split
from tamedit.errors import UserError
from tamedit.files import write_text
from tamedit.model.dit import DiffusionTransformer
from tamedit.privacy.request import Privacy
from tamedit.privacy.statement import Statement
from tamedit.streams import purpose_seed
from tamedit.training.artifact import ModelSpec, save_model
from tamedit.training.config import Speed
from tamedit.training.device import choose_device
from tamedit.training.distributed import World, join_world
from tamedit.training.loop import CHECKPOINT, Outcome, Progress, Trainer
from tamedit.training.private import LOGGED, NOT_PRIVATE, private_source, private_windows
from tamedit.training.recipe import RunConfig
from tamedit.training.source import PlainGradients, validation_loss
from tamedit.windows.cut import Windows, cut
from tamedit.windows.examples import Examples

RUN, READING = "run.json", "reading.json"
FLOOR = 0.3  # of the reference scale: no window has a smaller one


class DataFacts(BaseModel):
    """What the user said about the data: how to read it, and what is publicly known of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    reading: dict[str, Any] = {}  # arguments of `tamedit.read`
    non_negative: bool = False  # readings below 0 cannot be
    typical_level: tuple[float, ...] | None = None  # one number a target, known without the data
    typical_scale: tuple[float, ...] | None = None


def make_scaling(config: RunConfig, facts: DataFacts, train: Series) -> Scaling:
    """The units of a run.

    In instance mode every window has its own; the reference level and scale serve windows in which nothing is observed.
    Given by the user or known of a named source they are public facts; else statistics of the training data if the training
    is not private either, and the scaling says so; else there are none.
    """
    if config.scaling != "instance":
        return fit_scaling(config.scaling, train)
    known = SOURCES.get(config.source)
    level, scale = facts.typical_level, facts.typical_scale
    if known and scale is None:
        level, scale = known.typical_level, known.typical_scale
    if scale is not None or config.privacy is not None:
        floor = tuple(FLOOR * one for one in scale) if scale else None
        return fit_scaling("instance", train, level=level, scale=scale, floor=floor)
    measured = fit_scaling("nonprivate", train)
    floor = tuple(FLOOR * scale for scale in measured.scale)
    return replace(
        fit_scaling("instance", train, floor=floor), level=measured.level, scale=measured.scale, origin="nonprivate"
    )


def _claim(folder: Path, config: RunConfig, facts: DataFacts, resume: bool) -> None:
    """Make the folder this run's own, or say in one sentence why it cannot be."""
    if folder.exists() and not folder.is_dir():
        raise UserError(f"{folder} is a file; name a folder with --out.")
    if (folder / RUN).exists():
        if not resume:
            raise UserError(
                f"{folder} holds a run already; continue it with --resume, or name another folder with --out."
            )
        before_config, before_facts = load_run(folder)
        before = before_config.model_dump(mode="json") | before_facts.model_dump(mode="json")
        now = config.model_dump(mode="json") | facts.model_dump(mode="json")
        changed = sorted(key for key in now if now[key] != before[key])
        if changed:
            raise UserError(
                f"{folder} was begun with another {', '.join(changed)}; repeat its options to resume it, or use another --out."
            )
        return
    write_text(folder / READING, json.dumps(facts.model_dump(mode="json"), indent=2) + "\n")
    write_text(folder / RUN, json.dumps(config.model_dump(mode="json"), indent=2) + "\n")


def _windows(part: Series, name: str, config: RunConfig, private: Privacy | None = None) -> Windows:
    """Windows of one part of the split; the sentence about a short one says which part it is."""
    longest = int(part.lengths.max(initial=0))
    if longest < config.window:
        raise UserError(
            f"The {name} part has {longest} rows at most and a window needs {config.window}; give a longer series or a shorter "
            "window (--window)."
        )
    series = network_covariates(part, config.calendar)
    if private is not None:
        return private_windows(series, config.window, config.stride, private)
    return cut(series, config.window, config.stride)


def train(
    split: Split,
    config: RunConfig,
    folder: Path,
    *,
    facts: DataFacts | None = None,
    speed: Speed | None = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> Outcome:
    """Train, or continue, and leave a model in `folder` when the last step is done."""
    speed, folder, facts = speed or Speed(), Path(folder), facts or DataFacts()
    if speed.threads:
        torch.set_num_threads(speed.threads)
    device, world = choose_device(speed.device), join_world()
    scaling = make_scaling(config, facts, split.train)
    examples = Examples(
        _windows(split.train, "training", config, config.privacy), config.masks, scaling, config.examples, config.seed
    )
    private = config.privacy is not None
    validate = None if private else _validation(split, config, scaling)
    if world.first:
        _claim(folder, config, facts, resume)
    world.wait()
    torch.manual_seed(purpose_seed(config.seed, "weights"))
    network = DiffusionTransformer(config.network).to(device)
    trainer = Trainer(
        network,
        config.training,
        folder,
        speed=speed,
        validate=validate,
        progress=progress,
        metrics=folder / NOT_PRIVATE / "metrics.jsonl" if private else None,
        world=world,
    )
    if resume and (folder / CHECKPOINT).exists():
        trainer.resume()
    try:
        if private:
            outcome, privacy = _run_private(trainer, network, examples, config, scaling, world)
        else:
            source = PlainGradients(network, examples, config.process, config.training.batch_size, world)
            outcome, privacy = trainer.run(source), Statement.without_privacy()
    except SafetensorError as error:  # a full disk, seen by the writer of tensors
        raise UserError(f"Cannot write {folder / CHECKPOINT} ({error}); free some space, then --resume.") from error
    if outcome.finished and world.first:
        spec = describe(config, facts, split.train, scaling, privacy)
        save_model(folder, spec, trainer.weights())
    world.wait()
    return outcome


def _validation(split: Split, config: RunConfig, scaling: Scaling) -> Callable[[torch.nn.Module], float]:
    """The validation loss of a network, as a function."""
    windows = _windows(split.validation, "validation", config)
    seed = purpose_seed(config.seed, "validation")
    examples = Examples(windows, config.masks, scaling, config.examples, seed)
    return lambda network: validation_loss(network, examples, config.process)


def _run_private(
    trainer: Trainer,
    network: DiffusionTransformer,
    examples: Examples,
    config: RunConfig,
    scaling: Scaling,
    world: World,
) -> tuple[Outcome, Statement]:
    """Train within the budget, and say what it cost."""
    warning = scaling.warning()
    not_covered = [LOGGED, *([warning.rstrip(".")] if warning else [])]
    with private_source(
        network, examples, config, trainer.folder, trainer.step, world=world, not_covered=not_covered
    ) as (source, until):
        outcome = trainer.run(source, until)
        if source.ledger is None or not source.ledger.record.steps:
            return outcome, Statement.without_privacy()
        return outcome, Statement.of(source.ledger.record)


def load_run(folder: Path) -> tuple[RunConfig, DataFacts]:
    """The configuration of a run, and what was said about its data."""
    folder = Path(folder)
    for name in (RUN, READING):
        if not (folder / name).is_file():
            raise UserError(f"{folder} is not a run: {name} is missing; name a folder made by `tamedit train`.")
    try:
        config = RunConfig.model_validate_json((folder / RUN).read_text(encoding="utf-8"))
        facts = DataFacts.model_validate_json((folder / READING).read_text(encoding="utf-8"))
    except (ValueError, UserError) as error:
        raise UserError(
            f"{folder / RUN} or {READING} is damaged or from another version; train anew in another folder."
        ) from error
    return config, facts


def describe(config: RunConfig, facts: DataFacts, series: Series, scaling: Scaling, privacy: Statement) -> ModelSpec:
    """The specification that goes with the weights."""
    known = SOURCES.get(config.source)
    return ModelSpec(
        network=config.network,
        process=config.process,
        examples=config.examples,
        scaling=scaling.to_dict(),
        targets=series.targets,
        covariates=series.covariate_names,
        calendar=config.calendar,
        frequency_seconds=series.frequency.total_seconds(),
        non_negative=facts.non_negative or bool(known and known.non_negative),
        privacy=privacy.to_dict(),
    )
