"""`tamedit report` as a user meets it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from support import Run, untouched

FAST = ("--windows", 2, "--samples", 4, "--device", "cpu")


def test_a_report_is_written_and_named(smoke_run: Path, tmp_path: Path, run: Run) -> None:
    out = tmp_path / "deep" / "page.html"
    code, said, err = run("report", smoke_run, "--out", out, *FAST)
    assert (code, err) == (0, "")
    assert said.splitlines()[-1] == f"wrote {out}"
    assert "not private" in said
    assert out.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert [path.name for path in out.parent.iterdir()] == ["page.html"]


def test_its_own_place_is_the_folder_that_must_not_leave(smoke_run: Path, tmp_path: Path, run: Run) -> None:
    copy = tmp_path / "run"
    shutil.copytree(smoke_run, copy)
    code, said, err = run("report", copy, *FAST, "--json")
    assert (code, err) == (0, "")
    found = json.loads(said)
    assert found["files"] == [str(copy / "not-private" / "report.html")]
    assert (copy / "not-private" / "report.html").stat().st_size > 50_000
    assert found["private"] is False
    assert found["windows"] == 2
    scores = json.loads(run("evaluate", copy, *FAST, "--json").out)
    assert found["tasks"] == scores["tasks"]
    curve = found["reliability"]["forecast"]["model"]
    assert curve["coverage"][curve["levels"].index(0.5)] == found["tasks"]["forecast"]["model"]["z"]["coverage50"]


def test_mistakes(smoke_run: Path, tmp_path: Path, mistake: Callable[..., str]) -> None:
    unfinished = tmp_path / "unfinished"
    shutil.copytree(smoke_run, unfinished)
    (unfinished / "model.safetensors").unlink()
    (tmp_path / "file").write_text("")
    with untouched(tmp_path):
        assert "is not a run" in mistake("report", tmp_path, *FAST)
        assert "is not a run" in mistake("report", tmp_path / "nowhere", *FAST)
        assert "contains no trained model" in mistake("report", unfinished, *FAST)
        assert "is a folder; name a file" in mistake("report", smoke_run, "--out", tmp_path, *FAST)
        assert "is a file and no folder" in mistake("report", smoke_run, "--out", tmp_path / "file" / "x.html", *FAST)
        assert "must end in .html" in mistake("report", smoke_run, "--out", smoke_run.parent / "meter.csv", *FAST)


def test_data_that_is_gone_is_named(smoke_run: Path, tmp_path: Path, mistake: Callable[..., str]) -> None:
    copy = tmp_path / "run"
    shutil.copytree(smoke_run, copy)
    config = json.loads((copy / "run.json").read_text())
    (copy / "run.json").write_text(json.dumps(config | {"source": str(tmp_path / "gone.csv")}))
    with untouched(tmp_path):
        assert "gone.csv" in mistake("report", copy, *FAST)


def test_too_few_samples_are_refused(smoke_run: Path, run: Run) -> None:
    code, _, err = run("report", smoke_run, "--samples", 3)
    assert code == 2
    assert "--samples" in err
