"""What a release says of all runs on its data set together, held against the data set's ledger.

That ledger is not in a release: it names the folders of other runs. The curator may show it to someone who checks. It may have
grown since the release. So the stated sum must lie between two that follow from it: up to this run's last charge, and now.
"""

import json
import math
from pathlib import Path

from tamedit.errors import UserError
from tamedit.formatting import counted
from tamedit.formatting import epsilon as shown
from tamedit.privacy.entries import Record, lacking, read
from tamedit.runs.artifact import ModelSpec

CLOSE = 1e-3  # ε by another version of the accountant's library


def not_derived(spec: ModelSpec, record: Record) -> str:
    """What a check without the data set's ledger cannot say, and what to compare."""
    name, together = record.segments[-1].facts.get("ledger"), spec.privacy.get("together")
    if not name:
        return "no ledger of the data set was kept, so nothing is known of other runs on the same data"
    said = "" if not together else f" ({counted(together['runs'], 'run')}, ε = {shown(together['epsilon'])})"
    return (
        f"ε of all runs on the data together{said} was not checked: it follows from {name}, which the curator keeps; ask for it "
        "and give it as `ledger`, or compare with what `tamedit account` says of it"
    )


def compared(spec: ModelSpec, record: Record, ledger: Path) -> tuple[list[str], str]:
    """What disagrees between a release and the ledger of its data set; and the sum of all runs, derived from the ledger."""
    everything, run, said = read(ledger), record.segments[-1].run, spec.privacy
    if lacking(everything.runs.get(run, Record([])), record):
        return [f"{ledger.name} lacks charges of this run, so it is not the ledger of its data set, or was cut"], ""
    unit, delta, together = said["unit"], said["delta"], said.get("together")
    try:
        now = everything.epsilon(unit, delta, with_rdp=False).value
        before = read(ledger, _last_line_of(ledger, run)).epsilon(unit, delta, with_rdp=False).value
    except UserError as error:
        return [str(error).rstrip(".")], ""
    runs = sum(bool(one.mechanisms) for one in everything.runs.values())
    derived = f"derived from {ledger.name}: {counted(runs, 'private run')} by now, ε = {shown(now)} together"
    if together is None:
        return [f"the statement says nothing of all runs together, but {derived}"], derived
    stated = math.inf if together["epsilon"] is None else float(together["epsilon"])
    if not before * (1 - CLOSE) <= stated <= now * (1 + CLOSE) or not 1 <= together["runs"] <= runs:
        return [
            f"the statement says {counted(together['runs'], 'run')} and ε = {shown(stated)} together, but {derived}"
        ], derived
    return [], derived


def _last_line_of(ledger: Path, run: str) -> str:
    """The hash of the last line that a run wrote to the ledger of its data set, which is not damaged."""
    lines = (json.loads(raw) for raw in ledger.read_bytes().splitlines() if raw.startswith(b"{") and raw.endswith(b"}"))
    return [str(line["check"]) for line in lines if line.get("run") == run][-1]
