"""Several files on the command line: the three commands of a newcomer, and what each of them says."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from support import Run, meter
from tamedit.runs.folder import load_run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two meters of 400 hours with holes, the second one shorter."""
    (tmp_path / "meters").mkdir()
    for number, hours in ((1, 400), (2, 390)):
        frame = meter(400).iloc[:hours]
        frame.iloc[20:26] = np.nan
        frame.to_csv(tmp_path / "meters" / f"home_{number}.csv")
    return tmp_path / "meters"


def test_three_commands_from_a_folder_to_filled_gaps(run: Run, folder: Path, tmp_path: Path) -> None:
    files = sorted(folder.iterdir())
    code, out, err = run("data", "describe", *files)
    assert code == 0, err
    assert "Understood:" in out
    assert "one meter, whose name is the file's" in out.replace("\n", " ")
    assert out.splitlines()[-1] == f"next: tamedit train '{folder}/*.csv' --out runs/first"
    code, _, err = run("train", *files, "--out", tmp_path / "run", "--scale", "smoke", "--steps", 2, "--window", 48)
    assert code == 0, err
    assert load_run(tmp_path / "run")[0].source == f"{folder}/*.csv"
    code, _, err = run("impute", tmp_path / "run", *files, "--out", tmp_path / "filled.csv", "--samples", 2)
    assert code == 0, err
    filled = pd.read_csv(tmp_path / "filled.csv")
    assert filled.groupby("meter")["kwh_filled"].sum().to_dict() == {"home_1": 6, "home_2": 6}
    assert filled["kwh"].notna().all()
    code, _, err = run(
        "impute", tmp_path / "run", folder, "--out", tmp_path / "only.csv", "--samples", 2, "--only-filled"
    )
    assert code == 0, err
    pd.testing.assert_frame_equal(
        pd.read_csv(tmp_path / "only.csv"), filled[filled["kwh_filled"] == 1].reset_index(drop=True)
    )
    code, out, err = run(
        "forecast", tmp_path / "run", folder, "--out", tmp_path / "ahead.csv", "--horizon", "24h", "--samples", 2
    )
    assert "meters end at different times" in out.replace("\n", " ")
    assert "--from" in out
    ends = pd.read_csv(tmp_path / "ahead.csv").groupby("meter")["time"].min()
    assert ends.nunique() == 2
    code, out, err = run(
        *("forecast", tmp_path / "run", folder, "--out", tmp_path / "ahead.csv", "--horizon", "24h", "--samples", 2),
        *("--from", "2023-01-18"),
    )
    assert code == 0, err
    starts = pd.read_csv(tmp_path / "ahead.csv").groupby("meter")["time"].agg(["min", "max", "size"])
    assert starts.to_numpy().tolist() == [["2023-01-18 00:00:00", "2023-01-18 23:00:00", 24]] * 2
    scored = run(
        "evaluate",
        tmp_path / "run",
        "--tasks",
        "forecast",
        "--horizon",
        "12h",
        "--samples",
        4,
        "--windows",
        2,
        "--json",
    )
    assert json.loads(scored.out)["forecast_horizon"] == 12


def test_refusals(run: Run, folder: Path, tmp_path: Path) -> None:
    code, _, err = run("data", "describe", "https://example.org/meters.csv")
    assert (code, err.count("\n")) == (2, 1)
    assert "fetches no data" in err
    code, _, err = run("data", "describe", folder / "home_1.csv", folder / "home_3.csv")
    assert code == 2
    assert "There is no file" in err
    code, _, err = run("data", "describe", folder, "--resample", "2h")
    assert code == 2
    assert "--aggregate sum" in err
    (folder / "home_3.csv").write_text((folder / "home_1.csv").read_text())
    some = sorted(folder.iterdir())[:2]
    code, _, err = run("train", *some, "--out", tmp_path / "run", "--epsilon", 8)
    assert code == 2
    assert "who takes part" in err
    code, _, err = run("impute", tmp_path, folder, "--out", folder / "filled.csv")
    assert code == 2
    assert "would be read the next time" in err
