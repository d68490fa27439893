"""Ledger, model file, weights and checkpoint of a run must agree; what disagrees is said in one sentence."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tamedit.cli.account import of_data_set, of_run
from tamedit.data.simulate import simulate
from tamedit.errors import UserError
from tamedit.privacy.entries import read
from tamedit.privacy.settings import Privacy
from tamedit.runs.artifact import load_model
from tamedit.runs.config import Speed
from tamedit.runs.request import TrainRequest
from tamedit.training.requested import run_request

STEPS = 100


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table, a private run on it and the table's ledger."""
    place = tmp_path_factory.mktemp("data")
    simulate(meters=4, hours=24 * 30, seed=1).frame().to_csv(place / "meters.csv", index=False)
    request = TrainRequest(
        out=place / "run",
        scale="smoke",
        size="tiny",
        steps=STEPS,
        window=24,
        batch_size=2,
        privacy=Privacy(epsilon=8.0, unit="day"),
        typical_level=0.35,
        typical_scale=0.35,
    )
    run_request(str(place / "meters.csv"), request, speed=Speed(threads=1, diagnose_every=0))
    return place


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made / "run", tmp_path / "run"))


def edit_model(run: Path, change: Callable[[dict], object]) -> None:
    spec = json.loads((run / "model.json").read_text())
    change(spec)
    (run / "model.json").write_text(json.dumps(spec))


def cut(run: Path, lines: int) -> None:
    kept = (run / "ledger.jsonl").read_text().splitlines(keepends=True)[:-lines]
    (run / "ledger.jsonl").write_text("".join(kept))


def test_files_of_one_run_agree(run: Path, made: Path) -> None:
    said = of_run(run, None)
    spec = json.loads((run / "model.json").read_text())
    assert said["epsilon"] == spec["privacy"]["epsilon"]
    assert said["steps"] == STEPS
    assert said["statement"] == spec["privacy"]["statement"]
    assert "only private run in the data set's ledger, meters.privacy-ledger.jsonl" in said["statement"]
    assert spec["ledger_head"] == json.loads((run / "ledger.jsonl").read_text().splitlines()[-1])["check"]
    assert [
        (one["folder"], one["steps"]) for one in of_data_set(made / "meters.privacy-ledger.jsonl", None)["runs"]
    ] == [(str(made / "run"), STEPS)]


def alter_weights(run: Path) -> None:
    content = bytearray((run / "model.safetensors").read_bytes())
    content[-1] ^= 1
    (run / "model.safetensors").write_bytes(bytes(content))


DISAGREEMENTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "cut": (lambda run: cut(run, 6), r"checkpoint in .* has 100 steps and its ledger paid for 56"),
    "cut, no checkpoint": (
        lambda run: (cut(run, 6), (run / "checkpoint.safetensors").unlink()),
        "says 100 steps, but the ledger beside it says 56, so lines were cut",
    ),
    "cut by a line without steps": (
        lambda run: edit_model(run, lambda spec: spec.update(ledger_head="0" * 16)),
        r"has lost lines, or belongs to another run: the last line that the model names \(0000",
    ),
    "edited epsilon": (
        lambda run: edit_model(run, lambda spec: spec["privacy"]["epsilon"].update(headline=0.5)),
        r"says ε = 0\.5, but the ledger beside it says ε = 8",
    ),
    "edited epsilon of an earlier version": (
        lambda run: edit_model(
            run, lambda spec: (spec["privacy"]["epsilon"].update(headline=0.5), spec.pop("ledger_head"))
        ),
        r"says ε = 0\.5, but the ledger beside it says ε = 8",
    ),
    "edited unit": (lambda run: edit_model(run, lambda spec: spec["privacy"].update(unit="series")), "another unit"),
    "edited words": (
        lambda run: edit_model(run, lambda spec: spec["privacy"].update(statement="perfectly private")),
        "another statement",
    ),
    "edited gaps": (
        lambda run: edit_model(run, lambda spec: spec["privacy"].update(not_covered=[])),
        "another not covered",
    ),
    "altered weights": (alter_weights, r"model\.safetensors is not the file that model\.json names by its digest"),
    "no privacy": (
        lambda run: edit_model(run, lambda spec: spec.update(privacy={"private": False, "statement": "none"})),
        "says that the model was trained without privacy, but the ledger beside it says a private run",
    ),
}


@pytest.mark.parametrize("name", DISAGREEMENTS)
def test_what_disagrees_is_said(name: str, run: Path) -> None:
    change, sentence = DISAGREEMENTS[name]
    change(run)
    with pytest.raises(UserError, match=sentence) as error:
        of_run(run, None)
    assert "\n" not in str(error.value)


def test_altered_weights_are_not_loaded(run: Path) -> None:
    alter_weights(run)
    with pytest.raises(UserError, match="names by its digest"):
        load_model(run)


def test_a_model_file_is_no_ledger(run: Path) -> None:
    with pytest.raises(UserError, match=r"model\.json is no ledger but a file of the run beside it; name its folder"):
        of_data_set(run / "model.json", None)
    (run / "ledger.jsonl").unlink()
    with pytest.raises(UserError, match=r"model\.json is no ledger"):
        of_data_set(run / "model.json", None)


def test_a_data_sets_ledger_that_lacks_a_charge(run: Path, made: Path, tmp_path: Path) -> None:
    shared = tmp_path / "meters.privacy-ledger.jsonl"
    shutil.copy(made / shared.name, shared)
    facts = json.loads((run / "reading.json").read_text()) | {"ledger": str(shared)}
    (run / "reading.json").write_text(json.dumps(facts))
    of_run(run, None)
    shared.write_text("".join(shared.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(UserError, match="lacks charges of the run"):
        of_run(run, None)


def test_a_second_run_may_spend_what_is_left(made: Path, tmp_path: Path) -> None:
    """In another folder, with another unit's window or none: the data is the same, and so is its budget."""
    table = tmp_path / "meters.csv"
    for name in ("meters.csv", "meters.privacy-ledger.jsonl"):
        shutil.copy(made / name, tmp_path / name)

    def again(out: str, epsilon: float, **other: object) -> None:
        request = TrainRequest(
            out=tmp_path / out,
            scale="smoke",
            size="tiny",
            steps=4,
            window=24,
            batch_size=2,
            privacy=Privacy(epsilon=epsilon, unit="day"),
            typical_level=0.35,
            typical_scale=0.35,
            **other,
        )
        run_request(table, request, speed=Speed(threads=1, diagnose_every=0))

    with pytest.raises(
        UserError, match=r"Of epsilon=8 nothing is left: 1 private run on this data spent ε = 8 per day"
    ):
        again("b", 8.0)
    assert not (tmp_path / "b").exists()
    again("b", 9.0)
    record = read(tmp_path / "meters.privacy-ledger.jsonl")
    assert len(record.runs) == 2
    assert 8.9 < record.epsilon("day", 1e-5).value <= 9.0
    alone = read(tmp_path / "b").epsilon("day", 1e-5).value
    page = (tmp_path / "b" / "PRIVACY.md").read_text()
    assert "2 private runs are in the data set's ledger, meters.privacy-ledger.jsonl: ε = 9 together" in page
    again("c", 8.0, ledger=tmp_path / "other.jsonl")
    assert 7.9 < read(tmp_path / "other.jsonl").epsilon("day", 1e-5).value <= 8.0
    assert alone < 9.0


def test_the_page_of_a_run(made: Path) -> None:
    page = (made / "run" / "PRIVACY.md").read_text()
    said = of_run(made / "run", None)
    for line in said["statement"].splitlines():
        assert f"- {line}\n" in page
    for one in said["units"].values():
        assert one["reason"] in page
    assert "So this protection is weak." in page
    assert "- `not-private`: losses" in page
