"""Reading a ledger: its lines, checked, become segments and charges, and from those follows ε.

The lines are described in ledger.py. A line that is not JSON is accepted in one place only, at the end or before a "repair"
line: there it is what a crash left of a write. Any other damage is an error, never a smaller ε. So is a charge for training that
its plan does not know: another rate, another noise, or more steps than planned.
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
from tamedit.privacy.plan import PrivacyPlan, digest
from tamedit.privacy.units import Contribution

FILE_NAME = "ledger.jsonl"
AUDITED = "an audit with planted homes, never to be released: "  # before the source of such a run, in its ledger
TRAINING = "training"
COUNTING = "counting"  # among the facts of a segment that counts examples before the plan of training is made
REPAIRED = "repaired"  # steps that a line paid for which a crash left incomplete
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
    run: str = ""  # the run's own number; several runs share the ledger of a data set
    folder: str = ""  # where that run lies, in the ledger of a data set
    charges: list[tuple[Mechanism, str]] = field(default_factory=list)

    def check(self, paid: Mechanism, what: str, path: Path) -> None:
        """Raise one sentence if a charge for training is not one of this segment's plan."""
        if what != TRAINING:
            return
        plan, steps = self.plan, paid.count + sum(m.count for m, reason in self.charges if reason == TRAINING)
        for name, charged, planned in (
            ("a sampling rate of", paid.sampling_rate, plan.sampling_rate),
            ("a noise multiplier of", paid.noise_multiplier, plan.noise_multiplier),
            ("training steps:", max(steps, plan.steps), plan.steps),
        ):
            if charged != planned:
                raise UserError(
                    f"The ledger {path} charges {name} {charged:.12g}, but the plan that it names has {planned:.12g}, so the two "
                    "do not belong together; restore it from a copy."
                )


@dataclass(frozen=True)
class Record:
    """A ledger as read: its segments in order."""

    segments: list[Segment]

    @property
    def runs(self) -> dict[str, "Record"]:
        """The record of each run by its number, in the order in which they began."""
        found: dict[str, Record] = {}
        for segment in self.segments:
            found.setdefault(segment.run, Record([])).segments.append(segment)
        return found

    @property
    def steps(self) -> int:
        """Training steps paid for, in all segments."""
        paid = (TRAINING, REPAIRED)
        return sum(m.count for segment in self.segments for m, what in segment.charges if what in paid)

    @property
    def mechanisms(self) -> list[Mechanism]:
        """Everything charged."""
        return merged(m for segment in self.segments for m, _ in segment.charges)

    @property
    def planned(self) -> "Record":
        """The segments with a plan of training; the others count examples before there can be one."""
        return Record([segment for segment in self.segments if not segment.facts.get(COUNTING)])

    def charged(self, what: str) -> list[Mechanism]:
        """What was charged for one purpose."""
        return merged(m for segment in self.segments for m, reason in segment.charges if reason == what)

    @property
    def test_only(self) -> bool:
        """Whether any segment drew its noise from a known seed: then nothing is guaranteed."""
        return any(segment.plan.test_only for segment in self.segments)

    def contribution(self, unit: str) -> Contribution:
        """The largest k of the unit over all segments; replacement if any segment has it. All must mean the same by the unit."""
        self.check_definitions(unit)
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

    def check_definitions(self, unit: str, **new: str) -> None:
        """One sentence if two runs mean different things by a unit: then a unit of one run may lie in several of the other.

        `new`: what a run that is not in the record yet means by it, by the number of the run.
        """
        meant: dict[str, str] = {}
        for segment in self.segments:
            here = segment.facts.get("definitions", {}).get(unit, "")
            meant[segment.run] = here or meant.get(segment.run, "")
        meant |= new
        if len(several := sorted({one or "not stated" for one in meant.values()})) > 1:
            raise UserError(
                f"The private runs on this data mean different things by one {unit} ({' / '.join(several)}), so no ε covers "
                "them together; read the data as the earlier runs did, or name another `ledger`, and then nothing covers both."
            )

    def epsilon(self, unit: str, delta: float, *, with_rdp: bool = True) -> Epsilon:
        """ε of everything in the ledger, for one unit."""
        bound = self.contribution(unit)
        return epsilon(self.mechanisms, delta, bound.k, bound.neighbour, with_rdp=with_rdp)


def lacking(record: Record, other: Record) -> list[Mechanism]:
    """What the other record has paid for and this one has not."""
    paid = {(m.sampling_rate, m.noise_multiplier): m.count for m in record.mechanisms}
    rest = ((m, m.count - paid.get((m.sampling_rate, m.noise_multiplier), 0)) for m in other.mechanisms)
    return [Mechanism(m.sampling_rate, m.noise_multiplier, count) for m, count in rest if count > 0]


def merged(mechanisms: Iterable[Mechanism]) -> list[Mechanism]:
    """Equal mechanisms added up."""
    counts: dict[tuple[float, float], int] = {}
    for m in mechanisms:
        key = (m.sampling_rate, m.noise_multiplier)
        counts[key] = counts.get(key, 0) + m.count
    return [Mechanism(rate, noise, count) for (rate, noise), count in counts.items()]


def so_far(path: Path | None) -> Record:
    """What a ledger says, if it is there and says anything yet."""
    return Record([]) if path is None or not path.is_file() else read(path, empty=True)


def read(folder: Path, head: str | None = None, *, empty: bool = False) -> Record:
    """The ledger of a run's folder (or the file itself). An incomplete last line counts as paid.

    With `head`, the ledger as it was when its last line had that hash. One without any segment is an error unless it may be
    `empty`.
    """
    path = Path(folder) / FILE_NAME if Path(folder).is_dir() else Path(folder)
    try:
        content = path.read_bytes()
    except PermissionError as error:
        raise unreadable(path, error) from error
    except OSError as error:
        raise UserError(f"No ledger at {path}: name the folder of a private run.") from error
    if head is not None:
        before, found, after = content.partition(f'"check":"{head}"'.encode())
        if not found:
            raise UserError(
                f"The ledger {path} has lost lines, or belongs to another run: the last line that the model names ({head}) is "
                "not in it; restore it from a copy."
            )
        content = before + found + after.partition(b"\n")[0]
    record = Record([])
    _, torn = parse(content, path, record)
    if not record.segments and not empty and content.strip().count(b"\n"):
        raise UserError(f"{path} is no ledger; name the folder of a private run, or the ledger of a data set.")
    if not record.segments and not empty:
        raise UserError(f"The ledger {path} is empty: nothing was trained there.")
    if torn is not None and record.segments:
        record.segments[-1].charges.append((torn_charge(torn, record), REPAIRED))
    return record


def parse(content: bytes, path: Path, record: Record, last: str = "", first: int = 1) -> tuple[str, bytes | None]:
    """Adds lines to a record; gives the hash of the last one, and the incomplete line at the end, if there is one.

    `last` is the hash of the line before, `first` the number of the first line.
    """
    torn = None
    for number, raw in enumerate(content.split(b"\n"), start=first):
        if not raw:
            continue
        try:
            line = json.loads(raw)
        except ValueError:
            torn = torn or raw  # an incomplete repair may follow the incomplete line that it should repair
            continue
        if not isinstance(line, dict) or "check" not in line:
            raise UserError(
                f"{path} is no ledger: line {number} is none of a ledger's lines; name the folder of a private run."
            )
        if line["check"] != chained(last, line) or (torn is not None and line["type"] != "repair"):
            raise UserError(
                f"The ledger {path} was changed at or before line {number}: restore it from a copy, since without it nothing can "
                "be said about what was spent."
            )
        torn, last = None, line["check"]
        include(line, record, path)
    return last, torn


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


def include(line: dict[str, Any], record: Record, path: Path) -> None:
    """Adds one honest line to a record."""
    if line["type"] == "segment":
        if line["fingerprint"] != digest(line["plan"]):
            raise UserError(
                f"The ledger {path} names the plan {line['fingerprint']}, but contains another; restore it from a copy."
            )
        units = {unit: Contribution(**one) for unit, one in line["units"].items()}
        own = (
            line["refused"],
            line["data"],
            line["facts"],
            line["reserve"],
            line.get("run", ""),
            line.get("folder", ""),
        )
        record.segments.append(Segment(PrivacyPlan(**line["plan"]), units, *own))
        return
    mine = [segment for segment in record.segments if segment.run == line.get("run", segment.run)]
    if mine:
        paid = Mechanism(line["rate"], line["noise"], line["count"])
        what = line["what"] if line["type"] == "charge" else REPAIRED  # which may be more than was planned
        mine[-1].check(paid, what, path)
        mine[-1].charges.append((paid, what))
