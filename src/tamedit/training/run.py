"""Trains a model in a folder (`folder.py` lists its files): the split series and a configuration in, a model out."""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from tamedit.data.calendar import network_covariates
from tamedit.data.scaling import Scaling
from tamedit.data.series import Series
from tamedit.data.simulate import OWES_TO
from tamedit.data.sources import SOURCES
from tamedit.data.split import Split
from tamedit.errors import Resumable, UserError
from tamedit.files import write_text
from tamedit.model.dit import DiffusionTransformer
from tamedit.model.tuning import folded, prepare, trained
from tamedit.privacy.ledger import Ledger
from tamedit.privacy.plain_words import in_words
from tamedit.privacy.population import Population
from tamedit.privacy.statement import Statement, side_by_side
from tamedit.runs.agreement import check_steps
from tamedit.runs.artifact import ModelSpec, save_model
from tamedit.runs.config import RunConfig, Speed
from tamedit.runs.folder import CHECKPOINT, NOT_PRIVATE, DataFacts, claimed, not_private, recognised
from tamedit.runs.layout import CLOCK_CHANGES, PrivateLayout, check_length, clock_changes, layout_of
from tamedit.runs.privacy_page import PRIVACY, privacy_page
from tamedit.runs.start import Initial, check_fits
from tamedit.statics import listed
from tamedit.streams import purpose_seed
from tamedit.training.device import choose_device
from tamedit.training.distributed import World, join_world
from tamedit.training.loop import Outcome, Progress, Trainer
from tamedit.training.private.budget import Budget, open_budget, stream_seed
from tamedit.training.private.counted import counted
from tamedit.training.private.gradients import LOGGED, PrivateGradients, opened
from tamedit.training.private.released_bounds import private_network, refuse_noise
from tamedit.training.private.released_population import learned_population
from tamedit.training.private.released_scale import private_scaling, statistics_of, wants_private_units
from tamedit.training.recorder import Recorder
from tamedit.training.scales import make_scaling
from tamedit.training.source import PlainGradients, validation_loss
from tamedit.windows.cut import Windows, cut
from tamedit.windows.examples import Examples
from tamedit.windows.masks import without_reconstruction


@dataclass
class RunOutcome(Outcome):
    """What a call of `train` did."""

    privacy: dict[str, Any] | None = None  # the statement of a finished run, in the first process


INFERRED = "how the table was read, inferred from its rows and assumed to be public ({})"  # for the statement
Watch = Callable[[int, torch.nn.Module, Examples], None]  # looks at a step's network; must change nothing


def train(
    split: Split,
    config: RunConfig,
    folder: Path,
    *,
    facts: DataFacts | None = None,
    speed: Speed | None = None,
    resume: bool = False,
    progress: Progress | None = None,
    initial: Initial | None = None,
    layout: PrivateLayout | None = None,
    watch: Watch | None = None,
) -> RunOutcome:
    """Train, or continue, and leave a model in `folder` when the last step is done. `initial`: the model of `config.start`.

    `layout` is that of the training part, if the caller of a private run has made it already. `watch` is called after every
    step with the step, the network and the training examples. What it sees is not private.
    """
    speed, folder, facts, world = speed or Speed(), Path(folder), facts or DataFacts(), join_world()
    if speed.threads:
        torch.set_num_threads(speed.threads)
    device, private, noisy, budget = choose_device(speed.device), config.privacy is not None, None, None
    layout = layout_of(split.train, config) if layout is None else layout
    scaling = make_scaling(config, facts, split.train)
    if layout is not None:
        layout.check(split.train, config)
        layout = counted(layout, config, facts, folder, world=world, resume=resume)
    windows = _windows(split.train, "training", config) if layout is None else layout.examples(config)
    refuse_noise(config, len(windows) if layout is None else layout.count.examples)
    validate = None if private else _validation(split, config, scaling)
    facts = facts.model_copy(update={"data": recognised(split.train, private), "study": split.study})
    with ExitStack() as stack:
        if world.first:
            stack.enter_context(claimed(folder, config, facts, resume, split.train if private else None))
        world.wait()
        network = _network(config, initial).to(device)
        recorder = _recorder(folder, network, config, speed) if world.first else None
        trainer = Trainer(
            network,
            config.training,
            folder,
            speed=speed,
            validate=validate,
            progress=_of_epsilon(progress) if private and progress else progress,
            metrics=folder / NOT_PRIVATE / "metrics.jsonl" if private else None,
            world=world,
            record=recorder,
            timed=not private,
        )
        if resume and (folder / CHECKPOINT).exists():
            trainer.resume()
        if private and world.first and trainer.step:
            check_steps(folder, trainer.step)
        if layout is not None:
            opening = _budget(layout, config, facts, folder, world, scaling)
            noisy = stack.enter_context(opened(network, config.process, opening, len(windows), recorder))
            budget = noisy.budget
            _save_first(trainer)
            scaling = private_scaling(config, facts, windows, budget, folder, scaling)
        population = learned_population(config, facts, windows, budget, folder)
        seed = stream_seed(config.privacy, config.seed, world) if config.privacy else config.seed
        masks = without_reconstruction(config.masks) if scaling.origin == "none" else config.masks
        examples = Examples(windows, masks, scaling, config.examples, seed)
        if budget and config.private_bounds is not None:
            found = private_network(config, initial, examples, budget, folder)
            network.bound_by(found)
            config = config.model_copy(update={"network": found})
        if watch is not None and world.first:
            trainer.watch = lambda step: watch(step, network, examples)
        if noisy is not None:
            noisy.over(examples, noisy.budget.until(trainer.step))
        plain = config.process, config.training.batch_size, world, recorder
        made = _run(trainer, noisy or PlainGradients(network, examples, *plain))
        if made.finished and world.first:
            ledger = budget.ledger if budget else None
            page, spec = _page(ledger), describe(config, facts, split.train, scaling, ledger, population)
            made.privacy = _finish(folder, spec, folded(trainer.weights()), page)
    world.wait()
    return made


def _of_epsilon(progress: Progress) -> Progress:
    """What a private run says on its way, which ends up in logs: ε alone. Losses and clip rates are not private."""
    return lambda step, steps, numbers: progress(step, steps, {"epsilon": numbers["epsilon"]})


def _network(config: RunConfig, initial: Initial | None) -> DiffusionTransformer:
    """A fresh network, or the initial model with what is not trained frozen."""
    torch.manual_seed(purpose_seed(config.seed, "weights"))
    network = DiffusionTransformer(config.network)
    if config.start is None:
        return network
    if initial is None or initial.start != config.start:
        raise UserError(f"This run begins from a model trained on {config.start.source}; name it again with `init`.")
    if config.privacy is not None and config.start.origin == "not public":
        raise UserError(
            f"The initial model was trained on {config.start.source}, which is not known to be public, so no guarantee would "
            "cover what its weights reveal; say that it is public (public=True), or train without privacy."
        )
    shape = config.network
    check_fits(
        initial, shape.target_channels, shape.covariate_channels, config.examples.anchor, config.process.prediction
    )
    network.load_state_dict(initial.weights)
    prepare(network, config.start.tuning, config.start.rank)
    return network


def _recorder(folder: Path, network: DiffusionTransformer, config: RunConfig, speed: Speed) -> Recorder:
    """Keeps gradient norms and step times, apart from what may be released."""
    privacy, names = config.privacy, list(trained(network))
    place, every = not_private(folder), speed.diagnose_every
    if privacy is None:
        return Recorder(place, names, every=every)
    return Recorder(place, names, every=every, clip=privacy.clip, clipping=privacy.clipping)


def _windows(part: Series, name: str, config: RunConfig) -> Windows:
    """Windows of one part of the split; the sentence about a short one says which part it is."""
    check_length(part, name, config.window)
    series = network_covariates(part, config.calendar)
    try:
        return cut(series, config.window, config.stride)
    except UserError as error:
        raise UserError(f"In the {name} part: {error}") from None


def _validation(split: Split, config: RunConfig, scaling: Scaling) -> Callable[[torch.nn.Module], float]:
    """The validation loss of a network, as a function."""
    windows = _windows(split.validation, "validation", config)
    seed = purpose_seed(config.seed, "validation")
    examples = Examples(windows, config.masks, scaling, config.examples, seed)
    return lambda network: validation_loss(network, examples, config.process)


def _budget(
    layout: PrivateLayout, config: RunConfig, facts: DataFacts, folder: Path, world: World, scaling: Scaling
) -> AbstractContextManager[Budget]:
    """The ledger of a private run, which knows what the guarantee will not cover."""
    estimated = wants_private_units(config, facts)
    warning = None if estimated else scaling.warning()
    before = [one.sentence for one in (config.start, config.reference) if one is not None]
    if config.source in OWES_TO:
        before.append(OWES_TO[config.source])
    clocks = [CLOCK_CHANGES] if clock_changes(layout.windows.series) else []
    not_covered = [LOGGED, *([warning.rstrip(".")] if warning else []), *before, *clocks]
    statistics = statistics_of(config, facts)
    said, shared = {"not_covered": not_covered, "public": taken_as_public(layout, facts)}, facts.shared_ledger
    return open_budget(layout, config, folder, world=world, **said, statistics=statistics, shared=shared)


def taken_as_public(layout: PrivateLayout, facts: DataFacts) -> list[str]:
    """What the guarantee takes as public: it decides which examples exist, how often they are drawn and what they contain."""
    series, count = layout.windows.series, layout.count
    about = f", about {count.meters:,} of them" * (count.origin == "noisy")
    meters = [f"that column {series.id_name!r} names the meters{about}"] if series.layout == "long" else []
    extent = facts.study.sentence if facts.study else "the first and the last stamp of every meter"
    names = f"the step of {series.spoken_step} and the columns {', '.join(series.targets)}"
    read = [INFERRED.format(" ".join(series.inferred))] if series.inferred else []
    known = [f"the categories of static attributes: {listed(series.static)}"] if series.static else []
    return [count.sentence, extent, names, *known, *meters, *read, "all settings"]


def _run(trainer: Trainer, source: PlainGradients | PrivateGradients) -> RunOutcome:
    """Train with the ordinary gradient or, within a budget, with the private one."""
    try:
        outcome = trainer.run(source, source.until if isinstance(source, PrivateGradients) else None)
        return RunOutcome(outcome.step, outcome.finished, outcome.seconds)
    except SafetensorError as error:
        raise _full(trainer, error) from error


def _save_first(trainer: Trainer) -> None:
    """A checkpoint of step 0, before the first step is paid for: a run that cannot write can then be resumed."""
    if (trainer.folder / CHECKPOINT).exists():
        return
    try:
        trainer.save()
    except SafetensorError as error:
        raise _full(trainer, error) from error


def _full(trainer: Trainer, error: SafetensorError) -> Resumable:
    """A full disk, seen by the writer of tensors."""
    place = trainer.folder / CHECKPOINT
    return Resumable(f"Cannot write {place} ({error}); free some space, then continue with resume=True.")


def _page(ledger: Ledger | None) -> str | None:
    """The page of a private run: its guarantee for every unit, in numbers and in words."""
    if ledger is None:
        return None
    units, unit = side_by_side(ledger.record, everything=ledger.everything), ledger.record.segments[-1].plan.unit
    return privacy_page(units, unit, in_words(units[unit]), ledger.record)


def _finish(folder: Path, spec: ModelSpec, weights: dict[str, torch.Tensor], page: str | None) -> dict[str, Any]:
    """Write the page of a private run, then the model; the statement."""
    if page is not None:
        write_text(folder / PRIVACY, page)
    save_model(folder, spec, weights)
    return spec.privacy


def describe(
    config: RunConfig,
    facts: DataFacts,
    series: Series,
    scaling: Scaling,
    ledger: Ledger | None,
    population: Population | None = None,
) -> ModelSpec:
    """The specification that goes with the weights."""
    known = SOURCES.get(config.source)
    privacy = Statement.without_privacy()
    if ledger is not None:
        privacy = Statement.of(ledger.record, everything=ledger.everything)
    return ModelSpec(
        network=config.network,
        process=config.process,
        examples=config.examples,
        scaling=scaling.to_dict(),
        targets=series.targets,
        covariates=series.covariate_names,
        static=series.static,
        calendar=config.calendar,
        frequency_seconds=series.frequency.total_seconds(),
        phase_seconds=series.phase_seconds,
        timezone=facts.reading.get("timezone"),
        non_negative=facts.non_negative or bool(known and known.non_negative),
        population=population,
        privacy=privacy.to_dict(),
        ledger_head=None if ledger is None else ledger.own.head,
    )
