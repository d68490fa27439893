"""A model or a run on disk that is absent, damaged, edited or may not be read: one sentence, exit code 2, nothing changed."""

import errno
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support import csv, meter, untouched


def test_folders_that_hold_no_model(mistake: Callable[..., str], smoke_run: Path, tmp_path: Path) -> None:
    file = csv(tmp_path / "meter.csv", meter(100))
    (tmp_path / "empty").mkdir()
    for folder in (tmp_path / "empty", tmp_path / "absent", file):
        assert "contains no trained model" in mistake("impute", folder, file, "--out", tmp_path / "out.csv")
        assert "contains no trained model" in mistake("evaluate", folder)
    shutil.copytree(smoke_run, tmp_path / "run")
    (tmp_path / "run" / "model.safetensors").unlink()
    assert "--resume" in mistake("generate", tmp_path / "run", "--count", 1, "--out", tmp_path / "out.csv")
    for name in ("model.json", "model.safetensors"):
        shutil.copy(smoke_run / name, tmp_path / "empty" / name)
    assert "run.json is missing" in mistake("evaluate", tmp_path / "empty")


def other_weights(content: bytes) -> bytes:
    import torch
    from safetensors.torch import load, save

    return save({name: torch.zeros(3) for name in load(content)})


DAMAGES: dict[str, tuple[str, Callable[[bytes], bytes], str]] = {
    "weights cut short": ("model.safetensors", lambda content: content[: len(content) // 2], "damaged"),
    "weights empty": ("model.safetensors", lambda content: b"", "damaged"),
    "other weights": ("model.safetensors", other_weights, "not the file that model.json names"),
    "specification cut short": ("model.json", lambda content: content[:200], "damaged"),
    "specification not text": ("model.json", lambda content: b"\xff\xfe\x00\x80", "damaged"),
    "specification without a scaling": ("model.json", lambda content: without(content, "scaling", {"x": 1}), "damaged"),
    "specification with other channels": (
        "model.json",
        lambda content: without(content, "targets", ["a", "b"]),
        "damaged",
    ),
    "specification of the future": ("model.json", lambda content: without(content, "version", 9), "format 9"),
    "specification with an unknown field": ("model.json", lambda content: without(content, "extra", 1), "damaged"),
    "impossible network": (
        "model.json",
        lambda content: without(content, "network", json.loads(content)["network"] | {"heads": 5}),
        "heads=5",
    ),
}


def scaled(content: bytes, **changed: Any) -> bytes:
    return without(content, "scaling", json.loads(content)["scaling"] | changed)


EDITS: dict[str, Callable[[bytes], bytes]] = {
    "an unknown scaling": lambda content: scaled(content, mode="guess"),
    "a scale of nothing": lambda content: scaled(content, scale=[0.0]),
    "a level that is no number": lambda content: scaled(content, level=[float("nan")]),
    "a floor a channel too many": lambda content: scaled(content, floor=[0.1, 0.1]),
    "no time between rows": lambda content: without(content, "frequency_seconds", 0.0),
    "another calendar": lambda content: without(content, "calendar", False),
    "no statement": lambda content: without(content, "privacy", {"private": False}),
}
DAMAGES |= {name: ("model.json", edit, "damaged") for name, edit in EDITS.items()}


def without(content: bytes, key: str, value: Any) -> bytes:
    return json.dumps(json.loads(content) | {key: value}).encode()


@pytest.mark.parametrize("name", list(DAMAGES))
def test_damaged_models(name: str, mistake: Callable[..., str], smoke_run: Path, tmp_path: Path) -> None:
    file, damage, word = DAMAGES[name]
    folder = tmp_path / "run"
    shutil.copytree(smoke_run, folder)
    (folder / file).write_bytes(damage((folder / file).read_bytes()))
    with untouched(tmp_path):
        assert word in mistake("generate", folder, "--count", 1, "--out", tmp_path / "out.csv")


def test_files_that_may_not_be_read_are_not_called_damaged(
    mistake: Callable[..., str], smoke_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "read_text", refuse)
    ask = ("generate", smoke_run, "--count", 1, "--out", tmp_path / "out.csv")
    assert "Permission denied; allow reading it" in mistake(*ask)
    assert "Permission denied; allow reading it" in mistake("report", smoke_run)


def test_a_run_that_reads_in_an_unknown_way(mistake: Callable[..., str], smoke_run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(smoke_run, folder)
    facts = json.loads((folder / "reading.json").read_text())
    (folder / "reading.json").write_text(json.dumps(facts | {"reading": {"colour": "red"}}))
    assert "is damaged or from another version" in mistake("report", folder)


def test_damaged_metrics_stop_nothing(tmp_path: Path) -> None:
    from tamedit.training.metrics_log import MetricsLog

    log = MetricsLog(tmp_path / "metrics.jsonl")
    log.write({"step": 1, "loss": 2.0})
    with open(log.path, "ab") as file:
        file.write(b'\xff\xfe{\n[1]\n3\n{"loss": 1.0}\n{"step": "two"}\n')
    log.write({"step": 2, "loss": 1.0})
    assert [row["step"] for row in log.read()] == [1, 2]
    log.rewind(1)
    assert [row["step"] for row in log.read()] == [1]


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"{", b"\xff\xfe", b'{"source": 1}'])
@pytest.mark.parametrize("name", ["run.json", "reading.json"])
def test_damaged_runs(name: str, content: bytes, mistake: Callable[..., str], smoke_run: Path, tmp_path: Path) -> None:
    if (name, content) == ("reading.json", b"{}"):
        pytest.skip("an empty object says nothing about the data, and that is fine")
    folder = tmp_path / "run"
    shutil.copytree(smoke_run, folder)
    (folder / name).write_bytes(content)
    assert "is damaged or from another version" in mistake("evaluate", folder)
    file = smoke_run.parent / "meter.csv"
    same = ("train", file, "--out", folder, "--scale", "smoke", "--steps", 6, "--window", 48, "--resume")
    assert "is damaged or from another version" in mistake(*same)


def test_damaged_checkpoint(mistake: Callable[..., str], smoke_run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(smoke_run, folder)
    (folder / "checkpoint.safetensors").write_bytes(b"nothing")
    file = smoke_run.parent / "meter.csv"
    same = ("train", file, "--out", folder, "--scale", "smoke", "--steps", 6, "--window", 48, "--resume")
    assert "is not a checkpoint" in mistake(*same)
