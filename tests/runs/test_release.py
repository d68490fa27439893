"""A release holds what is on the list and nothing else, and is refused where something is missing."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from released_runs import LIST, NAME, made
from support import Run
from tamedit.data.scaling import Scaling
from tamedit.errors import UserError
from tamedit.privacy.entries import read
from tamedit.privacy.ledger import Ledger
from tamedit.privacy.statement import Statement
from tamedit.runs import release as room
from tamedit.runs.cards import short_name
from tamedit.runs.layout import CLOCK_CHANGES
from tamedit.runs.provenance import Measured, Start
from tamedit.runs.release import release
from tamedit.runs.verification import verify
from tamedit.tasks.model import Model
from tamedit.training.private.gradients import LOGGED

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
    segment = read(own).segments[-1]
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
        segment = read(run).segments[-1]
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


def test_a_flag_names_what_must_be_acknowledged(
    plain: Path, tmp_path: Path, run: Run, mistake: Callable[..., str]
) -> None:
    assert "add --acknowledge without-privacy." in mistake("release", plain, tmp_path / "out")
    assert run("release", plain, tmp_path / "out", "--acknowledge", "without-privacy").code == 0
