"""The commands as a user meets them: help at once, one JSON object, files named, signals obeyed."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load_file

from tamedit.cli.main import main

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def ask(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: object
) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["tamedit", *(str(argument) for argument in arguments)])
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


def test_help_imports_nothing_heavy() -> None:
    """What makes help slow is what it imports; seconds are for benchmarks."""
    code = (
        "import sys; sys.argv = ['tamedit', '--help']\n"
        "from tamedit.cli.main import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        "heavy = [n for n in ('torch', 'pandas', 'diffusers', 'scipy', 'matplotlib') if n in sys.modules]\n"
        "print('HEAVY', heavy, file=sys.stderr)"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=ENVIRONMENT)
    assert "HEAVY []" in answer.stderr
    for command in ("train", "impute", "forecast", "generate", "evaluate", "demo", "data"):
        assert command in answer.stdout


def test_version_and_no_arguments(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = ask(monkeypatch, capsys, "--version")
    assert code == 0
    assert out.startswith("tamedit ")
    code, out, err = ask(monkeypatch, capsys)
    assert "Usage" in out + err
    assert code in (0, 2)


def test_every_command_prints_one_json_object(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], smoke_run: Path, tmp_path: Path
) -> None:
    file = smoke_run.parent / "meter.csv"
    (tmp_path / "short.csv").write_text("".join(file.read_text().splitlines(keepends=True)[:150]))
    short = tmp_path / "short.csv"
    commands: list[tuple[object, ...]] = [
        ("train", file, "--out", tmp_path / "run", "--scale", "smoke", "--steps", 2, "--window", 24),
        ("impute", smoke_run, short, "--out", tmp_path / "a.csv", "--samples", 2),
        (
            "forecast",
            smoke_run,
            short,
            "--horizon",
            "3h",
            "--out",
            tmp_path / "b.csv",
            "--samples",
            2,
            "--quantiles",
            "0.1,0.9",
        ),
        (
            "forecast",
            smoke_run,
            short,
            "--horizon",
            3,
            "--out",
            tmp_path / "c.parquet",
            "--samples",
            2,
            "--all-samples",
        ),
        ("generate", smoke_run, "--count", 2, "--out", tmp_path / "d.csv", "--start", "2024-02-29"),
        ("evaluate", smoke_run, "--windows", 3, "--samples", 4),
    ]
    for command in commands:
        code, out, err = ask(monkeypatch, capsys, *command, "--json")
        assert code == 0, err
        assert err == ""
        plain = json.loads(out)
        assert isinstance(plain, dict)
        for name in plain.get("files", []):
            assert Path(name).is_file()
    assert list(plain["tasks"]) == ["imputation", "forecast", "cold_start_24"]
    assert len(pd.read_csv(tmp_path / "b.csv")) == 3
    filled = ["kwh_q05", "kwh_q25", "kwh_q75", "kwh_q95", "kwh_filled"]
    assert list(pd.read_csv(tmp_path / "a.csv").columns[-5:]) == filled
    assert list(pd.read_csv(tmp_path / "b.csv").columns[-3:]) == ["kwh", "kwh_q10", "kwh_q90"]
    assert len(pd.read_parquet(tmp_path / "c.parquet")) == 6
    assert pd.read_csv(tmp_path / "d.csv")["time"].iloc[0].startswith("2024-02-29")


def test_plain_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], smoke_run: Path, tmp_path: Path
) -> None:
    file, out = smoke_run.parent / "meter.csv", tmp_path / "run"
    code, said, progress = ask(
        monkeypatch,
        capsys,
        "train",
        file,
        "--out",
        out,
        "--scale",
        "smoke",
        "--steps",
        3,
        "--window",
        24,
        "--non-negative",
    )
    assert code == 0
    assert "note: " in said
    assert said.splitlines()[-2:] == [f"wrote {out / 'model.safetensors'}", f"wrote {out / 'model.json'}"]
    assert progress.startswith("step 3/3  loss ")
    assert json.loads((out / "model.json").read_text())["non_negative"] is True
    code, said, _ = ask(monkeypatch, capsys, "evaluate", out, "--windows", 3, "--samples", 4)
    assert code == 0
    assert said.index("this model") < said.index("free distribution")
    assert said.count("\nCRPS: ") == 2  # a sentence for each task
    assert said.strip().endswith("not private.")


def test_generated_files_round_trip(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], smoke_run: Path, tmp_path: Path
) -> None:
    for name in ("x.csv", "x.parquet"):
        assert ask(monkeypatch, capsys, "generate", smoke_run, "--count", 2, "--out", tmp_path / name)[0] == 0
    text, binary = pd.read_csv(tmp_path / "x.csv"), pd.read_parquet(tmp_path / "x.parquet")
    assert list(text.columns) == ["sample", "time", "kwh"]
    np.testing.assert_array_equal(text["kwh"].to_numpy().astype(np.float32), binary["kwh"])


SLOW_STEPS = """
import sys, time
import torch
torch.set_num_threads(1)
from tamedit.training import loop
step = loop.Trainer._step
def slow(self, *arguments):
    print("step", self.step, flush=True)
    time.sleep(0.05)
    return step(self, *arguments)
loop.Trainer._step = slow
from tamedit.cli.main import main
main()
"""


def started(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SLOW_STEPS, *(str(argument) for argument in arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )


def wait_for(process: "subprocess.Popen[str]", line: str) -> None:
    assert process.stdout is not None
    for said in process.stdout:
        if said.strip() == line:
            return
    raise AssertionError(process.communicate())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_leave_a_checkpoint_that_continues_bit_for_bit(
    number: signal.Signals,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    smoke_run: Path,
    tmp_path: Path,
) -> None:
    file = smoke_run.parent / "meter.csv"
    options = ("--scale", "smoke", "--steps", 16, "--window", 24)
    process = started("train", file, "--out", tmp_path / "stopped", *options)
    wait_for(process, "step 3")
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    last = err.strip().splitlines()[-1]
    assert last.startswith("tamedit: stopped at step ")
    assert last.endswith("of 16; continue with the same command and --resume.")
    names = {path.name for path in (tmp_path / "stopped").iterdir()}
    assert {"run.json", "reading.json", "checkpoint.safetensors"} <= names
    assert not names & {"model.safetensors", "model.json"}
    assert not [name for name in names if name.startswith(".")]
    assert ask(monkeypatch, capsys, "train", file, "--out", tmp_path / "stopped", *options, "--resume")[0] == 0
    assert ask(monkeypatch, capsys, "train", file, "--out", tmp_path / "whole", *options)[0] == 0
    first, second = (load_file(tmp_path / name / "model.safetensors") for name in ("stopped", "whole"))
    assert first.keys() == second.keys()
    for key, value in first.items():
        assert value.tobytes() == second[key].tobytes()
    for name in ("model.json", "run.json"):
        assert (tmp_path / "stopped" / name).read_text() == (tmp_path / "whole" / name).read_text()


def test_ctrl_c_outside_of_training(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], smoke_run: Path, tmp_path: Path
) -> None:
    def interrupted(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tamedit.tasks.model.Model.generate", interrupted)
    code, _, err = ask(monkeypatch, capsys, "generate", smoke_run, "--count", 2, "--out", tmp_path / "x.csv")
    assert code == 130
    assert err.strip() == "tamedit: stopped."
    assert not list(tmp_path.iterdir())


def test_a_small_disk(smoke_run: Path, tmp_path: Path) -> None:
    """The real thing: no file may grow beyond 20 kB, as on a disk that is full."""
    code = (
        "import resource, sys\n"
        "import tamedit.tasks.model, tamedit.cli.progress  # what is compiled on import may be larger\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"
        "from tamedit.cli.main import main\n"
        "main()"
    )
    file = smoke_run.parent / "meter.csv"
    for arguments in (
        ("train", file, "--out", tmp_path / "run", "--scale", "smoke", "--steps", 2, "--window", 24, "--json"),
        ("generate", smoke_run, "--count", 40, "--out", tmp_path / "x.csv"),
    ):
        answer = subprocess.run(
            [sys.executable, "-c", code, *(str(argument) for argument in arguments)],
            capture_output=True,
            text=True,
            check=False,
            env=ENVIRONMENT,
        )
        assert answer.returncode == 2, answer.stderr
        assert len(answer.stderr.strip().splitlines()) == 1, answer.stderr
        assert "Cannot write" in answer.stderr
    assert {path.name for path in (tmp_path / "run").iterdir()} <= {
        "run.json",
        "reading.json",
        "metrics.jsonl",
        "not-private",
    }
    assert not (tmp_path / "x.csv").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
