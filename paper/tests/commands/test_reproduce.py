"""`tamedit reproduce`: every table and figure at scale smoke, killed on the way, and the commands for a cluster."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tamedit_paper.tables.labels import cells_of, labels


def command(*arguments: str, where: Path) -> list[str]:
    places = ["--results", str(where / "results"), "--work", str(where / "work"), "--out", str(where / "page")]
    return [sys.executable, "-m", "tamedit", "reproduce", *arguments, *places]


def reproduce(*arguments: str, where: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments, where=where), capture_output=True, text=True, check=False)


def kill_after(results: int, *arguments: str, where: Path) -> None:
    """Begin, and kill -9 the command and its workers once so many results are there."""
    process = subprocess.Popen(command(*arguments, where=where), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    while len(list(where.rglob("seed=*.json"))) < results:
        assert process.poll() is None, "it ended before it could be killed"
        time.sleep(0.05)
    children = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=False).stdout
    for number in [process.pid, *map(int, children.split())]:
        os.kill(number, signal.SIGKILL)
    process.wait()


def untimed(folder: Path) -> dict[str, object]:
    """Every result without what a clock said."""
    found = {}
    for path in folder.rglob("seed=*.json"):
        plain = json.loads(path.read_text())
        plain.pop("seconds")
        plain["gradients"].pop("time")
        found[str(path.relative_to(folder))] = plain
    return found


def test_everything_at_scale_smoke_survives_a_kill(data_folder: Path, tmp_path: Path) -> None:
    arguments = ("all", "--scale", "smoke", "--seeds", "1", "--workers", "2")
    kill_after(6, *arguments, where=tmp_path)
    done = reproduce(*arguments, where=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"runs {len(cells_of('all'))}/{len(cells_of('all'))}" in done.stderr
    page = (tmp_path / "page" / "reproduction.md").read_text(encoding="utf-8")
    for label in labels():
        assert label in page
    assert "(not run)" not in page
    figures = list((tmp_path / "page" / "reproduction").glob("*.png"))
    assert len(figures) == sum(label.startswith("fig:") for label in labels()) + 1, "and the figure of the regime"
    assert all(figure.stat().st_size > 5000 for figure in figures)

    before = untimed(tmp_path / "results")
    for path in sorted((tmp_path / "results").rglob("seed=*.json"))[::12]:
        path.unlink()
    again = reproduce(*arguments, where=tmp_path)
    assert again.returncode == 0, again.stderr
    assert untimed(tmp_path / "results") == before, "made again, a result is the same"


def test_commands_for_a_cluster_are_one_a_missing_run(tmp_path: Path, data_folder: Path) -> None:
    printed = reproduce("tab:main-results-bts", "--scale", "smoke", "--seeds", "2", "--print-commands", where=tmp_path)
    lines = printed.stdout.strip().splitlines()
    assert len(lines) == 2 * len(cells_of("tab:main-results-bts"))
    assert lines[0].startswith("tamedit reproduce etth1/")
    assert "--seed 0" in lines[0]
    first = subprocess.run(
        [sys.executable, "-m", *lines[0].split(), "--work", str(tmp_path / "work")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert first.returncode == 0, first.stderr
    rest = reproduce("tab:main-results-bts", "--scale", "smoke", "--seeds", "2", "--print-commands", where=tmp_path)
    assert rest.stdout.strip().splitlines() == lines[1:]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["tab:nonsense"], "is not a table or figure of the paper"),
        (["household/nonsense"], "is not a cell of a table"),
        (["all", "--scale", "huge"], "--scale huge is unknown"),
    ],
)
def test_mistakes_are_one_sentence(arguments: list[str], sentence: str, tmp_path: Path) -> None:
    done = reproduce(*arguments, where=tmp_path)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "results").exists()
