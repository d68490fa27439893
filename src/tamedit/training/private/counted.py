"""The public number of examples of a private run: stated, exact in a test, or counted with noise that is paid for first."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tamedit.errors import Resumable, UserError
from tamedit.privacy.accountant import Mechanism
from tamedit.privacy.counting import RELEASES, Count, counted_before, counting_facts, counting_plan, draw_count
from tamedit.privacy.entries import FILE_NAME, so_far
from tamedit.privacy.ledger import Ledger
from tamedit.privacy.plan import PrivacyPlan
from tamedit.privacy.settings import Privacy
from tamedit.runs.config import RunConfig
from tamedit.runs.folder import DataFacts, check_free
from tamedit.runs.layout import PrivateLayout
from tamedit.training.distributed import World
from tamedit.training.private.budget import refuse_uncounted, unit_facts
from tamedit.training.private.released_bounds import refuse_noise
from tamedit.training.private.released_population import refuse_population
from tamedit.training.private.released_scale import statistics_of
from tamedit.training.scales import make_scaling


def counted(
    layout: PrivateLayout, config: RunConfig, facts: DataFacts, folder: Path, *, world: World, resume: bool
) -> PrivateLayout:
    """The layout with the public number of its examples, the same in all processes.

    A run that is resumed, or tried again in the same folder after it was refused, keeps the number in its ledger. What can be
    refused without the number is refused before it is charged, in the ledger of the data set, too.
    """
    privacy, what, shared = config.privacy, layout.definitions["window"], facts.shared_ledger
    if layout.count.origin != "at most" or privacy is None:
        return layout
    layout.refuse_single()
    said, statistics = unit_facts(layout, shared), statistics_of(config, facts)
    refuse_noise(config, privacy.examples or layout.count.examples)
    attributes = len(layout.windows.series.static)
    refuse_population(config, facts, privacy.examples or layout.count.examples, attributes)
    make_scaling(config, facts, layout.windows.series)  # raises if the facts contradict each other
    if privacy.test_only:
        return replace(layout, count=Count(origin="exact", examples=len(layout.windows), meters=layout.meters))
    if privacy.examples is not None:
        return replace(layout, count=Count(origin="stated", examples=privacy.examples, meters=0))
    found = counted_before(so_far(folder / FILE_NAME), what)
    if found is None:
        plan = counting_plan(privacy, layout.contribution())
        count = Mechanism(1.0, plan.noise_multiplier, RELEASES)
        refuse_uncounted(layout, config, folder, shared, count, statistics)
    world.wait()  # all processes have read the ledger before the first one writes
    if found is None:
        found = Count(origin="noisy", examples=0, meters=0, noise=plan.noise_multiplier)
        if world.first:
            check_free(folder, resume)
            found = _draw(layout, privacy, plan, folder, config.source, shared, said)
    agreed = {"examples": world.same_number(found.examples), "meters": world.same_number(found.meters)}
    return replace(layout, count=found.model_copy(update=agreed))


def _draw(
    layout: PrivateLayout,
    privacy: Privacy,
    plan: PrivacyPlan,
    folder: Path,
    data: str,
    shared: Path | None,
    facts: dict[str, Any],
) -> Count:
    """Charge, draw, and keep the number in the run's ledger: a refused attempt has cost its charge and keeps its number."""
    given: dict[str, Any] = {"refused": layout.refused, "data": data, "reserve": RELEASES, "shared": shared}
    given["limit"], what = privacy.epsilon, layout.definitions["window"]
    with _nothing_left(folder):
        with Ledger.open(folder, plan, layout.accounted, facts=counting_facts(facts, what), **given) as ledger:
            found = draw_count(len(layout.windows), layout.meters, plan, ledger)
        with Ledger.open(folder, plan, layout.accounted, facts=counting_facts(facts, what, found), **given):
            return found


@contextmanager
def _nothing_left(folder: Path) -> Iterator[None]:
    """If nothing could be charged, the folder and its ledger are as they were."""
    existed, place = folder.exists(), folder / FILE_NAME
    new = not place.exists()
    try:
        yield
    except Resumable:
        raise
    except UserError:
        if new and not so_far(place).mechanisms:
            place.unlink(missing_ok=True)
            if not existed and folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
        raise
