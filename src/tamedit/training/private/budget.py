"""The budget of a private run: its plan, the open ledger, and the checks before anything is charged or resumed."""

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from tamedit.errors import UserError
from tamedit.privacy.accountant import Mechanism, epsilon
from tamedit.privacy.entries import FILE_NAME, merged, read
from tamedit.privacy.ledger import Ledger, affordable_steps
from tamedit.privacy.plan import PrivacyPlan
from tamedit.privacy.settings import Privacy
from tamedit.privacy.statistics import RELEASES, private_standardisation
from tamedit.runs.config import RunConfig
from tamedit.runs.layout import PrivateLayout
from tamedit.training.distributed import World
from tamedit.training.private.counting import COUNTS, mechanisms


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
            left = affordable_steps(self.ledger.record, self.plan, self.privacy.epsilon, most=left)
        until = self.world.same_number(step + left)
        if until == 0:
            raise UserError(self._nothing)
        return until

    @property
    def _nothing(self) -> str:
        """Why no step can be paid for: a crash lost steps that the ledger had paid for, or the budget pays for none."""
        if self.ledger is not None and not self.ledger.record.steps:
            return (
                f"The budget of ε = {self.privacy.epsilon:g} pays for no step with this noise, so nothing can be trained; allow "
                "a larger ε or a larger `noise_multiplier`."
            )
        return (
            "The budget was spent on steps that a crash lost, so nothing can be trained; start again in another folder with a "
            "new budget."
        )

    def release(
        self, examples: np.ndarray, lower: ArrayLike, upper: ArrayLike, what: str
    ) -> tuple[list[float], list[float]]:
        """A private level and scale per channel of (N, values, K), charged to the ledger; the same in every process."""
        answer, noise = np.zeros((2, np.size(lower))), self.privacy.statistics_noise
        if self.ledger is not None:
            self._refuse_beyond(self.ledger, Mechanism(1.0, noise, RELEASES), what)
            found = private_standardisation(
                examples, lower, upper, noise, self.ledger, what=what, secure=self.privacy.secure
            )
            answer = np.stack([found.level, found.scale])
        level, scale = self.world.same_indices(answer).tolist()
        return level, scale

    def _refuse_beyond(self, ledger: Ledger, wanted: Mechanism, what: str) -> None:
        """Statistics must stay within the budget, too: stop before they would exceed ε."""
        if self.privacy.epsilon is None:
            return
        touched = ledger.record.contribution(self.plan.unit)
        together = merged([*ledger.record.mechanisms, wanted])
        spent = epsilon(together, self.plan.delta, touched.k, touched.neighbour, with_rdp=False).value
        if spent > self.privacy.epsilon:
            raise UserError(
                f"The {what} would bring ε to {spent:.3g}, beyond the budget of {self.privacy.epsilon:g}; allow a larger ε, "
                "more noise on statistics (Privacy(statistics_noise=…) in Python), or do without."
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


def check_ledger(folder: Path, step: int) -> None:
    """Every step in a checkpoint must be paid for; a lost or shortened ledger is found here."""
    paid = read(folder).steps if (folder / FILE_NAME).exists() else 0
    if paid < step:
        raise UserError(
            f"The checkpoint in {folder} has {step} steps and its ledger paid for {paid}, so no ε can be stated; restore "
            f"{FILE_NAME} from a copy, or start again in another folder."
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
    statistics: int = 0,
) -> Iterator[Budget]:
    """Open the ledger of the folder: a new segment, and with it a fresh stream of noise.

    `statistics` releases besides training are planned, and paid from the same budget. What was taken as `public` stands in every
    statement.
    """
    privacy, training = config.privacy, config.training
    assert privacy is not None
    contribution, count = layout.contribution(), layout.count
    besides = [*([Mechanism(1.0, privacy.statistics_noise, statistics)] if statistics else []), *mechanisms(count)]
    plan = privacy.plan(count.examples, training.batch_size, training.steps, contribution, config.seed, besides)
    if not world.first:
        yield Budget(plan, privacy, None, world)
        return
    facts = {"not_covered": list(not_covered), "public": list(public), "count": count.model_dump()}
    with Ledger.open(folder, plan, layout.accounted, refused=layout.refused, data=config.source, facts=facts) as ledger:
        paid = {what for segment in ledger.record.segments for _, what in segment.charges}
        for mechanism in mechanisms(count) if COUNTS not in paid else ():
            ledger.charge(mechanism, COUNTS, mechanism.count)
        yield Budget(plan, privacy, ledger, world)
