"""The record of gradients: equal to the engine's, harmless to training, rewound on resume, readable after a crash."""

import multiprocessing
import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from tamedit.data.series import Series
from tamedit.data.simulate import simulate
from tamedit.data.split import split_by_time
from tamedit.diagnostics.gradient_record import read_record, read_records
from tamedit.errors import UserError
from tamedit.model.dit import is_conditioning
from tamedit.privacy.engine import ClippedSum, Engine
from tamedit.privacy.settings import Privacy
from tamedit.runs.config import Speed
from tamedit.runs.folder import DataFacts
from tamedit.runs.recipe import make_config
from tamedit.training import recorder
from tamedit.training.loop import Outcome
from tamedit.training.recorder import GRADIENTS, HEADER, TIMES, Recorder, part_of, whole_rows
from tamedit.training.run import train

PAPERS = {"noise_multiplier": 0.1, "unit": "window", "layout": "overlapping", "test_only": True}


@pytest.fixture(scope="module")
def fleet() -> Series:
    return simulate(meters=4, hours=24 * 20, seed=1)


def run(
    series: Series,
    folder: Path,
    *,
    steps: int = 8,
    every: int = 0,
    private: dict[str, Any] | None = None,
    resume: bool = False,
    progress: Any = None,
) -> Outcome:
    privacy = None if private is None else Privacy(**{**PAPERS, **private})
    config = make_config(
        series, "simulated", scale="smoke", steps=steps, window=24, size="tiny", privacy=privacy, batch_size=12
    )
    facts = DataFacts(typical_level=(0.35,), typical_scale=(0.35,))
    speed = Speed(threads=1, log_every=1, diagnose_every=every)
    return train(split_by_time(series), config, folder, facts=facts, speed=speed, resume=resume, progress=progress)


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch) -> list[ClippedSum]:
    """Every answer that an engine gives."""
    seen: list[ClippedSum] = []
    original = Engine.__call__

    def watched(self: Engine, *arguments: Any, **options: Any) -> ClippedSum:
        seen.append(original(self, *arguments, **options))
        return seen[-1]

    monkeypatch.setattr(Engine, "__call__", watched)
    return seen


@pytest.mark.parametrize("mode", ["flat", "automatic", "groups"])
def test_the_record_is_what_the_engine_said(
    fleet: Series, tmp_path: Path, results: list[ClippedSum], mode: str
) -> None:
    run(fleet, tmp_path, private={"clipping": mode, "clip": 0.4}, every=1)
    record = read_record(tmp_path)
    assert record.times["step"].tolist() == list(range(1, 9))
    assert (record.times["seconds"] > 0).all()
    assert len(results) == 8
    assert len(record.rows) == sum(len(result.norms) for result in results) > 40
    for number, result in enumerate(results):
        rows = record.rows[record.rows["step"] == number + 1]
        norms = result.norms.numpy()
        np.testing.assert_allclose(rows["total"], norms, rtol=1e-6)
        for group in ("cond", "other"):
            np.testing.assert_allclose(rows[group], result.group_norms[group].numpy(), rtol=1e-6)
        np.testing.assert_allclose(rows["total"] ** 2, rows["cond"] ** 2 + rows["other"] ** 2, rtol=1e-5)
        np.testing.assert_allclose((rows["parts"] ** 2).sum(1), rows["total"] ** 2, rtol=1e-5)
        for column, (part, path) in enumerate(record.parts):
            own = [
                value.numpy()
                for name, value in result.parameter_norms.items()
                if part_of(name) == part and is_conditioning(name) == (path == "cond")
            ]
            np.testing.assert_allclose(rows["parts"][:, column], np.linalg.norm(own, axis=0), rtol=1e-5, atol=1e-12)
        shares = {"flat": np.minimum(1, 0.4 / norms), "automatic": 0.4 / (norms + 0.01)}
        if mode == "groups":
            share = 0.4 / np.sqrt(2)
            kept = [np.minimum(result.group_norms[group].numpy(), share) for group in ("cond", "other")]
            shares["groups"] = np.hypot(*kept) / norms
        np.testing.assert_allclose(rows["factor"], shares[mode], rtol=1e-5)


def test_parts_are_named_from_input_to_output(fleet: Series, tmp_path: Path) -> None:
    run(fleet, tmp_path, steps=1, private={})
    assert [part for part, _ in read_record(tmp_path).parts[::2]] == ["input", "block 1", "block 2", "output"]


def test_looking_changes_nothing_bit_for_bit(fleet: Series, tmp_path: Path, results: list[ClippedSum]) -> None:
    run(fleet, tmp_path / "blind")
    assert not results
    run(fleet, tmp_path / "seen", every=3)
    assert len(results) == 2
    blind, seen = (load_file(tmp_path / name / "model.safetensors") for name in ("blind", "seen"))
    assert all(torch.equal(blind[name], seen[name]) for name in blind)
    losses = [[row["loss"] for row in read_record(tmp_path / name).metrics] for name in ("blind", "seen")]
    assert losses[0] == losses[1]
    record = read_record(tmp_path / "seen")
    assert record.rows["step"].tolist() == [3] * 12 + [6] * 12
    assert record.clip is None
    assert (record.rows["factor"] == 1).all()
    assert len(read_record(tmp_path / "blind").rows) == 0
    assert len(read_record(tmp_path / "blind").times) == 8


def test_the_plain_norms_are_those_of_the_batch_that_trains(
    fleet: Series, tmp_path: Path, results: list[ClippedSum]
) -> None:
    run(fleet, tmp_path, steps=1, every=1)
    assert float(results[0].losses.mean()) == pytest.approx(read_record(tmp_path).metrics[0]["loss"], rel=1e-5)


def test_a_private_run_records_neither_norms_nor_what_tells_the_size_of_a_batch_unless_asked(
    fleet: Series, tmp_path: Path
) -> None:
    for every in (0, 1):
        run(fleet, tmp_path / str(every), steps=3, private={}, every=every)
        record = read_record(tmp_path / str(every))
        assert bool(len(record.rows)) == bool(len(record.times)) == bool(every)
        assert [set(row) - {"clipped"} for row in record.metrics] == [{"step", "loss", "epsilon", "seconds"}] * 3
        assert ["clipped" in row for row in record.metrics] == [bool(every)] * 3
        place = tmp_path / str(every) / "not-private"
        assert (place / GRADIENTS).exists() == (place / TIMES).exists() == bool(every)
        assert place.stat().st_mode & 0o777 == 0o700


def files(folder: Path) -> dict[str, bytes]:
    return {name: (folder / "not-private" / name).read_bytes() for name in (GRADIENTS, HEADER)}


def test_a_stopped_and_resumed_run_has_the_record_of_an_unbroken_one(fleet: Series, tmp_path: Path) -> None:
    run(fleet, tmp_path / "whole", every=2)

    def stop(step: int, steps: int, numbers: dict) -> None:
        if step == 5:
            os.kill(os.getpid(), signal.SIGINT)

    assert run(fleet, tmp_path / "parts", every=2, progress=stop).step == 5
    place = tmp_path / "parts" / "not-private"
    kept = (place / GRADIENTS).read_bytes()
    later = np.frombuffer(kept, read_record(tmp_path / "parts").rows.dtype)[-12:].copy()
    later["step"] = 7  # steps that the checkpoint does not know, and a torn end
    (place / GRADIENTS).write_bytes(kept + later.tobytes() + b"torn")
    (place / TIMES).write_bytes((place / TIMES).read_bytes() + b"\x07\0\0\0\0\0\0\0\x07")
    assert run(fleet, tmp_path / "parts", every=2, resume=True).finished
    assert files(tmp_path / "whole") == files(tmp_path / "parts")
    assert read_record(tmp_path / "parts").times["step"].tolist() == list(range(1, 9))


@pytest.mark.parametrize("tail", [b"x", b"\0" * 500, b"\1\0\0\0" + b"\0" * 95])
def test_what_a_crash_leaves_is_readable(fleet: Series, tmp_path: Path, tail: bytes) -> None:
    run(fleet, tmp_path, steps=4, private={}, every=1)
    before = np.array(read_record(tmp_path).rows)
    with open(tmp_path / "not-private" / GRADIENTS, "ab") as file:
        file.write(tail)
    after = read_record(tmp_path).rows
    assert np.array_equal(before, np.array(after))


def _train_slowly(series: Series, folder: Path) -> None:
    torch.set_num_threads(1)
    recorder.FLUSH_SECONDS = 0.0
    run(series, folder, steps=400, every=1, progress=lambda step, steps, numbers: time.sleep(0.01))


def test_a_killed_run_is_readable_at_any_moment(fleet: Series, tmp_path: Path) -> None:
    child = multiprocessing.get_context("fork").Process(target=_train_slowly, args=(fleet, tmp_path))
    child.start()
    place, deadline = tmp_path / "not-private" / TIMES, time.monotonic() + 60
    while time.monotonic() < deadline and not (place.exists() and place.stat().st_size > 80):
        time.sleep(0.01)
    os.kill(child.pid or 0, signal.SIGKILL)
    child.join()
    record = read_record(tmp_path)
    steps = np.unique(record.rows["step"])
    assert len(record.times) >= 10
    assert steps.tolist() == list(range(1, len(steps) + 1))
    assert len(record.rows) == 12 * len(steps)
    assert (record.rows["total"] > 0).all()


def test_rows_reach_the_disk_while_the_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tamedit.training.recorder.FLUSH_SECONDS", 0.0)
    recorder = Recorder(tmp_path, ["output.weight", "blocks.0.adaln.projection.weight"], every=1)
    recorder.rewind(0)
    for step in range(3):
        recorder.step(step + 1, 0.5)
        assert len(whole_rows(tmp_path / TIMES, recorder.rows[TIMES])) == step + 1
        assert not any(recorder.waiting.values())
    with pytest.raises(UserError, match="free some space"):
        Recorder(tmp_path / "absent", ["output.weight"], every=1).step(1, 0.5)


def test_seconds_aside_are_not_the_steps(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, ["output.weight"], every=1)
    recorder.rewind(0)
    with recorder.aside():
        sum(range(200_000))
    aside = recorder.elsewhere
    recorder.step(1, 1.0)
    recorder.step(2, 1.0)
    recorder.flush()
    assert aside > 0
    np.testing.assert_allclose(whole_rows(tmp_path / TIMES, recorder.rows[TIMES])["seconds"], [1 - aside, 1], rtol=1e-6)


def test_gradients_that_are_not_finite_are_counted_apart(tmp_path: Path) -> None:
    names = ["output.weight", "blocks.0.adaln.projection.weight"]
    recorder = Recorder(tmp_path, names, every=1, clip=1.0, clipping="groups")
    recorder.rewind(0)
    each = torch.tensor([[3.0, float("inf"), 0.0], [4.0, 1.0, 0.0]], dtype=torch.float64)
    groups = {"other": each[0], "cond": each[1]}
    factors = {name: torch.tensor([0.5, 0.0, 1.0], dtype=torch.float64) for name in groups}
    norms = each.square().sum(0).sqrt()
    result = ClippedSum({}, 1.0, norms, factors, groups, dict(zip(names, each, strict=True)), torch.zeros(3))
    recorder.examples(0, result)
    recorder.flush()
    rows = whole_rows(tmp_path / GRADIENTS, recorder.rows[GRADIENTS])
    assert rows["total"].tolist() == [5, np.inf, 0]
    assert rows["factor"].tolist() == [0.5, 0, 1]
    assert recorder.header["parts"] == [
        ["output", "cond"],
        ["output", "other"],
        ["block 1", "cond"],
        ["block 1", "other"],
    ]
    assert rows["parts"][0].tolist() == [0, 3, 4, 0]


def test_a_folder_without_a_record_is_refused_in_one_sentence(fleet: Series, tmp_path: Path) -> None:
    run(fleet, tmp_path, steps=1)
    (tmp_path / "not-private" / HEADER).write_text("{")
    with pytest.raises(UserError, match="damaged"):
        read_record(tmp_path)
    (tmp_path / "not-private" / HEADER).unlink()
    with pytest.raises(UserError, match="no record"):
        read_records([tmp_path])
