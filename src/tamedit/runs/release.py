"""A release: the folder that may leave. It is built from a list of what may leave, never by removing what may not.

model.safetensors, model.json   the model
ledger.jsonl                    of a private run: what was spent
model-card.md                   what the model is, and how to use it
privacy-card.json, .md, .html   what is promised, and what is not; the same three times
manifest.json                   digests of all these files, and what the people who released it said
signature.json                  if a key was given: a signature over the manifest
"""

import hashlib
import json
import shutil
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tamedit.errors import UserError
from tamedit.files import check_new_folder, new_folder, unreadable, write_text
from tamedit.privacy.entries import AUDITED, Record
from tamedit.privacy.entries import FILE_NAME as LEDGER
from tamedit.privacy.statement import Statement
from tamedit.runs.agreement import check_agreement, unpaid
from tamedit.runs.artifact import SOFTWARE, SPECIFICATION, WEIGHTS, ModelSpec, load_model
from tamedit.runs.cards import PRIVACY_CARD, STATED, derived, gaps, privacy_card, rendered
from tamedit.runs.folder import EVOLVED
from tamedit.runs.signature import SIGNATURE, fingerprint, load_key, signed

MANIFEST = "manifest.json"
FORMAT = 1


def release(
    run: Path,
    out: Path,
    *,
    acknowledge: str | Iterable[str] = (),
    key: Path | None = None,
    **stated: str | None,
) -> list[Path]:
    """Write the release of a finished run to the folder `out`, all of it or nothing; returns its files.

    Args:
        out: a folder that does not exist, or is empty.
        acknowledge: short names of what is not covered, each of which someone has read and accepted.
        key: PEM file of a private Ed25519 key; the manifest is then signed.
        stated: what only people can say, for the privacy card: curator, purpose, region, sector, reasons.
    """
    run, out = Path(run), Path(out)
    if unknown := set(stated) - set(STATED):
        raise UserError(f"`{min(unknown)}` is no field of the privacy card; state {', '.join(STATED)}.")
    if (run / EVOLVED).is_file():
        raise UserError(
            f"{run} holds evolved homes and no model, so there is no model to release; make homes with `tamedit generate` and "
            "pass on the homes, with PRIVACY.md beside them."
        )
    check_new_folder(out, "a release")
    signer = None if key is None else load_key(key)
    _, spec = load_model(run)
    record = check_agreement(run)[0] if spec.privacy.get("private") else None
    names = _acknowledged(run, spec, record, acknowledge)
    released = {
        "version": SOFTWARE,
        "made": f"{datetime.now(UTC):%Y-%m-%d}",
        "acknowledged": names,
        "stated": {name: stated[name] for name in STATED if stated.get(name)},
        "signed_by": None if signer is None else fingerprint(signer.public_key()),
        "weights_sha256": digest(run / WEIGHTS),
        "ledger_sha256": None if record is None else digest(run / LEDGER),
    }
    card = privacy_card(spec, record, released)
    with new_folder(out) as beside:
        for name in (WEIGHTS, SPECIFICATION, *([] if record is None else [LEDGER])):
            shutil.copyfile(run / name, beside / name)
        write_text(beside / PRIVACY_CARD, canonical(card))
        for name, text in rendered(card, spec).items():
            write_text(beside / name, text)
        manifest = {"format": FORMAT, **released, "statement_sha256": statement_digest(spec), "files": _digests(beside)}
        write_text(beside / MANIFEST, canonical(manifest))
        if signer is not None:
            write_text(beside / SIGNATURE, signed((beside / MANIFEST).read_bytes(), signer))
    return sorted(out.iterdir())


def canonical(value: Any) -> str:
    """The one way in which a release writes JSON, so that every changed byte shows."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise unreadable(path, error) from error


def statement_digest(spec: ModelSpec) -> str:
    """SHA-256 of the statement in a model file."""
    return hashlib.sha256(canonical(spec.privacy).encode()).hexdigest()


def difference(found: Any, wanted: Any, path: str = "") -> str | None:
    """Where two pieces of JSON differ, in words; None where they agree. Numbers agree to a millionth."""
    if isinstance(found, dict) and isinstance(wanted, dict):
        absent = [name for name in (*wanted, *found) if (name in found) != (name in wanted)]
        if absent:
            return f"{path}{absent[0]} is {'missing' if absent[0] in wanted else 'unknown'}"
        inner = ((f"{path}{name}.", found[name], wanted[name]) for name in wanted)
    elif isinstance(found, list | tuple) and isinstance(wanted, list | tuple) and len(found) == len(wanted):
        inner = ((f"{path}{at + 1}.", *pair) for at, pair in enumerate(zip(found, wanted, strict=True)))
    else:
        numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (found, wanted))
        same = abs(found - wanted) <= 1e-6 * abs(wanted) if numbers else type(found) is type(wanted) and found == wanted
        return None if same else f"{path.rstrip('.')} is {_brief(found)} and should be {_brief(wanted)}"
    return next((one for one in (difference(a, b, at) for at, a, b in inner) if one), None)


def disagreement(spec: ModelSpec, record: Record) -> str | None:
    """Where a model file is not what the ledger gives; None where it is."""
    people = None if spec.population is None else spec.population.model_dump()
    if wrong := unpaid(people, record):
        return f"{wrong} was never paid for"
    return difference(spec.privacy, json.loads(canonical(derived(spec, record).to_dict())))


def _acknowledged(run: Path, spec: ModelSpec, record: Record | None, acknowledge: str | Iterable[str]) -> list[str]:
    """The short names of what is not covered, if the run may be released and all of them were acknowledged."""
    given = acknowledge.split(",") if isinstance(acknowledge, str) else list(acknowledge)
    names = {name.strip() for name in given if name.strip()}
    statement = derived(spec, record)
    if record is not None:
        _refuse_incomplete(run, spec, record, statement)
    uncovered = gaps(statement)
    if missing := [name for name in uncovered if name not in names]:
        listed = "; ".join(f"{name}: {uncovered[name]}" for name in missing)
        raise UserError(
            f"{run} cannot be released as it is, because its guarantee does not cover everything ({listed}); if you accept that, "
            f"add acknowledge='{','.join(uncovered)}'."
        )
    if unknown := sorted(names - set(uncovered)):
        known = f"write {', '.join(uncovered)}" if uncovered else "leave it out"
        raise UserError(f"acknowledge={unknown[0]!r} names nothing that this run leaves uncovered; {known}.")
    return list(uncovered)


def _refuse_incomplete(run: Path, spec: ModelSpec, record: Record, statement: Statement) -> None:
    """A test, or a statement that lacks something or that the ledger contradicts, may not leave."""
    if statement.test_only:
        raise UserError(
            f"{run} is a test run with a known seed and has no guarantee; train it again without `test_only`."
        )
    if any(segment.data.startswith(AUDITED) for segment in record.segments):
        raise UserError(
            f"{run} was audited with planted homes and must never be released; train a model of your data alone."
        )
    said = statement.to_dict()
    lacking = [name for name in ("unit", "delta", "accountant", "steps", "mechanisms") if not said[name]]
    if said["epsilon"]["headline"] is None:
        lacking.append("a finite ε")
    if any("not_covered" not in segment.facts for segment in record.segments):
        lacking.append("what is not covered")
    if lacking:
        raise UserError(f"The statement of {run} lacks {', '.join(lacking)}; train it again with this version.")
    if wrong := disagreement(spec, record):
        raise UserError(
            f"The statement in {run / SPECIFICATION} is not what the ledger gives ({wrong}); restore both files from one run."
        )


def _digests(folder: Path) -> dict[str, str]:
    return {path.name: digest(path) for path in sorted(folder.iterdir())}


def _brief(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:60]}…"
