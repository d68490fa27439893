"""`tamedit theory RUN` as a user meets it: what it says, where it writes, what it keeps apart."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support import Run, untouched
from tamedit.runs.artifact import load_model
from tamedit.runs.provenance import Reference
from tamedit.runs.recipe import REFERENCE
from tamedit.windows.examples import FEATURE_LIMIT
from tamedit_paper.theory.propagation import InputBounds
from tamedit_paper.theory.sensitivity import analyse


@pytest.fixture
def aware(runs: Path, tmp_path: Path) -> Path:
    """A copy of the bounded run, to be written to."""
    shutil.copytree(runs / "aware", tmp_path / "aware")
    return tmp_path / "aware"


def bounded(run: Path, factor: float) -> Path:
    """A copy of a run with the same weights and its bounds multiplied."""
    copy = run.parent / f"times-{factor}"
    shutil.copytree(run, copy)
    for name in ("run.json", "model.json"):
        plain = json.loads((copy / name).read_text())
        plain["network"]["bounds"] = [
            {key: factor * value for key, value in one.items()} for one in plain["network"]["bounds"]
        ]
        (copy / name).write_text(json.dumps(plain))
    return copy


def asked(run: Run, *arguments: object) -> dict[str, Any]:
    code, out, err = run("theory", *arguments, "--json")
    assert (code, err) == (0, "")
    found: dict[str, Any] = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    return found


def test_the_numbers_are_those_of_the_theory(run: Run, aware: Path) -> None:
    found = asked(run, aware)
    network, _ = load_model(aware)
    both, values = np.hypot(5, 5), np.arcsinh(np.sqrt(23))  # the clamp and ε; windows of 24 in their own units
    inputs = InputBounds(noised=both, wanted=both, values=values, anchor=FEATURE_LIMIT, covariates=1.0)
    theory = analyse(network, inputs, 1.0, REFERENCE["free"])
    assert found["S_aware"] == pytest.approx(theory.sensitivity, rel=1e-12)
    assert found["quadrature"] == pytest.approx(theory.quadrature, rel=1e-12)
    assert found["C_block"] == pytest.approx(theory.block_jacobians, rel=1e-12)
    assert sum(found["groups"].values()) == pytest.approx(found["S_aware"], rel=1e-12)
    assert sum(found["layers"].values()) == pytest.approx(found["S_aware"], rel=1e-12)
    assert found["rho_bound"] == pytest.approx(found["S_aware"] / found["clip"], rel=1e-12)
    (maxima,) = found["bounds"]
    names = {"condition": "a_c", "scale": "a_gamma", "shift": "a_beta", "gate": "a_alpha"}
    linear = found["constants"]["A0"] + sum(found["constants"][a] * maxima[name] for name, a in names.items())
    assert linear == pytest.approx(found["S_aware"], rel=1e-9)
    convex = found["convex"]
    assert sum(convex["lambda"]) == pytest.approx(1, rel=1e-12)
    assert convex["r"] == pytest.approx([0.9] * 4)  # medium bounds are 0.9 of the reference
    combined = convex["lambda"][0] + np.dot(convex["lambda"][1:], convex["r"])
    assert convex["ratio"] == pytest.approx(combined, rel=1e-12)
    assert convex["ratio"] <= convex["ceiling"] == 1


def test_what_is_measured_on_data_stays_apart(run: Run, aware: Path) -> None:
    found = asked(run, aware)
    written = json.loads((aware / "theory.json").read_text())
    assert written == {key: value for key, value in found.items() if key not in {"files", "run", "recorded"}}
    apart = json.loads((aware / "not-private" / "theory.json").read_text())
    assert apart == {"recorded": found["recorded"]}
    assert apart["recorded"]["private"] is False
    assert found["files"] == [str(aware / "theory.json"), str(aware / "not-private" / "theory.json")]
    shutil.rmtree(aware / "not-private")
    again = asked(run, aware)  # without the record there is the same theory and nothing beside it
    assert json.loads((aware / "theory.json").read_text()) == written
    assert again["recorded"] is None
    assert not (aware / "not-private").exists()


def test_recorded_and_searched_gradients_are_below_the_bound(run: Run, aware: Path) -> None:
    found = asked(run, aware, "--search", 2)
    rows = np.fromfile(aware / "not-private" / "gradients.bin", "<f4")
    columns = 5 + 8  # step, total, cond, other, η; cond and other of input, two blocks, output
    largest = rows.reshape(-1, columns)[:, 1].max()
    assert found["recorded"]["largest"] == pytest.approx(float(largest))
    assert 0 < found["recorded"]["largest"] < found["quadrature"] <= found["S_aware"]
    assert found["recorded"]["share_of_S_aware"] == pytest.approx(largest / found["S_aware"])
    assert 0 < found["search"]["largest"] < found["quadrature"]
    assert found["search"]["steps"] == 2
    assert asked(run, aware, "--search", 0)["search"]["largest"] <= found["search"]["largest"]
    assert asked(run, aware)["search"] is None


def test_tighter_bounds_and_smaller_inputs_never_raise_it(run: Run, aware: Path) -> None:
    loose = asked(run, aware)
    for found in (asked(run, bounded(aware, 0.5)), asked(run, aware, "--input-bound", 3)):
        assert found["S_aware"] < loose["S_aware"]
        assert all(value <= loose["layers"][name] for name, value in found["layers"].items())
    assert asked(run, bounded(aware, 2.0))["S_aware"] > loose["S_aware"]
    assert asked(run, bounded(aware, 2.5))["convex"]["ceiling"] == pytest.approx(0.9 * 2.5)


def test_tables(run: Run, aware: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    code, out, err = run("theory", aware, "--search", 0)
    assert code == 0, err
    for word in ("S_aware", "quadrature", "C_block", "block 2", "projections", "A₀", "a_γ", "λ", "found by the search"):
        assert word in out
    line = next(line for line in out.splitlines() if "recorded in training" in line)
    assert "NOT PRIVATE" in line
    assert "not private" in out
    assert f"wrote {aware / 'theory.json'}" in "".join(out.splitlines())


def test_a_run_without_bounds_says_so_in_one_sentence(run: Run, runs: Path, tmp_path: Path) -> None:
    for name in ("plain", "vanilla"):
        shutil.copytree(runs / name, tmp_path / name)
        code, out, err = run("theory", tmp_path / name)
        assert (code, err) == (0, "")
        sentence = "S_aware is infinite: the network does not bound ‖c‖, γ, β, α "
        assert out.startswith(sentence + "(missing bounds: condition, scale, shift, gate).\n")
        found = asked(run, tmp_path / name)
        assert found["S_aware"] is found["rho_bound"] is found["quadrature"] is None
        assert found["C_block"] == [None, None]
        assert found["unbounded"] == ["condition", "scale", "shift", "gate"]
        assert found["recorded"]["share_of_S_aware"] is None
        assert found["recorded"]["largest"] > 0


def test_a_run_that_bounds_the_modulation_alone_has_blocks_but_no_bound(run: Run, aware: Path) -> None:
    plain = json.loads((aware / "model.json").read_text())
    plain["network"]["bounds"][0]["condition"] = None
    (aware / "model.json").write_text(json.dumps(plain))
    code, out, _ = run("theory", aware)
    assert code == 0
    assert "does not bound ‖c‖ (missing bounds: condition)." in out
    assert "C_block" in out
    assert min(asked(run, aware)["C_block"]) > 1


def test_the_clip_is_the_runs_own(run: Run, aware: Path) -> None:
    first = asked(run, aware)
    plain = json.loads((aware / "run.json").read_text())
    plain["privacy"]["clip"] = 0.25
    (aware / "run.json").write_text(json.dumps(plain))
    second = asked(run, aware)
    assert (second["clip"], second["rho_bound"]) == (0.25, pytest.approx(4 * first["rho_bound"]))
    plain["privacy"] = None
    (aware / "run.json").write_text(json.dumps(plain))
    third = asked(run, aware)
    assert third["clip"] == 1.0
    assert any("clips nothing" in note for note in third["notes"])
    assert not any("clips nothing" in note for note in second["notes"])


def test_another_reference_may_be_named(run: Run, aware: Path, tmp_path: Path) -> None:
    twice = Reference(
        magnitudes=REFERENCE["free"].scaled(2.0),
        anchor="free",
        source="etth1",
        origin="public",
        quantile=0.99,
        quantiles={},
    )
    file = tmp_path / "bounds.json"
    file.write_text(twice.model_dump_json())
    assert asked(run, aware, "--reference", file)["convex"]["r"] == pytest.approx([0.45] * 4)
    file.write_text(twice.model_copy(update={"origin": "not public"}).model_dump_json())
    code, _, err = run("theory", aware, "--reference", file)
    assert code == 2
    assert "not public" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--input-bound", 0), "--input-bound 0.0 must be a number above 0"),
        (("--input-bound", "nan"), "must be a number above 0"),
        (("--input-bound", "inf"), "must be a number above 0"),
        (("--reference", "absent.json"), "tamedit diagnose"),
    ],
)
def test_mistakes(run: Run, aware: Path, arguments: tuple[object, ...], said: str) -> None:
    with untouched(aware):
        code, _, err = run("theory", aware, *arguments)
    assert code == 2
    assert len(err.strip().splitlines()) == 1
    assert said in err


def test_one_finished_run_is_wanted(mistake: Callable[..., str], aware: Path, tmp_path: Path) -> None:
    assert "is not a run" in mistake("theory", tmp_path)
    (aware / "model.safetensors").unlink()
    assert "no trained model" in mistake("theory", aware)
