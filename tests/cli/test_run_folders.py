"""A run's folder: given back if the run is refused, continued on the same data alone, scored wherever the data is."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import tamedit as tame
from support import Run, csv, meter, untouched

SMOKE = ("--scale", "smoke", "--steps", 2, "--window", 24)


@pytest.mark.parametrize(
    "options",
    [
        ("--epsilon", 8, "--unit", "series"),  # one meter is no data set to hide in
        ("--epsilon", 1e-3, "--unit", "day", "--noise-multiplier", 0.5, "--batch-size", 4),  # pays for no step
        ("--epsilon", 0.05, "--unit", "day", "--lower", 0, "--upper", 1, "--batch-size", 4),  # nor for statistics
    ],
)
def test_a_refused_run_leaves_nothing_in_the_way(
    options: tuple[object, ...], mistake: Callable[..., str], run: Run, tmp_path: Path
) -> None:
    file, out = csv(tmp_path / "meter.csv", meter(900)), tmp_path / "run"
    with untouched(tmp_path):
        mistake("train", file, "--out", out, *SMOKE, *options)
    assert run("train", file, "--out", out, *SMOKE).code == 0


def test_a_run_that_has_spent_is_kept(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake after the first step must not take the ledger with it."""
    from tamedit.errors import UserError
    from tamedit.training import loop

    def full(trainer: loop.Trainer) -> None:
        if trainer.step:
            raise UserError("no space")

    monkeypatch.setattr(loop.Trainer, "save", full)
    file, out = csv(tmp_path / "meter.csv", meter(900)), tmp_path / "run"
    private = ("--epsilon", 8, "--unit", "day", "--batch-size", 4)
    assert run("train", file, "--out", out, *SMOKE, *private).code == 2
    assert '"charge"' in (out / "ledger.jsonl").read_text()


@pytest.mark.parametrize("privacy", [(), ("--epsilon", 8, "--unit", "day", "--batch-size", 4)])
def test_a_run_is_continued_on_the_same_data_alone(
    privacy: tuple[object, ...], mistake: Callable[..., str], run: Run, tmp_path: Path
) -> None:
    frame, out = meter(900), tmp_path / "run"
    file = csv(tmp_path / "meter.csv", frame)
    same = ("train", file, "--out", out, *SMOKE, *privacy)
    assert run(*same).code == 0
    csv(file, frame.iloc[:800])
    with untouched(out):
        assert "The data is not what" in mistake(*same, "--resume")
    csv(file, 100 * frame)
    if privacy:  # its readings leave no trace in the folder, not even a digest
        assert "digest" not in (out / "reading.json").read_text()
    else:
        with untouched(out):
            assert "The data is not what" in mistake(*same, "--resume")
    csv(file, frame)
    assert run(*same, "--resume").code == 0


def test_data_that_was_moved_is_named(
    run: Run, mistake: Callable[..., str], smoke_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, moved = tmp_path / "run", tmp_path / "moved.csv"
    shutil.copytree(smoke_run, folder)
    shutil.copy(smoke_run.parent / "meter.csv", moved)
    few = ("--samples", 4, "--windows", 2, "--json", "--resamples", 0)
    before = json.loads(run("evaluate", folder, *few).out)
    config = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(config | {"source": "gone.csv"}))
    assert "no file gone.csv" in mistake("evaluate", folder, *few)
    after = json.loads(run("evaluate", folder, "--data", moved, *few).out)
    assert after["tasks"] == before["tasks"]
    assert run("report", folder, "--data", moved, "--samples", 4, "--windows", 2).code == 0


def test_a_table_in_memory_is_not_looked_for(mistake: Callable[..., str], tmp_path: Path) -> None:
    tame.fit(meter(400), scale="smoke", steps=1, window=24, out=tmp_path / "run")
    assert "fitted on a table in memory" in mistake("evaluate", tmp_path / "run")


def test_options_without_effect(mistake: Callable[..., str], smoke_run: Path, tmp_path: Path) -> None:
    file = csv(tmp_path / "meter.csv", meter(900))
    train = ("train", file, "--out", tmp_path / "run", *SMOKE)
    with untouched(tmp_path):
        assert "--tuning low_rank" in mistake(*train, "--init", smoke_run, "--rank", 8)
        assert "--bounds off bounds nothing" in mistake(*train, "--bounds", "off", "--operator", "hard_clamp")
        assert "--units reads none" in mistake("plan", "--units", 100, "--time", "when")
        forecast = ("forecast", smoke_run, file, "--horizon", 2, "--out", tmp_path / "ahead.csv")
        assert "has no covariates" in mistake(*forecast, "--future", file)


def test_the_clock_of_training_is_kept(tmp_path: Path) -> None:
    """Stamps in UTC, a model of New York's clock: data is read by that clock again, unless another is named."""
    hours = pd.date_range("2024-01-01", periods=500, freq="h", tz="UTC")
    frame = pd.DataFrame({"time": hours, "kwh": meter(500)["kwh"].to_numpy()})
    model = tame.fit(frame, scale="smoke", steps=1, window=24, timezone="America/New_York")
    saved = tame.Model.load(model.save(tmp_path / "model")[0].parent)
    assert str(saved.read(frame).times.tz) == "America/New_York"
    assert str(saved.read(frame, timezone="Europe/Paris").times.tz) == "Europe/Paris"


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [({"privacy": 8}, "no request for privacy"), ({"privacy": {"epsilon": 8}}, "no request")],
)
def test_arguments_of_fit_of_the_wrong_kind(wrong: dict[str, object], sentence: str) -> None:
    with pytest.raises(tame.UserError, match=sentence):
        tame.fit(meter(400), scale="smoke", steps=1, **wrong)  # type: ignore[arg-type]
