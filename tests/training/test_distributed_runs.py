"""`torchrun -m tamedit train`: two processes train the model that one would, with one ledger and one noise."""

import os
import socket
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from safetensors.torch import load_file

from tamedit.data.simulate import simulate
from tamedit.privacy.entries import FILE_NAME
from tamedit.privacy.entries import read as read_ledger
from tamedit.runs.folder import CHECKPOINT
from tamedit.training.checkpoint import load_state
from tamedit.training.distributed import World, join_world

PATIENCE = 400  # seconds, for a busy machine


def start(data: Path, out: Path, world: int, *options: str, steps: int = 4) -> list[subprocess.Popen[str]]:
    """What torchrun does: `world` processes of the same command, told who they are by the environment."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = {"OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(world)}
    command = [sys.executable, "-m", "tamedit", "train", str(data), "--out", str(out), "--scale", "smoke"]
    command += ["--window", "48", "--steps", str(steps), "--batch-size", "16", "--threads", "1", *options]
    return [
        subprocess.Popen(
            command,
            env=os.environ | shared | {"RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(world)
    ]


def train(data: Path, out: Path, world: int, *options: str, steps: int = 4) -> None:
    workers = start(data, out, world, *options, steps=steps)
    said = [worker.communicate(timeout=PATIENCE) for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * world, said
    assert sum("wrote" in out for out, _ in said) == 1


def test_private_and_ordinary_runs_are_those_of_one_process(tmp_path: Path) -> None:
    data = tmp_path / "fleet.csv"
    simulate(meters=6, hours=24 * 30, seed=2).frame().to_csv(data, index=False)
    private = ("--epsilon", "6", "--unit", "day", "--test-only")
    for name, options in {"private": private, "plain": ()}.items():
        train(data, tmp_path / f"{name}1", 1, *options)
        train(data, tmp_path / f"{name}2", 2, *options)
        one, two = (load_file(tmp_path / f"{name}{world}" / "model.safetensors") for world in (1, 2))
        for key, weights in one.items():
            torch.testing.assert_close(two[key], weights, rtol=2e-3, atol=2e-5)
    assert read_ledger(tmp_path / "private2").steps == read_ledger(tmp_path / "private1").steps == 4


@pytest.mark.parametrize("dies", [1, 0])
def test_a_process_that_dies_stops_the_run_and_it_goes_on(tmp_path: Path, dies: int) -> None:
    """One sentence and exit code 2; every step that was taken is in the ledger; the run is resumed and ends as planned."""
    data, out, steps = tmp_path / "fleet.csv", tmp_path / "run", 120
    simulate(meters=6, hours=24 * 30, seed=2).frame().to_csv(data, index=False)
    private = ("--noise-multiplier", "20", "--unit", "day", "--test-only")
    workers = start(data, out, 2, *private, steps=steps)
    try:
        until = time.monotonic() + PATIENCE
        while not _paid(out) and time.monotonic() < until and workers[dies].poll() is None:
            time.sleep(0.05)
        workers[dies].kill()
        _, error = workers[1 - dies].communicate(timeout=PATIENCE)
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    assert workers[1 - dies].returncode == 2, error
    assert "Another process of this run ended" in error
    assert "--resume" in error
    assert "Traceback" not in error
    taken, paid = load_state(out / CHECKPOINT).step, _paid(out)
    assert taken <= paid <= steps
    assert taken < steps
    train(
        data, out, 2, *private, "--resume", steps=steps
    )  # from what the first process saved before it stopped, or was killed
    assert load_state(out / CHECKPOINT).step == steps
    assert _paid(out) >= paid + steps - taken - 1


def _paid(run: Path) -> int:
    return read_ledger(run).steps if (run / FILE_NAME).exists() else 0


def test_a_process_that_vanishes_is_missed_within_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, object]] = []
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr(dist, "is_initialized", lambda: False)
    monkeypatch.setattr(dist, "init_process_group", lambda backend, **chosen: seen.append(chosen))
    monkeypatch.setattr(dist, "get_rank", lambda: 1)
    monkeypatch.setattr(dist, "get_world_size", lambda: 2)
    assert join_world() == World(1, 2)
    assert seen == [{"timeout": timedelta(minutes=10)}]
