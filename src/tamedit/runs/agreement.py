"""Do the files of a private run agree? Its ledger, model file, weights and checkpoint each say something of the others.

This finds accidents and careless edits: a ledger that was cut, a model file that claims another ε, weights of another run. It
does not find a liar who changes all files together.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from tamedit.errors import UserError
from tamedit.formatting import epsilon as shown
from tamedit.privacy.entries import FILE_NAME, Record, lacking, read, so_far
from tamedit.privacy.population import POPULATION
from tamedit.privacy.statement import Statement, Together
from tamedit.runs.artifact import SOFTWARE, SPECIFICATION, WEIGHTS, other_weights
from tamedit.runs.folder import CHECKPOINT, READING, load_run
from tamedit.runs.provenance import Student

COMPARED = (
    "unit",
    "delta",
    "neighbour",
    "contributions",
    "test_only",
    "mechanisms",
)  # of the statement, number for number
CLOSE = 1e-3  # ε by another version of the accountant's library


def check_agreement(folder: Path) -> tuple[Record, Record | None]:
    """The ledger of a run and that of its data set (None if there is none), or one sentence that says what disagrees."""
    folder = Path(folder)
    record = read(folder)
    check_steps(folder, _step(folder / CHECKPOINT))
    if (folder / SPECIFICATION).is_file():
        _check_model(folder, record)
    return record, _of_data_set(folder, record)


def check_steps(folder: Path, step: int) -> None:
    """Every step in a checkpoint must be paid for; a lost or shortened ledger is found here."""
    paid = so_far(folder / FILE_NAME).steps
    if paid < step:
        raise UserError(
            f"The checkpoint in {folder} has {step} steps and its ledger paid for {paid}, so no ε can be stated; restore "
            f"{FILE_NAME} from a copy, or start again in another folder."
        )


def _step(checkpoint: Path) -> int:
    """The step in the header of a checkpoint; 0 without one. A damaged one is found when it is resumed."""
    if not checkpoint.is_file():
        return 0
    try:
        with safe_open(checkpoint, framework="pt") as file:
            return int(json.loads((file.metadata() or {})["state"])["step"])
    except (SafetensorError, KeyError, ValueError, OSError):
        return 0


def _check_model(folder: Path, record: Record) -> None:
    """The model file against the weights and against the ledger as it was when the model was written."""
    try:
        spec = json.loads((folder / SPECIFICATION).read_text(encoding="utf-8"))
        said = dict(spec["privacy"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{folder / SPECIFICATION} is damaged; restore it from a copy.") from error
    weights, head = folder / WEIGHTS, spec.get("ledger_head")
    digest = spec.get("weights_sha256")
    if digest is not None and weights.is_file() and sha256(weights.read_bytes()).hexdigest() != digest:
        raise UserError(other_weights(folder))
    if not said.get("private"):
        raise UserError(_differs(folder, "that the model was trained without privacy", "a private run"))
    if wrong := unpaid(spec.get("population"), record):
        raise UserError(_differs(folder, wrong, "that this was never paid for"))
    if said.get("steps", 0) > record.steps:
        raise UserError(_differs(folder, f"{said['steps']} steps", f"{record.steps}, so lines were cut from it"))
    before = record if head is None else read(folder, head)
    written = Statement.of(before, together=_together(said), not_covered=after_the_ledger(folder)).to_dict()
    claimed, found = said.get("epsilon", {}).get("headline"), written["epsilon"]["headline"]
    if (claimed is None) != (found is None) or (found is not None and abs(claimed - found) > CLOSE * found):
        raise UserError(_differs(folder, f"ε = {shown(claimed)}", f"ε = {shown(found)}"))
    if head is None:
        return
    for name in COMPARED + ("not_covered", "statement") * (spec.get("software_version") == SOFTWARE):
        if said.get(name) != written[name]:
            raise UserError(_differs(folder, f"another {name.replace('_', ' ')}", "what training wrote"))


def after_the_ledger(folder: Path) -> tuple[str, ...]:
    """What the guarantee of a folder's model does not cover and its ledger does not know: the data that a student learned on."""
    place = Path(folder) / SPECIFICATION
    try:
        student = json.loads(place.read_text(encoding="utf-8")).get("student") if place.is_file() else None
        return Student.model_validate(student).not_covered if student else ()
    except (OSError, ValueError, AttributeError) as error:
        raise UserError(f"{place} is damaged; restore it from a copy.") from error


def unpaid(population: Mapping[str, Any] | None, record: Record) -> str | None:
    """Who the homes are must be public, or stand in the ledger of a private run; what the model file says of it where not."""
    if population is None or population.get("origin") == "public":
        return None
    if population.get("origin") == "private" and record.charged(POPULATION):
        return None
    return f"who the homes are ({population.get('origin')})"


def _together(said: dict[str, Any]) -> Together | None:
    try:
        return Together(**said["together"]) if said.get("together") else None
    except TypeError:
        return None


def _differs(folder: Path, said: str, found: str) -> str:
    return (
        f"{folder / SPECIFICATION} says {said}, but the ledger beside it says {found}: one of the two was changed; restore them "
        "from a copy."
    )


def _of_data_set(folder: Path, record: Record) -> Record | None:
    """The ledger of the data set, if it can be found from here; it must contain what the run has paid."""
    if not (folder / READING).is_file():
        return None
    place = load_run(folder)[1].ledger
    if place is None or record.test_only or not Path(place).is_file():
        return None
    everything = read(Path(place))
    if lacking(everything.runs.get(record.segments[-1].run, Record([])), record):
        raise UserError(
            f"The data set's ledger {place} lacks charges of the run in {folder}, so its sum is too small; restore it from a "
            "copy."
        )
    return everything
