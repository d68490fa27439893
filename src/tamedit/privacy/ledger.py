"""The ledger: every use of private data is written here before it happens, and never changed afterwards.

One JSON object per line, appended (O_APPEND) and flushed to disk (fsync) before the caller continues. So at every instant, even
after a power cut or `kill -9`,

    steps in the ledger  ≥  steps applied to the model.

    segment   opens a run, a resumed run or another plan in the same folder: the plan, its fingerprint, that of the data, and how
              many examples each unit touches. Nothing is ever reset: the charges of all segments compose.
    charge    pays for `count` releases at rate q with noise multiplier σ. Steps may be paid for in blocks, ahead of time.
    repair    follows a line that a crash left incomplete. Its release cannot have happened, since the write had not returned.
              It is charged anyway, in case the disk reported less than it wrote.

Every line carries a hash of itself and of the line before, so that an edit shows. ε is never stored; entries.py derives it.

A run has a ledger of its own, which says what the run spent. A data set has one, too, in which the lines of all private runs on
it stand one after the other, each with the run's number. The budget is that of the data set. A charge is written to the data
set's ledger first, then to the run's, then the step happens: what a run has spent is never missing in the data set's ledger.
"""

import os
import secrets
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Self

from tamedit.errors import UserError
from tamedit.privacy.accountant import Mechanism, epsilon
from tamedit.privacy.chain import Chain
from tamedit.privacy.entries import AUDITED, FILE_NAME, TRAINING, Record, Segment, lacking, merged
from tamedit.privacy.plan import PrivacyPlan
from tamedit.privacy.units import Contribution

CARRIED_OVER = "carried over"  # charges of a run that its data set's ledger did not have yet
OF_DATA = ".privacy-ledger.jsonl"  # behind the name of a data set


class BudgetEnded(UserError):
    """Other runs have spent the rest of the data set's budget in the meantime."""


class Ledger:
    """A ledger opened for writing, by one process at a time: a lock on the file is held until `close`.

    Attributes:
        prepaid: steps that are paid for and not yet taken.
    """

    def __init__(self, own: Chain, shared: Path | None, limit: float | None) -> None:
        self.own, self.shared_path, self.limit = own, shared, limit
        self.shared: Chain | None = None  # not before it exists, or something is charged
        self.run, self.prepaid = "", 0
        self._left: int | None = None  # steps that the data set's budget still pays for, as far as this process knows
        self._opening: dict[str, Any] | None = (
            None  # this run's first line in the data set's ledger, until it is written
        )

    @classmethod
    def open(
        cls,
        folder: Path,
        plan: PrivacyPlan,
        contributions: Mapping[str, Contribution],
        *,
        refused: Mapping[str, str] | None = None,
        data: str = "",
        facts: Mapping[str, Any] | None = None,
        reserve: int = 8,
        shared: Path | None = None,
        limit: float | None = None,
    ) -> Self:
        """Open (or create) the ledger of a folder and begin a segment.

        `contributions` and `refused` come from `privacy.units.contributions`; `data` names the data set; `facts`
        are what a statement must mention; `reserve` is the largest number of steps that is paid ahead. `shared` is the ledger of
        the data set, and `limit` its budget. A test is not charged there, because no guarantee is given for it.
        """
        _agree(plan, contributions)
        own = Chain(Path(folder) / FILE_NAME)
        ledger = cls(own, None if plan.test_only else shared, limit)
        try:
            own.hold()
            own.catch_up()
            earlier = [segment.run for segment in own.record.segments if segment.run]
            ledger.run = earlier[-1] if earlier else secrets.token_hex(8)
            line: dict[str, Any] = {
                "plan": plan.model_dump(mode="json"),
                "fingerprint": plan.fingerprint,
                "units": {unit: asdict(one) for unit, one in contributions.items()},
                "refused": dict(refused or {}),
                "data": _without_folders(data),
                "facts": dict(facts or {}),
                "reserve": max(1, reserve),
                "run": ledger.run,
            }
            ledger._opening = line | {"folder": str(folder), "data": data}
            if ledger.shared_path is not None and ledger.shared_path.exists():
                ledger._check_definitions(ledger._look())
            own.append("segment", **line)
            own.flush_folder()
        except BaseException:
            ledger.close()
            raise
        return ledger

    @property
    def path(self) -> Path:
        return self.own.path

    @property
    def record(self) -> Record:
        """What this run has spent."""
        return self.own.record

    @property
    def everything(self) -> Record:
        """What all runs on the data set have spent, as far as this process knows."""
        if self.shared is None:
            return self.record
        missing = [(m, CARRIED_OVER) for m in self._missing(self.shared)]
        here = [replace(segment, charges=missing) for segment in self.record.segments[-1:]]
        return Record([*self.shared.record.segments, *here]) if missing else self.shared.record

    def take(self, left: int | None = None) -> None:
        """Pay for one training step; when this returns, the step may be applied.

        Up to `reserve` steps are paid for at once, but no more than the `left` steps that may still be taken.
        """
        segment = self.record.segments[-1]
        if self.prepaid == 0:
            block = segment.reserve if left is None else max(1, min(segment.reserve, left))
            self.prepaid = self._pay(segment.plan.mechanism, TRAINING, block)
            if self.prepaid == 0:
                raise BudgetEnded(self._ended)
        self.prepaid -= 1

    def charge(self, mechanism: Mechanism, what: str, count: int = 1) -> None:
        """Write a charge for `count` releases to the disk. When this returns, and not before, they may happen."""
        if count < 1:
            raise ValueError(f"a charge pays for at least one release, not {count}")
        if self._pay(mechanism, what, count, whole=True) == 0:
            raise BudgetEnded(self._ended)

    def close(self) -> None:
        """Release the lock. Steps that are paid for but not taken stay paid."""
        self.own.close()
        if self.shared is not None:
            self.shared.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _ended(self) -> str:
        return (
            f"Other runs on the same data have spent the rest of ε = {self.limit:g} ({self.shared_path} lists them); allow a "
            "larger `epsilon`, which is that of all runs together."
        )

    def _look(self) -> Chain:
        """Open the ledger of the data set and read it."""
        if self.shared is None:
            assert self.shared_path is not None
            self.shared = Chain(self.shared_path, "name a place for the data set's ledger with `ledger`")
            with self.shared.locked():
                pass
        return self.shared

    def _begin(self, shared: Chain) -> None:
        """Begin a segment in the locked ledger of the data set, and bring there what this run has paid elsewhere."""
        if self._opening is None:
            return
        self._check_definitions(shared)
        missing = self._missing(shared)
        shared.append("segment", **self._opening)
        for m in missing:
            self._write(shared, m, CARRIED_OVER, m.count)
        shared.flush_folder()
        self._opening = None

    def _check_definitions(self, shared: Chain) -> None:
        """This run must mean by its unit what the others in the data set's ledger mean."""
        assert self._opening is not None
        unit = self._opening["plan"]["unit"]
        shared.record.check_definitions(unit, **{self.run: self._opening["facts"].get("definitions", {}).get(unit, "")})

    def _missing(self, shared: Chain) -> list[Mechanism]:
        """What this run has paid and the ledger of its data set does not have."""
        return lacking(shared.record.runs.get(self.run, Record([])), self.record)

    def _pay(self, mechanism: Mechanism, what: str, count: int, whole: bool = False) -> int:
        """Charge both ledgers, and say for how many releases: fewer if other runs have spent what was left, or (`whole`) none."""
        segment = self.record.segments[-1]
        segment.check(Mechanism(mechanism.sampling_rate, mechanism.noise_multiplier, count), what, self.path)
        if self.shared_path is not None:
            unseen = self.shared is None  # what others wrote before this first look counts as news
            shared = self._look()
            with shared.locked() as news:
                if news or unseen or what != TRAINING:
                    self._left = None
                if self.limit is not None:
                    count = self._within(self.limit, segment, mechanism, what, count, whole)
                if count:
                    self._begin(shared)
                    self._write(shared, mechanism, what, count)
        if count:
            self._write(self.own, mechanism, what, count)
        return count

    def _within(self, limit: float, segment: Segment, mechanism: Mechanism, what: str, count: int, whole: bool) -> int:
        """How many of `count` releases the data set's budget still pays for. Steps are looked up once until others write."""
        if what != TRAINING:
            fits = affordable(self.everything, mechanism, segment.plan, limit, count)
            return fits if fits == count or not whole else 0
        if self._left is None:
            self._left = affordable(self.everything, mechanism, segment.plan, limit, max(segment.plan.steps, count))
        count = min(count, self._left)
        self._left -= count
        return count

    def _write(self, chain: Chain, mechanism: Mechanism, what: str, count: int) -> None:
        rate, noise = mechanism.sampling_rate, mechanism.noise_multiplier
        chain.append("charge", count=count, rate=rate, noise=noise, what=what, run=self.run)


def _without_folders(data: str) -> str:
    """The names of files alone: a run's own ledger leaves with a release, and folders may name people."""
    words = AUDITED if data.startswith(AUDITED) else ""
    plain = data.removeprefix(words)
    places = [plain] if Path(plain).exists() else plain.split(os.pathsep)  # a folder's name may hold the mark
    return words + os.pathsep.join(Path(place).name for place in places)


def affordable_steps(record: Record, plan: PrivacyPlan, epsilon_limit: float, most: int | None = None) -> int:
    """How many further steps of `plan` stay within ε at the plan's δ, at most `most` (the planned steps by default)."""
    return affordable(record, plan.mechanism, plan, epsilon_limit, plan.steps if most is None else most)


def affordable(record: Record, mechanism: Mechanism, plan: PrivacyPlan, limit: float, most: int) -> int:
    """How many further releases of a mechanism stay within ε = `limit` for the plan's unit and δ, at most `most`.

    ε grows with their number, so bisection finds the answer; the loss distribution of one release is built once.
    """
    touched = together(record, plan.unit, Contribution(plan.contributions, plan.neighbour, ""))
    spent = record.mechanisms

    def fits(count: int) -> bool:
        work = merged([*spent, Mechanism(mechanism.sampling_rate, mechanism.noise_multiplier, count)])
        return epsilon(work, plan.delta, touched.k, touched.neighbour, with_rdp=False).value <= limit

    if most <= 0 or fits(most):
        return max(0, most)
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def together(record: Record, unit: str, own: Contribution) -> Contribution:
    """What a unit touches in all runs, and in one more: the largest k, and replacement if any run has it. Both err safely."""
    if not record.segments:
        return own
    earlier = record.contribution(unit)
    kinds = (own.neighbour, earlier.neighbour)
    return Contribution(max(own.k, earlier.k), "replacement" if "replacement" in kinds else "removal", own.reason)


def _agree(plan: PrivacyPlan, contributions: Mapping[str, Contribution]) -> None:
    own = contributions.get(plan.unit)
    if own is None:
        raise UserError(f"The layout cannot account the unit {plan.unit!r}: choose one of {', '.join(contributions)}.")
    if own.k > plan.contributions or (own.neighbour == "replacement" and plan.neighbour == "removal"):
        raise UserError(
            f"The plan counts {plan.contributions} example(s) per {plan.unit} by {plan.neighbour}, but the layout has {own.k} by "
            f"{own.neighbour}: take both from privacy.units.contribution."
        )
