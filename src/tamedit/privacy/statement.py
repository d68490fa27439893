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
from tamedit.privacy.entries import Record
from tamedit.privacy.units import UNITS, Contribution

PROTECTS_NOBODY = 20.0
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

    @classmethod
    def without_privacy(cls) -> "Statement":
        """The statement of a model that was trained in the ordinary way."""
        return cls(private=False)

    @classmethod
    def of(
        cls, record: Record, *, unit: str | None = None, delta: float | None = None, not_covered: Sequence[str] = ()
    ) -> "Statement":
        """The statement that a ledger allows, for the last plan's unit and δ unless others are asked for.

        What is not covered is the union of `not_covered` and of the segments' facts: a list under the key "not_covered".
        """
        plan = record.segments[-1].plan
        unit, delta = unit or plan.unit, plan.delta if delta is None else delta
        gaps = [gap for segment in record.segments for gap in segment.facts.get("not_covered", [])]
        return cls(
            private=True,
            unit=unit,
            contribution=record.contribution(unit),
            epsilon=record.epsilon(unit, delta),
            steps=record.steps,
            segments=len(record.segments),
            mechanisms=tuple(record.mechanisms),
            test_only=record.test_only,
            not_covered=tuple(dict.fromkeys([*gaps, *not_covered])),
            examples=max(segment.plan.examples for segment in record.segments),
            public=tuple(record.segments[-1].facts.get("public", ())),
            whole_meter=_whole_meter(record, unit, delta),
        )

    @property
    def protects(self) -> bool:
        """Whether the guarantee means anything: private, not a test, ε at most 20 and δ below 1 / N."""
        if not self.private or self.test_only or self.epsilon is None:
            return False
        return self.epsilon.value <= PROTECTS_NOBODY and self.epsilon.delta * self.examples < 1

    def __str__(self) -> str:
        if not self.private or self.epsilon is None or self.contribution is None:
            return "Trained without privacy: the model may reveal what it was trained on."
        value = self.epsilon.value
        lines = [
            f"(ε = {shown(value)}, δ = {self.epsilon.delta:g})-differentially private, by {self.epsilon.accountant}"
            + (
                f" (RDP: {shown(self.epsilon.rdp)})"
                if self.epsilon.rdp is not None and self.epsilon.pld is not None
                else ""
            )
            + f", after {self.steps:,} steps.",
            f"Protected unit: {UNIT_WORDS.get(self.unit or '', self.unit)}.",
            f"Neighbours: {NEIGHBOUR_WORDS[self.contribution.neighbour]}; at most {self.contribution.k} "
            f"example{'s' if self.contribution.k > 1 else ''} per unit ({self.contribution.reason}).",
        ]
        if self.unit != "series":
            lines.append(f"All readings of one meter together: {self._meter_words}.")
        if value > PROTECTS_NOBODY:
            lines.insert(
                1, f"An ε of {shown(value)} protects nobody: treat the model as if it had been trained without privacy."
            )
        exposed = self.epsilon.delta * self.examples
        if exposed >= LARGE_DELTA:
            lines.insert(
                1,
                f"δ = {self.epsilon.delta:g} is large for {self.examples:,} examples: a mechanism that publishes "
                f"{exposed:.2g} of them completely would satisfy it; choose one far below 1 / N.",
            )
        if self.test_only:
            lines.insert(0, "Test run with a known seed: it has no guarantee, whatever the lines below say.")
        public = self.public or ("the number of examples", "the extent of the data", "all settings")
        lines.append(f"Taken as public: {'; '.join(public)}.")
        if self.not_covered:
            lines.append("Not covered by the guarantee: " + "; ".join(self.not_covered) + ".")
        return "\n".join(lines)

    @property
    def _meter_words(self) -> str:
        if self.whole_meter is None:
            return "no guarantee"
        value = self.whole_meter.value
        return f"ε = {shown(value)}" + (", which protects nobody" if value > PROTECTS_NOBODY else "")

    def to_dict(self) -> dict[str, Any]:
        """The statement as data: no infinities, so that it is valid JSON."""
        if not self.private or self.epsilon is None or self.contribution is None:
            return {"private": False, "statement": str(self)}
        return {
            "private": True,
            "protects": self.protects,
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


def side_by_side(record: Record, delta: float | None = None) -> dict[str, dict[str, Any]]:
    """ε for every unit: what the same training means for a reading, a day, a week, a meter; or why it cannot be said."""
    if delta is not None:
        check_delta(delta)
    table: dict[str, dict[str, Any]] = {}
    for unit in UNITS:
        try:
            table[unit] = Statement.of(record, unit=unit, delta=delta).to_dict()
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
