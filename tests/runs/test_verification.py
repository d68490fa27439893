"""Verification notices every manipulation of a release, also with renewed digests."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support import Run
from tamedit.runs import release as room
from tamedit.runs.artifact import ModelSpec
from tamedit.runs.release import canonical, digest
from tamedit.runs.verification import verify


def edited(path: Path, before: bytes, after: bytes) -> None:
    content = path.read_bytes()
    assert before in content
    path.write_bytes(content.replace(before, after, 1))


def flipped(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(bytes(content))


def renewed(folder: Path) -> None:
    """Every digest of the manifest made anew: what a careful forger does."""
    manifest = json.loads((folder / "manifest.json").read_bytes())
    manifest["files"] = {name: digest(folder / name) for name in manifest["files"]}
    spec = ModelSpec.model_validate_json((folder / "model.json").read_bytes())
    manifest["statement_sha256"] = room.statement_digest(spec)
    manifest |= {
        "weights_sha256": digest(folder / "model.safetensors"),
        "ledger_sha256": digest(folder / "ledger.jsonl"),
    }
    (folder / "manifest.json").write_text(canonical(manifest))


def said(folder: Path, **changes: Any) -> None:
    manifest = json.loads((folder / "manifest.json").read_bytes())
    (folder / "manifest.json").write_text(canonical(manifest | changes))


def card(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    found = json.loads((folder / "privacy-card.json").read_bytes())
    change(found)
    (folder / "privacy-card.json").write_text(canonical(found))


def spent(folder: Path, epsilon: float) -> None:
    found = json.loads((folder / "model.json").read_bytes())
    found["privacy"]["epsilon"]["headline"] = epsilon
    (folder / "model.json").write_text(json.dumps(found, indent=2) + "\n")


def lines(folder: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    path = folder / "ledger.jsonl"
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))


def linked(folder: Path) -> None:
    (folder / "model-card.md").rename(folder.parent / "elsewhere.md")
    (folder / "model-card.md").symlink_to(folder.parent / "elsewhere.md")


def smaller(found: dict[str, Any]) -> None:
    found["deployment"]["privacy_loss"]["privacy_parameters"]["epsilon"] = 0.5


MANIPULATIONS: dict[str, tuple[Callable[[Path], object], str]] = {
    "one bit of the weights": (lambda f: flipped(f / "model.safetensors", 20_000), "model.safetensors was changed"),
    "one bit of the weights' header": (lambda f: flipped(f / "model.safetensors", 9), "model.safetensors was changed"),
    "the weights' last byte cut": (
        lambda f: (f / "model.safetensors").write_bytes((f / "model.safetensors").read_bytes()[:-1]),
        "model.safetensors was changed",
    ),
    "a space in model.json": (lambda f: edited(f / "model.json", b'": ', b'":  '), "model.json was changed"),
    "epsilon in model.json": (lambda f: spent(f, 0.5), "model.json was changed"),
    "the step between rows": (lambda f: edited(f / "model.json", b"3600.0", b"1800.0"), "model.json was changed"),
    "a charge of the ledger": (lambda f: edited(f / "ledger.jsonl", b'"count":3', b'"count":2'), "ledger.jsonl was"),
    "the noise in the plan": (
        lambda f: edited(f / "ledger.jsonl", b'"noise_multiplier":3.0', b'"noise_multiplier":9.0'),
        "ledger",
    ),
    "the ledger's last line cut": (lambda f: lines(f, lambda all: all[:-1]), "ledger.jsonl was changed"),
    "the ledger's lines swapped": (lambda f: lines(f, lambda all: all[::-1]), "ledger.jsonl was changed"),
    "a line more in the ledger": (lambda f: lines(f, lambda all: [*all, b"\n"]), "ledger.jsonl was changed"),
    "epsilon in the card": (lambda f: card(f, smaller), "privacy_parameters.epsilon is 0.5 and should be"),
    "one letter of the card": (lambda f: flipped(f / "privacy-card.md", 100), "privacy-card.md was changed"),
    "one letter of the page": (lambda f: flipped(f / "privacy-card.html", 5000), "privacy-card.html was changed"),
    "one letter of the model card": (lambda f: flipped(f / "model-card.md", 10), "model-card.md was changed"),
    "a digest in the manifest": (lambda f: said(f, weights_sha256="0" * 64), "weights_sha256"),
    "the statement's digest": (lambda f: said(f, statement_sha256="0" * 64), "its digest is not"),
    "the version": (lambda f: said(f, version="0.0.9"), "released.version"),
    "the date": (lambda f: said(f, made="2020-01-01"), "publication_date is"),
    "what was acknowledged": (lambda f: said(f, acknowledged=["clock"]), "released.acknowledged"),
    "who released it": (lambda f: said(f, stated={"curator": "Somebody"}), "data_curator is"),
    "a field more in the manifest": (lambda f: said(f, more=1), "its fields"),
    "the manifest's format": (lambda f: said(f, format=2), "its format"),
    "the manifest's form": (lambda f: edited(f / "manifest.json", b"{\n", b"{ \n"), "its form"),
    "the manifest cut": (lambda f: (f / "manifest.json").write_text("{"), "not as it was written"),
    "said to be signed": (lambda f: said(f, signed_by="00" * 32), "signature.json is missing"),
    "another file": (lambda f: (f / "losses.csv").write_text("0.3"), "losses.csv does not belong"),
    "a hidden file": (lambda f: (f / ".losses").write_text("0.3"), ".losses does not belong"),
    "another folder": (lambda f: (f / "not-private").mkdir(), "not-private does not belong"),
    "no ledger": (lambda f: (f / "ledger.jsonl").unlink(), "ledger.jsonl is missing"),
    "no card": (lambda f: (f / "privacy-card.json").unlink(), "privacy-card.json is missing"),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), "model.safetensors is missing"),
    "a link": (linked, "model-card.md is no plain file"),
}
FORGERIES: dict[str, tuple[Callable[[Path], object], str]] = {  # the manifest's digests renewed, too
    "the weights": (lambda f: flipped(f / "model.safetensors", 20_000), "released.weights_sha256"),
    "epsilon in model.json": (lambda f: spent(f, 0.5), "epsilon.headline is 0.5 and should be"),
    "epsilon in the card": (lambda f: card(f, smaller), "privacy_parameters.epsilon is 0.5 and should be"),
    "epsilon of another unit": (
        lambda f: card(f, lambda c: c["units"][4].update(epsilon=1.0)),
        "units.5.epsilon is 1.0",
    ),
    "a gap left out": (lambda f: card(f, lambda c: c.update(not_covered={"x": "y"})), "not_covered.x is unknown"),
    "words of the page": (
        lambda f: edited(f / "privacy-card.html", b"sceptic", b"believer"),
        "privacy-card.html does not say",
    ),
    "words of the card": (
        lambda f: edited(f / "privacy-card.md", b"sceptic", b"believer"),
        "privacy-card.md does not say",
    ),
    "words of the model card": (lambda f: edited(f / "model-card.md", b"rows", b"days"), "model-card.md does not say"),
    "the ledger's last line cut": (lambda f: lines(f, lambda all: all[:-1]), "not what the ledger gives"),
    "a charge of the ledger": (
        lambda f: edited(f / "ledger.jsonl", b'"count":3', b'"count":2'),
        "was changed at or before line",
    ),
}


@pytest.mark.parametrize("name", MANIPULATIONS)
def test_every_manipulation_is_noticed(copy: Path, name: str) -> None:
    manipulate, sentence = MANIPULATIONS[name]
    manipulate(copy)
    assert sentence in "; ".join(verify(copy).problems)


@pytest.mark.parametrize("name", FORGERIES)
def test_a_manipulation_with_new_digests_is_noticed(copy: Path, name: str) -> None:
    manipulate, sentence = FORGERIES[name]
    manipulate(copy)
    renewed(copy)
    found = "; ".join(verify(copy).problems)
    assert "digest" not in found
    assert sentence in found


@pytest.mark.parametrize("new_digests", [False, True])
def test_the_ledger_of_another_run_is_noticed(copy: Path, other_ledger: bytes, new_digests: bool) -> None:
    (copy / "ledger.jsonl").write_bytes(other_ledger)
    if new_digests:
        renewed(copy)
    assert "is not what the ledger gives" in "; ".join(verify(copy).problems)


def test_any_changed_byte_is_noticed(released: Path, copy: Path) -> None:
    random = np.random.default_rng(0)
    for path in sorted(copy.iterdir()):
        size = path.stat().st_size
        for at in random.integers(0, size, 6):
            flipped(path, int(at))
            assert verify(copy).problems, (path.name, at)
            shutil.copyfile(released / path.name, path)
    assert verify(copy).problems == ()


def test_the_command_says_what_disagrees(copy: Path, run: Run, mistake: Callable[..., str]) -> None:
    answer = run("verify", copy)
    assert answer.code == 0
    assert "is as it was released" in answer.out
    assert "not signed" in answer.out
    card(copy, smaller)
    assert "privacy-card.json was changed" in mistake("verify", copy)
    assert "no release" in mistake("verify", copy.parent)
    found = json.loads(run("verify", copy, "--json").out)
    assert not found["verified"]
    assert len(found["problems"]) == 2


@pytest.mark.parametrize("forged", ["epsilon", "gap", "statement"])
def test_numbers_of_an_earlier_versions_card_are_checked(copy: Path, forged: str) -> None:
    """The words of another version may differ; its numbers and what is not covered may not."""
    said(copy, version="0.0.1")
    card(copy, lambda c: c["released"].update(version="0.0.1"))
    renewed(copy)
    honest = verify(copy)
    assert not honest.problems
    assert any("its words and the other pages were not" in note for note in honest.notes)
    card(
        copy,
        {
            "epsilon": smaller,
            "gap": lambda c: c["not_covered"].update(more="something that the ledger does not say"),
            "statement": lambda c: c["statement"].update(delta=1e-9),
        }[forged],
    )
    renewed(copy)
    assert any("is not what ledger and model give" in one for one in verify(copy).problems)
