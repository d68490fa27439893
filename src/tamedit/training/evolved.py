"""A run of the engine `evolution`: the same folder, ledger, statement and privacy page as a trained model, and a population."""

import time
from pathlib import Path

from tamedit.data.simulate import OWES_TO
from tamedit.data.split import Split
from tamedit.errors import UserError
from tamedit.files import write_text
from tamedit.privacy.plain_words import in_words
from tamedit.privacy.statement import Statement, side_by_side
from tamedit.runs.config import RunConfig
from tamedit.runs.folder import DataFacts, claimed, recognised
from tamedit.runs.layout import CLOCK_CHANGES, PrivateLayout, clock_changes, public_rows, whole_meters
from tamedit.runs.privacy_page import PRIVACY, privacy_page
from tamedit.runs.request import TrainRequest
from tamedit.training.distributed import join_world
from tamedit.training.private.budget import open_budget
from tamedit.training.private.counted import counted
from tamedit.training.private.evolution import POPULATION, ROUNDS, Population, check_homes, evolve, voted
from tamedit.training.run import RunOutcome, taken_as_public

EVOLVED = {POPULATION: "simulated homes with weights: the population"}  # on the page, instead of a network
EVERYONE = 10**9  # an expected batch that no data set has: q = 1


def as_votes(request: TrainRequest) -> TrainRequest:
    """The request in the words of the plan: a step is a round, every example is in every batch, a vote has norm 1."""
    assert request.privacy is not None
    privacy = request.privacy.model_copy(update={"clip": 1.0, "draws": 1, "secure": not request.privacy.test_only})
    rounds = request.steps or ROUNDS
    return request.model_copy(
        update={"steps": rounds, "batch_size": EVERYONE, "scale": "smoke", "privacy": privacy, "size": "tiny"}
    )


def evolve_run(
    split: Split, config: RunConfig, folder: Path, *, facts: DataFacts, layout: PrivateLayout, resume: bool = False
) -> RunOutcome:
    """Evolve, or continue after the last kept round. A round that was paid for and lost in a crash is not repeated for free."""
    begin, world, rounds, privacy = time.perf_counter(), join_world(), config.training.steps, config.privacy
    assert privacy is not None
    if world.size > 1:
        raise UserError("engine='evolution' runs in one process; start it without torchrun.")
    check_homes(split.train)
    layout.check(split.train, config)
    layout = counted(layout, config, facts, folder, world=world, resume=resume)
    facts = facts.model_copy(update={"data": recognised(split.train, True), "study": split.study})
    with claimed(folder, config, facts, resume, split.train):
        begun = Population.load(folder) if (folder / POPULATION).is_file() else None
        opening = open_budget(
            layout,
            config,
            folder,
            world=world,
            not_covered=_not_covered(layout, config),
            public=taken_as_public(layout, facts),
            shared=facts.shared_ledger,
        )
        with opening as budget:
            ledger, done = budget.ledger, 0 if begun is None else begun.rounds
            assert ledger is not None
            if ledger.record.steps < done:
                raise UserError(
                    f"{folder / POPULATION} was not paid for in this folder's ledger; start in another folder."
                )
            until = done if done == rounds else budget.until(done)
            found = evolve(
                layout.windows,
                voted(ledger),
                rounds=until,
                noise_multiplier=budget.plan.noise_multiplier,
                block=None if whole_meters(privacy) else public_rows(layout.windows, privacy),
                seed=config.seed,
                begun=begun,
                keep=lambda one: one.save(folder),
            )
            units = side_by_side(ledger.record, everything=ledger.everything)
            unit = budget.plan.unit
            write_text(folder / PRIVACY, privacy_page(units, unit, in_words(units[unit]), ledger.record, EVOLVED))
            statement = Statement.of(ledger.record, everything=ledger.everything).to_dict()
    return RunOutcome(found.rounds, True, time.perf_counter() - begin, statement)


def _not_covered(layout: PrivateLayout, config: RunConfig) -> list[str]:
    owed = [OWES_TO[config.source]] if config.source in OWES_TO else []
    return [*owed, *([CLOCK_CHANGES] if clock_changes(layout.windows.series) else [])]
