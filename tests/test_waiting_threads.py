"""Threads that wait spin briefly, unless the user says otherwise: OpenMP reads this when PyTorch is imported."""

import os
import subprocess
import sys

import pytest

SHOW = "import os, tamedit; print(os.environ.get('GOMP_SPINCOUNT'))"


@pytest.mark.parametrize(
    ("given", "expected"),
    [({}, "1000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "active"}, "None")],
)
def test_waiting_threads_spin_briefly_unless_the_user_says_otherwise(given: dict[str, str], expected: str) -> None:
    plain = {name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    shown = subprocess.run([sys.executable, "-c", SHOW], env=plain | given, capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == expected


def test_a_process_that_has_imported_pytorch_is_left_alone() -> None:
    code = "import sys, os; sys.modules['torch'] = os; import tamedit; print(os.environ.get('GOMP_SPINCOUNT'))"
    plain = {name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
    shown = subprocess.run([sys.executable, "-c", code], env=plain, capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "None"


def test_the_command_line_says_it_before_pytorch_is_imported() -> None:
    code = "import sys, tamedit.cli.main; print('torch' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "False"
