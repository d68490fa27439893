"""The benchmark beside other tools: what it refuses, and that the peers train for as long as they may."""

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import peers

    return peers


def test_too_few_samples_are_refused_before_anything_is_computed() -> None:
    command = [sys.executable, str(BENCHMARKS / "peers.py"), "etth1", "--samples", "3"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith("--samples 3 is too few to score; give at least 4.")
    assert not done.stdout


def test_a_pass_is_one_batch_and_every_window_has_its_turn(peers: ModuleType) -> None:
    order = np.random.default_rng(0).permutation(80)
    passes = [peers.batch_rows(order, turn) for turn in range(5)]
    assert {len(rows) for rows in passes} == {peers.BATCH}
    assert np.array_equal(np.bincount(np.concatenate(passes)), np.full(80, 2))


def test_training_ends_with_the_pass_in_which_its_time_is_over(
    peers: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(peers.time, "process_time", lambda: now[0])

    def one_pass() -> None:
        now[0] += 2.0

    assert peers.train_for(5.0, one_pass) == 6.0
