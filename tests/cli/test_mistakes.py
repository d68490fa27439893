"""A user's mistake: one sentence on stderr, exit code 2, no traceback, nothing half-written."""

import errno
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

from tamedit.cli.main import main
from tamedit.data.simulate import simulate


class Answer(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Answer]


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


def csv(path: Path, frame: pd.DataFrame) -> Path:
    frame.to_csv(path)
    return path


def meter(hours: int = 300) -> pd.DataFrame:
    return simulate(hours=hours, seed=1).frame()


@contextmanager
def untouched(folder: Path) -> Iterator[None]:
    """Nothing is added to, taken from or changed in a folder."""

    def content() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    before, folders = content(), {path for path in folder.rglob("*") if path.is_dir()}
    yield
    assert content() == before
    assert {path for path in folder.rglob("*") if path.is_dir()} == folders


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
    "a stamp twice": (lambda frame: pd.concat([frame, frame.iloc[[5]]]), "appears twice"),
    "text among numbers": (text_in_numbers, "'broken' where a number should be"),
    "a column without a reading": (lambda frame: frame * np.nan, "no reading at all"),
    "infinity": (infinite, "is infinite"),
    "off the grid": (
        lambda frame: frame.set_axis(frame.index[:-1].append(frame.index[-1:] + pd.Timedelta("7min"))),
        "grid",
    ),
    "one row": (lambda frame: frame.iloc[:1], "one row only"),
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
    assert "not in the order of time" in answer.out
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


def test_folders_that_hold_no_model(mistake: Callable[..., str], smoke_run: Path, tmp_path: Path) -> None:
    file = csv(tmp_path / "meter.csv", meter(100))
    (tmp_path / "empty").mkdir()
    for folder in (tmp_path / "empty", tmp_path / "absent", file):
        assert "holds no trained model" in mistake("impute", folder, file, "--out", tmp_path / "out.csv")
        assert "holds no trained model" in mistake("evaluate", folder)
    shutil.copytree(smoke_run, tmp_path / "run")
    (tmp_path / "run" / "model.safetensors").unlink()
    assert "--resume" in mistake("generate", tmp_path / "run", "--count", 1, "--out", tmp_path / "out.csv")
    for name in ("model.json", "model.safetensors"):
        shutil.copy(smoke_run / name, tmp_path / "empty" / name)
    assert "run.json is missing" in mistake("evaluate", tmp_path / "empty")


def other_weights(content: bytes) -> bytes:
    import torch
    from safetensors.torch import load, save

    return save({name: torch.zeros(3) for name in load(content)})


DAMAGES: dict[str, tuple[str, Callable[[bytes], bytes], str]] = {
    "weights cut short": ("model.safetensors", lambda content: content[: len(content) // 2], "damaged"),
    "weights empty": ("model.safetensors", lambda content: b"", "damaged"),
    "other weights": ("model.safetensors", other_weights, "does not fit"),
    "specification cut short": ("model.json", lambda content: content[:200], "damaged"),
    "specification not text": ("model.json", lambda content: b"\xff\xfe\x00\x80", "damaged"),
    "specification without a scaling": ("model.json", lambda content: without(content, "scaling", {"x": 1}), "damaged"),
    "specification with other channels": (
        "model.json",
        lambda content: without(content, "targets", ["a", "b"]),
        "damaged",
    ),
    "specification of the future": ("model.json", lambda content: without(content, "version", 9), "format 9"),
    "specification with an unknown field": ("model.json", lambda content: without(content, "extra", 1), "damaged"),
    "impossible network": (
        "model.json",
        lambda content: without(content, "network", json.loads(content)["network"] | {"heads": 5}),
        "heads=5",
    ),
}


def without(content: bytes, key: str, value: Any) -> bytes:
    return json.dumps(json.loads(content) | {key: value}).encode()


@pytest.mark.parametrize("name", list(DAMAGES))
def test_damaged_models(name: str, mistake: Callable[..., str], smoke_run: Path, tmp_path: Path) -> None:
    file, damage, word = DAMAGES[name]
    folder = tmp_path / "run"
    shutil.copytree(smoke_run, folder)
    (folder / file).write_bytes(damage((folder / file).read_bytes()))
    with untouched(tmp_path):
        assert word in mistake("generate", folder, "--count", 1, "--out", tmp_path / "out.csv")


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"{", b"\xff\xfe", b'{"source": 1}'])
@pytest.mark.parametrize("name", ["run.json", "reading.json"])
def test_damaged_runs(name: str, content: bytes, mistake: Callable[..., str], smoke_run: Path, tmp_path: Path) -> None:
    if (name, content) == ("reading.json", b"{}"):
        pytest.skip("an empty object says nothing about the data, and that is fine")
    folder = tmp_path / "run"
    shutil.copytree(smoke_run, folder)
    (folder / name).write_bytes(content)
    assert "is damaged or from another version" in mistake("evaluate", folder)
    file = smoke_run.parent / "meter.csv"
    same = ("train", file, "--out", folder, "--scale", "smoke", "--steps", 6, "--window", 48, "--resume")
    assert "is damaged or from another version" in mistake(*same)


def test_damaged_checkpoint(mistake: Callable[..., str], smoke_run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(smoke_run, folder)
    (folder / "checkpoint.safetensors").write_bytes(b"nothing")
    file = smoke_run.parent / "meter.csv"
    same = ("train", file, "--out", folder, "--scale", "smoke", "--steps", 6, "--window", 48, "--resume")
    assert "is not a checkpoint" in mistake(*same)


def test_runs_are_continued_on_request_and_with_the_same_options_only(
    run: Run, mistake: Callable[..., str], smoke_run: Path, tmp_path: Path
) -> None:
    folder, file = tmp_path / "run", smoke_run.parent / "meter.csv"
    shutil.copytree(smoke_run, folder)
    same = ("train", file, "--out", folder, "--scale", "smoke", "--steps", 6, "--window", 48)
    with untouched(tmp_path):
        assert "holds a run already" in mistake(*same)
        for change, word in (
            (("--seed", 1), "another seed;"),
            (("--steps", 7), "training"),
            (("--bounds", "off"), "network"),
            (("--non-negative",), "non_negative"),
            (("--time", "time"), "reading"),
        ):
            assert word in mistake(*same, "--resume", *change)
    assert run(*same, "--resume").code == 0  # a finished run stays what it is
    assert (folder / "model.safetensors").read_bytes() == (smoke_run / "model.safetensors").read_bytes()


def test_values_that_no_option_knows(mistake: Callable[..., str], run: Run, tmp_path: Path) -> None:
    file = csv(tmp_path / "meter.csv", meter(100))
    begin = ("train", file, "--out", tmp_path / "run")
    with untouched(tmp_path):
        for option in ("scale", "anchor", "bounds", "operator", "size"):
            sentence = mistake(*begin, f"--{option}", "nonsense")
            assert f"--{option} nonsense is unknown; choose " in sentence
        assert "device 'abacus'" in mistake(*begin, "--device", "abacus", "--window", 12)
        assert "device 'meta'" in mistake(*begin, "--device", "meta", "--window", 12)
        assert "'1 fortnight'" in mistake(*begin, "--frequency", "1 fortnight")
        assert "Atlantis" in mistake(*begin, "--timezone", "Atlantis/Capital")
        assert "no data set 'etth7'" in mistake("train", "etth7", "--out", tmp_path / "run")
        assert "say how to read a file" in mistake("train", "etth1", "--out", tmp_path / "run", "--targets", "OT")
        assert "not for the demo" in mistake("demo", "--out", tmp_path / "demo", "--scale", "paper")


@pytest.mark.parametrize(
    "arguments",
    [
        ("forecast", "RUN", "FILE", "--horizon", 0, "--out", "OUT"),
        ("impute", "RUN", "FILE", "--samples", 0, "--out", "OUT"),
        ("evaluate", "RUN", "--samples", 2),
        ("generate", "RUN", "--count", 0, "--out", "OUT"),
        ("train", "FILE", "--steps", 0, "--out", "OUT"),
        ("train", "FILE", "--steps", "many", "--out", "OUT"),
        ("train", "FILE", "--unheard-of", "--out", "OUT"),
        ("train", "FILE"),
        ("forecast", "RUN", "FILE", "--out", "OUT"),
        ("dance",),
    ],
)
def test_usage(arguments: tuple[object, ...], run: Run, smoke_run: Path, tmp_path: Path) -> None:
    names = {"RUN": smoke_run, "FILE": smoke_run.parent / "meter.csv", "OUT": tmp_path / "out.csv"}
    with untouched(tmp_path):
        code, out, err = run(*(names.get(str(argument), argument) for argument in arguments))
    assert code == 2
    assert out == ""
    assert "Traceback" not in err
    assert any(line.startswith("Error: ") for line in err.splitlines())


def test_generate_and_evaluate_mistakes(mistake: Callable[..., str], smoke_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    assert "start='soon'" in mistake("generate", smoke_run, "--count", 1, "--start", "soon", "--out", out)
    assert "horizon=40" in mistake("evaluate", smoke_run, "--horizon", 40)
    moved = tmp_path / "run"
    shutil.copytree(smoke_run, moved)
    plain = json.loads((moved / "run.json").read_text())
    (moved / "run.json").write_text(json.dumps(plain | {"source": str(tmp_path / "gone.csv")}))
    assert "There is no file" in mistake("evaluate", moved)


def test_debug_shows_where(run: Run, tmp_path: Path) -> None:
    code, _, err = run("--debug", "train", tmp_path / "nothing.csv", "--out", tmp_path / "run")
    assert code == 2
    assert "Traceback" in err
    assert "There is no file" in err.splitlines()[-1]
    assert "Traceback" not in run("train", tmp_path / "nothing.csv", "--out", tmp_path / "run").err


def no_space(*arguments: object, **options: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk(
    mistake: Callable[..., str], smoke_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = csv(tmp_path / "meter.csv", meter(300))
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", no_space)
        with untouched(tmp_path):
            assert "No space left" in mistake("impute", smoke_run, file, "--out", tmp_path / "x.csv", "--samples", 2)
    with monkeypatch.context() as patch:
        patch.setattr(pd.DataFrame, "to_csv", no_space)
        with untouched(tmp_path):
            assert "No space left" in mistake("generate", smoke_run, "--count", 1, "--out", tmp_path / "x.csv")
    begin = ("train", file, "--scale", "smoke", "--steps", 2, "--window", 24, "--json")
    with monkeypatch.context() as patch:
        patch.setattr("tamedit.training.metrics.MetricsLog.write", no_space)
        assert "No space left" in mistake(*begin, "--out", tmp_path / "a")
    from safetensors import SafetensorError

    def torn(*arguments: object, **options: object) -> None:
        raise SafetensorError("I/O error: No space left on device")

    for place in ("tamedit.training.checkpoint.save_file", "tamedit.training.artifact.save_file"):
        with monkeypatch.context() as patch:
            patch.setattr(place, torn)
            assert "No space left" in mistake(*begin, "--out", tmp_path / place)
        assert not list((tmp_path / place).glob("*model.safetensors"))
        assert not list((tmp_path / place).glob(".*"))


def test_validation_errors_are_one_sentence(
    mistake: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever pydantic refuses is said in one sentence too."""
    from tamedit.training.config import TrainingConfig

    monkeypatch.setattr("tamedit.training.recipe._training", lambda *arguments, **options: TrainingConfig(ema=2.0))
    file = csv(tmp_path / "meter.csv", meter(300))
    assert "ema=2.0 is not possible" in mistake("train", file, "--out", tmp_path / "run")


def test_the_demo_takes_no_folder_that_is_not_its_own(
    mistake: Callable[..., str], smoke_run: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(smoke_run, folder)
    with untouched(tmp_path):
        assert "holds other files" in mistake("demo", "--out", folder, "--scale", "smoke")
    (folder / "meter.csv").write_text("mine")
    (folder / "notes.txt").write_text("mine too")
    with untouched(tmp_path):
        assert "holds other files" in mistake("demo", "--out", folder, "--scale", "smoke")
