"""A request becomes a run. `tamedit.fit` and `tamedit train` call `run_request`; a plan and the demo use its parts."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tamedit.data.clean import negatives
from tamedit.data.loading import IN_MEMORY, Data, load_split
from tamedit.data.reading.several import place_of
from tamedit.data.series import Series
from tamedit.data.sources import SOURCES
from tamedit.data.split import Split
from tamedit.errors import UserError
from tamedit.formatting import counted as in_number
from tamedit.formatting import epsilon as shown
from tamedit.model.zoo import tightened
from tamedit.privacy.counting import Count
from tamedit.privacy.ledger import OF_DATA
from tamedit.privacy.settings import Privacy
from tamedit.privacy.statement import large_delta
from tamedit.runs.artifact import SPECIFICATION
from tamedit.runs.config import RunConfig, Speed
from tamedit.runs.folder import DataFacts, check_resumable
from tamedit.runs.layout import PrivateLayout, layout_of, private_layout
from tamedit.runs.proposal import CORES, Proposal, propose_for, recommended
from tamedit.runs.provenance import Reference
from tamedit.runs.recipe import REFERENCE, make_config
from tamedit.runs.request import HOMES, SIMULATED, TrainRequest
from tamedit.runs.start import Initial, load_initial_run
from tamedit.statics import as_mapping
from tamedit.training.distributed import join_world
from tamedit.training.evolved import as_votes, evolve_run
from tamedit.training.homes import homes_start
from tamedit.training.loop import Progress
from tamedit.training.private.budget import Spent, spent_on
from tamedit.training.private.counted import counted
from tamedit.training.private.evolution import check_homes
from tamedit.training.public import PLACE, simulated_start
from tamedit.training.run import RunOutcome, train

Say = Callable[[str], None]  # hears what a user should know on the way, one sentence at a time
# The choices that `make_config` takes as they are.
CONFIGURED = {"scale", "anchor", "bounds", "by_block", "private_bounds", "operator", "steps", "seed", "window", "size"}
CONFIGURED |= {"period", "privacy", "batch_size"}
OF_BOUNDS = {
    "bounds",
    "operator",
    "reference",
    "by_block",
    "private_bounds",
}  # without them an initial model keeps its own
OTHER_BOUNDS = (
    "The initial model was trained with other bounds, so it answers differently from the first step on; leave out `bounds` and "
    "`operator` to keep its own."
)
FACTS = ("reading", "non_negative", "typical_level", "typical_scale", "lower", "upper")


@dataclass(frozen=True)
class Prepared:
    """All that training needs: what `prepare` made of a request and its data."""

    folder: Path
    series: Series
    split: Split
    config: RunConfig
    facts: DataFacts
    layout: PrivateLayout | None
    initial: Initial | None
    resume: bool

    def train(self, *, speed: Speed | None = None, progress: Progress | None = None) -> RunOutcome:
        return train(
            self.split,
            self.config,
            self.folder,
            facts=self.facts,
            speed=speed,
            resume=self.resume,
            progress=progress,
            initial=self.initial,
            layout=self.layout,
        )


def run_request(
    data: Data,
    request: TrainRequest,
    *,
    speed: Speed | None = None,
    progress: Progress | None = None,
    say: Say | None = None,
) -> tuple[Prepared, RunOutcome]:
    """Read the data, prepare the run, train; the outcome has the privacy statement, and the folder the model."""
    if request.engine == "evolution":
        made = prepare(data, as_votes(request), say=say)
        assert made.layout is not None
        outcome = evolve_run(
            made.split, made.config, made.folder, facts=made.facts, layout=made.layout, resume=made.resume
        )
        return made, outcome
    prepared = prepare(data, request, speed=speed, progress=progress, say=say)
    return prepared, prepared.train(speed=speed, progress=progress)


def prepare(
    data: Data,
    request: TrainRequest,
    *,
    speed: Speed | None = None,
    progress: Progress | None = None,
    say: Say | None = None,
) -> Prepared:
    """Everything that comes before private training: reading, checks, the model to begin from, the configuration, the plan."""
    assert request.out is not None
    world = join_world()
    series, split = load_split(data, private=request.private, study=request.dates, **request.reading)
    if request.engine == "evolution":
        check_homes(series)
    seen = (
        () if request.private else (*series.findings, *negatives(series, request.non_negative))
    )  # or it ends up in logs
    if split.study is not None and not split.study.stated:
        seen = (f"Taken as public: {split.study.sentence}; state yours with `study`, since the test part is its end.",)
    for note in (*series.notes, *seen) if say else ():
        say(f"note: {note}")  # type: ignore[misc]
    if request.resume:
        check_resumable(request.out)  # before the long work of a public stage
    ledger, reference = ledger_of(data, request), None
    facts = DataFacts(**_facts(request, series), ledger=str(ledger) if ledger else None)
    if request.reference is not None:
        reference = Reference.load(request.reference, request.anchor, private=request.private)
    initial = _initial(request, request.out, series, reference, speed, progress, say)
    config = _configured(data, series, request, reference, initial)
    if say and initial is not None and _rebounded(config, initial) and config.private_bounds is None:
        say(f"note: {OTHER_BOUNDS}")
    layout = layout_of(split.train, config)
    if layout is not None and request.privacy is not None:
        layout = counted(layout, config, facts, request.out, world=world, resume=request.resume)
        warning = large_delta(
            request.privacy.delta, layout.count.examples
        )  # by the stated or the noisy number of examples
        if say and warning:
            say(f"warning: {warning}")
    if layout is not None and request.planned:
        chosen = {"steps": request.steps, "batch_size": request.batch_size, "size": request.size}
        config = recommended(config, layout, request.minutes, **chosen)
    return Prepared(request.out, series, split, config, facts, layout, initial, request.resume)


def _rebounded(config: RunConfig, initial: Initial) -> bool:
    """Whether an initial model was trained with other bounds."""
    own = initial.spec.network
    return (config.network.bounds, config.network.operator) != (own.bounds, own.operator)


def _facts(request: TrainRequest, series: Series) -> dict[str, Any]:
    """What was said of the data; categories that were found in the table are stated from here on."""
    given = {name: getattr(request, name) for name in FACTS}
    if given["reading"].get("static") is not None:
        given["reading"] = {**given["reading"], "static": as_mapping(series.static)}
    return given


def ledger_of(data: Data, request: TrainRequest) -> Path | None:
    """The ledger of the data set: the chosen one, else beside the file. A named data set has it beside the run's folder.

    A table in memory has no name by which another run could find it, and a test is charged nowhere: they have none.
    """
    if request.privacy is None or request.privacy.test_only or request.ledger is not None:
        return request.ledger
    if not isinstance(data, str | Path):
        return None
    if str(data) not in SOURCES:
        found, given = _beside(place_of(data)), _beside(Path(data))
        if Path(data).is_symlink() and given != found and given.is_file():
            raise UserError(
                f"{data} is a link to {place_of(data)}, which has its ledger beside it, and {given} is a ledger, too; name the "
                "one that knows all runs on this data with `ledger`."
            )
        return found
    return None if request.out is None else request.out.parent / f"{data}{OF_DATA}"


def _beside(data: Path) -> Path:
    """The ledger beside a file or a folder."""
    return data.with_name((data.name if data.is_dir() else data.stem) + OF_DATA)


def plan_request(data: Data, request: TrainRequest, *, cores: int = CORES) -> Proposal:
    """How to spend the budget of a private request, from public facts: no reading is looked at, and N is the most it can be."""
    assert request.privacy is not None
    series, split = load_split(data, private=True, study=request.dates, **request.reading)
    config = _configured(data, series, request, None, None)
    layout = private_layout(split.train, config.window, config.stride, request.privacy)
    if request.privacy.examples is not None:
        layout = replace(layout, count=Count(origin="stated", examples=request.privacy.examples, meters=0))
    privacy, begins = request.privacy, request.init is not None
    spent = spent_on(privacy, layout, ledger_of(data, request))
    if spent is None or privacy.epsilon is None:
        return propose_for(layout, privacy, minutes=request.minutes, cores=cores, begins=begins)
    return _after(spent, layout, privacy, request.minutes, cores, begins)


def _after(spent: Spent, layout: PrivateLayout, privacy: Privacy, minutes: float, cores: int, begins: bool) -> Proposal:
    """The proposal for one more run on data whose ledger lists others: ε is that of all of them, and the noise pays for all."""
    asked = privacy.epsilon
    assert asked is not None
    used = f"{in_number(spent.runs, 'private run')} on this data spent ε = {shown(spent.epsilon)} per {privacy.unit}"
    used += f" at δ = {privacy.delta:g} ({spent.place} lists them)"
    if not math.isfinite(spent.epsilon):
        raise UserError(f"{used}, and no larger ε covers one more; keep another data set for private runs.")
    allowed = asked if spent.pays(asked) else spent.enough(asked)
    if allowed == asked:
        said = f"{used}; of ε = {asked:g}, which is that of all runs together, {asked - spent.epsilon:.2g} is left"
    else:
        said = f"nothing is left of ε = {asked:g}: {used}; this plan allows ε = {allowed:g} for all runs together"
    privacy = privacy.model_copy(update={"epsilon": allowed})
    found = propose_for(layout, privacy, minutes=minutes, cores=cores, begins=begins)
    given = (found.examples, found.batch_size, found.steps, spent.contribution, 0)
    noise = privacy.plan(*given, spent.mechanisms).noise_multiplier
    more = noise / found.noise_multiplier
    return found.model_copy(
        update={
            "noise_multiplier": noise,
            "signal_to_noise": found.signal_to_noise / more,
            "share_of_limit": found.share_of_limit / more,
            "noise_over_signal": found.noise_over_signal * more,
            "reasons": found.reasons
            | {
                "noise_multiplier": f"{found.reasons['noise_multiplier']}, with what other runs spent",
                "signal_to_noise": f"{found.share_of_limit / more:.0%} of what full batches of a first run would give at this ε",
            },
            "spent": spent.epsilon,
            "budget": f"{said}.",
        }
    )


def _configured(
    data: Data, series: Series, request: TrainRequest, reference: Reference | None, initial: Initial | None
) -> RunConfig:
    config = make_config(
        series,
        str(data) if isinstance(data, str | Path) else IN_MEMORY,
        reference=reference,
        start=None if initial is None else initial.start,
        **{name: getattr(request, name) for name in CONFIGURED},
    )
    if initial is None or request.model_fields_set & OF_BOUNDS:
        return config
    own = {name: getattr(initial.spec.network, name) for name in ("bounds", "operator")}
    return config.model_copy(update={"network": config.network.model_copy(update=own)})


def _initial(
    request: TrainRequest,
    folder: Path,
    series: Series,
    reference: Reference | None,
    speed: Speed | None,
    progress: Progress | None,
    say: Say | None,
) -> Initial | None:
    """The model to begin from; one of simulated homes is trained in the run's folder first, or found there again."""
    if request.init is None or isinstance(request.init, Initial):
        return request.init
    if str(request.init) == HOMES:
        return homes_start(series, request.anchor, tuning=request.tuning, rank=request.rank)
    if str(request.init) != SIMULATED:
        return load_initial_run(
            Path(request.init), tuning=request.tuning, rank=request.rank, public=request.public, private=request.private
        )
    if say and not (folder / PLACE / SPECIFICATION).exists():
        say("first: a model of simulated homes (nobody's data, no privacy spent)")
    return simulated_start(
        folder,
        series,
        anchor=request.anchor,
        bounds=tightened(reference.magnitudes if reference else REFERENCE[request.anchor], request.bounds),
        operator=request.operator,
        tuning=request.tuning,
        rank=request.rank,
        speed=speed,
        progress=progress,
    )
