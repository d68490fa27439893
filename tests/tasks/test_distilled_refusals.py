"""What a student must not learn on, where its folder cannot be, and what it says of data that the user calls public."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import tamedit as tame
from support import Run, untouched
from tamedit.cli.account import of_run
from tamedit.data.reader import read
from tamedit.data.simulate import simulate
from tamedit.data.sources import place
from tamedit.errors import UserError
from tamedit.runs.release import release
from tamedit.runs.verification import verify
from tamedit.tasks import distilled, public_windows
from tamedit.tasks.model import Model
from tamedit.training import student as learning
from tamedit.training.homes import Fleet

WORDS = "the data that the student learned on (public.csv, which the user says is public or simulated)"


pytestmark = pytest.mark.filterwarnings("ignore:The student is no nearer")  # after one step


@pytest.fixture(scope="module", autouse=True)
def few() -> Any:
    """A few simulated homes, and few paths."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distilled, "FLEETS", (Fleet(60, 4, 2, 168, 1),))
        for name, value in {"FRESH": 32, "BATCH": 16, "HELD_OUT": 16}.items():
            patch.setattr(learning, name, value)
        yield


@pytest.fixture(scope="module")
def private(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a private run; `homes/meters.csv` and its ledger lie beside it."""
    place = tmp_path_factory.mktemp("private")
    (place / "homes").mkdir()
    file = place / "homes" / "meters.csv"
    simulate(meters=2, hours=900, seed=5).frame().to_csv(file)
    privacy = tame.Privacy(noise_multiplier=3.0, unit="day")
    tame.fit(file, scale="smoke", steps=1, window=24, privacy=privacy, out=place / "run")
    return place / "run"


@pytest.fixture
def public(tmp_path: Path) -> Path:
    file = tmp_path / "open" / "public.csv"
    file.parent.mkdir()
    simulate(hours=600, seed=9).frame().to_csv(file)
    return file


def in_memory(homes: Path) -> dict[str, Any]:
    """The same readings, without a name."""
    frame = pd.read_csv(homes / "meters.csv")
    found = {"frame": frame, "shuffled": frame.sample(frac=1, random_state=0), "series": read(homes / "meters.csv")}
    return found | {"renamed": frame.rename(columns={"meter": "who", "time": "when"})}


@pytest.mark.parametrize("kind", ["path", "text", "list", "folder", "glob", "relative", "copy", "link"])
def test_files_of_the_teachers_own_data(
    kind: str, private: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it is called, with the ledger beside it and without."""
    homes = private.parent / "homes"
    monkeypatch.chdir(homes)
    shutil.copy(homes / "meters.csv", tmp_path / "other.csv")
    (tmp_path / "link.csv").symlink_to(homes / "meters.csv")
    file = homes / "meters.csv"
    given: dict[str, Any] = {"path": file, "text": str(file), "list": [str(file)], "folder": homes}
    given |= {"glob": str(homes / "*.csv"), "relative": "meters.csv"}
    given |= {"copy": tmp_path / "other.csv", "link": tmp_path / "link.csv"}
    model = Model.load(private, "cpu")
    with (
        untouched(tmp_path),
        pytest.raises(UserError, match=r"privacy was spent on it|private data that this model"),
    ):
        model.distill(tmp_path / "out", steps=1, data=given[kind], public=True)
    monkeypatch.setattr(public_windows, "_ledger_of", lambda *given: None)
    with untouched(tmp_path), pytest.raises(UserError, match="the private data that this model was trained on"):
        model.distill(tmp_path / "out", steps=1, data=given[kind], public=True)


@pytest.mark.parametrize("kind", ["frame", "shuffled", "series", "renamed"])
def test_the_same_readings_in_memory(kind: str, private: Path, tmp_path: Path) -> None:
    data = in_memory(private.parent / "homes")[kind]
    with untouched(tmp_path), pytest.raises(UserError, match="a table in memory is the private data"):
        Model.load(private, "cpu").distill(tmp_path / "out", steps=1, data=data, public=True)


@pytest.mark.skipif(not place("etth1").is_file(), reason="the file of etth1 is not here")
def test_a_table_of_named_data(tmp_path: Path) -> None:
    """Named data has a split of its own, which its fingerprint is of."""
    privacy = tame.Privacy(noise_multiplier=3.0, unit="day")
    tame.fit("etth1", scale="smoke", steps=1, window=24, privacy=privacy, out=tmp_path / "run")
    with pytest.raises(UserError, match="a table in memory is the private data"):
        Model.load(tmp_path / "run", "cpu").distill(tmp_path / "out", data=pd.read_csv(place("etth1")), public=True)


def test_the_same_readings_written_anew(private: Path, tmp_path: Path) -> None:
    """Another file with the same content, and a folder that was moved away from its data."""
    frame = pd.read_csv(private.parent / "homes" / "meters.csv")
    frame.to_parquet(tmp_path / "anew.parquet")
    moved = shutil.copytree(private, tmp_path / "moved")
    settings = json.loads((moved / "run.json").read_text())
    (moved / "run.json").write_text(json.dumps(settings | {"source": "gone.csv"}))
    with untouched(tmp_path), pytest.raises(UserError, match="is the private data that this model was trained on"):
        Model.load(moved, "cpu").distill(tmp_path / "out", steps=1, data=tmp_path / "anew.parquet", public=True)


def test_data_that_somebody_spent_privacy_on(private: Path, public: Path, tmp_path: Path) -> None:
    """For any model: its ledger has the name of the file, or of the folder, or names it inside."""
    model, said = tame.load("homes", "cpu"), {"steps": 1, "public": True}
    ledger = (private.parent / "homes" / "meters.privacy-ledger.jsonl").read_text()
    named = ledger.replace(str(private.parent / "homes" / "meters.csv"), str(public))
    assert named != ledger
    for name, text in (
        ("open/public.privacy-ledger.jsonl", ""),
        ("open.privacy-ledger.jsonl", ""),
        ("open/all.privacy-ledger.jsonl", None),
    ):
        beside = tmp_path / name
        if text is None:  # a ledger whose lines name this file; their hashes are made anew by a run
            privacy = tame.Privacy(noise_multiplier=3.0, unit="day")
            tame.fit(public, scale="smoke", steps=1, window=24, privacy=privacy, out=tmp_path / "run", ledger=beside)
        else:
            beside.write_text(text)
        with pytest.raises(UserError, match="is no public data: privacy was spent on it"):
            model.distill(tmp_path / "out", data=public, **said)
        beside.unlink()
    (tmp_path / "open" / "other.privacy-ledger.jsonl").write_text(ledger)
    assert public_windows._ledger_of(public, None) is None


def test_named_data_is_known_by_its_file(private: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = shutil.copytree(private, tmp_path / "run")
    file = shutil.copy(private.parent / "homes" / "meters.csv", tmp_path / "ideal.csv")
    monkeypatch.setattr(public_windows, "place", lambda name: Path(file))
    settings = json.loads((own / "run.json").read_text())
    (own / "run.json").write_text(json.dumps(settings | {"source": "ideal"}))
    (own / "not-private" / "data.txt").unlink()
    model = Model.load(own, "cpu")
    for data in ("ideal", file, [file]):
        with pytest.raises(UserError, match="is the private data that this model was trained on"):
            model.distill(tmp_path / "out", steps=1, data=data, public=True)
    (tmp_path / "ideal.privacy-ledger.jsonl").write_text("")
    with pytest.raises(UserError, match="is no public data"):
        model.distill(tmp_path / "out", steps=1, data="ideal", public=True)


def test_what_is_public_by_the_users_word_alone_is_acknowledged(private: Path, public: Path, tmp_path: Path) -> None:
    out = tmp_path / "student"
    Model.load(private, "cpu").distill(out, calls=1, steps=1, data=public, public=True)
    said = json.loads((out / "model.json").read_text())["privacy"]
    assert WORDS in said["not_covered"]
    assert WORDS in said["statement"]
    assert WORDS in (out / "PRIVACY.md").read_text()
    assert WORDS in of_run(out, None)["not_covered"]
    with pytest.raises(UserError, match="distillation: the data that the student learned on"):
        release(out, tmp_path / "release")
    release(out, tmp_path / "release", acknowledge="distillation")
    assert verify(tmp_path / "release").problems == ()
    card = json.loads((tmp_path / "release" / "privacy-card.json").read_text())
    assert card["not_covered"]["distillation"] == WORDS
    page = (tmp_path / "release" / "model-card.md").read_text()
    assert json.loads((out / "model.json").read_text())["student"]["teacher"] in page
    file = out / "model.json"  # a claim that was cut out shows
    file.write_text(file.read_text().replace(", which the user says is public or simulated", ", which is public"))
    with pytest.raises(UserError, match="another not covered"):
        of_run(out, None)


def test_a_private_model_without_its_ledger_says_it_too(private: Path, public: Path, tmp_path: Path) -> None:
    Model.load(private, "cpu").save(tmp_path / "saved")
    Model.load(tmp_path / "saved", "cpu").distill(tmp_path / "out", steps=1, data=public, public=True)
    said = json.loads((tmp_path / "out" / "model.json").read_text())["privacy"]
    assert said["not_covered"][-1] == WORDS
    assert WORDS in said["statement"]


def test_training_keeps_away_from_a_student(
    private: Path, mistake: Callable[..., str], run: Run, tmp_path: Path
) -> None:
    """Of the shipped model, and of a private model whose run is elsewhere: neither has a run.json."""
    release(private, tmp_path / "release")
    tame.load("homes", "cpu").distill(tmp_path / "plain", steps=1)
    Model.load(tmp_path / "release", "cpu").distill(tmp_path / "private", steps=1)
    train = ("train", private.parent / "homes" / "meters.csv", "--scale", "smoke", "--steps", 1, "--window", 24)
    for name in ("plain", "private"):
        for more in ((), ("--epsilon", 8, "--unit", "day"), ("--epsilon", 8, "--unit", "day", "--resume")):
            with untouched(tmp_path):
                said = mistake(*train, "--out", tmp_path / name, *more)
            assert "contains model.json but no run.json" in said or "contains no run to resume" in said
    (tmp_path / "private" / "model.json").unlink()
    with untouched(tmp_path):
        assert "contains ledger.jsonl but no run.json" in mistake(*train, "--out", tmp_path / "private")


def test_the_statement_is_that_of_the_ledger_beside_it(
    private: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ledger that grows while the student learns is not copied after the statement was made."""
    own = shutil.copytree(private, tmp_path / "run")
    before, true = (own / "ledger.jsonl").read_bytes(), distilled.learn

    def grows(*given: Any) -> Any:
        (own / "ledger.jsonl").write_bytes(before + before)
        return true(*given)

    monkeypatch.setattr(distilled, "learn", grows)
    Model.load(own, "cpu").distill(tmp_path / "out", steps=1)
    assert (tmp_path / "out" / "ledger.jsonl").read_bytes() == before


@pytest.mark.parametrize("out", [".", "new/..", "x" * 300, "file/inside"])
def test_folders_that_cannot_be_made_are_found_before_training(
    out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def train(*given: Any) -> None:
        raise AssertionError("it was trained first")

    (tmp_path / "file").write_text("")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(distilled, "learn", train)
    wanted = Path("../file/inside") if out == "file/inside" else out
    with untouched(tmp_path), pytest.raises(UserError, match=r"working directory|Cannot write"):
        tame.load("homes", "cpu").distill(wanted, steps=1)


def test_a_long_name_and_dots_are_taken(tmp_path: Path) -> None:
    model = tame.load("homes", "cpu")
    model.distill(tmp_path / "new" / ".." / ("x" * 250), steps=1)
    assert [path.name for path in tmp_path.iterdir()] == ["x" * 250]


@pytest.mark.parametrize(
    "wrong",
    [{"seed": -1}, {"seed": 1.5}, {"seed": "1"}, {"public": "no"}, {"public": 1}, {"calls": 5}, {"steps": True}],
)
def test_choices_of_the_wrong_kind(wrong: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(UserError, match=next(iter(wrong))):
        tame.load("homes", "cpu").distill(tmp_path / "out", **wrong)
    assert list(tmp_path.iterdir()) == []


def test_a_student_that_came_to_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, weights = tame.load("homes", "cpu"), {"one": torch.ones(1)}
    for found, apart in ((weights, np.nan), ({"one": torch.tensor([np.inf])}, 0.1)):
        monkeypatch.setattr(distilled, "learn", lambda *given, made=(found, apart, 0.3): made)
        with untouched(tmp_path), pytest.raises(UserError, match="not finite, so nothing was written"):
            model.distill(tmp_path / "out")
    own = dict(model.network.named_parameters())
    monkeypatch.setattr(distilled, "learn", lambda *given: (own, 0.4, 0.3))
    with pytest.warns(UserWarning, match="no nearer to its model"):
        model.distill(tmp_path / "out")


def test_short_public_data_says_how_much_it_takes(public: Path, tmp_path: Path) -> None:
    frame = pd.read_csv(public).iloc[:200]
    with pytest.raises(
        UserError, match=r"a window of this model has 168 rows, .* first 70 % of its rows \(140 at most\)"
    ):
        tame.load("homes", "cpu").distill(tmp_path / "out", data=frame, public=True)
