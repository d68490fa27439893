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
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

from tamedit.data.clean import replace_negatives
from tamedit.data.reader import read
from tamedit.data.series import Series
from tamedit.data.simulate import OWES_TO, simulate
from tamedit.data.split import split_by_time
from tamedit.errors import UserError
from tamedit.privacy import statistics
from tamedit.privacy.entries import read as read_ledger
from tamedit.privacy.ledger import affordable_steps
from tamedit.privacy.settings import Privacy
from tamedit.runs.config import Speed
from tamedit.runs.folder import CHECKPOINT, DataFacts
from tamedit.runs.layout import CLOCK_CHANGES, layout_of
from tamedit.runs.provenance import Measured
from tamedit.runs.recipe import make_config
from tamedit.training import run as fitting
from tamedit.training.checkpoint import load_state
from tamedit.training.loop import Outcome
from tamedit.training.run import train
from tamedit.windows.examples import Examples

FACTS = DataFacts(typical_level=(0.35,), typical_scale=(0.35,))
SPEED = Speed(threads=1, checkpoint_seconds=0.05, log_every=1)


@pytest.fixture(scope="module")
def fleet() -> Series:
    return simulate(meters=12, hours=24 * 30, seed=1)


def run(
    series: Series, folder: Path, *, steps: int = 20, resume: bool = False, progress: Any = None, **privacy: Any
) -> Outcome:
    wanted = Privacy(**{"epsilon": 6.0, "delta": 1e-5, "unit": "day", "examples": 126, **privacy})
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


def test_the_papers_noise_is_said_to_be_hardly_any_protection(fleet: Series, tmp_path: Path) -> None:
    run(fleet, tmp_path, epsilon=None, noise_multiplier=0.1, unit="window", layout="overlapping")
    statement = json.loads((tmp_path / "model.json").read_text())["privacy"]
    assert statement["protection"] == "hardly any"
    assert "as if it had been trained without privacy" in statement["statement"]


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
    with pytest.raises(UserError, match="already contains a run"):
        run(fleet, tmp_path)
    assert run(fleet, tmp_path, resume=True).step == 20
    assert read_ledger(tmp_path).steps == 20
    before = {name: (tmp_path / name).read_bytes() for name in ("model.safetensors", "model.json")}
    (tmp_path / CHECKPOINT).unlink()  # someone hopes to start anew on the old ledger
    with pytest.raises(UserError, match="spent on steps that a crash lost, so nothing can be trained"):
        run(fleet, tmp_path, resume=True)
    assert read_ledger(tmp_path).epsilon("day", 1e-5).value <= 6.0
    assert before == {name: (tmp_path / name).read_bytes() for name in before}


def test_a_crash_before_the_first_checkpoint_leaves_no_untrained_model(fleet: Series, tmp_path: Path) -> None:
    def crash(step: int, steps: int, numbers: dict) -> None:
        raise RuntimeError("the machine is gone")

    with pytest.raises(RuntimeError, match="the machine is gone"):
        run(fleet, tmp_path, steps=4, progress=crash)  # four steps are paid ahead, one is done and none is kept
    assert load_state(tmp_path / CHECKPOINT).step == 0
    with pytest.raises(UserError, match="start again in another folder with a new budget"):
        run(fleet, tmp_path, steps=4, resume=True)
    assert not (tmp_path / "model.safetensors").exists()


def test_a_budget_that_pays_for_no_step_says_so(fleet: Series, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="pays for no step with this noise"):
        run(fleet, tmp_path, epsilon=0.05, noise_multiplier=1.0)
    assert not (tmp_path / "model.safetensors").exists()


def test_a_lost_ledger_is_noticed(fleet: Series, tmp_path: Path) -> None:
    run(fleet, tmp_path, steps=6)
    ledger = tmp_path / "ledger.jsonl"
    whole = ledger.read_text()
    ledger.unlink()
    with pytest.raises(UserError, match="has 6 steps and its ledger paid for 0"):
        run(fleet, tmp_path, steps=6, resume=True)
    assert not ledger.exists(), "no new ledger that would state ε = 0"
    ledger.write_text("".join(line for line in whole.splitlines(keepends=True) if '"charge"' not in line))
    with pytest.raises(UserError, match="paid for 0"):
        run(fleet, tmp_path, steps=6, resume=True)


def test_a_checkpoint_of_unknown_origin_is_refused(fleet: Series, tmp_path: Path) -> None:
    run(fleet, tmp_path, steps=2)
    (tmp_path / "run.json").unlink()
    with pytest.raises(UserError, match=r"contains checkpoint\.safetensors but no run\.json"):
        run(fleet, tmp_path, steps=2, resume=True)


def test_the_examples_draws_do_not_come_from_the_public_seed(
    fleet: Series, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    class Seen(Examples):
        def __init__(self, *given: Any) -> None:
            seen.append(given[-1])
            super().__init__(*given)

    monkeypatch.setattr(fitting, "Examples", Seen)
    run(fleet, tmp_path / "promised", steps=1)
    run(fleet, tmp_path / "test", steps=1, test_only=True)
    assert seen[0] != 0
    assert seen[1] == 0


def test_statistics_cannot_pass_the_wall(fleet: Series, tmp_path: Path) -> None:
    wanted = Privacy(epsilon=0.3, noise_multiplier=5.0, unit="day", statistics_noise=5.0, examples=200)
    config = make_config(fleet, "simulated", scale="smoke", steps=5, window=48, size="tiny", privacy=wanted)
    facts = DataFacts(lower=(0.0,), upper=(2.0,))
    with pytest.raises(UserError, match=r"beyond the budget of 0\.3"):
        train(split_by_time(fleet), config, tmp_path, facts=facts, speed=SPEED)
    assert not any(tmp_path.iterdir()), "nothing was released and nothing paid: the folder is given back"


def test_a_released_statistic_must_be_in_the_ledger(fleet: Series, tmp_path: Path) -> None:
    wanted = Privacy(epsilon=12.0, unit="day", statistics_noise=2.0)
    config = make_config(fleet, "simulated", scale="smoke", steps=2, window=48, size="tiny", privacy=wanted)
    facts, split = DataFacts(lower=(0.0,), upper=(2.0,)), split_by_time(fleet)
    train(split, config, tmp_path, facts=facts, speed=SPEED)
    for name in ("ledger.jsonl", CHECKPOINT):
        (tmp_path / name).unlink()
    with pytest.raises(UserError, match=r"scaling\.json was not paid for"):
        train(split, config, tmp_path, facts=facts, speed=SPEED, resume=True)


def test_units_after_a_clock_change_are_named(tmp_path: Path) -> None:
    hours = pd.date_range("2024-10-01", periods=24 * 60, freq="h", tz="Europe/London")
    load = np.random.default_rng(0).gamma(2.0, 1.0, len(hours))
    series = read(pd.DataFrame({"time": hours, "load": load}))
    run(series, tmp_path / "london", steps=1)
    gaps = json.loads((tmp_path / "london" / "model.json").read_text())["privacy"]["not_covered"]
    assert CLOCK_CHANGES in gaps
    still = read(pd.DataFrame({"time": hours.tz_convert("UTC"), "load": load}))
    run(still, tmp_path / "utc", steps=1)
    gaps = json.loads((tmp_path / "utc" / "model.json").read_text())["privacy"]["not_covered"]
    assert CLOCK_CHANGES not in gaps


def test_what_preparing_the_data_carries_elsewhere_is_counted(fleet: Series, tmp_path: Path) -> None:
    run(fleet, tmp_path / "as it is", steps=1)
    run(replace_negatives(fleet), tmp_path / "cleaned", steps=1)
    alone, carried = (read_ledger(tmp_path / name).contribution("day") for name in ("as it is", "cleaned"))
    assert alone.k == 1
    assert carried.k > 5
    assert carried.neighbour == "replacement"


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
        run(series, tmp_path / name, steps=1, unit="week", examples=None, test_only=True)
    whole, torn = (read_ledger(tmp_path / name) for name in ("whole", "torn"))
    assert torn.segments[0].plan.examples < whole.segments[0].plan.examples
    for unit in ("record", "day", "week", "series"):
        assert torn.contribution(unit) == whole.contribution(unit)
    assert whole.contribution("series").k > 1


def test_an_empty_request_is_refused() -> None:
    with pytest.raises(UserError, match="give `epsilon`"):
        Privacy(unit="day")
    with pytest.raises(UserError, match="noise_mutliplier"):
        Privacy(epsilon=1, noise_mutliplier=1.0)
    with pytest.raises(UserError, match="unit"):
        Privacy(epsilon=1, unit="person")
    for wrong in ({"epsilon": 1e-300}, {"noise_multiplier": 1e-300}, {"noise_multiplier": 1e300}):
        with pytest.raises(UserError, match=f"{next(iter(wrong))}=.* is not possible: it should be"):
            Privacy(**wrong)
    assert Privacy(noise_multiplier=0.03, statistics_noise=1e-3).noise_multiplier == 0.03


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
    record = read_ledger(folder) if (folder / "ledger.jsonl").exists() else None
    lost = record is not None and bool(record.planned.segments) and load_state(folder / CHECKPOINT).step == 0
    if record is not None and lost and affordable_steps(record, record.segments[-1].plan, 6.0) == 0:
        with pytest.raises(UserError, match="spent on steps that a crash lost"):  # a slow machine: nothing was kept
            run(fleet, folder, steps=60, resume=True)
        return
    assert run(fleet, folder, steps=60, resume=(folder / "run.json").exists()).finished
    record, state = read_ledger(folder), load_state(folder / CHECKPOINT)
    assert record.steps >= state.step
    spent = record.epsilon("day", 1e-5).value
    alone = record.segments[-1].plan.epsilon(state.step).value
    assert alone <= spent + 1e-9
    assert spent <= 6.0 + 1e-6


def test_windows_begin_at_every_hour(fleet: Series) -> None:
    """At one hour alone, positions and calendar would be the same thing in training and not afterwards."""
    plain = make_config(fleet, "homes", window=168)
    assert plain.stride == 1
    week = make_config(fleet, "homes", window=168, privacy=Privacy(epsilon=8.0, unit="week"))
    assert (week.window, week.crop, week.network.length) == (168, 144, 168)
    layout = layout_of(fleet, week)
    assert layout is not None
    windows = layout.examples(week)
    assert (windows.length, set(windows.spans)) == (144, {168})
    hours = set()
    for place in np.linspace(0, 1, 200, endpoint=False):
        indices = np.arange(len(windows))
        rows = windows.starts + windows.shifts(indices, np.full(len(indices), place))
        assert ((rows >= windows.starts) & (rows + 144 <= windows.starts + 168)).all()
        hours |= set(fleet.times[rows].hour)
    assert hours == set(range(24))
    whole = make_config(fleet, "homes", window=168, privacy=Privacy(epsilon=8.0, unit="series"))
    assert whole.crop is None, "crops of a whole meter begin everywhere anyway"
    paper = make_config(fleet, "homes", window=168, anchor="none")
    assert (paper.stride, paper.crop) == (6, None)


def test_statistics_are_released_with_secure_noise_whatever_training_takes(
    fleet: Series, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(statistics, "secure_normals", lambda count: asked.append(count) or np.zeros(count))
    facts = DataFacts(lower=(0.0,), upper=(2.0,))
    for secure in (False, True):
        wanted = Privacy(epsilon=12.0, unit="day", statistics_noise=2.0, secure=secure)
        config = make_config(fleet, "simulated", scale="smoke", steps=1, window=48, size="tiny", privacy=wanted)
        train(split_by_time(fleet), config, tmp_path / str(secure), facts=facts, speed=SPEED)
        assert asked == [2, 1]
        asked.clear()
        (plan,) = (segment.plan for segment in read_ledger(tmp_path / str(secure)).planned.segments)
        assert plan.secure is secure
        said = json.loads((tmp_path / str(secure) / "model.json").read_text())["privacy"]["statement"]
        assert ("Noise: the operating system's cryptographic stream." in said) is secure
        assert ("128 bits" in said) is not secure


def test_where_the_bounds_were_measured_stands_in_the_statement(fleet: Series, tmp_path: Path) -> None:
    config = make_config(
        fleet, "simulated", scale="smoke", steps=1, window=48, privacy=Privacy(epsilon=6.0, unit="day")
    )
    measured = Measured(source="other.csv", origin="said to be public")
    train(split_by_time(fleet), config.model_copy(update={"reference": measured}), tmp_path, facts=FACTS, speed=SPEED)
    gaps = json.loads((tmp_path / "model.json").read_text())["privacy"]["not_covered"]
    assert measured.sentence in gaps


@pytest.mark.parametrize(("source", "said"), [("ideal", True), ("simulated", False)])
def test_what_the_simulator_owes_to_the_homes_stands_in_the_statement(
    fleet: Series, tmp_path: Path, source: str, said: bool
) -> None:
    """Also of a run that begins from random weights: it can generate homes, which begin from simulated ones."""
    config = make_config(fleet, source, scale="smoke", steps=1, window=48, privacy=Privacy(epsilon=6.0, unit="day"))
    train(split_by_time(fleet), config, tmp_path, facts=FACTS, speed=SPEED)
    gaps = json.loads((tmp_path / "model.json").read_text())["privacy"]["not_covered"]
    assert (OWES_TO["ideal"] in gaps) is said


def test_held_covariates_reach_through_their_meter() -> None:
    hours = pd.date_range("2024-01-01", periods=500, freq="h")
    table = pd.DataFrame({"time": hours, "load": np.arange(500.0), "heat": 1.0})
    assert read(table, covariates=["heat"]).reach == 0
    assert read(table, covariates=["heat"], missing_covariates="hold").reach == 500, "whatever this table lacks"


def test_what_a_private_run_says_on_its_way_is_epsilon_alone(fleet: Series, tmp_path: Path) -> None:
    """Progress ends up in logs that are passed on more readily than a folder called not-private."""
    said: list[dict[str, float]] = []
    run(fleet, tmp_path, steps=3, progress=lambda step, steps, numbers: said.append(numbers))
    assert [set(numbers) for numbers in said] == [{"epsilon"}] * 3
    logged = (tmp_path / "not-private" / "metrics.jsonl").read_text()
    assert "loss" in logged
    assert "clipped" not in logged
