"""`tamedit data`: what it prints and what it writes."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from tamedit.cli.data import app
from tamedit.cli.progress import RunProgress
from tamedit.data.reader import read
from tamedit.data.simulate import simulate
from tamedit.errors import UserError

runner = CliRunner()


def printed(*arguments: object) -> str:
    result = runner.invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output or result.exception
    return result.output


def mistake(*arguments: object) -> str:
    result = runner.invoke(app, [str(argument) for argument in arguments])
    assert isinstance(result.exception, UserError), result.output
    return str(result.exception)


def test_list() -> None:
    rows = json.loads(printed("list", "--json"))
    assert [row["name"] for row in rows] == ["etth1", "ettm1", "household", "ideal"]
    assert "household" in printed("list")


@pytest.mark.parametrize("name", ["meter.csv", "meter.parquet"])
@pytest.mark.parametrize("meters", [1, 3])
def test_simulate_then_describe(tmp_path: Path, name: str, meters: int) -> None:
    path = tmp_path / name
    text = printed("simulate", "--meters", meters, "--hours", 400, "--seed", 7, "--out", path)
    assert str(path) in text
    series = read(path)
    np.testing.assert_allclose(series.values, simulate(meters, 400, seed=7).values, rtol=1e-5)
    facts = json.loads(printed("describe", path, "--json"))
    assert facts["meters"] == meters
    assert facts["rows"] == 400 * meters
    shown = printed("describe", path)
    assert "1 hour" in shown
    assert "kwh" in shown
    assert ("Over the meters" in shown) == (meters > 1)


def test_describe_options(tmp_path: Path) -> None:
    path = tmp_path / "meter.csv"
    path.write_text("when;load;holiday\n2024-01-01 00:00;1,5;0\n2024-01-01 01:00;;1\n2024-01-01 03:00;2,5;1\n")
    options = ("--time", "when", "--targets", "load", "--covariates", "holiday", "--timezone", "Europe/Paris")
    assert "missing_covariates='hold'" in mistake("describe", path, *options, "--frequency", "1h")
    facts = json.loads(
        printed("describe", path, *options, "--frequency", "1h", "--missing-covariates", "hold", "--json")
    )
    assert facts["covariates"] == ["holiday"]
    assert facts["timezone"] == "Europe/Paris"
    assert facts["gaps"]["longest"] == 2


def test_mistakes(tmp_path: Path) -> None:
    assert "There is no file and no data set 'nothing'" in mistake("describe", "nothing")
    assert "There is no file" in mistake("describe", tmp_path / "nothing.csv")
    assert "must end in .csv or .parquet" in mistake("simulate", "--out", tmp_path / "x.xlsx")
    assert "is a named data set" in mistake("describe", "household", "--targets", "load")
    assert "no data set 'etth7'" in mistake("fetch", "etth7")
    assert "no data set 'etth7'" in mistake("convert", "etth7", tmp_path)
    assert "meters=0" in mistake("simulate", "--meters", 0, "--out", tmp_path / "x.csv")
    assert not list(tmp_path.iterdir())


def test_convert_tells_how_much_it_has_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[tuple[str | None, int, int]] = []

    def hear(self: RunProgress, step: int, steps: int, numbers: object = None) -> None:
        heard.append((self.counted, step, steps))

    monkeypatch.setattr(RunProgress, "__call__", hear)
    raw = tmp_path / "LCL_a.csv"
    rows = "".join(f"MAC1,Std,2012-10-12 {hour:02}:00:00, 0.5 \n" for hour in range(24))
    raw.write_text("LCLid,stdorToU,DateTime,KWH/hh (per half hour) \n" + rows)
    printed("convert", "london", raw, "--out", tmp_path / "london.parquet")
    assert heard == [("megabyte", 0, 1), ("megabyte", 1, 1)]


def test_convert_where_the_data_set_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAMEDIT_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("tamedit.data.sources.cache_folder", lambda: tmp_path / "cache")
    raw = tmp_path / "household_power_consumption.txt"
    raw.write_text(
        "Date;Time;Global_active_power\n" + "".join(f"1/2/2007;{hour:02d}:00:00;{hour}\n" for hour in range(5))
    )
    printed("convert", "household", raw)
    assert json.loads(printed("describe", "household", "--json"))["rows"] == 5
    assert json.loads(printed("fetch", "household", "--json"))["file"].endswith("household_uci_hourly.csv")


def test_importing_the_commands_costs_nothing() -> None:
    code = "import sys, tamedit.cli.data; print([name for name in ('pandas', 'torch', 'numpy') if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
