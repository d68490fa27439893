"""`tamedit evaluate` as a user and as a program meet it."""

import json
import sys
from pathlib import Path

import pytest

from tamedit.cli.main import main
from tamedit.evaluation.metrics import METRICS

PROBABILISTIC = ("model", "free_probabilistic")


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
    code, out, _ = ask(monkeypatch, capsys, smoke_run, "--samples", 4, "--windows", 6, "--resamples", 30, "--json")
    assert code == 0
    result = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    for task in ("imputation", "forecast"):
        for method, units in result["tasks"][task].items():
            for unit, scores in units.items():
                assert {"rmse", "mae", "crps", "coverage50", "coverage90"} <= set(scores)  # the names of version 0.1
                assert set(METRICS) | {"rmse", "mae", "crps", "intervals"} == set(scores)
                for name, metric in METRICS.items():
                    means_nothing = (metric.probabilistic and method not in PROBABILISTIC) or (
                        metric.original_only and unit == "z"
                    )
                    assert (scores[name] is None) == means_nothing, (method, unit, name)
                    if scores[name] is not None:
                        low, high = scores["intervals"][name]
                        assert low <= scores[name] <= high
    assert result["bootstrap"] == {"resamples": 30, "block": 1, "level": 0.95}


def test_tables(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], smoke_run: Path) -> None:
    few = (smoke_run, "--samples", 4, "--windows", 4, "--resamples", 10)
    code, out, _ = ask(monkeypatch, capsys, *few)
    assert code == 0
    assert "dist_JS" not in out
    assert "in 90 %" in out
    code, out, _ = ask(monkeypatch, capsys, *few, "--all")
    assert code == 0
    assert all(name in out for name in METRICS)
    code, out, _ = ask(monkeypatch, capsys, *few, "--protocol", "csdi")
    assert code == 0
    assert "forecast 24" in out
    assert "CRPS_CSDI" in out


def test_mistakes(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], smoke_run: Path) -> None:
    for wrong, said in (
        (("--protocol", "tslib"), "train it with --window 96"),
        (("--protocol", "mine"), "choose one of tslib, csdi"),
        (("--protocol", "csdi", "--all"), "exclude each other"),
    ):
        code, _, err = ask(monkeypatch, capsys, smoke_run, *wrong)
        assert code != 0
        assert said in " ".join(err.split())
