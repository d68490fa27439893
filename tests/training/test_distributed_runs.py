"""`torchrun -m tamedit train`: two processes train the model that one would, with one ledger and one noise."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file

from tamedit.data.simulate import simulate
from tamedit.privacy.entries import read as read_ledger


def train(data: Path, out: Path, world: int, *options: str) -> None:
    """What torchrun does: `world` processes of the same command, told who they are by the environment."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = {"OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(world)}
    command = [
        sys.executable,
        "-m",
        "tamedit",
        "train",
        str(data),
        "--out",
        str(out),
        "--scale",
        "smoke",
        "--window",
        "48",
    ]
    command += ["--steps", "4", "--batch-size", "16", "--threads", "1", *options]
    workers = [
        subprocess.Popen(
            command,
            env=os.environ | shared | {"RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(world)
    ]
    said = [worker.communicate(timeout=200) for worker in workers]
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
