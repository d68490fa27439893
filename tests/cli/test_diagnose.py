"""`tamedit diagnose` and `tamedit train --reference` as a user meets them, on three tiny runs."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from tamedit.cli.main import main
from tamedit.diagnostics.gradient_record import read_record
from tamedit.model.bounds import Bounds
from tamedit.runs.folder import load_run
from tamedit.runs.provenance import Reference
from tamedit.runs.recipe import REFERENCE

FIGURES = ("gradient-norms", "clipping-factors", "loss-curves", "part-tails", "step-times")


def ask(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: object
) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["tamedit", *(str(argument) for argument in arguments)])
    monkeypatch.setenv("COLUMNS", "120")
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


def test_tables_and_figures(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "figures"
    code, said, err = ask(
        monkeypatch, capsys, "diagnose", *(runs / n for n in ("plain", "vanilla", "aware")), "--out", out
    )
    assert code == 0, err
    for word in ("S_cond", "ρ_emp", "p_clip", "η p10", "Hill", "Non-DP", "DP-vanilla", "DP-aware", "not private"):
        assert word in said
    for name in FIGURES:
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (out / f"{name}.svg").read_text().rstrip().endswith("</svg>")
    assert "not private" in (out / "NOT-PRIVATE.txt").read_text()
    written = json.loads((out / "diagnostics.json").read_text())
    assert [run["arm"] for run in written["runs"]] == ["Non-DP", "DP-vanilla", "DP-aware"]
    assert written["private"] is False


def test_json_is_one_object_with_every_number(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("plain", "vanilla", "aware")
    code, said, err = ask(monkeypatch, capsys, "diagnose", *(runs / name for name in names), "--json", "--threads", "1")
    assert (code, err) == (0, "")
    found = json.loads(said)
    assert (found["baseline"], found["plain"], found["notes"]) == ("vanilla", "plain", [])
    plain, vanilla, aware = found["runs"]
    assert plain["clipping"] is None
    assert plain["rho"] is None
    assert vanilla["rho"] is None
    for name, run in zip(names, found["runs"], strict=True):
        rows = read_record(runs / name).rows
        assert run["examples"] == len(rows)
        for which in ("total", "cond", "other"):
            assert run["norms"][which]["p99"] == pytest.approx(np.quantile(rows[which], 0.99), rel=1e-5)
        assert set(run["time"]) == {"mean", "p50", "p90"}
        assert list(run["parts"]) == ["input", "block 1", "block 2", "output"]
    assert aware["rho"]["emp"]["p99"] == pytest.approx(
        aware["norms"]["total"]["p99"] / vanilla["norms"]["total"]["p99"]
    )
    assert aware["rho"]["cond"]["p95"] == pytest.approx(aware["norms"]["cond"]["p95"] / vanilla["norms"]["cond"]["p95"])
    assert aware["time_ratio"]["mean"] == pytest.approx(aware["time"]["mean"] / plain["time"]["mean"])
    assert aware["clipping"]["p_clip"] == pytest.approx((read_record(runs / "aware").rows["total"] > 1).mean())
    assert all(Path(name).parent == runs / "plain" / "not-private" / "diagnostics" for name in found["files"])


def test_a_baseline_may_be_named_and_need_not_be_repeated(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--baseline", runs / "aware", "--out", tmp_path, "--json")
    found = json.loads(ask(monkeypatch, capsys, "diagnose", runs / "vanilla", *options)[1])
    assert found["baseline"] == "aware"
    assert [run["rho"] is None for run in found["runs"]] == [True, False]


def test_a_run_without_gradients_still_shows_its_losses_and_times(
    smoke_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said, err = ask(monkeypatch, capsys, "diagnose", smoke_run, "--out", tmp_path)
    assert code == 0, err
    assert "--diagnose-every" in said
    assert {path.name for path in tmp_path.glob("*.png")} == {"loss-curves.png", "step-times.png"}


def test_what_is_no_run_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = ask(monkeypatch, capsys, "diagnose", tmp_path)
    assert code == 2
    assert "is not a run" in err


def test_bounds_are_measured_and_used(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said, err = ask(monkeypatch, capsys, "diagnose", runs / "plain", "--bounds", "--public")
    assert code == 0, err
    assert "‖c‖" in said
    file = runs / "plain" / "bounds.json"
    reference = Reference.model_validate_json(file.read_text())
    assert reference.origin == "said to be public"
    assert reference.magnitudes.condition == reference.quantiles["condition"]["p99"]
    assert all(list(own.values()) == sorted(own.values()) for own in reference.quantiles.values())
    base = (
        "train",
        runs / "meter.csv",
        "--scale",
        "smoke",
        "--steps",
        2,
        "--window",
        24,
        "--reference",
        file,
        "--json",
    )
    code, _, err = ask(
        monkeypatch, capsys, *base, "--bounds", "tight", "--out", tmp_path / "run", "--noise-multiplier", 1
    )
    assert code == 0, err
    (bounds,) = load_run(tmp_path / "run")[0].network.bounds
    assert bounds == reference.magnitudes.scaled(0.75)
    assert bounds != REFERENCE["free"].scaled(0.75)
    code, _, err = ask(monkeypatch, capsys, *base, "--anchor", "none", "--out", tmp_path / "other")
    assert code == 2
    assert "--anchor free" in err


def test_private_data_is_not_measured_by_accident(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = ask(monkeypatch, capsys, "diagnose", runs / "vanilla", "--bounds")
    assert code == 2
    assert "no guarantee" in err
    assert not (runs / "vanilla" / "bounds.json").exists()
    code, _, err = ask(monkeypatch, capsys, "diagnose", runs / "vanilla", "--bounds", "--not-public-anyway")
    assert code == 0, err
    file = runs / "vanilla" / "not-private" / "bounds.json"
    base = (
        "train",
        runs / "meter.csv",
        "--scale",
        "smoke",
        "--steps",
        2,
        "--window",
        24,
        "--reference",
        file,
        "--json",
    )
    code, _, err = ask(monkeypatch, capsys, *base, "--out", tmp_path / "private", "--epsilon", 8)
    assert code == 2
    assert "not public" in err
    assert not (tmp_path / "private").exists()
    code, _, err = ask(monkeypatch, capsys, *base, "--out", tmp_path / "plain")
    assert code == 0, err


def test_a_bounded_run_shows_only_its_bounds(
    runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = ask(monkeypatch, capsys, "diagnose", runs / "aware", "--bounds", "--public")
    assert code == 2
    assert "trained with bounds" in err
    code, _, err = ask(monkeypatch, capsys, "diagnose", runs / "plain", runs / "vanilla", "--bounds")
    assert code == 2
    assert "name one" in err


def test_a_file_that_is_no_reference_is_refused(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bounds.json").write_text('{"magnitudes": {}}')
    partial = Reference(
        magnitudes=Bounds(scale=1.0), anchor="free", source="x", origin="public", quantile=0.99, quantiles={}
    )
    (tmp_path / "partial.json").write_text(partial.model_dump_json())  # would leave the rest free without a word
    for name in ("bounds.json", "partial.json", "absent.json"):
        options = ("--out", tmp_path / "run", "--reference", tmp_path / name)
        code, _, err = ask(monkeypatch, capsys, "train", runs / "meter.csv", *options)
        assert code == 2
        assert "with `tamedit diagnose` and --bounds" in err


def number(tree: object, *keys: str) -> float:
    """A finite number at a place in the JSON."""
    for key in keys:
        assert isinstance(tree, dict), keys
        assert key in tree, keys
        tree = tree[key]
    assert isinstance(tree, float), keys
    assert np.isfinite(tree), keys
    return tree


def test_every_diagnostic_of_the_specification_is_there(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """SPEC section 9, name by name, each against the record itself."""
    names = ("plain", "vanilla", "aware")
    asked = ("diagnose", *(runs / name for name in names), "--out", tmp_path, "--json")
    found = json.loads(ask(monkeypatch, capsys, *asked)[1])
    rows = {name: read_record(runs / name).rows for name in names}
    told = dict(zip(names, found["runs"], strict=True))
    for name, run in told.items():
        for which in ("total", "cond", "other"):
            for share in (95, 99):
                expected = np.quantile(rows[name][which].astype(np.float64), share / 100)
                assert number(run, f"S_{which}", f"p{share}") == pytest.approx(expected)
        seconds = read_record(runs / name).times["seconds"].astype(np.float64)
        assert number(run, "step_time", "mean") == pytest.approx(seconds.mean())
        assert number(run, "step_time", "p50") == pytest.approx(np.quantile(seconds, 0.5))
        assert number(run, "step_time", "p90") == pytest.approx(np.quantile(seconds, 0.9))
        assert number(run, "step_time", "ratio") == pytest.approx(
            seconds.mean() / number(told["plain"], "step_time", "mean")
        )
    for name in ("vanilla", "aware"):
        assert number(told[name], "p_clip") == pytest.approx((rows[name]["total"] > 1).mean())
        eta = rows[name]["factor"].astype(np.float64)
        assert number(told[name], "eta", "mean") == pytest.approx(eta.mean())
        for share in (10, 50, 90, 99):
            assert number(told[name], "eta", f"p{share}") == pytest.approx(np.quantile(eta, share / 100))
    for which, norm in (("emp", "total"), ("cond", "cond")):
        for share in ("p95", "p99"):
            ratio = number(told["aware"], f"S_{norm}", share) / number(told["vanilla"], f"S_{norm}", share)
            assert number(told["aware"], f"rho_{which}", share) == pytest.approx(ratio)
        assert (
            told["vanilla"][f"rho_{which}"] is told["plain"][f"rho_{which}"] is None
        )  # a baseline has no ratio to itself
    assert told["plain"]["p_clip"] is told["plain"]["eta"] is None  # clips nothing
    for figure in ("gradient-norms", "loss-curves"):  # the first has ECDF and CCDF
        assert str(tmp_path / f"{figure}.png") in found["files"]
