"""Checks a release: that no byte of it changed, and that its cards say what its ledger gives.

Two nets, one behind the other. Digests in the manifest show every changed byte. Behind them, ε is derived again from the ledger
and compared with the model file and the cards, so that an edit shows even where someone renewed its digest. Whoever changes
everything consistently is found only by a signature.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tamedit.errors import UserError
from tamedit.privacy.entries import FILE_NAME as LEDGER
from tamedit.privacy.entries import Record, read
from tamedit.runs import signature
from tamedit.runs.all_runs import compared, not_derived
from tamedit.runs.artifact import SOFTWARE, SPECIFICATION, WEIGHTS, ModelSpec
from tamedit.runs.cards import MODEL_CARD, NO_PRIVACY, NO_PROTECTION, PRIVACY_CARD, TEMPLATES, privacy_card, rendered
from tamedit.runs.release import (
    FORMAT,
    MANIFEST,
    canonical,
    difference,
    digest,
    disagreement,
    statement_digest,
)

FIELDS = ("version", "made", "acknowledged", "stated", "signed_by", "weights_sha256", "ledger_sha256")
NUMBERS = (
    "private",
    "unit",
    "neighbour",
    "contributions",
    "epsilon",
    "delta",
    "steps",
    "segments",
    "mechanisms",
    "test_only",
)
# What a copy from a model repository has besides: its page, and what is no file of anybody.
OF_REPOSITORIES = ("README.md", ".gitattributes", ".cache")
CARDS = (MODEL_CARD, PRIVACY_CARD, *(name for name in TEMPLATES if name != MODEL_CARD))


@dataclass(frozen=True)
class Verified:
    """What was found: `problems` is empty if the release is as it was made."""

    problems: tuple[str, ...]
    notes: tuple[str, ...] = ()
    privacy: dict[str, Any] | None = None  # the statement, derived from the ledger


def verify(folder: Path, public_key: Path | None = None, ledger: Path | None = None) -> Verified:
    """Check a release; with `public_key` (a PEM file), also who signed it.

    With `ledger`, that of the data set, which the curator keeps: also what all runs on the data spent together.
    """
    folder = Path(folder)
    if not (folder / MANIFEST).is_file():
        raise UserError(f"{folder} is no release: {MANIFEST} is missing; name a folder made by `tamedit release`.")
    try:
        manifest = _manifest(folder)
    except (ValueError, OSError) as error:
        return Verified((f"{MANIFEST} is not as it was written ({error})",))
    problems = _files(folder, manifest)
    wrong = signature.complaint(folder, manifest["signed_by"], public_key)
    problems += [wrong] if wrong else []
    notes = []
    if manifest["signed_by"] is None:
        notes.append(
            "not signed: this finds accidents and careless edits, not someone who renewed every file and digest"
        )
    elif public_key is None:
        notes.append("signed, but by whom was not checked; give `public_key`, the key that you know from elsewhere")
    if manifest["version"] != SOFTWARE:
        notes.append(
            f"made by tamedit {manifest['version']}: the numbers in {PRIVACY_CARD} were checked; its words and the other "
            "pages were not"
        )
    if beside := [name for name in OF_REPOSITORIES if (folder / name).exists()]:
        notes.append(f"not of the release, and not checked: {', '.join(beside)}")
    try:
        spec = ModelSpec.model_validate_json((folder / SPECIFICATION).read_bytes())
        record = read(folder / LEDGER) if spec.privacy.get("private") else None
        problems += _contents(folder, manifest, spec, record)
        disagree, said = _all_runs(spec, record, ledger)
        problems, notes = problems + disagree, [*notes, *said]
    except UserError as error:
        return Verified((*problems, str(error).rstrip(".")), tuple(notes))
    except (ValueError, TypeError, KeyError, OSError) as error:
        return Verified(
            (*problems, f"{SPECIFICATION} or {PRIVACY_CARD} cannot be read ({type(error).__name__})"), tuple(notes)
        )
    return Verified(tuple(problems), tuple(notes), spec.privacy if not problems else None)


def _all_runs(spec: ModelSpec, record: Record | None, ledger: Path | None) -> tuple[list[str], list[str]]:
    """What disagrees with the data set's ledger, and a note: what all runs spent together, or why that was not checked."""
    if record is None:
        return [], []
    if ledger is None:
        return [], [not_derived(spec, record)]
    disagree, derived = compared(spec, record, Path(ledger))
    return disagree, [derived] if derived else []


def _manifest(folder: Path) -> dict[str, Any]:
    """The manifest, if it has the form in which every release is written."""
    text = (folder / MANIFEST).read_text(encoding="utf-8")
    found = json.loads(text)
    if not isinstance(found, dict) or text != canonical(found):
        raise ValueError("its form is another one")
    if set(found) != {"format", *FIELDS, "statement_sha256", "files"} or found["format"] != FORMAT:
        raise ValueError("its fields or its format are others")
    kinds = {"version": str, "made": str, "acknowledged": list, "stated": dict, "files": dict}
    if not all(isinstance(found[name], kind) for name, kind in kinds.items()):
        raise ValueError("a field is of another kind")
    if found["signed_by"] is not None and not isinstance(found["signed_by"], str):
        raise ValueError("a field is of another kind")
    return found


def _files(folder: Path, manifest: dict[str, Any]) -> list[str]:
    """Every file is there, none besides, and each has its digest."""
    private = [LEDGER] if manifest["ledger_sha256"] else []
    wanted = {WEIGHTS, SPECIFICATION, *private, *CARDS}
    signed = [signature.SIGNATURE] if manifest["signed_by"] else []
    there = {path.name for path in folder.iterdir()}
    known = {*wanted, *signed, MANIFEST, *OF_REPOSITORIES}
    problems = [f"{name} is missing" for name in sorted({*wanted, *signed} - there)]
    problems += [f"{name} does not belong to the release" for name in sorted(there - known)]
    if set(manifest["files"]) != wanted:
        problems.append(f"{MANIFEST} lists other files than a release has")
    for name in sorted(wanted & there):
        if (folder / name).is_symlink() or not (folder / name).is_file():
            problems.append(f"{name} is no plain file")
        elif digest(folder / name) != manifest["files"].get(name):
            problems.append(f"{name} was changed: its digest is not the one in {MANIFEST}")
    return problems


def _contents(folder: Path, manifest: dict[str, Any], spec: ModelSpec, record: Record | None) -> list[str]:
    """The model file, the ledger and the cards say the same, and it follows from the ledger."""
    problems = []
    if record is not None and (wrong := disagreement(spec, record)):
        problems.append(f"the statement in {SPECIFICATION} is not what the ledger gives: {wrong}")
    if statement_digest(spec) != manifest["statement_sha256"]:
        problems.append(f"the statement in {SPECIFICATION} was changed: its digest is not the one in {MANIFEST}")
    for name, place in (("weights_sha256", WEIGHTS), ("ledger_sha256", LEDGER)):
        if manifest[name] is not None and (folder / place).is_file() and digest(folder / place) != manifest[name]:
            problems.append(f"{place} is not the one that the cards describe ({name})")
    if spec.weights_sha256 not in (None, digest(folder / WEIGHTS)):
        problems.append(f"{WEIGHTS} is not the one that {SPECIFICATION} was written with")
    if spec.ledger_head and f'"check":"{spec.ledger_head}"'.encode() not in _last_line(folder / LEDGER):
        problems.append(f"{LEDGER} does not end where it ended when {SPECIFICATION} was written")
    found = json.loads((folder / PRIVACY_CARD).read_bytes())
    wanted = json.loads(canonical(privacy_card(spec, record, {name: manifest[name] for name in FIELDS})))
    same_words = manifest["version"] == SOFTWARE
    if wrong := difference(*((found, wanted) if same_words else (_numbers(found), _numbers(wanted)))):
        problems.append(f"{PRIVACY_CARD} is not what ledger and model give: {wrong}")
    elif same_words:
        problems += [
            f"{name} does not say what {PRIVACY_CARD} says"
            for name, text in rendered(found, spec).items()
            if (folder / name).read_bytes() != text.encode()
        ]
    return problems


def _last_line(path: Path) -> bytes:
    return path.read_bytes().rstrip().rpartition(b"\n")[2]


def _numbers(card: dict[str, Any]) -> dict[str, Any]:
    """What a card of another version must agree in: the words may differ."""
    units = {row["unit"]: [row["epsilon"], row["examples"]] for row in card["units"]}
    said, alone = card["statement"], (NO_PRIVACY, NO_PROTECTION)
    loss = card["deployment"].get("privacy_loss", {})
    return {
        "private": card["private"],
        "released": card["released"],
        "units": units,
        "privacy_parameters": loss.get("privacy_parameters"),
        "privacy_unit": loss.get("privacy_unit"),
        "not_covered": sorted(gap for name, gap in card["not_covered"].items() if name not in alone),
        "statement": {name: said.get(name) for name in NUMBERS},
    }
