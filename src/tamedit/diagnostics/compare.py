"""Several runs side by side: which is the baseline, which has no privacy, and the numbers of each."""

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tamedit.diagnostics.gradient_record import NORMS, Record, differences
from tamedit.diagnostics.tails import Summary, reductions, slowdown, summarise
from tamedit.errors import UserError
from tamedit.training.recorder import STATEMENT


@dataclass(frozen=True, eq=False)
class Comparison:
    """Records with their summaries; `baseline` and `plain` are positions among them."""

    records: list[Record]
    summaries: list[Summary]
    baseline: int | None  # the denominator of ρ: DP-vanilla
    plain: int | None  # the denominator of step times: Non-DP

    def to_dict(self) -> dict[str, Any]:
        """One JSON object; a number that does not exist is null."""
        rows = []
        for number, (record, summary) in enumerate(zip(self.records, self.summaries, strict=True)):
            row: dict[str, Any] = {
                "run": str(record.folder),
                "label": record.label,
                "arm": record.arm,
                "clip": record.clip,
            }
            rho, ratio = self.rho(number), self.time_ratio(number)
            row |= summary.to_dict() | {"rho": rho, "time_ratio": ratio}
            rows.append(row | paper_names(summary, rho, ratio))
        named = {"baseline": self.baseline, "plain": self.plain}
        who = {key: None if at is None else self.records[at].label for key, at in named.items()}
        return _json({"private": False, "statement": STATEMENT, **who, "notes": self.notes(), "runs": rows})

    def rho(self, number: int) -> dict[str, dict[str, float]] | None:
        """ρ_emp and ρ_cond of a run; None for the baseline itself, and for a run that clips nothing."""
        if self.baseline is None or number == self.baseline or not self.records[number].private:
            return None
        return reductions(self.summaries[number], self.summaries[self.baseline])

    def time_ratio(self, number: int) -> dict[str, float] | None:
        return None if self.plain is None else slowdown(self.summaries[number], self.summaries[self.plain])

    def notes(self) -> list[str]:
        """What a reader must know before trusting a ratio."""
        notes = []
        for number, record in enumerate(self.records):
            if not len(record.rows):
                notes.append(
                    f"{record.label} recorded no gradients; to see its tails, train it again with diagnose_every=1."
                )
            if self.baseline is not None and self.rho(number) is not None:
                other = self.records[self.baseline]
                changed = differences(record.config, other.config)
                if changed:
                    notes.append(
                        f"{record.label} and the baseline {other.label} differ in more than bounds ({', '.join(changed)}): "
                        "ρ compares unlike runs."
                    )
        return notes


def paper_names(
    summary: Summary, rho: dict[str, dict[str, float]] | None, time_ratio: dict[str, float] | None
) -> dict[str, Any]:
    """The same numbers once more, under the names that the paper's tables have."""
    named: dict[str, Any] = {}
    for which in NORMS:
        tail = None if summary.norms is None else summary.norms[which]
        named[f"S_{which}"] = None if tail is None else {"p95": tail.p95, "p99": tail.p99}
    named |= {f"rho_{name}": None if rho is None else rho[name] for name in ("emp", "cond")}
    clipping = None if summary.clipping is None else asdict(summary.clipping)
    named["p_clip"] = None if clipping is None else clipping.pop("p_clip")
    named["eta"] = clipping
    ratio = None if time_ratio is None else time_ratio["mean"]
    named["step_time"] = None if summary.time is None else asdict(summary.time) | {"ratio": ratio}
    return named


def compare(records: list[Record], baseline: Path | None = None) -> Comparison:
    """Summaries of all runs. The baseline is the run in the folder `baseline`, else the first DP-vanilla run."""
    arms = [record.arm for record in records]
    chosen: int | None = arms.index("DP-vanilla") if "DP-vanilla" in arms else None
    if baseline is not None:
        places = [record.folder.resolve() for record in records]
        if baseline.resolve() not in places:
            raise UserError(f"baseline={str(baseline)!r} is not among the runs; name it as a run, too.")
        chosen = places.index(baseline.resolve())
    plain = arms.index("Non-DP") if "Non-DP" in arms else None
    if plain is None and "Non-DP, bounded" in arms:
        plain = arms.index("Non-DP, bounded")
    return Comparison(records, [summarise(record) for record in records], chosen, plain)


def _json(value: Any) -> Any:
    """The same with None for every number that JSON does not know."""
    if isinstance(value, dict):
        return {key: _json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_json(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
