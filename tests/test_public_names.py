"""The public face: one sorted list of names, each from where it lives, and nothing heavy before it is used."""

import subprocess
import sys

import pytest

import tamedit

NAMES = [
    "BoundedAdaLNZero",
    "Bounds",
    "Engine",
    "Model",
    "Privacy",
    "PrivacyPlan",
    "SamplerConfig",
    "Series",
    "Speed",
    "UserError",
    "fit",
    "gated",
    "load",
    "load_initial_run",
    "modulate",
    "read",
    "read_csv",
    "simulate",
]


def test_the_public_names() -> None:
    assert tamedit.__all__ == NAMES == sorted(NAMES)
    assert dir(tamedit) == sorted([*NAMES, "__version__"])
    for name in NAMES:
        assert getattr(tamedit, name).__name__ == name
        assert getattr(tamedit, name).__doc__


def test_what_is_not_there_is_said() -> None:
    with pytest.raises(AttributeError, match="module 'tamedit' has no attribute 'forecast'"):
        _ = tamedit.forecast  # type: ignore[attr-defined]


def test_the_import_is_quick() -> None:
    code = (
        "import sys, tamedit; print([name for name in ('torch', 'pandas', 'numpy', 'pydantic') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
