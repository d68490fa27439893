"""The shell completes commands, options and words: asked as bash and zsh ask, and as the installed script of bash asks."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

from support import Run
from tamedit.privacy.units import Unit


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["tamedit", "fo"], ["forecast"]),
        (["tamedit", "data", "sim"], ["simulate"]),
        (["tamedit", "train", "homes.csv", "--eng"], ["--engine"]),
        (["tamedit", "train", "homes.csv", "--unit", ""], sorted(get_args(Unit))),
    ],
)
def test_bash_is_told_what_fits(
    words: list[str], expected: list[str], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_TAMEDIT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", " ".join(words))
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    assert sorted(run().out.split()) == expected


def test_zsh_is_told_what_fits_with_its_help(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_TAMEDIT_COMPLETE", "complete_zsh")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "tamedit fo")
    assert '"forecast":"Forecast the steps' in run().out


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_the_installed_script_completes_in_a_real_bash(tmp_path: Path) -> None:
    command = tmp_path / "tamedit"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m tamedit "$@"\n')
    command.chmod(0o755)
    place = {"HOME": str(tmp_path), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    env = os.environ | place | {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    subprocess.run([command, "--install-completion", "bash"], env=env, check=True, capture_output=True, timeout=60)
    script = tmp_path / ".bash_completions" / "tamedit.sh"
    assert str(script) in (tmp_path / ".bashrc").read_text()
    asks = 'COMP_WORDS=(tamedit fo); COMP_CWORD=1; _tamedit_completion tamedit; echo "${COMPREPLY[@]}"'
    answer = subprocess.run(
        ["bash", "--norc", "-c", f". {script}; {asks}"],
        env=os.environ | place,
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout.strip() == "forecast"
