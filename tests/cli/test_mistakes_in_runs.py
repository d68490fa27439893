"""A user's mistake about an option, a wish or a disk: one sentence on stderr, exit code 2, nothing half-written."""

import errno
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from support import Run, csv, meter, untouched


def test_runs_are_continued_on_request_and_with_the_same_options_only(
    run: Run, mistake: Callable[..., str], smoke_run: Path, tmp_path: Path
) -> None:
    folder, file = tmp_path / "run", smoke_run.parent / "meter.csv"
    shutil.copytree(smoke_run, folder)
    same = ("train", file, "--out", folder, "--scale", "smoke", "--steps", 6, "--window", 48)
    with untouched(tmp_path):
        assert "already contains a run" in mistake(*same)
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


@pytest.mark.parametrize(
    "options",
    [
        ("--unit", "week"),
        ("--delta", 1e-5),
        ("--clip", 2),
        ("--clipping", "automatic"),
        ("--draws", 2),
        ("--layout", "overlapping"),
        ("--minutes", 5),
        ("--private-bounds",),
        ("--secure",),
        ("--test-only",),
        ("--lower", 0),
        ("--upper", 2),
    ],
)
def test_a_wish_for_privacy_is_never_passed_over(
    options: tuple[object, ...], mistake: Callable[..., str], tmp_path: Path
) -> None:
    sentence = mistake("train", tmp_path / "nothing.csv", "--out", tmp_path / "run", *options)
    assert sentence == f"{options[0]} belongs to private training; add --epsilon, or leave it out."


@pytest.mark.parametrize("options", [("--tuning", "all"), ("--rank", 2), ("--public",)])
def test_options_of_a_beginning_need_one(
    options: tuple[object, ...], mistake: Callable[..., str], tmp_path: Path
) -> None:
    sentence = mistake("train", tmp_path / "nothing.csv", "--out", tmp_path / "run", *options)
    assert sentence == f"{options[0]} belongs to --init; add --init, or leave it out."


def test_train_says_where_the_budget_ended(run: Run, tmp_path: Path) -> None:
    file = csv(tmp_path / "meter.csv", meter(900))
    private = ("--epsilon", 4, "--noise-multiplier", 1, "--unit", "day", "--batch-size", 4, "--test-only")
    plan = ("--scale", "smoke", "--size", "tiny", "--window", 24, "--steps", 60)
    answer = run("train", file, "--out", tmp_path / "run", *plan, *private)
    assert answer.code == 0, answer.err
    assert "The budget ended at step " in answer.out
    assert " of 60." in answer.out


def test_only_a_run_can_be_resumed(mistake: Callable[..., str], smoke_run: Path, tmp_path: Path) -> None:
    file = csv(tmp_path / "meter.csv", meter(300))
    (tmp_path / "empty").mkdir()
    with untouched(tmp_path):
        for begun in ((), ("--init", smoke_run)):
            for name in ("empty", "absent"):
                options = ("--scale", "smoke", "--window", 24, "--resume", *begun)
                assert "contains no run to resume" in mistake("train", file, "--out", tmp_path / name, *options)


def test_values_that_no_option_knows(mistake: Callable[..., str], tmp_path: Path) -> None:
    file = csv(tmp_path / "meter.csv", meter(100))
    begin = ("train", file, "--out", tmp_path / "run")
    with untouched(tmp_path):
        for option in ("scale", "anchor", "bounds", "operator", "size", "device", "missing-covariates", "unit"):
            sentence = mistake(*begin, f"--{option}", "nonsense")
            assert sentence.startswith(f"--{option} nonsense is unknown; choose ")
        assert mistake("demo", "--scale", "paper") == "--scale paper is unknown; choose laptop, smoke."
        assert mistake(*begin, "--rows", 3).endswith("; see tamedit train --help.")
        assert "--steps 0 is not possible: it should be" in mistake(*begin, "--steps", 0)
        assert "--window 4 is not possible" in mistake(*begin, "--window", 4)
        assert "--typical-level much is not a list of numbers" in mistake(*begin, "--typical-level", "much")
        assert "--device mps is not available" in mistake(*begin, "--device", "mps", "--window", 12)
        assert "'1 fortnight'" in mistake(*begin, "--frequency", "1 fortnight")
        assert "Atlantis" in mistake(*begin, "--timezone", "Atlantis/Capital")
        assert "no data set 'etth7'" in mistake("train", "etth7", "--out", tmp_path / "run")
        assert "say how to read a file" in mistake("train", "etth1", "--out", tmp_path / "run", "--targets", "OT")


@pytest.mark.parametrize("horizon", [0, 10_000_000_000_000, "25min", "soon"])
def test_a_horizon_that_is_no_number_of_steps(
    mistake: Callable[..., str], smoke_run: Path, tmp_path: Path, horizon: object
) -> None:
    file = smoke_run.parent / "meter.csv"
    with untouched(tmp_path):
        sentence = mistake("forecast", smoke_run, file, "--horizon", horizon, "--out", tmp_path / "out.csv")
    assert f"--horizon {horizon} is not a whole number of steps of 1 hour" in sentence


@pytest.mark.parametrize("quantiles", ["0.9,0.1", "0.5,0.5", "0,0.5", "10,90", "low", ","])
def test_quantiles_that_cannot_be(mistake: Callable[..., str], smoke_run: Path, tmp_path: Path, quantiles: str) -> None:
    file = smoke_run.parent / "meter.csv"
    with untouched(tmp_path):
        sentence = mistake("impute", smoke_run, file, "--quantiles", quantiles, "--out", tmp_path / "out.csv")
    assert f"--quantiles {quantiles} is not possible; give increasing numbers between 0 and 1" in sentence


@pytest.mark.parametrize(
    "arguments",
    [
        ("impute", "RUN", "FILE", "--samples", 0, "--out", "OUT"),
        ("evaluate", "RUN", "--samples", 2),
        ("generate", "RUN", "--count", 0, "--out", "OUT"),
        ("train", "FILE", "--steps", "many", "--out", "OUT"),
        ("train", "FILE", "--unheard-of", "--out", "OUT"),
        ("train", "FILE"),
        ("forecast", "RUN", "FILE", "--out", "OUT"),
        ("dance",),
        ("generate", "RUN", "--count", 100_000_000_000, "--out", "OUT"),
        ("impute", "RUN", "FILE", "--samples", 1_000_000_000_000, "--out", "OUT"),
        ("train", "FILE", "--threads", 100_000_000_000, "--out", "OUT"),
        ("data", "simulate", "--hours", 1_000_000_000_000_000, "--out", "OUT"),
    ],
)
def test_usage(arguments: tuple[object, ...], mistake: Callable[..., str], smoke_run: Path, tmp_path: Path) -> None:
    names = {"RUN": smoke_run, "FILE": smoke_run.parent / "meter.csv", "OUT": tmp_path / "out.csv"}
    with untouched(tmp_path):
        sentence = mistake(*(names.get(str(argument), argument) for argument in arguments))
    assert " is not possible: it should be " in sentence or sentence.endswith(" --help.")


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("Unable to allocate 8 EiB"),
        OverflowError("Python int too large to convert to C long"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory"),
        pd.errors.OutOfBoundsDatetime("Out of bounds nanosecond timestamp"),
    ],
)
def test_more_than_the_machine_has(
    error: Exception, mistake: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**options: object) -> None:
        raise error

    monkeypatch.setattr("tamedit.data.simulate.simulate", fail)
    assert "ask for fewer samples, steps or windows" in mistake("data", "simulate", "--out", tmp_path / "x.csv")


@pytest.mark.parametrize(
    "command", [("data", "simulate", "--out", "x.csv", "--hours", 10), ("evaluate", "run"), ("report", "run")]
)
def test_a_seed_is_not_negative(command: tuple[object, ...], mistake: Callable[..., str]) -> None:
    assert "--seed -1 is not possible: it should be greater than or equal to 0" in mistake(*command, "--seed", -1)
    assert not Path("x.csv").exists()


def test_generate_and_evaluate_mistakes(mistake: Callable[..., str], smoke_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    assert "--start soon" in mistake("generate", smoke_run, "--count", 1, "--start", "soon", "--out", out)
    assert "--horizon 40" in mistake("evaluate", smoke_run, "--horizon", 40)
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
        patch.setattr("tamedit.training.metrics_log.MetricsLog.write", no_space)
        assert "No space left" in mistake(*begin, "--out", tmp_path / "a")
    from safetensors import SafetensorError

    def torn(*arguments: object, **options: object) -> None:
        raise SafetensorError("I/O error: No space left on device")

    for place, fails in (("tamedit.training.checkpoint.save_file", torn), ("pathlib.Path.write_bytes", no_space)):
        with monkeypatch.context() as patch:
            patch.setattr(place, fails)
            assert "No space left" in mistake(*begin, "--out", tmp_path / place)
        assert not list((tmp_path / place).glob("*model.safetensors"))
        assert not list((tmp_path / place).glob(".*"))


def test_validation_errors_are_one_sentence(
    mistake: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever pydantic refuses is said in one sentence too."""
    from tamedit.runs.config import TrainingConfig

    monkeypatch.setattr(TrainingConfig, "of_scale", lambda *arguments, **options: TrainingConfig(ema=2.0))
    file = csv(tmp_path / "meter.csv", meter(300))
    assert "ema=2.0 is not possible" in mistake("train", file, "--out", tmp_path / "run")


def test_the_demo_takes_no_folder_that_is_not_its_own(
    mistake: Callable[..., str], smoke_run: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(smoke_run, folder)
    with untouched(tmp_path):
        assert "contains other files" in mistake("demo", "--out", folder, "--scale", "smoke")
    (folder / "meter.csv").write_text("mine")
    (folder / "notes.txt").write_text("mine too")
    with untouched(tmp_path):
        assert "contains other files" in mistake("demo", "--out", folder, "--scale", "smoke")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--lower", 0), "--lower and --upper must both be given, with one number per target."),
        (("--upper", 5), "--lower and --upper must both be given"),
        (("--lower", 5, "--upper", 0), "--lower must be below --upper"),
        (("--lower", "0,1", "--upper", "1,2"), "one number per target (1 targets)"),
        (("--typical-level", 1), "--typical-level and --typical-scale must both be given"),
        (("--lower", 0, "--upper", 5, "--typical-level", 1, "--typical-scale", 1), "no --typical-level"),
    ],
)
def test_facts_that_cannot_be_used_leave_no_folder(
    options: tuple[object, ...], sentence: str, mistake: Callable[..., str], tmp_path: Path
) -> None:
    file = csv(tmp_path / "meter.csv", meter(900))
    run = ("--epsilon", 8, "--unit", "day", "--scale", "smoke", "--steps", 2, "--window", 24, "--batch-size", 4)
    assert sentence in mistake("train", file, "--out", tmp_path / "run", *run, *options)
    assert not (tmp_path / "run").exists()


def test_what_contradicts_a_beginning_is_said_before_it_is_trained(mistake: Callable[..., str], tmp_path: Path) -> None:
    file = csv(tmp_path / "meter.csv", meter(900))
    begin = ("train", file, "--out", tmp_path / "run", "--init", "simulated", "--epsilon", 8, "--unit", "day")
    assert "exclude each other" in mistake(*begin, "--size", "tiny")
    assert "other than off" in mistake(*begin, "--private-bounds", "--bounds", "off")
    assert "only --epsilon" not in mistake(*begin, "--resume")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("options", [("--scale", "smoke"), ("--layout", "overlapping"), ("--noise-multiplier", 1)])
def test_minutes_belong_to_a_plan(options: tuple[object, ...], mistake: Callable[..., str], tmp_path: Path) -> None:
    private = ("--epsilon", 8, "--minutes", 5)
    sentence = mistake("train", tmp_path / "nothing.csv", "--out", tmp_path / "run", *private, *options)
    assert sentence.startswith("--minutes is the time of a plan")


def test_options_of_one_kind_of_diagnosis(mistake: Callable[..., str], smoke_run: Path, tmp_path: Path) -> None:
    assert "need --bounds" in mistake("diagnose", smoke_run, "--public")
    assert "leave them out with --bounds" in mistake("diagnose", smoke_run, "--bounds", "--out", tmp_path / "x")
