"""A run that is killed at any moment continues bit for bit."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file

from tamedit.data.simulate import simulate
from tamedit.data.split import split_by_time
from tamedit.runs.config import Speed
from tamedit.runs.folder import CHECKPOINT
from tamedit.runs.recipe import make_config
from tamedit.training.run import train

PROGRAM = """
import sys, time
from pathlib import Path
import torch
torch.set_num_threads(1)
from tamedit.data.simulate import simulate
from tamedit.data.split import split_by_time
from tamedit.runs.config import Speed
from tamedit.training.run import train
from tamedit.runs.recipe import make_config
series = simulate(hours=2000, seed=1)
config = make_config(series, "simulated", scale="smoke", window=48)
def slow(step, steps, numbers):
    time.sleep(float(sys.argv[3]))
speed = Speed(checkpoint_seconds=0.05, log_every=1)
train(split_by_time(series), config, Path(sys.argv[1]), speed=speed, resume=sys.argv[2] == "resume", progress=slow)
"""


def start(folder: Path, mode: str, pause: float = 0.0) -> subprocess.Popen:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, "-c", PROGRAM, str(folder), mode, str(pause)], env=environment)


def model_of(folder: Path) -> dict:
    return load_file(folder / "model.safetensors")


def test_thirty_steps_kill_and_thirty_more_equal_sixty(tmp_path: Path) -> None:
    assert start(tmp_path / "whole", "new").wait(timeout=240) == 0
    broken = start(tmp_path / "broken", "new", pause=0.05)
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline:
        log = tmp_path / "broken" / "metrics.jsonl"
        if log.exists() and len(log.read_text().splitlines()) >= 30:
            break
        time.sleep(0.01)
    broken.send_signal(signal.SIGKILL)
    broken.wait()
    assert (tmp_path / "broken" / CHECKPOINT).exists()
    assert not (tmp_path / "broken" / "model.safetensors").exists()
    assert start(tmp_path / "broken", "resume").wait(timeout=240) == 0
    whole, mended = model_of(tmp_path / "whole"), model_of(tmp_path / "broken")
    assert whole.keys() == mended.keys()
    for name, weights in whole.items():
        assert np.array_equal(weights.numpy(), mended[name].numpy()), name
    steps = [line.split(",")[0] for line in (tmp_path / "broken" / "metrics.jsonl").read_text().splitlines()]
    assert steps == [f'{{"step": {step}' for step in range(1, 61)]


@pytest.mark.parametrize("stops", [[1], [17, 18, 44]])
def test_stopping_anywhere_changes_nothing(tmp_path: Path, stops: list[int]) -> None:
    series = simulate(hours=2000, seed=1)
    split, config = split_by_time(series), make_config(series, "simulated", scale="smoke", window=48)
    train(split, config, tmp_path / "whole", speed=Speed(threads=1))
    for number, stop in enumerate(stops):

        def interrupt(step: int, steps: int, numbers: dict, stop: int = stop) -> None:
            if step == stop:
                os.kill(os.getpid(), signal.SIGINT)

        outcome = train(split, config, tmp_path / "parts", resume=number > 0, progress=interrupt)
        assert (outcome.step, outcome.finished) == (stop, False)
    assert train(split, config, tmp_path / "parts", resume=True).finished
    whole, parts = model_of(tmp_path / "whole"), model_of(tmp_path / "parts")
    assert all(np.array_equal(whole[name].numpy(), parts[name].numpy()) for name in whole)
