"""What may be said about a model's privacy, in words and as data, derived from its ledger.

A statement names the unit, the neighbours, ε, δ and the accountant, and everything that the guarantee does not cover. If the
unit is smaller than a meter, it also says what the same training means for a whole meter: a week of a home is not the home.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tamedit.errors import UserError
from tamedit.formatting import epsilon as shown
from tamedit.privacy.accountant import Epsilon, Mechanism, check_delta
from tamedit.privacy.entries import Record, lacking
from tamedit.privacy.grades import GRADES, HARDLY_ANY, grade
from tamedit.privacy.units import UNITS, Contribution

SCALE = ", ".join(f"{word} up to ε = {limit:g}" for limit, word in GRADES[:-1]) + f", {HARDLY_ANY} above"
ALONE = (
    "No ledger of the data set was kept, so this run alone is counted: others on the same data add to its ε, and choosing among "
    "them is not covered."
)
LARGE_DELTA = 0.1  # δ · N from which a statement warns
UNIT_WORDS = {
    "window": "one training window (windows share readings, so no reading, day or person is covered by this)",
    "record": "one reading of one meter",
    "day": "one day of one meter",
    "week": "one week of one meter",
    "series": "all readings of one meter",
}
NEIGHBOUR_WORDS = {
    "removal": "adding or removing it, with every training example that it touches",
    "replacement": "changing it, and with it every training example that it touches",
}


def large_delta(delta: float, examples: int) -> str | None:
    """A sentence about a δ that is large for so many examples, or None."""
    exposed = delta * examples
    if exposed < LARGE_DELTA:
        return None
    return (
        f"δ = {delta:g} is large for {examples:,} examples: a mechanism that publishes {exposed:.2g} of them completely would "
        "satisfy it; choose one far below 1 / N."
    )


@dataclass(frozen=True)
class Together:
    """What all private runs on a data set have spent, for the unit and δ of a statement."""

    ledger: str  # the name of its file
    runs: int
    epsilon: float | None  # None: infinite
    more: bool = False  # than the ledger of the run, for the run itself

    def to_dict(self) -> dict[str, Any]:
        """As data; `more` only where it is so, since earlier statements do not have it."""
        return {name: value for name, value in asdict(self).items() if name != "more" or value}

    def __str__(self) -> str:
        if self.runs == 1 and not self.more:
            return f"It is the only private run in the data set's ledger, {self.ledger}; runs with another are not covered."
        if self.runs == 1:
            return (
                f"The data set's ledger, {self.ledger}, has more charges of this run (of a copy of its folder, or of steps that "
                f"a crash lost): ε = {shown(self.epsilon)} together; runs with another ledger are not covered."
            )
        return (
            f"With it, {self.runs} private runs are in the data set's ledger, {self.ledger}: ε = {shown(self.epsilon)} together, "
            "which also covers choosing among them; runs with another ledger are not covered."
        )


@dataclass(frozen=True)
class Statement:
    """A privacy statement. `str()` gives the words, `to_dict()` the same as JSON-ready data."""

    private: bool
    unit: str | None = None
    contribution: Contribution | None = None
    epsilon: Epsilon | None = None
    steps: int = 0
    segments: int = 0
    mechanisms: tuple[Mechanism, ...] = ()
    test_only: bool = False
    not_covered: tuple[str, ...] = field(default_factory=tuple)
    examples: int = 0  # N
    public: tuple[str, ...] = ()  # what decides which examples exist, and is taken as public
    whole_meter: Epsilon | None = None  # None: the unit is already a whole meter, or nothing can be said
    noise: tuple[str, ...] = ()  # where it comes from
    ledger: str | None = None  # the name of the data set's; None: none was kept
    together: Together | None = None  # what is in it; None: it is not at hand

    @classmethod
    def without_privacy(cls) -> "Statement":
        """The statement of a model that was trained in the ordinary way."""
        return cls(private=False)

    @classmethod
    def of(
        cls,
        record: Record,
        *,
        unit: str | None = None,
        delta: float | None = None,
        not_covered: Sequence[str] = (),
        everything: Record | None = None,
        together: Together | None = None,
    ) -> "Statement":
        """The statement that a ledger allows, for the last plan's unit and δ unless others are asked for.

        What is not covered is the union of `not_covered` and of the segments' facts: a list under the key "not_covered".
        `everything` is the ledger of the data set; or `together` says what all runs on it have spent.
        """
        plan = record.segments[-1].plan
        unit, delta = unit or plan.unit, plan.delta if delta is None else delta
        ledger = record.segments[-1].facts.get("ledger")
        if everything is not None and everything.segments and ledger:
            spent = everything.epsilon(unit, delta, with_rdp=False).value
            runs = sum(bool(one.mechanisms) for one in everything.runs.values())
            own = everything.runs.get(record.segments[-1].run, Record([]))
            together = Together(ledger, runs, finite(spent), bool(lacking(record, own)))
        gaps = [gap for segment in record.segments for gap in segment.facts.get("not_covered", [])]
        return cls(
            private=True,
            unit=unit,
            contribution=record.contribution(unit),
            epsilon=record.epsilon(unit, delta),
            steps=record.steps,
            segments=max(1, len(record.planned.segments)),
            mechanisms=tuple(record.mechanisms),
            test_only=record.test_only,
            not_covered=tuple(dict.fromkeys([*gaps, *not_covered])),
            examples=max(segment.plan.examples for segment in record.segments),
            public=tuple(record.segments[-1].facts.get("public", ())),
            whole_meter=_whole_meter(record, unit, delta),
            noise=tuple(dict.fromkeys(segment.plan.noise_source for segment in record.segments)),
            ledger=ledger,
            together=together,
        )

    @property
    def protection(self) -> str:
        """How much, in one word: none for a test, and hardly any if δ allows whole examples to be published."""
        if not self.private or self.test_only or self.epsilon is None:
            return "none"
        return grade(self.epsilon.value) if self.epsilon.delta * self.examples < 1 else HARDLY_ANY

    def __str__(self) -> str:
        if not self.private or self.epsilon is None or self.contribution is None:
            return "Trained without privacy: the model may reveal what it was trained on."
        lines = [
            f"(ε = {shown(self.epsilon.value)}, δ = {self.epsilon.delta:g})-differentially private, by {self.epsilon.accountant}"
            + (
                f" (RDP: {shown(self.epsilon.rdp)})"
                if self.epsilon.rdp is not None and self.epsilon.pld is not None
                else ""
            )
            + f", after {self.steps:,} steps.",
            f"Protection: {self.protection} ({SCALE}).",
            f"Protected unit: {UNIT_WORDS.get(self.unit or '', self.unit)}.",
            f"Neighbours: {NEIGHBOUR_WORDS[self.contribution.neighbour]}; at most {self.contribution.k} "
            f"example{'s' if self.contribution.k > 1 else ''} per unit ({self.contribution.reason}).",
        ]
        if self.unit != "series":
            lines.append(f"All readings of one meter together: {self._meter_words}.")
        if self.protection == HARDLY_ANY:
            lines[1] += " Treat the model as if it had been trained without privacy."
        warning = large_delta(self.epsilon.delta, self.examples)
        if warning is not None:
            lines.insert(1, warning)
        if self.test_only:
            lines.insert(0, "Test run with a known seed: it has no guarantee, whatever the lines below say.")
        else:
            lines.append(self._others)
        lines.append(f"Noise: {'; '.join(self.noise)}.")
        public = self.public or ("the number of examples", "the extent of the data", "all settings")
        lines.append(f"Taken as public: {'; '.join(public)}.")
        if self.not_covered:
            lines.append("Not covered by the guarantee: " + "; ".join(self.not_covered) + ".")
        return "\n".join(lines)

    @property
    def _others(self) -> str:
        """What is said of other runs on the same data."""
        if self.ledger is None:
            return ALONE
        if self.together is None:
            return f"All private runs on the data are added up in its ledger, {self.ledger}; runs with another are not covered."
        return str(self.together)

    @property
    def _meter_words(self) -> str:
        if self.whole_meter is None:
            return "no guarantee"
        value = self.whole_meter.value
        return f"ε = {shown(value)}, {grade(value)} protection"

    def to_dict(self) -> dict[str, Any]:
        """The statement as data: no infinities, so that it is valid JSON."""
        if not self.private or self.epsilon is None or self.contribution is None:
            return {"private": False, "statement": str(self)}
        return {
            "private": True,
            "protection": self.protection,
            "test_only": self.test_only,
            "unit": self.unit,
            "neighbour": self.contribution.neighbour,
            "contributions": self.contribution.k,
            "reason": self.contribution.reason,
            **epsilon_dict(self.epsilon),
            "steps": self.steps,
            "segments": self.segments,
            "mechanisms": [asdict(mechanism) for mechanism in self.mechanisms],
            "not_covered": list(self.not_covered),
            "noise": list(self.noise),
            "together": self.together.to_dict() if self.together else None,
            "whole_meter": finite(self.whole_meter.value) if self.whole_meter else None,
            "statement": str(self),
        }


def _whole_meter(record: Record, unit: str, delta: float) -> Epsilon | None:
    """ε for all readings of one meter, where that is more than the unit and the ledger can say it."""
    if unit == "series":
        return None
    try:
        return record.epsilon("series", delta, with_rdp=False)
    except UserError:
        return None


def side_by_side(
    record: Record, delta: float | None = None, everything: Record | None = None, not_covered: Sequence[str] = ()
) -> dict[str, dict[str, Any]]:
    """ε for every unit: what the same training means for a reading, a day, a week, a meter; or why it cannot be said."""
    if delta is not None:
        check_delta(delta)
    table: dict[str, dict[str, Any]] = {}
    for unit in UNITS:
        try:
            statement = Statement.of(record, unit=unit, delta=delta, everything=everything, not_covered=not_covered)
            table[unit] = statement.to_dict()
        except UserError as error:
            table[unit] = {"unit": unit, "epsilon": None, "reason": str(error)}
    return table


def epsilon_dict(epsilon: Epsilon) -> dict[str, Any]:
    """ε by each accountant (None where it has none), δ and the notes."""
    return {
        "epsilon": {"pld": finite(epsilon.pld), "rdp": finite(epsilon.rdp), "headline": finite(epsilon.value)},
        "delta": epsilon.delta,
        "accountant": epsilon.accountant,
        "notes": epsilon.notes,
    }


def finite(value: float | None) -> float | None:
    """The number, or None when it is infinite: JSON has no infinity."""
    return value if value is not None and math.isfinite(value) else None
