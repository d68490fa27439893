"""Reading a ledger: its lines, checked, become segments and charges, and from those follows ε.

The lines are described in ledger.py. A line that is not JSON is accepted in one place only, at the end or before a "repair"
line: there it is what a crash left of a write. Any other damage is an error, never a smaller ε.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from tamedit.errors import UserError
from tamedit.files import unreadable
from tamedit.privacy.accountant import Epsilon, Mechanism, epsilon
from tamedit.privacy.plan import PrivacyPlan
from tamedit.privacy.units import Contribution

FILE_NAME = "ledger.jsonl"
TRAINING = "training"
_LEGIBLE = re.compile(rb'^\{"type":"charge","count":(\d+),"rate":([-+.e\d]+),"noise":([-+.e\d]+),')


@dataclass(frozen=True)
class Segment:
    """One opening of the ledger and the charges that followed it, each with what it paid for."""

    plan: PrivacyPlan
    contributions: dict[str, Contribution]
    refused: dict[str, str] = field(default_factory=dict)
    data: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    reserve: int = 1
    charges: list[tuple[Mechanism, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Record:
    """A ledger as read: its segments in order."""

    segments: list[Segment]

    @property
    def steps(self) -> int:
        """Training steps paid for, in all segments."""
        return sum(m.count for segment in self.segments for m, what in segment.charges if what == TRAINING)

    @property
    def mechanisms(self) -> list[Mechanism]:
        """Everything charged."""
        return merged(m for segment in self.segments for m, _ in segment.charges)

    @property
    def test_only(self) -> bool:
        """Whether any segment drew its noise from a known seed: then nothing is guaranteed."""
        return any(segment.plan.test_only for segment in self.segments)

    def contribution(self, unit: str) -> Contribution:
        """The largest k of the unit over all segments; replacement if any segment has it."""
        found = []
        for segment in self.segments:
            if unit not in segment.contributions:
                raise UserError(
                    segment.refused.get(unit, f"The ledger does not say how many examples a {unit} touches.")
                )
            found.append(segment.contributions[unit])
        largest = max(found, key=lambda one: one.k)
        replaced = any(one.neighbour == "replacement" for one in found)
        return Contribution(largest.k, "replacement" if replaced else "removal", largest.reason)

    def epsilon(self, unit: str, delta: float, *, with_rdp: bool = True) -> Epsilon:
        """ε of everything in the ledger, for one unit."""
        bound = self.contribution(unit)
        return epsilon(self.mechanisms, delta, bound.k, bound.neighbour, with_rdp=with_rdp)


def merged(mechanisms: Iterable[Mechanism]) -> list[Mechanism]:
    """Equal mechanisms added up."""
    counts: dict[tuple[float, float], int] = {}
    for m in mechanisms:
        key = (m.sampling_rate, m.noise_multiplier)
        counts[key] = counts.get(key, 0) + m.count
    return [Mechanism(rate, noise, count) for (rate, noise), count in counts.items()]


def read(folder: Path) -> Record:
    """The ledger of a run's folder (or the file itself). An incomplete last line counts as paid."""
    path = Path(folder) / FILE_NAME if Path(folder).is_dir() else Path(folder)
    try:
        content = path.read_bytes()
    except PermissionError as error:
        raise unreadable(path, error) from error
    except OSError as error:
        raise UserError(f"No ledger at {path}: name the folder of a private run.") from error
    record, _, torn = parse(content, path)
    if not record.segments:
        raise UserError(f"The ledger {path} is empty: nothing was trained there.")
    if torn is not None:
        record.segments[-1].charges.append((torn_charge(torn, record), TRAINING))
    return record


def parse(content: bytes, path: Path) -> tuple[Record, str, bytes | None]:
    """The record, the hash of its last line, and the incomplete line at its end, if there is one."""
    record, last, torn = Record([]), "", None
    for number, raw in enumerate(content.split(b"\n"), start=1):
        if not raw:
            continue
        try:
            line = json.loads(raw)
        except ValueError:
            torn = torn or raw  # an incomplete repair may follow the incomplete line that it should repair
            continue
        honest = isinstance(line, dict) and line.get("check") == chained(last, line)
        if not honest or (torn is not None and line["type"] != "repair"):
            raise UserError(
                f"The ledger {path} was changed at or before line {number}: restore it from a copy, since without it nothing can "
                "be said about what was spent in this folder."
            )
        torn, last = None, line["check"]
        _include(line, record)
    return record, last, torn


def chained(previous: str, line: Mapping[str, Any]) -> str:
    """A hash of a line's content and of the hash before it."""
    text = json.dumps({key: value for key, value in line.items() if key != "check"}, sort_keys=True)
    return blake2b(f"{previous}/{text}".encode(), digest_size=8).hexdigest()


def torn_charge(torn: bytes, record: Record) -> Mechanism:
    """What an incomplete line may have paid for: its own numbers where legible, nothing for a header, else a full block."""
    legible = _LEGIBLE.match(torn)
    segment = record.segments[-1]
    if legible:
        count, rate, noise = legible.groups()
        return Mechanism(float(rate), float(noise), int(count))
    count = 0 if torn.startswith(b'{"type":"segment"') else segment.reserve
    return Mechanism(segment.plan.sampling_rate, segment.plan.noise_multiplier, int(count))


def _include(line: dict[str, Any], record: Record) -> None:
    if line["type"] == "segment":
        units = {unit: Contribution(**one) for unit, one in line["units"].items()}
        plan = PrivacyPlan(**line["plan"])
        record.segments.append(Segment(plan, units, line["refused"], line["data"], line["facts"], line["reserve"]))
    elif record.segments:
        record.segments[-1].charges.append((Mechanism(line["rate"], line["noise"], line["count"]), line["what"]))
