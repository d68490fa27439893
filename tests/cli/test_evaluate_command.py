"""`tamedit evaluate` as a user and as a program meet it."""

import json
import math
import shutil
import statistics
import sys
from pathlib import Path

import numpy as np
import pytest

from tamedit.cli.evaluate_command import verdicts
from tamedit.cli.main import main
from tamedit.data.loading import load_split
from tamedit.data.reader import read
from tamedit.evaluation.evaluate import Row
from tamedit.evaluation.gains import Gain
from tamedit.evaluation.metrics import METRICS, PATHS
from tamedit.evaluation.scores import Scores
from tamedit.runs.folder import load_run
from tamedit.training.run import train

PROBABILISTIC = ("model", "free_distribution", "free_probabilistic", "seasonal_draws")


def ask(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: object
) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["tamedit", "evaluate", *(str(argument) for argument in arguments)])
    monkeypatch.setenv("COLUMNS", "80")
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


def test_json_has_every_metric_of_every_method_in_both_units(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], smoke_run: Path
) -> None:
    code, out, _ = ask(monkeypatch, capsys, smoke_run, "--samples", 20, "--windows", 6, "--resamples", 30, "--json")
    assert code == 0
    result = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert list(result["tasks"]) == ["imputation", "forecast", "cold_start_24"]
    assert set(result["left_out"]) == {"cold_start_48", "long_gap"}  # the window has two seasons
    for task in result["tasks"]:
        for method, units in result["tasks"][task].items():
            for unit, scores in units.items():
                assert {"rmse", "mae", "crps", "coverage50", "coverage90"} <= set(scores)  # the names of version 0.1
                assert set(METRICS) | {"rmse", "mae", "crps", "intervals"} == set(scores)
                for name, metric in METRICS.items():
                    means_nothing = (metric.probabilistic and method not in PROBABILISTIC) or (
                        metric.original_only and unit == "z"
                    )
                    means_nothing |= metric in PATHS and task == "imputation"
                    assert (scores[name] is None) == means_nothing, (method, unit, name)
                    assert scores["intervals"][name] is None  # of windows that count as fewer than five
    assert result["bootstrap"] == {"resamples": 0, "of": "windows", "block": 2, "level": 0.95}
    for task, methods in result["tasks"].items():
        for method, found in result["gains"][task].items():
            for name, gain in found.items():
                assert (gain is None) == (name.startswith("path_") and task == "imputation")
                if gain is None:
                    continue
                truth = methods[method]["z"][name] - methods["model"]["z"][name]
                assert gain["difference"] == pytest.approx(truth)
                assert (gain["low"], gain["high"], gain["outcome"]) == (None, None, "unknown")


POINTS = ("point_MAE", "point_RMSE", "R2")
SHARES_OF_LEVEL = ("point_MAPE", "MAPE_left_out", "WAPE", "CRPS_CSDI")  # original units alone: null in z-units
DISTANCES = ("dist_KL", "dist_JS", "dist_WS", "dist_KS", "MMD", "temp_spec_dist")
SAMPLES = ("coverage50", "coverage90", "width50", "width90")  # null for a single guess
BASELINES = (
    "linear_interpolation",
    "seasonal_naive",
    "seasonal_mean",
    "free_fill",
    "free_distribution",
    "free_probabilistic",
    "seasonal_draws",
)
HAVE_UNITS = ("point_MAE", "point_RMSE", "CRPS", "dist_WS", "width50", "width90")
PATH_SCORES = ("path_total_CRPS", "path_peak_CRPS", "path_energy", "path_variogram")  # all in the data's units


def test_every_metric_of_the_specification_is_there(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], smoke_run: Path
) -> None:
    """SPEC section 8, name by name, in both units, beside every free baseline."""
    result = json.loads(ask(monkeypatch, capsys, smoke_run, "--samples", 20, "--windows", 6, "--json")[1])
    assert result["mape_floor"] == 0.1
    values = read(smoke_run.parent / "meter.csv").values
    deviation = np.nanstd(values[: int(0.7 * len(values))].astype(np.float64))
    for task in ("imputation", "forecast", "cold_start_24"):
        assert set(result["tasks"][task]) == {"model", *BASELINES}
        for method, units in result["tasks"][task].items():
            z, original = units["z"], units["original"]
            for name in PATH_SCORES if task != "imputation" else ():
                assert original[name] == pytest.approx(deviation * z[name], rel=0.02), (method, name)
            expected = {*POINTS, *SHARES_OF_LEVEL, *DISTANCES, *SAMPLES, "CRPS"}
            for name in expected:
                if name in SAMPLES and method not in PROBABILISTIC:
                    assert z[name] is original[name] is None, (method, name)
                    continue
                assert math.isfinite(original[name]), (method, name)
                if name in SHARES_OF_LEVEL:
                    assert z[name] is None
                elif name in HAVE_UNITS:
                    assert original[name] == pytest.approx(deviation * z[name], rel=0.02), (method, name)
                else:
                    assert z[name] == pytest.approx(original[name], rel=1e-6), (method, name)


@pytest.fixture(scope="module")
def seeds(smoke_run: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The smoke run and two more with other seeds."""
    config, _ = load_run(smoke_run)
    _, split = load_split(config.source)
    runs = [smoke_run]
    for seed in (1, 2):
        runs.append(tmp_path_factory.mktemp("seeds") / f"seed-{seed}")
        train(split, config.model_copy(update={"seed": seed}), runs[-1])
    return runs


def test_seeds_combine_to_a_mean_and_a_t_interval(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], seeds: list[Path]
) -> None:
    few = ("--samples", 4, "--windows", 6, "--resamples", 0, "--json")
    single = [json.loads(ask(monkeypatch, capsys, run, *few)[1]) for run in seeds]
    code, out, err = ask(monkeypatch, capsys, *seeds, *few)
    assert (code, err) == (0, "")
    result = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert result["seeds"] == [0, 1, 2]
    assert result["runs"] == [str(run) for run in seeds]
    assert result["interval"]["level"] == 0.95
    assert result["results"] == single
    student = 4.302652729749464  # t of 97.5 % with 2 degrees of freedom, from a table
    spreads = []
    for task, methods in result["tasks"].items():
        for method, units in methods.items():
            for unit, scores in units.items():
                assert set(METRICS) <= set(scores)
                for name, combined in scores.items():
                    values = [one["tasks"][task][method][unit][name] for one in single]
                    if None in values:
                        assert combined is None
                        continue
                    half = student * statistics.stdev(values) / math.sqrt(3)
                    assert combined["mean"] == pytest.approx(statistics.fmean(values))
                    assert combined["half"] == pytest.approx(half, rel=1e-6, abs=1e-9)
                    assert combined["high"] - combined["low"] == pytest.approx(2 * combined["half"], abs=1e-9)
                    assert combined["seeds"] == 3
                    spreads += [half] if (method, name) == ("model", "CRPS") else []
    assert min(spreads) > 0  # the seeds do train three models


def test_two_seeds_have_the_widest_interval(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], seeds: list[Path]
) -> None:
    """With n = 2, t_{0.975, 1} = tan(0.475 π) and s / √2 = |a − b| / 2: half = 12.7062 |a − b| / 2."""
    few = ("--samples", 4, "--windows", 4, "--resamples", 0, "--json")
    result = json.loads(ask(monkeypatch, capsys, *seeds[:2], *few)[1])
    task = result["tasks"]["forecast"]["model"]["z"]["CRPS"]
    a, b = (one["tasks"]["forecast"]["model"]["z"]["CRPS"] for one in result["results"])
    assert task["half"] == pytest.approx(math.tan(0.475 * math.pi) * abs(a - b) / 2)
    assert task["mean"] == pytest.approx((a + b) / 2)


def test_tables_of_seeds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], seeds: list[Path]
) -> None:
    few = ("--samples", 20, "--windows", 4)
    code, out, err = ask(monkeypatch, capsys, *seeds, *few)
    assert code == 0, err
    assert "3 seeds: 0, 1, 2" in out
    assert "±" in next(line for line in out.splitlines() if "this model" in line)
    assert "±" not in next(line for line in out.splitlines() if "linear interpolation" in line)  # no seed changes it
    assert "not private" in out
    code, out, err = ask(monkeypatch, capsys, *seeds, *few, "--all")
    assert code == 0, err
    assert all(name in out for name in METRICS)


def test_runs_that_are_not_seeds_of_one_experiment_are_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], seeds: list[Path], tmp_path: Path
) -> None:
    other = tmp_path / "other"
    shutil.copytree(seeds[1], other)
    plain = json.loads((other / "run.json").read_text())
    plain["training"]["learning_rate"] *= 2
    plain["network"]["operator"] = "hard_clamp"
    (other / "run.json").write_text(json.dumps(plain))
    code, out, err = ask(monkeypatch, capsys, seeds[0], other)
    assert (code, out) == (2, "")
    assert "(network.operator, training.learning_rate)" in err
    assert len(err.strip().splitlines()) == 1
    code, out, err = ask(monkeypatch, capsys, seeds[0], seeds[1], seeds[0])
    assert (code, out) == (2, "")
    assert "same seed, 0" in err
    code, _, err = ask(monkeypatch, capsys, seeds[0], tmp_path / "absent")
    assert code == 2
    assert "is not a run" in err


def test_tables(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], smoke_run: Path) -> None:
    few = (smoke_run, "--samples", 20, "--windows", 4, "--resamples", 10)
    code, out, _ = ask(monkeypatch, capsys, *few)
    assert code == 0
    assert "dist_JS" not in out
    assert "in 90 %" in out
    assert (
        out.count("the free distribution, gain") + out.count("by ") >= 7
    )  # three tasks; two of them have totals and peaks
    assert "long_gap is left out: it needs a window of 3 seasons (72 steps)" in out
    code, out, _ = ask(monkeypatch, capsys, *few, "--all")
    assert code == 0
    assert all(name in out for name in METRICS)


def test_only_the_tasks_that_were_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], smoke_run: Path
) -> None:
    few = ("--samples", 4, "--windows", 3, "--json")
    code, out, err = ask(monkeypatch, capsys, smoke_run, "--tasks", "cold_start_24, imputation", *few)
    assert (code, err) == (0, "")
    assert list(json.loads(out)["tasks"]) == ["imputation", "cold_start_24"]
    for wrong in ("forcast", "", "imputation,gap"):
        code, out, err = ask(monkeypatch, capsys, smoke_run, "--tasks", wrong, *few)
        assert (code, out) == (2, "")
        assert "is not a task; name one or more of imputation, forecast, cold_start_24" in " ".join(err.split())
        assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.01, 0.05, "the model beats the free distribution by 10.0%, gain 0.0300 [0.0100, 0.0500]"),
        (-0.01, 0.05, "no sure difference from the free distribution, gain 0.0300 [-0.0100, 0.0500]"),
        (None, None, "too few windows to say whether the model beats the free distribution, gain 0.0300"),
    ],
)
def test_verdicts_in_plain_words(low: float | None, high: float | None, words: str) -> None:
    class Made:
        def gain_over_bar(self, task: str, name: str) -> Gain | None:
            return Gain(0.03, low, high) if name == "CRPS" else None

        def of(self, task: str, method: str) -> Row:
            own = Scores({"CRPS": 0.3, "path_total_CRPS": None, "path_peak_CRPS": None})
            return Row(task, method, own, own)

        def smallest_gain(self, task: str, name: str) -> tuple[str, Gain]:
            return "seasonal_draws", Gain(-0.01, -0.02, -0.001)

    first, second = verdicts(Made(), "imputation")
    assert first == f"CRPS: {words}."
    assert second.endswith("draws from the same hour, gain in CRPS -0.0100 [-0.0200, -0.0010].")


def test_a_protocol_of_other_papers_is_a_command_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], smoke_run: Path
) -> None:
    code, _, err = ask(monkeypatch, capsys, smoke_run, "--protocol", "tslib")
    assert code == 2
    assert f"tamedit peers {smoke_run} tslib" in " ".join(err.split())
