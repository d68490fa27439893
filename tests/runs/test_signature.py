"""A signature finds who renewed every file and digest of a release."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from released_runs import LIST
from support import Run
from tamedit.runs.release import release
from tamedit.runs.verification import verify


def test_a_signature_finds_who_renewed_everything(
    own: Path, tmp_path: Path, mistake: Callable[..., str], run: Run
) -> None:
    pytest.importorskip("cryptography")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    keys = {}
    for name in ("own", "other"):
        key = Ed25519PrivateKey.generate()
        keys[name] = (tmp_path / f"{name}.pem", tmp_path / f"{name}.pub")
        keys[name][0].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        keys[name][1].write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    assert run("release", own, tmp_path / "out", "--key", keys["own"][0]).code == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == LIST | {"signature.json"}
    assert run("verify", tmp_path / "out", "--public-key", keys["own"][1]).code == 0
    assert "signed, but by whom was not checked" in run("verify", tmp_path / "out").out
    assert "signed with another key" in mistake("verify", tmp_path / "out", "--public-key", keys["other"][1])
    # a liar: another curator, consistently, and signed with a key of their own
    release(own, tmp_path / "liar", key=keys["other"][0], curator="Somebody")
    assert verify(tmp_path / "liar").problems == ()
    assert "signed with another key" in "; ".join(verify(tmp_path / "liar", keys["own"][1]).problems)
    for name in ("manifest.json", "signature.json"):  # the old key in a new manifest, or the old signature
        forged = shutil.copytree(tmp_path / "liar", tmp_path / f"forged-{name}")
        shutil.copyfile(tmp_path / "out" / name, forged / name)
        assert "signature.json" in "; ".join(verify(forged, keys["own"][1]).problems + verify(forged).problems)
    text = json.loads((tmp_path / "out" / "signature.json").read_bytes())
    text["signature"] = ("1" if text["signature"][0] == "0" else "0") + text["signature"][1:]
    (tmp_path / "out" / "signature.json").write_text(json.dumps(text, indent=2) + "\n")
    assert "does not fit" in mistake("verify", tmp_path / "out", "--public-key", keys["own"][1])
    assert "not signed" in "; ".join(verify(_unsigned(own, tmp_path), keys["own"][1]).problems)
    assert "is no key in PEM" in mistake("release", own, tmp_path / "x", "--key", own / "model.json")
    assert "cannot be read" in mistake("release", own, tmp_path / "x", "--key", tmp_path / "absent.pem")


def _unsigned(run: Path, place: Path) -> Path:
    release(run, place / "unsigned")
    return place / "unsigned"
