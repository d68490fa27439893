"""The budget of a private run: its plan, the open ledger, and the checks before anything is charged or resumed."""

import math
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from tamedit.errors import UserError
from tamedit.formatting import counted
from tamedit.formatting import epsilon as shown
from tamedit.privacy.accountant import Mechanism, epsilon
from tamedit.privacy.counting import COUNTS
from tamedit.privacy.entries import FILE_NAME, Record, merged, so_far
from tamedit.privacy.ledger import Ledger, affordable_steps, together
from tamedit.privacy.plan import PrivacyPlan
from tamedit.privacy.population import POPULATION, Population, Prior, Within, private_population
from tamedit.privacy.settings import Privacy
from tamedit.privacy.statistics import RELEASES, Examples, private_standardisation
from tamedit.privacy.units import Contribution
from tamedit.runs.config import RunConfig
from tamedit.runs.layout import PrivateLayout
from tamedit.statics import Static
from tamedit.training.distributed import World

ENOUGH = 0.99  # of the budget: with less than the rest of it nothing can be trained


NO_STEP = (
    "The budget of ε = {:g} pays for no step with this noise, so nothing can be trained; allow a larger ε or a larger "
    "`noise_multiplier`."
)


@dataclass(frozen=True)
class Budget:
    """The plan of a private run and, in the first process, its open ledger."""

    plan: PrivacyPlan
    privacy: Privacy
    ledger: Ledger | None
    world: World

    def until(self, step: int) -> int:
        """The step at which the plan or the budget ends, for a run at `step`; an error if no step could be trained."""
        left = self.plan.steps - step
        if self.ledger is not None and self.privacy.epsilon is not None:
            left = affordable_steps(self.ledger.everything, self.plan, self.privacy.epsilon, most=left)
        until = self.world.same_number(step + left)
        if until == 0:
            raise UserError(self._nothing)
        return until

    @property
    def _nothing(self) -> str:
        """Why no step can be paid for: a crash lost steps that the ledger had paid for, or the budget pays for none."""
        if self.ledger is not None and not self.ledger.record.steps and self.ledger.everything.steps:
            return (
                f"What other runs left of ε = {self.privacy.epsilon:g} pays for no step ({self.ledger.shared_path} lists "
                "them); allow a larger `epsilon`, which is that of all runs together."
            )
        if self.ledger is not None and not self.ledger.record.steps:
            return NO_STEP.format(self.privacy.epsilon)
        return (
            "The budget was spent on steps that a crash lost, so nothing can be trained; start again in another folder with a "
            "new budget."
        )

    def release(
        self, examples: Examples, lower: ArrayLike, upper: ArrayLike, what: str
    ) -> tuple[list[float], list[float]]:
        """A private level and scale per channel of (N, values, K), charged to the ledger; the same in every process."""
        answer, noise = np.zeros((2, np.size(lower))), self.privacy.statistics_noise
        if self.ledger is not None:
            self._refuse_beyond(self.ledger, Mechanism(1.0, noise, RELEASES), what)
            found = private_standardisation(examples, lower, upper, noise, self.ledger, what=what)
            answer = np.stack([found.level, found.scale])
        level, scale = self.world.same_indices(answer).tolist()
        return level, scale

    def release_population(
        self, vectors: Iterable[np.ndarray], within: Within, noise: float, prior: Prior, static: Static = ()
    ) -> Population:
        """Who the homes are, with noise, charged to the ledger: in the first process, which holds it."""
        assert self.ledger is not None
        self._refuse_beyond(self.ledger, Mechanism(1.0, noise), POPULATION)
        return private_population(vectors, within, noise, self.plan.examples, self.ledger, prior, static)

    def _refuse_beyond(self, ledger: Ledger, wanted: Mechanism, what: str) -> None:
        """Statistics must stay within the budget, too: stop before they would exceed ε."""
        if self.privacy.epsilon is None:
            return
        touched = ledger.everything.contribution(self.plan.unit)
        work = merged([*ledger.everything.mechanisms, wanted])
        spent = epsilon(work, self.plan.delta, touched.k, touched.neighbour, with_rdp=False).value
        if spent > self.privacy.epsilon:
            raise UserError(
                f"A release of {what} would bring ε to {spent:.3g}, beyond the budget of {self.privacy.epsilon:g}; allow a "
                "larger ε, more noise on statistics (Privacy(statistics_noise=…) in Python), or do without."
            )

    def check_paid(self, what: str, file: Path) -> None:
        """A statistic in the folder must be in the ledger: only then does ε cover it."""
        if self.ledger is None:
            return
        if not any(paid == what for segment in self.ledger.record.segments for _, paid in segment.charges):
            raise UserError(
                f"{file} was not paid for in this folder's ledger, so no ε would cover it; restore {FILE_NAME} from a copy, or "
                "start again in another folder."
            )


def stream_seed(privacy: Privacy, seed: int, world: World) -> int:
    """The seed of the examples' own draws (crops, masks, times, noise of the diffusion): secret where a guarantee is given.

    A stream belongs to a position among the examples, and a unit that is removed moves all later ones. With a known seed they
    would get other draws, and the sum would change by more than C. With a secret one the draws are independent of the data:
    for each outcome of the draws of the other examples, the same in both data sets, the sum changes by at most C, and a mixture
    of mechanisms that are (ε, δ)-private, with weights that do not depend on the data, is (ε, δ)-private.
    """
    return seed if privacy.test_only else world.same_number(secrets.randbits(62))


@contextmanager
def open_budget(
    layout: PrivateLayout,
    config: RunConfig,
    folder: Path,
    *,
    world: World,
    not_covered: Sequence[str],
    public: Sequence[str] = (),
    statistics: Sequence[Mechanism] = (),
    shared: Path | None = None,
) -> Iterator[Budget]:
    """Open the ledger of the folder: a new segment, and with it a fresh stream of noise.

    `statistics`, releases besides training, are planned, and paid from the same budget: that of the data set whose ledger is
    `shared`. What was taken as `public` stands in every statement.
    """
    privacy, training = config.privacy, config.training
    assert privacy is not None
    count = layout.count
    if privacy.test_only:
        shared = None
    own, others = _ledgers(folder, shared)
    counts, begun = own.charged(COUNTS), own.planned
    besides = [*statistics, *counts]
    contribution = together(others, privacy.unit, layout.contribution())
    given = (count.examples, training.batch_size, training.steps, contribution, config.seed)
    plan = _begun(privacy, begun, *given)
    if plan is None:
        refuse_spent(folder, privacy, layout, shared)
        plan = privacy.plan(*given, [*besides, *others.mechanisms])
    if not begun.segments:
        _refuse_no_step(plan, privacy, [*counts, *others.mechanisms])
    world.wait()  # all processes have read the ledgers before the first one writes
    if not world.first:
        yield Budget(plan, privacy, None, world)
        return
    facts = unit_facts(layout, shared) | {"not_covered": list(not_covered), "public": list(public)}
    facts |= {"count": count.model_dump(), "counted": layout.definitions["window"]}
    with Ledger.open(
        folder,
        plan,
        layout.accounted,
        refused=layout.refused,
        data=config.source,
        facts=facts,
        shared=shared,
        limit=privacy.epsilon,
    ) as ledger:
        if count.mechanisms and not ledger.record.charged(COUNTS):
            raise ValueError("the count of examples was not charged in this ledger")
        yield Budget(plan, privacy, ledger, world)


def _begun(privacy: Privacy, own: Record, *given: Any) -> PrivacyPlan | None:
    """The plan of a run that has begun: its noise was calibrated to what was left then. None if it has not begun."""
    if not own.segments:
        return None
    last = own.segments[-1].plan
    again = privacy.model_copy(update={"noise_multiplier": last.noise_multiplier}).plan(*given)
    return again if again == last else None


def _ledgers(folder: Path, shared: Path | None) -> tuple[Record, Record]:
    """What this run has spent, and what the other runs on the data set have."""
    own, everything = so_far(folder / FILE_NAME), so_far(shared)
    return own, Record([segment for segment in everything.segments if segment.run not in own.runs])


def unit_facts(layout: PrivateLayout, shared: Path | None) -> dict[str, Any]:
    """What every segment of a run says: where runs on the data add up, what it means by each unit, which columns it reads."""
    return {
        "ledger": shared.name if shared else None,
        "definitions": layout.definitions,
        "targets": list(layout.windows.series.targets),
    }


def refuse_uncounted(
    layout: PrivateLayout,
    config: RunConfig,
    folder: Path,
    shared: Path | None,
    count: Mechanism,
    statistics: Sequence[Mechanism],
) -> None:
    """Before the `count` is charged: a run that the budget could not pay with the most examples there can be is refused now."""
    privacy, training, (own, others) = config.privacy, config.training, _ledgers(folder, shared)
    assert privacy is not None
    refuse_spent(folder, privacy, layout, shared, count)
    spent = [*own.charged(COUNTS), *others.mechanisms, count]
    besides = list(statistics)
    contribution = together(others, privacy.unit, layout.contribution())
    most = layout.count.examples, training.batch_size, training.steps, contribution, config.seed
    _refuse_no_step(privacy.plan(*most, [*besides, *spent]), privacy, [*besides, *spent])


def _refuse_no_step(plan: PrivacyPlan, privacy: Privacy, spent: Sequence[Mechanism]) -> None:
    """With a stated noise: one sentence if the budget cannot pay what is `spent` and one step."""
    if privacy.epsilon is None or privacy.noise_multiplier is None:
        return
    work = merged([*spent, plan.mechanism])
    if epsilon(work, plan.delta, plan.contributions, plan.neighbour, with_rdp=False).value > privacy.epsilon:
        raise UserError(NO_STEP.format(privacy.epsilon))


@dataclass(frozen=True)
class Spent:
    """What the private runs on a data set have spent together, for a unit at a δ."""

    runs: int
    epsilon: float
    mechanisms: tuple[Mechanism, ...]
    contribution: Contribution  # with one more run
    place: Path

    def pays(self, asked: float) -> bool:
        """Whether ε = `asked`, which is that of all runs together, leaves anything for one more."""
        return self.epsilon <= ENOUGH * asked

    def enough(self, asked: float) -> float:
        """An ε of all runs together with which one more of `asked` is allowed, rounded up to half a unit."""
        return math.ceil(2 * (self.epsilon + asked)) / 2


def spent_on(privacy: Privacy, layout: PrivateLayout, shared: Path | None) -> Spent | None:
    """What the ledger of the data set says; None if no private run was charged there."""
    others = so_far(shared)
    if shared is None or not others.segments:
        return None
    others.check_definitions(privacy.unit, **{"": layout.definitions[privacy.unit]})
    touched = together(others, privacy.unit, layout.contribution())
    work = merged(others.mechanisms)
    value = epsilon(work, privacy.delta, touched.k, touched.neighbour, with_rdp=False).value if work else 0.0
    return Spent(len(others.runs), value, tuple(work), touched, shared)


def refuse_spent(
    folder: Path, privacy: Privacy, layout: PrivateLayout, shared: Path | None, wanted: Mechanism | None = None
) -> None:
    """The budget is that of the data set: one sentence if nothing of it is left, or not enough for what is `wanted`."""
    own, others = _ledgers(folder, shared)
    others.check_definitions(privacy.unit, **({"": layout.definitions[privacy.unit]} if others.segments else {}))
    touched = together(others, privacy.unit, layout.contribution())
    if privacy.epsilon is None or not (others.segments or own.segments):
        return

    def spent(*besides: Mechanism) -> float:
        work = merged([*others.mechanisms, *own.charged(COUNTS), *besides])
        return epsilon(work, privacy.delta, touched.k, touched.neighbour, with_rdp=False).value if work else 0.0

    if spent(*([] if wanted is None else [wanted])) <= ENOUGH * privacy.epsilon:
        return
    if not others.segments:
        raise UserError(
            f"Attempts in {folder} that were refused have spent epsilon={privacy.epsilon:g} on counting the examples; state "
            "their number with `examples`, or allow a larger `epsilon`."
        )
    raise UserError(
        f"Of epsilon={privacy.epsilon:g} nothing is left: {counted(len(others.runs), 'private run')} on this data spent "
        f"ε = {shown(spent())} per {privacy.unit} at δ = {privacy.delta:g} ({shared} lists them); allow a larger `epsilon`, "
        "which is that of all runs together, or name another `ledger`, and then nothing covers them together."
    )
