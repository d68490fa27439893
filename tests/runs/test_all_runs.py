"""What a release says of all runs on its data together is held against the data set's ledger, if that is shown."""

from pathlib import Path

import pytest

from support import Run
from tamedit.data.simulate import simulate
from tamedit.data.split import split_by_time
from tamedit.privacy.entries import read
from tamedit.privacy.settings import Privacy
from tamedit.runs.all_runs import compared
from tamedit.runs.artifact import ModelSpec
from tamedit.runs.config import Speed
from tamedit.runs.folder import DataFacts
from tamedit.runs.recipe import make_config
from tamedit.runs.release import release
from tamedit.runs.verification import verify
from tamedit.training.run import train


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs on one data set; the second one is released before the third begins."""
    place = tmp_path_factory.mktemp("together")
    series = simulate(meters=2, hours=900, seed=5)
    facts = DataFacts(ledger=str(place / "meters.privacy-ledger.jsonl"))
    for name in "abc":
        wanted = Privacy(noise_multiplier=3.0, unit="day", examples=50)
        config = make_config(series, "meters.csv", scale="smoke", steps=3, window=24, size="tiny", privacy=wanted)
        train(split_by_time(series), config, place / name, facts=facts, speed=Speed(threads=1))
        if name == "b":
            release(place / "b", place / "out")
    return place


def test_the_sum_is_derived_from_the_ledger_or_said_to_be_unchecked(place: Path, run: Run) -> None:
    ledger = place / "meters.privacy-ledger.jsonl"
    alone = verify(place / "out")
    assert alone.problems == ()
    assert any(
        "(2 runs, ε = " in note and "was not checked: it follows from meters.privacy" in note for note in alone.notes
    )
    shown = verify(place / "out", ledger=ledger)
    assert shown.problems == ()
    assert any("derived from meters.privacy-ledger.jsonl: 3 private runs by now" in note for note in shown.notes)
    result = run("verify", str(place / "out"), "--ledger", str(ledger))
    assert result.code == 0
    assert "3 private runs by now" in result.out + result.err


def test_another_sum_another_ledger_and_a_cut_ledger_are_noticed(place: Path, tmp_path: Path) -> None:
    ledger = place / "meters.privacy-ledger.jsonl"
    spec, record = ModelSpec.model_validate_json((place / "out" / "model.json").read_bytes()), read(place / "out")
    assert compared(spec, record, ledger)[0] == []
    stated = spec.privacy["together"]
    for changed in ({"epsilon": 0.9 * stated["epsilon"]}, {"epsilon": None}, {"runs": 4}):
        lie = spec.model_copy(update={"privacy": spec.privacy | {"together": stated | changed}})
        assert "together, but derived from" in compared(lie, record, ledger)[0][0]
    silent = spec.model_copy(update={"privacy": spec.privacy | {"together": None}})
    assert "says nothing of all runs together" in compared(silent, record, ledger)[0][0]
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(b"".join(ledger.read_bytes().splitlines(keepends=True)[:3]))
    for other in (cut, place / "a" / "ledger.jsonl"):
        assert "lacks charges of this run" in verify(place / "out", ledger=other).problems[0]


def test_the_card_does_not_claim_an_audit(place: Path) -> None:
    card = (place / "out" / "privacy-card.md").read_text()
    assert "does not know whether an audit was made" in card
    assert "tamedit audit" in card
