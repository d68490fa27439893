"""Trains a model in a folder: the split series and a configuration in, `model.safetensors` out.

run.json                 the configuration, written first
checkpoint.safetensors   the state, replaced as the run goes on
metrics.jsonl            losses (not private, when the data is)
model.safetensors, model.json   the model, written when the run is finished
"""

import json
from pathlib import Path
from typing import Any

import torch

from tamedit.data.calendar import with_calendar
from tamedit.data.scaling import Scaling, fit_scaling
from tamedit.data.series import Series
from tamedit.data.sources import SOURCES
from tamedit.data.split import Split
from tamedit.errors import UserError
from tamedit.files import write_text
from tamedit.model.dit import DiffusionTransformer
from tamedit.streams import purpose_seed
from tamedit.training.artifact import ModelSpec, save_model
from tamedit.training.config import Speed
from tamedit.training.device import choose_device
from tamedit.training.loop import CHECKPOINT, Outcome, Progress, Trainer
from tamedit.training.recipe import RunConfig
from tamedit.training.source import PlainGradients, validation_loss
from tamedit.windows.cut import cut
from tamedit.windows.examples import Examples

RUN, READING = "run.json", "reading.json"


def prepare_series(series: Series, calendar: bool) -> Series:
    """The series as the network reads it: the user's covariates, then the calendar's."""
    return with_calendar(series) if calendar else series


def make_scaling(config: RunConfig, train: Series) -> Scaling:
    """The units of a run. For a named public source the reference level and scale are public facts."""
    known = SOURCES.get(config.source)
    if config.scaling == "instance" and known:
        floor = tuple(0.3 * scale for scale in known.typical_scale)
        return fit_scaling("instance", train, level=known.typical_level, scale=known.typical_scale, floor=floor)
    return fit_scaling(config.scaling, train)


def _claim(folder: Path, config: RunConfig, resume: bool) -> None:
    """Make the folder this run's own, or say in one sentence why it cannot be."""
    described = config.model_dump(mode="json")
    if (folder / RUN).exists():
        if not resume:
            raise UserError(
                f"{folder} holds a run already; continue it with --resume, or name another folder with --out."
            )
        before = json.loads((folder / RUN).read_text(encoding="utf-8"))
        changed = sorted(key for key in described if described[key] != before.get(key))
        if changed:
            raise UserError(
                f"{folder} was begun with another {', '.join(changed)}; repeat its options to resume it, or use another --out."
            )
        return
    write_text(folder / RUN, json.dumps(described, indent=2) + "\n")


def train(
    split: Split,
    config: RunConfig,
    folder: Path,
    *,
    speed: Speed | None = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> Outcome:
    """Train, or continue, and leave a model in `folder` when the last step is done."""
    speed, folder = speed or Speed(), Path(folder)
    if speed.threads:
        torch.set_num_threads(speed.threads)
    device = choose_device(speed.device)
    scaling = make_scaling(config, split.train)
    training, validation = (
        Examples(
            cut(prepare_series(part, config.calendar), config.window, stride),
            config.masks,
            scaling,
            config.examples,
            seed,
        )
        for part, stride, seed in (
            (split.train, config.stride, config.seed),
            (split.validation, config.stride, purpose_seed(config.seed, "validation")),
        )
    )
    _claim(folder, config, resume)
    torch.manual_seed(purpose_seed(config.seed, "weights"))
    network = DiffusionTransformer(config.network).to(device)
    trainer = Trainer(
        network,
        PlainGradients(network, training, config.process, config.training.batch_size),
        config.training,
        folder,
        speed=speed,
        validate=lambda model: validation_loss(model, validation, config.process),
        progress=progress,
    )
    if resume and (folder / CHECKPOINT).exists():
        trainer.resume()
    outcome = trainer.run()
    if outcome.finished:
        save_model(folder, describe(config, split.train, scaling), trainer.weights())
    return outcome


def save_reading(folder: Path, reading: dict[str, Any]) -> None:
    """Remember how the source was read, so that `evaluate` reads it the same way."""
    write_text(Path(folder) / READING, json.dumps(reading, indent=2) + "\n")


def load_run(folder: Path) -> tuple[RunConfig, dict[str, Any]]:
    """The configuration of a run, and how its source was read."""
    folder = Path(folder)
    if not (folder / RUN).is_file():
        raise UserError(f"{folder} is not a run: {RUN} is missing; name a folder made by `tamedit train`.")
    try:
        config = RunConfig.model_validate_json((folder / RUN).read_text(encoding="utf-8"))
        reading = json.loads((folder / READING).read_text(encoding="utf-8")) if (folder / READING).is_file() else {}
    except ValueError as error:
        raise UserError(f"{folder / RUN} is damaged or from another version; train anew in another folder.") from error
    return config, reading


def describe(config: RunConfig, series: Series, scaling: Scaling) -> ModelSpec:
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
        non_negative=bool(known and known.non_negative),
    )
