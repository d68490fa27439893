"""`--static` from the command line: train, forecast, generate, plan, describe."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tamedit as tame
from support import Run

pytestmark = pytest.mark.usefixtures("small_pool")
FAST = ("--scale", "smoke", "--steps", 2, "--window", 48)


@pytest.fixture(scope="module")
def meters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    frame = tame.simulate(8, 24 * 42, seed=1).frame()
    number = frame["meter"].map({name: place for place, name in enumerate(frame["meter"].unique())})
    frame["kwh"] = frame["kwh"] / frame.groupby("meter")["kwh"].transform("mean") * np.where(number % 2, 4.0, 1.0)
    frame["tariff"] = number % 2  # coded
    frame["heating"] = np.where(number < 4, "heat pump", "none")
    path = tmp_path_factory.mktemp("meters") / "meters.csv"
    frame.to_csv(path, index=False)
    return path


def test_from_a_table_to_homes_of_a_group(run: Run, mistake: Callable[..., str], meters: Path, tmp_path: Path) -> None:
    folder, out = tmp_path / "run", tmp_path / "homes.csv"
    reading = ("--targets", "kwh", "--static", "tariff=0|1, heating=heat pump|none")
    code, _, err = run("train", meters, "--out", folder, "--init", "homes", *reading, *FAST)
    assert code == 0, err
    code, _, err = run("train", meters, "--out", folder, "--init", "homes", *reading, *FAST, "--resume")
    assert code == 0, err
    asked = ("--homes", 6, "--days", 7, "--static", "tariff=1,heating=none")
    code, _, err = run("generate", folder, *asked, "--out", out)
    assert code == 0, err
    made = pd.read_csv(out, keep_default_na=False)
    assert list(made.columns) == ["home", "time", "kwh", "tariff", "heating"]
    assert set(made["tariff"]) == {1}
    assert set(made["heating"]) == {"none"}
    assert made.groupby("home")["kwh"].mean().median() > 2.0
    parquet = tmp_path / "homes.parquet"
    assert run("generate", folder, "--homes", 70, "--days", 1, "--out", parquet)[0] == 0  # more than a group
    assert set(pd.read_parquet(parquet)["heating"]) == {"heat pump", "none"}
    assert run("forecast", folder, meters, "--horizon", 3, "--samples", 2, "--out", tmp_path / "ahead.csv")[0] == 0
    code, _, err = run("evaluate", folder, "--windows", 4, "--samples", 4, "--json")
    assert code == 0, err
    code, _, err = run("generate", folder, "--begin", meters, "--days", 1, "--out", tmp_path / "next.csv")
    assert code == 0, err
    assert set(pd.read_csv(tmp_path / "next.csv", dtype=str)["tariff"]) == {"0", "1"}
    assert "--static belongs to --homes" in mistake(
        "generate", folder, "--count", 2, "--static", "tariff=1", "--out", tmp_path / "a.csv"
    )
    assert "has no category '2'; this model knows 0, 1" in mistake(
        "generate", folder, "--homes", 2, "--static", "tariff=2", "--out", tmp_path / "a.csv"
    )
    assert not (tmp_path / "a.csv").exists()


def test_attributes_are_no_readings_to_compare(run: Run, tmp_path: Path) -> None:
    path, folder = tmp_path / "longer.csv", tmp_path / "run"
    frame = tame.simulate(11, 24 * 100, seed=1).frame()
    frame.assign(tariff=(frame["meter"] > "meter_05").astype(int)).to_csv(path, index=False)
    code, _, err = run("train", path, "--out", folder, "--targets", "kwh", "--static", "tariff=0|1", *FAST)
    assert code == 0, err
    code, said, err = run("evaluate", folder, "--generation", "--homes", 11, "--days", 14, "--json")
    assert code == 0, err
    assert "tariff" not in said


def test_names_alone_are_found_again(run: Run, mistake: Callable[..., str], meters: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    code, said, err = run("train", meters, "--out", folder, "--targets", "kwh", "--static", "tariff,heating", *FAST)
    assert code == 0, err
    assert "The categories of 'heating' were taken to be" in said
    assert '"tariff": [' in (folder / "reading.json").read_text()
    code, _, err = run("evaluate", folder, "--windows", 4, "--samples", 4, "--json")
    assert code == 0, err
    private = ("--epsilon", 8, "--unit", "series", "--test-only", "--id", "meter")
    sentence = mistake(
        "train", meters, "--out", tmp_path / "b", "--targets", "kwh", "--static", "tariff", *private, *FAST
    )
    assert "state them for a private run: --static 'tariff=flat|night'" in sentence
    weekly = ("--epsilon", 8, "--unit", "week", "--test-only", "--id", "meter")
    sentence = mistake(
        "train", meters, "--out", tmp_path / "b", "--targets", "kwh", "--static", "tariff=0|1", *weekly, *FAST
    )
    assert "take --unit series, or leave out --static" in sentence


def test_what_comes_next_names_the_attributes(run: Run, meters: Path) -> None:
    static = "tariff=0|1,heating=heat pump|none"
    code, said, _ = run("data", "describe", meters, "--targets", "kwh", "--static", static)
    assert code == 0
    assert f"--static '{static}'" in said
    chosen = ("--epsilon", 8, "--unit", "series", "--targets", "kwh", "--id", "meter", "--static", static)
    code, said, err = run("plan", meters, *chosen)
    assert code == 0, err
    assert f"--static '{static}'" in " ".join(said.split())
