"""A student on disk: what it knows, what it says of its teacher's privacy, what it refuses, and that it reads nothing private."""

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
from released_runs import made
from support import Run, untouched
from tamedit.cli import distill as cli
from tamedit.cli.account import of_run
from tamedit.data.simulate import simulate
from tamedit.diagnostics.magnitudes import measure_run
from tamedit.diffusion.sample import SamplerConfig
from tamedit.errors import UserError
from tamedit.runs.artifact import ModelSpec
from tamedit.runs.release import digest, release
from tamedit.runs.verification import verify
from tamedit.tasks import distilled, public_windows
from tamedit.tasks.model import Model
from tamedit.training import student as learning
from tamedit.training.homes import Fleet

pytestmark = pytest.mark.filterwarnings("ignore:The student is no nearer")  # after one step or two


@pytest.fixture(scope="module", autouse=True)
def few() -> Any:
    """A few simulated homes, and few paths."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distilled, "FLEETS", (Fleet(60, 4, 2, 168, 1), Fleet(15, 4, 2, 96, 1)))
        for name, value in {"FRESH": 32, "BATCH": 16, "HELD_OUT": 16}.items():
            patch.setattr(learning, name, value)
        yield


@pytest.fixture(scope="module")
def teacher(smoke_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The smoke run's folder, far from its data."""
    return shutil.copytree(smoke_run, tmp_path_factory.mktemp("teacher") / "run")


@pytest.fixture(scope="module")
def student(teacher: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("students") / "student"
    Model.load(teacher, "cpu").distill(out, calls=2, steps=2)
    return out


def calls_of(model: Model, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The times at which the network is asked from now on."""
    asked: list[int] = []
    plain = type(model.network).denoise

    def denoise(network: Any, noised: torch.Tensor, time: torch.Tensor, prepared: Any) -> torch.Tensor:
        asked.append(int(time[0]))
        return plain(network, noised, time, prepared)

    monkeypatch.setattr(type(model.network), "denoise", denoise)
    return asked


def gap() -> pd.DataFrame:
    frame = simulate(hours=48, seed=8).frame()
    frame.iloc[5:9] = np.nan
    return frame


def test_it_is_asked_at_its_own_times_alone(student: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tame.load(student, "cpu")
    times = model.spec.process.calls
    assert times is not None
    assert len(times) == 2
    assert "a student of 2 calls, without privacy" in repr(model)
    asked = calls_of(model, monkeypatch)
    model.impute(gap(), samples=3)
    assert tuple(asked) == times
    plain, said = (model.impute(gap(), samples=3, sampler=SamplerConfig(steps=steps)) for steps in (None, 2))
    pd.testing.assert_frame_equal(plain, said)
    for other in (SamplerConfig(steps=8), SamplerConfig(solver="ddim")):
        with pytest.raises(UserError, match="student that was distilled to 2 calls"):
            model.impute(gap(), samples=3, sampler=other)


def test_what_it_says_of_itself_survives_the_disk(teacher: Path, student: Path, tmp_path: Path) -> None:
    before, model = Model.load(teacher, "cpu").spec, Model.load(student, "cpu")
    made = model.spec.student
    assert made is not None
    assert made.teacher == digest(teacher / "model.safetensors") != digest(student / "model.safetensors")
    assert (made.contexts, made.steps, made.seed) == ("simulated homes", 2, 0)
    assert 0 < made.apart < 1
    changed = {"process", "student", "weights_sha256"}
    assert model.spec.model_dump(exclude=changed) == before.model_dump(exclude=changed)
    model.save(tmp_path / "copy")
    assert Model.load(tmp_path / "copy", "cpu").spec == model.spec
    said = json.loads((student / "model.json").read_text())
    for edit in ({"student": None}, {"process": before.process.model_dump()}):
        with pytest.raises(ValueError, match="a student has a teacher and calls"):
            ModelSpec.model_validate(said | edit)
    for calls in ([], [5, 5], [3, 7], [1000]):
        with pytest.raises(ValueError, match="not time steps that fall"):
            ModelSpec.model_validate(said | {"process": said["process"] | {"calls": calls}})


def test_the_folder_of_a_run_makes_one_that_is_evaluated_like_it(student: Path, smoke_run: Path, run: Run) -> None:
    names = {path.name for path in student.iterdir()}
    assert names == {"model.safetensors", "model.json", "run.json", "reading.json"}
    answer = run("evaluate", student, "--windows", 2, "--samples", 4, "--json")
    assert answer.code == 0, answer.err
    assert set(json.loads(answer.out)["tasks"]) > {"imputation", "forecast"}
    assert "holds a student" in run("train", smoke_run.parent / "meter.csv", "--out", student, "--resume").err
    with pytest.raises(UserError, match="holds a student"):
        tame.load_initial_run(student)
    with pytest.raises(UserError, match="student"):
        measure_run(student, anyway=True)
    with pytest.raises(UserError, match="student already"):
        Model.load(student, "cpu").distill(student.parent / "again")


def test_nothing_private_is_read(teacher: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its data, and with a reader that raises, the student is the same."""
    first = Model.load(teacher, "cpu").distill(tmp_path / "first", steps=2)

    def refuse(*given: Any, **named: Any) -> None:
        raise AssertionError("something was read")

    for name in ("load_split", "split_by_time", "load_run"):
        monkeypatch.setattr(public_windows, name, refuse)
    monkeypatch.setattr(Model, "read", refuse)
    alone = tmp_path / "alone"
    alone.mkdir()
    for name in ("model.safetensors", "model.json"):
        shutil.copyfile(teacher / name, alone / name)
    again = Model.load(alone, "cpu").distill(tmp_path / "second", steps=2)
    assert first.spec == again.spec
    assert {path.name for path in (tmp_path / "second").iterdir()} == {"model.safetensors", "model.json"}


def test_a_student_of_a_private_run_has_its_guarantee(remembered: None, tmp_path: Path) -> None:
    own = made(tmp_path / "run")
    out = tmp_path / "student"
    Model.load(own, "cpu").distill(out, calls=1, steps=1)
    assert (out / "ledger.jsonl").read_bytes() == (own / "ledger.jsonl").read_bytes()
    assert of_run(out, None) == of_run(own, None)
    said = [json.loads((folder / "model.json").read_text())["privacy"] for folder in (own, out)]
    assert said[0] == said[1]
    released = tmp_path / "release"
    release(out, released)
    assert verify(released).problems == ()
    card = (released / "model-card.md").read_text()
    assert "to 1 of the usual 8 calls" in card
    assert "windows of simulated homes" in card
    of_release = tmp_path / "of-release"
    release(own, tmp_path / "teacher-release")
    Model.load(tmp_path / "teacher-release", "cpu").distill(of_release, calls=1, steps=1)
    assert {path.name for path in of_release.iterdir()} == {"model.safetensors", "model.json", "ledger.jsonl"}
    assert of_run(of_release, None)["epsilon"] == of_run(own, None)["epsilon"]


def test_data_must_be_public(teacher: Path, remembered: None, tmp_path: Path) -> None:
    file = tmp_path / "homes.csv"
    simulate(hours=600, seed=9).frame().to_csv(file)
    model = Model.load(teacher, "cpu")
    with pytest.raises(UserError, match="not known to be public"):
        model.distill(tmp_path / "out", steps=1, data=file)
    made_of = model.distill(tmp_path / "out", steps=1, data=file, public=True).spec.student
    assert made_of is not None
    assert made_of.contexts == "homes.csv, which the user says is public or simulated"
    own = made(tmp_path / "run")
    settings = json.loads((own / "run.json").read_text())
    (own / "run.json").write_text(json.dumps(settings | {"source": str(file)}))
    with pytest.raises(UserError, match="is the private data that this model was trained on"):
        Model.load(own, "cpu").distill(tmp_path / "other", steps=1, data=file, public=True)
    assert not (tmp_path / "other").exists()


def spec_with(model: Model, **changed: Any) -> Model:
    return Model(model.network, model.spec.model_copy(update=changed), None)


def test_where_simulated_homes_do_not_fit(teacher: Path, tmp_path: Path) -> None:
    model = Model.load(teacher, "cpu")
    scaling = model.spec.scaling
    for changed, words in (
        ({"targets": ("a", "b")}, "has 2 and 0; give public data"),
        ({"covariates": ("sun",)}, "has 1 and 1; give public data"),
        ({"frequency_seconds": 600.0}, "every 10 minutes; give public data"),
        ({"scaling": {**scaling, "level": [-3.0]}}, "typical level is -3"),
        ({"process": model.spec.process.model_copy(update={"prediction": "epsilon"})}, "predict the velocity"),
    ):
        with pytest.raises(UserError, match=words):
            spec_with(model, **changed).distill(tmp_path / "out", steps=1)
    assert list(tmp_path.iterdir()) == []


def test_homes_are_in_the_unit_of_the_model(teacher: Path) -> None:
    model = Model.load(teacher, "cpu")
    plain, _ = distilled._simulated(spec_with(model, scaling={**model.spec.scaling, "level": [0.4]}))
    watts, _ = distilled._simulated(spec_with(model, scaling={**model.spec.scaling, "level": [400.0]}))
    np.testing.assert_allclose(watts.values, 1000 * plain.values, rtol=1e-5)


def test_the_command_says_what_it_made(
    teacher: Path, run: Run, mistake: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "student"
    answer = run("distill", teacher, "--out", out, "--calls", 1, "--steps", 1, "--json")
    assert answer.code == 0, answer.err
    said = json.loads(answer.out)
    assert said["files"] == [str(path) for path in sorted(out.iterdir())]
    assert (said["calls"], said["steps"], said["contexts"]) == (1, 1, "simulated homes")
    with untouched(tmp_path):
        assert "not empty" in mistake("distill", teacher, "--out", out)
        assert "is a file" in mistake("distill", teacher, "--out", out / "model.json")
        assert "--calls" in mistake("distill", teacher, "--out", tmp_path / "x", "--calls", 0)
        assert "no trained model" in mistake("distill", tmp_path, "--out", tmp_path / "x")
        assert "There is no file" in mistake(
            "distill", teacher, "--out", tmp_path / "x", "--data", "no.csv", "--public"
        )
        assert "say --public if" in mistake("distill", teacher, "--out", tmp_path / "x", "--data", "etth2.csv")
        assert "time say how to read --data" in mistake("distill", teacher, "--out", tmp_path / "x", "--time", "t")

        def stop(*given: Any, **named: Any) -> None:
            raise learning.Stopped

        monkeypatch.setattr(distilled, "learn", stop)
        ended = run("distill", teacher, "--out", tmp_path / "x")
        assert (ended.code, ended.err.strip()) == (130, "tamedit: stopped; nothing was written.")


def test_defaults_are_the_same_in_python_and_on_the_command_line() -> None:
    import inspect

    core, command = (inspect.signature(one).parameters for one in (distilled.distill, cli.distill))
    for name in ("calls", "steps", "data", "public", "seed"):
        assert core[name].default == command[name].default
