"""`tamedit account` and `tamedit calibrate`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from tamedit.cli.account import account
from tamedit.cli.calibrate import calibrate
from tamedit.errors import UserError
from tamedit.privacy.ledger import Ledger
from tamedit.privacy.plan import PrivacyPlan
from tamedit.privacy.units import Contribution

app = typer.Typer()
app.command()(account)
app.command()(calibrate)


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=True)
    if isinstance(result.exception, UserError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


TARGET = ("--sampling-rate", "0.1", "--steps", "10")
PLAN = ("--sampling-rate", "0.01", "--noise-multiplier", "1", "--steps", "1000", "--delta", "1e-5")


def test_account_of_a_plan() -> None:
    data = json.loads(run("account", *PLAN, "--json"))
    assert data["epsilon"]["pld"] == pytest.approx(1.829, abs=0.005)
    assert data["epsilon"]["rdp"] == pytest.approx(2.101, abs=0.01)
    assert data["steps"] == 1000
    several = json.loads(run("account", *PLAN, "--contributions", "4", "--json"))
    assert several["epsilon"]["pld"] == pytest.approx(8.90, abs=0.02)
    assert several["epsilon"]["rdp"] is None
    changed = json.loads(run("account", *PLAN, "--neighbour", "replacement", "--json"))
    assert changed["epsilon"]["pld"] == pytest.approx(2.844, abs=0.005)
    assert "ε = 1.83 at δ = 1e-05 by PLD" in run("account", *PLAN)
    assert "protection: moderate" in run("account", *PLAN)
    assert "protection: hardly any" in run("account", *PLAN, "--contributions", "12")


def test_account_of_a_run(tmp_path: Path) -> None:
    plan = PrivacyPlan(
        unit="week", examples=100, sampling_rate=0.01, clip=1.0, noise_multiplier=1.0, steps=1000, delta=1e-5
    )
    units = {"week": Contribution(1, "removal", "whole"), "record": Contribution(1, "replacement", "a gap is kept")}
    with Ledger.open(tmp_path, plan, units, refused={"series": "The data hold one meter."}, reserve=500) as ledger:
        for _ in range(1000):
            ledger.take()
    data = json.loads(run("account", str(tmp_path), "--json"))
    assert data["unit"] == "week"
    assert data["epsilon"]["pld"] == pytest.approx(1.829, abs=0.005)
    assert data["units"]["record"]["epsilon"]["pld"] == pytest.approx(2.844, abs=0.005)
    assert data["units"]["series"]["epsilon"] is None
    words = run("account", str(tmp_path))
    for part in ("one week of one meter", "record", "series"):
        assert part in words
    stricter = json.loads(run("account", str(tmp_path), "--delta", "1e-7", "--json"))
    assert stricter["epsilon"]["pld"] > data["epsilon"]["pld"]
    for delta in ("0", "nan", "1"):
        with pytest.raises(UserError, match=f"delta = {delta} is out of range"):
            run("account", str(tmp_path), "--delta", delta)


def test_calibrate(tmp_path: Path) -> None:
    common = ("--sampling-rate", "0.04", "--steps", "200", "--delta", "1e-5")
    data = json.loads(run("calibrate", "--epsilon", "3", *common, "--json"))
    assert 2.98 <= data["epsilon"]["pld"] <= 3.0
    again = json.loads(run("account", *common, "--noise-multiplier", repr(data["noise_multiplier"]), "--json"))
    assert again["epsilon"] == data["epsilon"]
    assert f"σ = {data['noise_multiplier']:.4f}" in run("calibrate", "--epsilon", "3", *common)
    picture = tmp_path / "trade.png"
    table = json.loads(run("calibrate", *common, "--plot", str(picture), "--json"))["trade_off"]
    values = [[cell["epsilon"] for cell in row["values"]] for row in table]
    assert all(row == sorted(row) for row in values)
    assert [row[0] for row in values] == sorted((row[0] for row in values), reverse=True)
    assert picture.stat().st_size > 5000
    assert "200 steps" in run("calibrate", *common)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("account",), "Give a run's folder"),
        (("account", "nowhere"), "No ledger"),
        (("account", "nowhere", *PLAN), "either a run's folder"),
        (("account", *PLAN, "--sampling-rate", "2"), "--sampling-rate 2"),
        (("account", *PLAN, "--noise-multiplier", "0"), "--noise-multiplier 0"),
        (("account", *PLAN, "--delta", "0"), "delta = 0"),
        (("account", "nowhere", "--contributions", "-5"), "either a run's folder"),
        (("account", "nowhere", "--neighbour", "foo"), "either a run's folder"),
        (("account", *PLAN, "--delta", "nan"), "delta = nan"),
        (("account", *PLAN, "--noise-multiplier", "inf"), "noise_multiplier = inf is out of range"),
        (("account", *PLAN, "--noise-multiplier", "1e300"), "is out of range"),
        (("account", *PLAN, "--noise-multiplier", "1e-300"), "is out of range"),
        (("account", *PLAN, "--steps", "9999999999999999999999999"), "from 1 to 1000000000"),
        (("calibrate", *TARGET, "--epsilon", "8", "--delta", "0"), "delta = 0 is out of range"),
        (("calibrate", *TARGET, "--epsilon", "1e-300"), "epsilon = 1e-300 cannot be reached"),
        (("calibrate", *TARGET, "--epsilon", "1e-12"), "epsilon = 1e-12 cannot be reached"),
        (("calibrate", *TARGET, "--steps", "9999999999999999999999999"), "from 1 to 1000000000"),
        (("account", *PLAN, "--contributions", "0"), "--contributions 0"),
        (("account", *PLAN, "--neighbour", "swap"), "--neighbour 'swap'"),
        (("account", *PLAN, "--steps", "0"), "--steps 0"),
        (("calibrate", "--sampling-rate", "0.1", "--steps", "10", "--epsilon", "0"), "epsilon = 0"),
        (("calibrate", "--sampling-rate", "0.1", "--steps", "10", "--plot", "x.doc"), "not a picture"),
    ],
)
def test_mistakes(arguments: tuple[str, ...], words: str) -> None:
    with pytest.raises(UserError, match=words):
        run(*arguments)


def test_answers_without_loading_torch() -> None:
    """The command line's arithmetic needs no network, so it does not wait for torch."""
    code = (
        "import sys; from tamedit.cli.account import of_plan; print(of_plan(0.01, 1.0, 20000, 1e-5, 1, 'removal'));"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "False"
