"""Private runs: the budget is a wall, the ledger is never behind, and a resumed run takes fresh noise."""

import json
import multiprocessing
import os
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from tamedit.data.series import Series
from tamedit.data.simulate import simulate
from tamedit.data.split import split_by_time
from tamedit.errors import UserError
from tamedit.privacy.record import read as read_ledger
from tamedit.privacy.request import Privacy
from tamedit.training.checkpoint import load_state
from tamedit.training.config import Speed
from tamedit.training.fit import train
from tamedit.training.folder import DataFacts
from tamedit.training.loop import CHECKPOINT, Outcome
from tamedit.training.recipe import make_config

FACTS = DataFacts(typical_level=(0.35,), typical_scale=(0.35,))
SPEED = Speed(threads=1, checkpoint_seconds=0.05, log_every=1)


@pytest.fixture(scope="module")
def fleet() -> Series:
    return simulate(meters=12, hours=24 * 30, seed=1)


def run(
    series: Series, folder: Path, *, steps: int = 20, resume: bool = False, progress: Any = None, **privacy: Any
) -> Outcome:
    wanted = Privacy(**{"epsilon": 6.0, "delta": 1e-5, "unit": "day", **privacy})
    config = make_config(
        series, "simulated", scale="smoke", steps=steps, window=48, size="tiny", privacy=wanted, batch_size=24
    )
    return train(split_by_time(series), config, folder, facts=FACTS, speed=SPEED, resume=resume, progress=progress)


def test_a_finished_run_says_what_it_spent(fleet: Series, tmp_path: Path) -> None:
    assert run(fleet, tmp_path).finished
    statement = json.loads((tmp_path / "model.json").read_text())["privacy"]
    assert statement["private"]
    assert statement["unit"] == "day"
    assert statement["steps"] == 20
    assert 5.9 < statement["epsilon"]["pld"] <= 6.0
    assert any("not-private" in gap for gap in statement["not_covered"])
    assert not (tmp_path / "metrics.jsonl").exists()
    assert (tmp_path / "not-private" / "metrics.jsonl").exists()
    record = read_ledger(tmp_path)
    assert record.steps == 20
    assert record.epsilon("day", 1e-5).value == pytest.approx(statement["epsilon"]["headline"])


def test_the_papers_noise_is_said_to_protect_nobody(fleet: Series, tmp_path: Path) -> None:
    run(fleet, tmp_path, epsilon=None, noise_multiplier=0.1, unit="window", layout="overlapping")
    statement = json.loads((tmp_path / "model.json").read_text())["privacy"]
    assert not statement["protects"]
    assert "protects nobody" in statement["statement"]


def test_noise_is_fresh_unless_the_run_is_a_test(fleet: Series, tmp_path: Path) -> None:
    for name in ("a", "b", "c", "d"):
        run(fleet, tmp_path / name, steps=3, test_only=name in "cd")
    weights = {name: load_file(tmp_path / name / "model.safetensors")["output.weight"] for name in "abcd"}
    assert not torch.equal(weights["a"], weights["b"])
    assert torch.equal(weights["c"], weights["d"])
    assert "no guarantee" in json.loads((tmp_path / "c" / "model.json").read_text())["privacy"]["statement"]


def test_the_budget_is_a_wall_also_for_a_given_noise(fleet: Series, tmp_path: Path) -> None:
    outcome = run(fleet, tmp_path, steps=200, epsilon=3.0, noise_multiplier=1.0)
    assert outcome.finished
    assert 0 < outcome.step < 200
    record = read_ledger(tmp_path)
    assert record.steps == outcome.step
    assert record.epsilon("day", 1e-5).value <= 3.0


def test_another_run_in_the_folder_cannot_spend_the_budget_again(fleet: Series, tmp_path: Path) -> None:
    run(fleet, tmp_path)
    before = load_file(tmp_path / "model.safetensors")
    with pytest.raises(UserError, match="holds a run already"):
        run(fleet, tmp_path)
    assert run(fleet, tmp_path, resume=True).step == 20
    assert read_ledger(tmp_path).steps == 20
    (tmp_path / CHECKPOINT).unlink()  # someone hopes to start anew on the old ledger
    assert run(fleet, tmp_path, resume=True).step == 0
    assert read_ledger(tmp_path).epsilon("day", 1e-5).value <= 6.0
    after = load_file(tmp_path / "model.safetensors")
    assert before.keys() == after.keys()


@pytest.mark.parametrize("unit", ["record", "day", "week", "series", "window"])
def test_every_unit_trains_or_is_refused_with_a_reason(fleet: Series, tmp_path: Path, unit: str) -> None:
    run(fleet, tmp_path, steps=2, unit=unit)
    statement = json.loads((tmp_path / "model.json").read_text())["privacy"]
    assert statement["unit"] == unit
    assert statement["epsilon"]["headline"] <= 6.0


def test_private_units_are_charged_once_and_close_to_the_truth(fleet: Series, tmp_path: Path) -> None:
    wanted = Privacy(epsilon=12.0, unit="day", statistics_noise=2.0)
    config = make_config(
        fleet, "simulated", scale="smoke", steps=5, window=48, size="tiny", privacy=wanted, batch_size=24
    )
    facts, split = DataFacts(lower=(0.0,), upper=(2.0,)), split_by_time(fleet)

    def stop(step: int, steps: int, numbers: dict) -> None:
        if step == 3:
            os.kill(os.getpid(), signal.SIGINT)

    assert not train(split, config, tmp_path, facts=facts, speed=SPEED, progress=stop).finished
    released = json.loads((tmp_path / "scaling.json").read_text())
    assert train(split, config, tmp_path, facts=facts, speed=SPEED, resume=True).finished
    spec = json.loads((tmp_path / "model.json").read_text())
    assert spec["scaling"] == released
    assert released["origin"] == "private"
    assert released["level"][0] == pytest.approx(np.nanmean(split.train.values), abs=0.2)
    charges = [what for segment in read_ledger(tmp_path).segments for _, what in segment.charges]
    assert charges.count("standardisation") == 1
    assert spec["privacy"]["epsilon"]["headline"] <= 12.0
    assert all("level and scale" not in gap for gap in spec["privacy"]["not_covered"])


def test_the_papers_units_are_named_as_not_covered(fleet: Series, tmp_path: Path) -> None:
    wanted = Privacy(epsilon=6.0, unit="day")
    config = make_config(fleet, "simulated", scale="smoke", steps=2, window=48, anchor="none", privacy=wanted)
    train(split_by_time(fleet), config, tmp_path, speed=SPEED)
    gaps = json.loads((tmp_path / "model.json").read_text())["privacy"]["not_covered"]
    assert any("level and scale" in gap for gap in gaps)


def test_examples_dropped_for_missing_readings_never_make_k_smaller(fleet: Series, tmp_path: Path) -> None:
    """Every meter loses one week: the blocks are dropped, and a meter still counts as many examples as it could have."""
    values = fleet.values.copy()
    for first in fleet.offsets[:-1]:
        values[first + 6 * 24 : first + 14 * 24] = np.nan
    for name, series in {"whole": fleet, "torn": replace(fleet, values=values)}.items():
        run(series, tmp_path / name, steps=1, unit="week")
    whole, torn = (read_ledger(tmp_path / name) for name in ("whole", "torn"))
    assert torn.segments[0].plan.examples < whole.segments[0].plan.examples
    for unit in ("record", "day", "week", "series"):
        assert torn.contribution(unit) == whole.contribution(unit)
    assert whole.contribution("series").k > 1


def test_an_empty_request_is_refused() -> None:
    with pytest.raises(UserError, match="give epsilon"):
        Privacy(unit="day")
    with pytest.raises(UserError, match="noise_mutliplier"):
        Privacy(epsilon=1, noise_mutliplier=1.0)
    with pytest.raises(UserError, match="unit"):
        Privacy(epsilon=1, unit="person")


def _in_a_child(series: Series, folder: Path, resume: bool) -> None:
    torch.set_num_threads(1)
    applied = folder.parent / "applied"

    def witness(step: int, steps: int, numbers: dict) -> None:
        with open(applied, "a") as file:  # one line for every step that was ever applied
            file.write(f"{step}\n")
        time.sleep(0.01)

    run(series, folder, steps=60, resume=resume, progress=witness)


def test_kill_at_twenty_random_moments(fleet: Series, tmp_path: Path) -> None:
    """The ledger's steps ≥ the steps ever applied; ε is an uninterrupted run's or more; the budget is never passed."""
    folder, generator = tmp_path / "run", np.random.default_rng(0)
    context = multiprocessing.get_context("fork")
    for _ in range(20):
        child = context.Process(target=_in_a_child, args=(fleet, folder, (folder / "run.json").exists()))
        child.start()
        time.sleep(generator.uniform(0.1, 1.2))
        os.kill(child.pid or 0, signal.SIGKILL)
        child.join()
        if (folder / "ledger.jsonl").exists() and (folder / "ledger.jsonl").stat().st_size:
            record = read_ledger(folder)
            applied = tmp_path / "applied"
            assert record.steps >= (len(applied.read_text().splitlines()) if applied.exists() else 0)
            if record.segments and record.steps:
                assert record.epsilon("day", 1e-5).value <= 6.0 + 1e-6
    assert run(fleet, folder, steps=60, resume=(folder / "run.json").exists()).finished
    record, state = read_ledger(folder), load_state(folder / CHECKPOINT)
    assert record.steps >= state.step
    spent = record.epsilon("day", 1e-5).value
    alone = record.segments[-1].plan.epsilon(state.step).value
    assert alone <= spent + 1e-9
    assert spent <= 6.0 + 1e-6
