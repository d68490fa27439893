"""How tests call the command line in this process."""

import sys
from collections.abc import Callable
from pathlib import Path

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


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `plain`, `vanilla` and `aware`, trained on `meter.csv`."""
    from tamedit.data.simulate import simulate
    from tamedit.privacy.request import Privacy
    from tamedit.tasks.fit import load_split
    from tamedit.training.config import Speed
    from tamedit.training.fit import train
    from tamedit.training.recipe import make_config

    place = tmp_path_factory.mktemp("runs")
    meter = place / "meter.csv"
    simulate(hours=900, seed=3).frame().to_csv(meter)
    series, split = load_split(str(meter))
    papers = Privacy(noise_multiplier=0.1, unit="window", layout="overlapping", test_only=True)
    for name, privacy, bounds in (("plain", None, "off"), ("vanilla", papers, "off"), ("aware", papers, "medium")):
        config = make_config(
            series,
            str(meter),
            scale="smoke",
            steps=10,
            window=24,
            size="tiny",
            privacy=privacy,
            bounds=bounds,
            batch_size=16,
        )
        train(split, config, place / name, speed=Speed(threads=1, log_every=2, diagnose_every=1))
    return place
