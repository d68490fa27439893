"""The grid: results are made once, survive a kill, and say what made them."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tamedit_paper.grid import results as keeping
from tamedit_paper.grid.results import Job, Result, agrees, load
from tamedit_paper.grid.work import configuration, is_done, run
from tamedit_paper.grid.workers import run_grid

CELLS = ("simulated/non-dp", "simulated/vanilla/sigma=0.1", "simulated/aware/sigma=0.1/medium/tanh")
JOBS = [Job(cell=cell, scale="smoke", seed=0) for cell in CELLS]
TIMES = ("seconds", "time")


def numbers(folder: Path) -> dict[str, object]:
    """Every result in a folder, without what a clock said."""
    found = {}
    for path in sorted(folder.rglob("*.json")):
        plain = json.loads(path.read_text())
        plain.pop("seconds")
        plain["gradients"].pop("time")
        found[str(path.relative_to(folder))] = plain
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("grid")
    outcome = run_grid(JOBS, folder / "results", folder / "work", 2, lambda *_: None)
    assert (outcome.made, outcome.skipped, outcome.failed) == (3, 0, {})
    return folder / "results"


def test_results_are_made_once(made: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in made.rglob("*.json")}
    outcome = run_grid(JOBS, made, made.parent / "work", 2, lambda *_: None)
    assert (outcome.made, outcome.skipped) == (0, 3)
    assert {path: path.stat().st_mtime_ns for path in made.rglob("*.json")} == before
    assert not list((made.parent / "work").rglob("*.safetensors")), (
        "the large files are dropped when the small one is there"
    )


def test_a_result_holds_what_tables_need(made: Path) -> None:
    vanilla = load(JOBS[1].place(made, ".json"))
    assert vanilla is not None
    for task in ("imputation", "forecast"):
        for metric in ("point_RMSE", "point_MAE", "R2", "dist_JS", "temp_spec_dist", "CRPS"):
            assert isinstance(vanilla.number(task, metric), float)
        assert isinstance(vanilla.number(task, "point_RMSE", method="linear_interpolation"), float)
    window, record = vanilla.epsilon["window"], vanilla.epsilon["record"]
    assert window is not None
    assert record is not None
    assert 0 < window < record, "a reading lies in several windows"
    assert len(vanilla.curves["total"]) == len(vanilla.curves["quantiles"])
    assert vanilla.gradients["clipping"]["p_clip"] <= 1
    plain = load(JOBS[0].place(made, ".json"))
    assert plain is not None
    assert plain.epsilon == {}
    assert plain.gradients["norms"]["total"]["p99"] > 0, "a run without privacy looks at its gradients, too"


def test_another_configuration_or_version_is_due_again(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job, found = JOBS[1], load(JOBS[1].place(made, ".json"))
    assert found is not None
    assert is_done(job, made)
    config = configuration(job)
    assert agrees(found, config)
    longer = config.model_copy(update={"training": config.training.model_copy(update={"steps": 4})})
    assert not agrees(found, longer)
    otherwise = found.config["training"] | {"decay": "cosine" if config.training.decay != "cosine" else "constant"}
    other = found.model_copy(update={"config": found.config | {"training": otherwise}})
    assert not agrees(other, config), "another value counts even where today's is the default"
    forgotten = {key: value for key, value in found.config.items() if key != "calendar"}
    assert agrees(found.model_copy(update={"config": forgotten}), config), "an option that came later has its default"
    monkeypatch.setattr(keeping, "NUMBERS_VERSION", keeping.NUMBERS_VERSION + 1)
    assert not is_done(job, made)


def test_a_failing_run_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    jobs = [Job(cell="simulated/aware/epsilon=8/unit=series/medium/tanh", scale="smoke", seed=0), JOBS[0]]
    outcome = run_grid(jobs, tmp_path / "results", tmp_path / "work", 1, lambda *_: None)
    assert outcome.made == 1
    (reason,) = outcome.failed.values()
    assert "UserError" in reason


def test_killed_and_continued_gives_the_same(made: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tamedit_paper.grid.workers import run_grid; "
        "from tamedit_paper.grid.results import Job; "
        f"jobs = [Job(cell=c, scale='smoke', seed=0) for c in {CELLS!r}]; "
        "run_grid(jobs, Path(sys.argv[1]), Path(sys.argv[2]), 2, lambda *_: None)"
    )
    arguments = [sys.executable, "-c", code, str(tmp_path / "results"), str(tmp_path / "work")]
    for _ in range(2):
        process = subprocess.Popen(arguments, start_new_session=True)
        deadline = time.monotonic() + 60
        while (
            not list((tmp_path / "work").rglob("run.json")) and time.monotonic() < deadline and process.poll() is None
        ):
            time.sleep(0.02)
        workers = subprocess.run(
            ["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=False
        ).stdout.split()
        for number in [process.pid, *map(int, workers)]:
            os.kill(number, signal.SIGKILL)
        process.wait()
    outcome = run_grid(JOBS, tmp_path / "results", tmp_path / "work", 2, lambda *_: None)
    assert outcome.failed == {}
    assert numbers(tmp_path / "results") == numbers(made)


def test_a_damaged_result_is_made_again(made: Path, tmp_path: Path) -> None:
    path = JOBS[0].place(tmp_path, ".json")
    path.parent.mkdir(parents=True)
    path.write_text(JOBS[0].place(made, ".json").read_text()[:200])
    result = run(JOBS[0], tmp_path, tmp_path / "work")
    assert isinstance(result, Result)
    assert load(path) is not None
