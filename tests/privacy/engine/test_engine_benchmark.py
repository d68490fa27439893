"""The benchmark runs and answers in the form that is promised."""

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "dp_step.py"


def test_one_turn_of_every_arm():
    options = ["--size", "small", "--batch", "2", "--repeats", "1", "--warm-up", "1", "--no-memory", "--json"]
    done = subprocess.run([sys.executable, str(SCRIPT), *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    arms = json.loads(done.stdout)["arms"]
    assert set(arms) == {"nonprivate", "ours_vanilla", "ours_aware", "opacus_hooks", "opacus_ghost", "torch_func"}
    assert arms["nonprivate"]["time"] == 1.0
    assert all(arm["time"] > 0 for arm in arms.values())
