"""A user's mistake in a table or a file: one sentence on stderr, exit code 2, no traceback, nothing half-written."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from support import Run, csv, meter, untouched


def text_in_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    changed = frame.astype(object)
    changed.iloc[7, 0] = "broken"
    return changed


def infinite(frame: pd.DataFrame) -> pd.DataFrame:
    changed = frame.copy()
    changed.iloc[9, 0] = np.inf
    return changed


BAD_TABLES: dict[str, tuple[Callable[[pd.DataFrame], pd.DataFrame], str]] = {
    "no time column": (lambda frame: frame.reset_index(drop=True).rename_axis("row"), "time"),
    "a stamp twice": (lambda frame: pd.concat([frame, frame.iloc[[5]] + 1]), "appears twice"),
    "text among numbers": (text_in_numbers, "'broken' where a number should be"),
    "a column without a reading": (lambda frame: frame * np.nan, "no reading at all"),
    "infinity": (infinite, "is infinite"),
    "off the grid": (
        lambda frame: frame.set_axis(frame.index[:-1].append(frame.index[-1:] + pd.Timedelta("7min"))),
        "grid",
    ),
    "one row": (lambda frame: frame.iloc[:1], "only one row"),
}


@pytest.mark.parametrize("name", list(BAD_TABLES))
def test_bad_tables(name: str, mistake: Callable[..., str], smoke_run: Path, tmp_path: Path) -> None:
    change, word = BAD_TABLES[name]
    file = csv(tmp_path / "meter.csv", change(meter()))
    with untouched(tmp_path):
        for command in (
            ("train", file, "--out", tmp_path / "run", "--scale", "smoke"),
            ("impute", smoke_run, file, "--out", tmp_path / "out.csv"),
            ("forecast", smoke_run, file, "--horizon", 3, "--out", tmp_path / "out.csv"),
        ):
            sentence = mistake(*command)
            assert word in sentence
            assert "meter.csv" in sentence


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


BAD_FILES: dict[str, tuple[Callable[[Path], Path], str]] = {
    "missing": (lambda folder: folder / "nothing.csv", "There is no file"),
    "a folder": (lambda folder: folder, "is a folder"),
    "empty": (lambda folder: write(folder / "x.csv", b""), "is empty"),
    "a header alone": (lambda folder: write(folder / "x.csv", b"time,kwh\n"), "no rows"),
    "a picture": (lambda folder: write(folder / "x.csv", b"\x89PNG\r\n\x1a\n" + bytes(200)), "not a CSV"),
    "binary": (lambda folder: write(folder / "x.csv", bytes(range(256)) * 20), "not a text file"),
    "JSON": (lambda folder: write(folder / "x.csv", b'{"time": [1, 2]}'), "not a CSV but JSON"),
    "half of UTF-16": (lambda folder: write(folder / "x.csv", "time,kwh\n".encode("utf-16")[:-1]), "UTF-16"),
    "damaged Parquet": (lambda folder: write(folder / "x.parquet", b"PAR1 and no more"), "Parquet"),
    "prose": (lambda folder: write(folder / "x.csv", b"Dear all,\nplease find the readings below.\n"), "x.csv"),
}


@pytest.mark.parametrize("name", list(BAD_FILES))
def test_bad_files(name: str, mistake: Callable[..., str], smoke_run: Path, tmp_path: Path) -> None:
    make, word = BAD_FILES[name]
    file = make(tmp_path)
    with untouched(tmp_path):
        assert word in mistake("train", file, "--out", tmp_path / "run")
        assert word in mistake("impute", smoke_run, file, "--out", tmp_path / "out.csv")


def test_other_encodings_work(run: Run, smoke_run: Path, tmp_path: Path) -> None:
    frame = meter(60).rename_axis("time").reset_index()
    frame["città"] = 1.0
    for encoding in ("utf-8-sig", "utf-16", "latin-1"):
        frame.to_csv(tmp_path / "meter.csv", index=False, encoding=encoding)
        answer = run("impute", smoke_run, tmp_path / "meter.csv", "--out", tmp_path / "out.csv", "--samples", 2)
        assert answer.code == 0, answer.err


def test_unordered_stamps_and_gaps_work_and_are_said(run: Run, smoke_run: Path, tmp_path: Path) -> None:
    frame = meter(100)
    shuffled = frame.drop(frame.index[[30, 31, 60]]).sample(frac=1, random_state=0)
    file, out = csv(tmp_path / "meter.csv", shuffled), tmp_path / "deep" / "out.csv"
    answer = run("impute", smoke_run, file, "--out", out, "--samples", 2)
    assert answer.code == 0, answer.err
    assert "not in time order" in answer.out
    assert "3 absent time stamps" in answer.out
    assert answer.out.strip().endswith(f"wrote {out}")
    filled = pd.read_csv(out, index_col="time", parse_dates=True)
    assert (filled.index == frame.index).all()
    observed = shuffled["kwh"].dropna()
    assert (filled.loc[observed.index, "kwh"].to_numpy().astype(np.float32) == observed.to_numpy()).all()


def test_observed_readings_survive_the_file_whatever_their_size(run: Run, smoke_run: Path, tmp_path: Path) -> None:
    frame = meter(60).fillna(0)
    frame["kwh"] = (frame["kwh"].to_numpy() * 1e6 + 1_234_567).astype(np.float32)
    frame.iloc[10:12] = np.nan
    file = csv(tmp_path / "meter.csv", frame)
    for name in ("out.csv", "out.parquet"):
        assert run("impute", smoke_run, file, "--out", tmp_path / name, "--samples", 2).code == 0
    kept = frame["kwh"].notna().to_numpy()
    for table in (pd.read_csv(tmp_path / "out.csv"), pd.read_parquet(tmp_path / "out.parquet")):
        assert (table["kwh"].to_numpy().astype(np.float32)[kept] == frame["kwh"].to_numpy()[kept]).all()


def test_a_constant_series_works(run: Run, tmp_path: Path) -> None:
    frame = meter(400)
    frame["kwh"] = 3.0
    file = csv(tmp_path / "meter.csv", frame)
    answer = run("train", file, "--out", tmp_path / "run", "--scale", "smoke", "--steps", 2, "--window", 24)
    assert answer.code == 0, answer.err
    assert "never changes" in answer.out
    frame.iloc[50:60] = np.nan
    csv(file, frame)
    assert run("impute", tmp_path / "run", file, "--out", tmp_path / "out.csv", "--samples", 2).code == 0
    assert np.isfinite(pd.read_csv(tmp_path / "out.csv", index_col=0).to_numpy()).all()
    answer = run("evaluate", tmp_path / "run", "--json", "--windows", 2, "--samples", 4)
    assert answer.code == 0, answer.err
    json.loads(answer.out)


def test_a_series_shorter_than_a_window(mistake: Callable[..., str], tmp_path: Path) -> None:
    file = csv(tmp_path / "meter.csv", meter(100))
    with untouched(tmp_path):
        assert "training part has 70 rows" in mistake("train", file, "--out", tmp_path / "run", "--window", 168)
        assert "validation part has 15 rows" in mistake("train", file, "--out", tmp_path / "run", "--window", 24)


def test_places_that_cannot_be_written(mistake: Callable[..., str], smoke_run: Path, tmp_path: Path) -> None:
    file = csv(tmp_path / "meter.csv", meter(300))
    with untouched(tmp_path):
        below = file / "deeper"
        assert "meter.csv" in mistake("train", file, "--out", below, "--scale", "smoke", "--window", 24)
        assert "meter.csv" in mistake("impute", smoke_run, file, "--out", below / "x.csv")
        assert "meter.csv" in mistake("generate", smoke_run, "--count", 1, "--out", below / "x.csv")
        assert "is a file" in mistake("train", file, "--out", file, "--scale", "smoke", "--window", 24)
        assert "is a file" in mistake("demo", "--out", file, "--scale", "smoke")
        (folder := tmp_path / "folder.csv").mkdir()
        assert "is a folder" in mistake("impute", smoke_run, file, "--out", folder)
        folder.rmdir()
        assert "must end in .csv or .parquet" in mistake("impute", smoke_run, file, "--out", tmp_path / "x.xlsx")


def test_the_table_that_is_read_is_never_written(
    mistake: Callable[..., str], smoke_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = csv(tmp_path / "meter.csv", meter(300))
    future = csv(tmp_path / "future.csv", meter(300))
    (link := tmp_path / "link.csv").symlink_to(file)
    ahead = ("forecast", smoke_run, file, "--horizon", 2, "--future", future, "--samples", 2)
    monkeypatch.chdir(tmp_path)
    with untouched(tmp_path):
        for place in (file, "meter.csv", link):
            assert "is the table to be read" in mistake("impute", smoke_run, file, "--out", place, "--samples", 2)
        assert "is the table to be read" in mistake(*ahead, "--out", file)
        assert "is the table to be read" in mistake(*ahead, "--out", future)


def test_a_folder_that_may_not_be_written_is_noticed_before_the_model_is_loaded(
    mistake: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = csv(tmp_path / "meter.csv", meter(300))
    monkeypatch.setattr("os.access", lambda path, mode: mode == os.R_OK)
    out = tmp_path / "deep" / "x.csv"
    assert "cannot be written to" in mistake("impute", tmp_path / "no run", file, "--out", out)
    assert "cannot be written to" in mistake("generate", tmp_path / "no run", "--count", 1, "--out", out)


def test_a_file_without_a_whole_week(mistake: Callable[..., str], tmp_path: Path) -> None:
    hours = pd.date_range("2024-01-03", periods=330, freq="h", name="time")  # a Wednesday
    file = csv(tmp_path / "wed.csv", meter(330).set_axis(hours))
    ask = ("train", file, "--out", tmp_path / "run", "--epsilon", 8)
    study = ("--study", "2024-01-03/2024-01-16")
    with untouched(tmp_path):
        assert "No whole block of 168 rows fits into the training part" in mistake(*ask, "--unit", "week", *study)
    csv(file, meter(490).set_axis(pd.date_range("2024-01-03", periods=490, freq="h", name="time")))
    with untouched(tmp_path):
        for asked in (ask, ("plan", file)):
            said = mistake(*asked, "--unit", "week", "--study", "2024-01-03/2024-01-24")
            assert "The training part has room for 1 whole week" in said


def test_wrong_columns_and_rhythm(mistake: Callable[..., str], smoke_run: Path, tmp_path: Path) -> None:
    other = csv(tmp_path / "other.csv", meter(100).rename(columns={"kwh": "load"}))
    quarter = csv(tmp_path / "quarter.csv", meter(100).set_axis(pd.date_range("2024", periods=100, freq="15min")))
    out = tmp_path / "out.csv"
    assert "no column 'kwh' in other.csv" in mistake("impute", smoke_run, other, "--out", out)
    assert "row every 15 minutes" in mistake("forecast", smoke_run, quarter, "--horizon", 2, "--out", out)
    assert "no column 'nothing'" in mistake("impute", smoke_run, other, "--targets", "nothing", "--out", out)
    assert not out.exists()


def test_names_of_columns_may_have_blanks_around_them(run: Run, tmp_path: Path) -> None:
    frame = meter(400)
    frame["b"] = frame["kwh"]
    frame["c"] = 1.0
    file = csv(tmp_path / "meter.csv", frame)
    answer = run(
        *("train", file, "--out", tmp_path / "run", "--targets", "kwh, b", "--covariates", " c"),
        *("--scale", "smoke", "--steps", 1, "--window", 24, "--json"),
    )
    assert answer.code == 0, answer.err
    plain = json.loads((tmp_path / "run" / "model.json").read_text())
    assert plain["targets"] == ["kwh", "b"]
    assert plain["covariates"] == ["c"]
    csv(tmp_path / "future.csv", frame.set_axis(frame.index + pd.Timedelta(hours=400)))
    ask = ("forecast", tmp_path / "run", file, "--horizon", 2, "--samples", 2, "--out", tmp_path / "out.csv")
    assert run(*ask).code == 2
    assert run(*ask, "--future", tmp_path / "future.csv").code == 0
    assert run("evaluate", tmp_path / "run", "--json", "--windows", 2, "--samples", 4).code == 0


def test_the_advice_about_missing_covariates_can_be_followed(
    run: Run, mistake: Callable[..., str], tmp_path: Path
) -> None:
    frame = meter(400).assign(c=1.0)
    frame.iloc[50:55, 1] = np.nan
    file = csv(tmp_path / "meter.csv", frame)
    ask = (
        "train",
        file,
        "--out",
        tmp_path / "run",
        "--covariates",
        "c",
        "--scale",
        "smoke",
        "--steps",
        1,
        "--window",
        24,
    )
    assert "--missing-covariates hold" in mistake(*ask)
    assert "guess is unknown; choose refuse, hold, zero" in mistake(*ask, "--missing-covariates", "guess")
    held = ("--missing-covariates", "hold")
    answer = run(*ask, *held)
    assert answer.code == 0, answer.err
    assert "5 missing values of covariates were filled with the last known value" in answer.out
    fill = ("impute", tmp_path / "run", file, "--samples", 2, "--out", tmp_path / "out.csv")
    assert "--missing-covariates hold" in mistake(*fill)
    assert run(*fill, *held).code == 0
    assert run("evaluate", tmp_path / "run", "--json", "--windows", 2, "--samples", 4).code == 0
