"""A release holds what is on the list and nothing else, is refused where something is missing, and shows every manipulation."""

import json
import shutil
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support import Run
from tamedit.data.scaling import Scaling
from tamedit.data.simulate import simulate
from tamedit.data.split import split_by_time
from tamedit.errors import UserError
from tamedit.privacy import entries
from tamedit.privacy.entries import read
from tamedit.privacy.ledger import Ledger
from tamedit.privacy.settings import Privacy
from tamedit.privacy.statement import Statement
from tamedit.runs import release as room
from tamedit.runs.artifact import ModelSpec
from tamedit.runs.cards import short_name
from tamedit.runs.config import Speed
from tamedit.runs.layout import CLOCK_CHANGES
from tamedit.runs.provenance import Measured, Start
from tamedit.runs.recipe import make_config
from tamedit.runs.release import canonical, digest, release
from tamedit.runs.verification import verify
from tamedit.tasks.model import Model
from tamedit.training.private.gradients import LOGGED
from tamedit.training.run import train

NAME = '<script>alert("x")</script> & |kWh|'
LIST = {
    "model.safetensors",
    "model.json",
    "ledger.jsonl",
    "model-card.md",
    "privacy-card.json",
    "privacy-card.md",
    "privacy-card.html",
    "manifest.json",
}


@pytest.fixture(autouse=True, scope="module")
def remembered() -> Any:
    """ε of one and the same ledger is computed once, not for every manipulation of another file."""
    original = entries.epsilon
    patch = pytest.MonkeyPatch()

    @lru_cache
    def once(mechanisms: Any, delta: float, k: int, neighbour: Any, with_rdp: bool) -> Any:
        return original(list(mechanisms), delta, k, neighbour, with_rdp=with_rdp)

    patch.setattr(entries, "epsilon", lambda m, d, k, n, with_rdp=True: once(tuple(m), d, k, n, with_rdp))
    yield
    patch.undo()


def made(folder: Path, **privacy: Any) -> Path:
    """A run of three steps, as `tamedit train` leaves it."""
    series = simulate(meters=2, hours=900, seed=5)
    object.__setattr__(series, "targets", (NAME,))
    wanted = Privacy(**{"noise_multiplier": 3.0, "unit": "day", **privacy}) if privacy.pop("private", True) else None
    config = make_config(series, "meters.csv", scale="smoke", steps=3, window=24, size="tiny", privacy=wanted)
    train(split_by_time(series), config, folder, speed=Speed(threads=1))
    return folder


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("releases")


@pytest.fixture(scope="module")
def own(place: Path) -> Path:
    return made(place / "run")


@pytest.fixture(scope="module")
def plain(place: Path) -> Path:
    return made(place / "plain", private=False)


@pytest.fixture(scope="module")
def released(own: Path, place: Path) -> Path:
    release(own, place / "out", curator="Müller & <b>Söhne</b>")
    return place / "out"


@pytest.fixture(scope="module")
def other_ledger(own: Path, place: Path) -> bytes:
    """The ledger of another run with the same plan but for a little more noise."""
    segment = read(own).segments[0]
    plan = segment.plan.model_copy(update={"noise_multiplier": 3.1})
    with Ledger.open(place / "other", plan, segment.contributions, facts=segment.facts, data=segment.data) as ledger:
        for left in (3, 2, 1):
            ledger.take(left)
    return (place / "other" / "ledger.jsonl").read_bytes()


@pytest.fixture
def copy(released: Path, tmp_path: Path) -> Path:
    return shutil.copytree(released, tmp_path / "copy")


# ---- what a release holds


def test_a_release_holds_the_list_and_verifies(own: Path, released: Path) -> None:
    (own / "notes.txt").write_text("a reading: 7.25")
    assert {path.name for path in released.iterdir()} == LIST
    found = verify(released)
    assert found.problems == ()
    assert found.privacy == json.loads((own / "model.json").read_bytes())["privacy"]
    for name in ("model.safetensors", "ledger.jsonl", "model.json"):
        assert (released / name).read_bytes() == (own / name).read_bytes()
    assert Model.load(released, "cpu").spec.targets == (NAME,)


def test_the_card_says_what_the_ledger_gives_for_every_unit(own: Path, released: Path) -> None:
    card, record = json.loads((released / "privacy-card.json").read_bytes()), read(own)
    assert [row["unit"] for row in card["units"]] == ["window", "record", "day", "week", "series"]
    for row in card["units"]:
        assert row["epsilon"] == pytest.approx(record.epsilon(row["unit"], 1e-5).value)
    promised = next(row for row in card["units"] if row["own"])
    fields = card["deployment"]
    assert fields["privacy_loss"]["privacy_parameters"] == {"epsilon": promised["epsilon"], "delta": 1e-5}
    odds = np.exp(promised["epsilon"])
    assert float(promised["certainty"].removesuffix(" %")) == pytest.approx(100 * odds / (1 + odds), abs=0.51)
    assert {"data_domain", "unprotected_quantities"} < set(fields["dp_flavor"])
    assert set(fields["accounting"]) == {"composition", "post_processing"}
    assert {"mechanisms", "security", "justification"} < set(fields["implementation"])
    assert fields["deployment_model"]["model_name"] == "central"


def test_no_name_becomes_markup(released: Path) -> None:
    for name in ("privacy-card.html", "privacy-card.md", "model-card.md"):
        text = (released / name).read_text()
        assert "<script" not in text
        assert "<b>" not in text
        assert "&lt;script&gt;" in text
    assert "Müller &amp; &lt;b&gt;Söhne" in (released / "privacy-card.html").read_text()
    assert "/kWh/" in (released / "privacy-card.md").read_text()


# ---- what is refused


def test_what_may_not_leave_is_refused_in_one_sentence(own: Path, plain: Path, place: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="test run with a known seed"):
        release(made(tmp_path / "test", test_only=True), tmp_path / "out")
    with pytest.raises(UserError, match=r"without-privacy: Trained without privacy.*acknowledge='without-privacy'"):
        release(plain, tmp_path / "out")
    with pytest.raises(UserError, match="acknowledge='clock' names nothing that this run leaves uncovered"):
        release(own, tmp_path / "out", acknowledge="clock")
    with pytest.raises(UserError, match="`curater` is no field"):
        release(own, tmp_path / "out", curater="x")
    with pytest.raises(UserError, match="not empty"):
        release(own, own)
    assert not (tmp_path / "out").exists()
    release(plain, tmp_path / "out", acknowledge="without-privacy")
    assert {path.name for path in (tmp_path / "out").iterdir()} == LIST - {"ledger.jsonl"}
    assert verify(tmp_path / "out").problems == ()
    assert "trained without privacy" in (tmp_path / "out" / "privacy-card.html").read_text()


def test_what_is_not_covered_must_be_named(own: Path, tmp_path: Path) -> None:
    """The same ledger with three gaps: all but the one that stays behind must be acknowledged, each by its name."""
    run = shutil.copytree(own, tmp_path / "run")
    segment = read(own).segments[0]
    gaps = [
        "losses, gradient norms and clipping rates in the folder not-private",
        "days and weeks by the clock: so",
        "The moon",
        "days and weeks by the clock: too",
    ]
    (run / "ledger.jsonl").unlink()
    with Ledger.open(run, segment.plan, segment.contributions, facts={"not_covered": gaps}) as ledger:
        for left in (3, 2, 1):
            ledger.take(left)
        spec = json.loads((run / "model.json").read_bytes())
        spec["privacy"] = json.loads(json.dumps(Statement.of(ledger.record).to_dict()))
        spec["ledger_head"] = ledger.own.head
    (run / "model.json").write_text(json.dumps(spec))
    for given in ("", "clock", ["moon"]):
        with pytest.raises(UserError, match="add acknowledge='clock,moon'"):
            release(run, tmp_path / "out", acknowledge=given)
    release(run, tmp_path / "out", acknowledge="clock, moon")
    assert verify(tmp_path / "out").problems == ()
    assert json.loads((tmp_path / "out" / "manifest.json").read_bytes())["acknowledged"] == ["clock", "moon"]
    assert "by the clock: so; days and weeks by the clock: too" in (tmp_path / "out" / "privacy-card.md").read_text()
    assert "not-private" not in (tmp_path / "out" / "privacy-card.md").read_text()


def test_a_large_epsilon_must_be_acknowledged(tmp_path: Path) -> None:
    run = made(tmp_path / "run", noise_multiplier=0.2)
    with pytest.raises(UserError, match="acknowledge='hardly-any-protection'"):
        release(run, tmp_path / "out")
    release(run, tmp_path / "out", acknowledge=["hardly-any-protection"])
    assert "gives hardly any protection" in (tmp_path / "out" / "privacy-card.html").read_text()


def test_every_sentence_about_a_gap_has_its_short_name() -> None:
    origin: Any = {"source": "etth1", "origin": "public"}
    sentences = {
        "logs": LOGGED,
        "clock": CLOCK_CHANGES,
        "beginning": Start(digest="", sizes={}, **origin).sentence,
        "bounds": Measured(**origin).sentence,
        "scaling": Scaling("nonprivate", (0.0,), (1.0,), (0.1,), (0.1,), "nonprivate").warning(),
    }
    assert {name: short_name(str(one)) for name, one in sentences.items()} == {name: name for name in sentences}
    assert short_name("the choice of the best of several private runs") == "choice-best-several-priv"


@pytest.mark.parametrize("edit", ["epsilon", "no ledger", "no gaps", "cut"])
def test_a_statement_that_lacks_something_or_is_contradicted_is_refused(own: Path, tmp_path: Path, edit: str) -> None:
    run = shutil.copytree(own, tmp_path / "run")
    ledger, spec = run / "ledger.jsonl", json.loads((run / "model.json").read_bytes())
    if edit == "epsilon":
        spec["privacy"]["epsilon"]["headline"] = 0.5
        (run / "model.json").write_text(json.dumps(spec))
    elif edit == "no ledger":
        ledger.unlink()
    elif edit == "cut":
        ledger.write_bytes(b"".join(ledger.read_bytes().splitlines(keepends=True)[:1]))
    else:
        segment = read(run).segments[0]
        ledger.unlink()
        with Ledger.open(run, segment.plan, segment.contributions) as opened:
            opened.take(3)
            spec["privacy"], spec["ledger_head"] = Statement.of(opened.record).to_dict(), opened.own.head
        (run / "model.json").write_text(json.dumps(spec))
    sentences = {
        "epsilon": "says ε = 0.5, but the ledger beside it says",
        "no ledger": "No ledger",
        "no gaps": "lacks what is not covered",
    }
    with pytest.raises(UserError, match=sentences.get(edit, "has 3 steps and its ledger paid for 0")):
        release(run, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_nothing_half_written_is_left(own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(room, "rendered", full)
    (tmp_path / "out").mkdir()
    with pytest.raises(UserError, match="free some space"):
        release(own, tmp_path / "out")
    assert list(tmp_path.iterdir()) == [tmp_path / "out"]
    assert list((tmp_path / "out").iterdir()) == []


def test_a_model_releases_its_run(own: Path, tmp_path: Path, run: Run) -> None:
    paths = Model.load(own, "cpu").release(tmp_path / "out", purpose="tests")
    assert {path.name for path in paths} == LIST
    assert run("verify", tmp_path / "out").code == 0
    lost = Model.load(own, "cpu")
    lost.folder = tmp_path / "gone"
    with pytest.raises(UserError, match="fit the model with `out`"):
        lost.release(tmp_path / "again")


# ---- what verify notices


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


def test_a_flag_names_what_must_be_acknowledged(
    plain: Path, tmp_path: Path, run: Run, mistake: Callable[..., str]
) -> None:
    assert "add --acknowledge without-privacy." in mistake("release", plain, tmp_path / "out")
    assert run("release", plain, tmp_path / "out", "--acknowledge", "without-privacy").code == 0


# ---- signatures


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
