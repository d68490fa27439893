"""How tests call the command line in this process."""

import sys
from collections.abc import Callable

import pytest
from support import Answer, Run

from tamedit.cli.main import main


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: object) -> Answer:
        monkeypatch.setattr(sys, "argv", ["tamedit", *(str(argument) for argument in arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return Answer(int(ended.value.code or 0), out, err)

    return call


@pytest.fixture
def mistake(run: Run) -> Callable[..., str]:
    """Run a command that must fail in the right way; its sentence."""

    def call(*arguments: object) -> str:
        code, _, err = run(*arguments)
        assert code == 2, err
        lines = err.strip().splitlines()
        assert len(lines) == 1, err
        assert lines[0].startswith("tamedit: ")
        assert lines[0].endswith(".")
        return lines[0].removeprefix("tamedit: ")

    return call
