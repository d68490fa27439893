"""The ledger of a data set: runs in any folder and in any process add up, and the budget is theirs together."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tamedit.errors import UserError
from tamedit.privacy import chain
from tamedit.privacy.accountant import Mechanism, epsilon
from tamedit.privacy.entries import AUDITED, chained, read
from tamedit.privacy.ledger import BudgetEnded, Ledger, affordable_steps
from tamedit.privacy.plan import PrivacyPlan
from tamedit.privacy.statement import Statement
from tamedit.privacy.units import Contribution

WEEK = {"week": Contribution(1, "removal", "")}


def plan(**change) -> PrivacyPlan:
    values = {"unit": "week", "examples": 100, "sampling_rate": 0.05, "clip": 1.0, "noise_multiplier": 1.0}
    return PrivacyPlan(**(values | {"steps": 200, "delta": 1e-5} | change))


def test_runs_with_other_noise_rates_and_units_add_up(tmp_path: Path) -> None:
    """One composition of all mechanisms, at the largest k of the unit and by replacement if one run has it."""
    shared = tmp_path / "meters.privacy-ledger.jsonl"
    day = {"week": Contribution(7, "removal", ""), "day": Contribution(1, "removal", "")}
    facts = {"ledger": shared.name}
    for name, made, units, steps in (
        ("a", plan(), WEEK, 10),
        ("b", plan(noise_multiplier=2.0, sampling_rate=0.1), WEEK, 20),
        ("c", plan(unit="day", noise_multiplier=4.0), day, 5),
    ):
        with Ledger.open(tmp_path / name, made, units, facts=facts, shared=shared, reserve=3) as ledger:
            for left in range(steps, 0, -1):
                ledger.take(left)
    record = read(shared)
    assert [(one.segments[0].folder, one.steps) for one in record.runs.values()] == [
        (str(tmp_path / name), steps) for name, steps in (("a", 10), ("b", 20), ("c", 5))
    ]
    mechanisms = [Mechanism(0.05, 1.0, 10), Mechanism(0.1, 2.0, 20), Mechanism(0.05, 4.0, 5)]
    assert record.epsilon("week", 1e-5) == epsilon(mechanisms, 1e-5, 7)
    with pytest.raises(UserError, match="does not say how many examples a day touches"):
        record.epsilon("day", 1e-5)
    own = read(tmp_path / "b")
    assert own.epsilon("week", 1e-5) == epsilon([mechanisms[1]], 1e-5), "a run's own ledger can be read alone"
    said = Statement.of(own, everything=record)
    assert said.together is not None
    assert (said.together.runs, said.together.epsilon) == (3, record.epsilon("week", 1e-5).value)
    assert "also covers choosing among them; runs with another ledger are not covered" in str(said)


def test_a_charge_is_in_both_ledgers_before_the_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash between the two writes leaves more in the data set's ledger than in the run's, never less."""
    shared, order = tmp_path / "data.jsonl", []
    real = chain.Chain._write
    monkeypatch.setattr(
        chain.Chain, "_write", lambda self, content: (order.append(self.path.name), real(self, content))
    )
    with Ledger.open(tmp_path / "a", plan(), WEEK, shared=shared, reserve=1) as ledger:
        assert order == ["ledger.jsonl"], "nothing is written beside the data before something is charged"
        order.clear()
        ledger.take()
        assert order == ["data.jsonl", "data.jsonl", "ledger.jsonl"]
        assert read(shared).steps == read(tmp_path / "a").steps == 1


def test_what_the_data_sets_ledger_lacks_is_carried_over(tmp_path: Path) -> None:
    """A run of an earlier version, or a data set's ledger that was lost: the run's own ledger is the truth for the run."""
    shared = tmp_path / "data.jsonl"
    for at, place in enumerate((None, shared, shared), start=1):
        with Ledger.open(tmp_path / "a", plan(), WEEK, shared=place, reserve=1) as ledger:
            for _ in range(5):
                ledger.take()
        if place:
            assert read(shared).mechanisms == [Mechanism(0.05, 1.0, 5 * at)]
            assert len(read(shared).runs) == 1
    shared.unlink()
    with Ledger.open(tmp_path / "a", plan(), WEEK, shared=shared, reserve=1) as ledger:
        ledger.take()
    assert read(shared).mechanisms == read(tmp_path / "a").mechanisms == [Mechanism(0.05, 1.0, 16)]


def test_tests_are_not_charged_to_the_data_set(tmp_path: Path) -> None:
    shared = tmp_path / "data.jsonl"
    with Ledger.open(tmp_path / "a", plan(test_only=True, seed=0), WEEK, shared=shared) as ledger:
        ledger.take()
    assert not shared.exists()


def test_two_runs_at_once_share_one_wall(tmp_path: Path) -> None:
    """Each saw the whole budget when it began; together they stop within it."""
    shared, limit = tmp_path / "data.jsonl", plan().epsilon(40).value + 1e-9
    first = Ledger.open(tmp_path / "a", plan(), WEEK, shared=shared, limit=limit, reserve=4)
    second = Ledger.open(tmp_path / "b", plan(), WEEK, shared=shared, limit=limit, reserve=4)
    taken = 0
    with first, second:
        for _ in range(18):
            for ledger in (first, second):
                ledger.take(40)
                taken += 1
        with pytest.raises(BudgetEnded, match="Other runs on the same data have spent the rest"):
            [ledger.take(40) for _ in range(8) for ledger in (first, second)]
    record = read(shared)
    assert 36 <= taken <= record.steps <= 40
    assert record.epsilon("week", 1e-5).value <= limit
    assert affordable_steps(record, plan(), limit) == 40 - record.steps
    assert read(tmp_path / "a").steps + read(tmp_path / "b").steps == record.steps


def test_a_run_that_was_cut_short_takes_no_more_when_the_others_are_silent(tmp_path: Path) -> None:
    """The first has begun, the second takes what is left and ends: the first must not go on to the end of its own plan."""
    made = PrivacyPlan.for_epsilon(2.0, unit="week", examples=108, sampling_rate=0.3, clip=1.0, steps=60, delta=1e-5)
    shared, taken = tmp_path / "data.jsonl", {"a": 0, "b": 0}

    def opened(name: str) -> Ledger:
        return Ledger.open(tmp_path / name, made, WEEK, shared=shared, limit=2.0)

    with opened("a") as first, opened("b") as second:
        for name, ledger, last in (("a", first, 8), ("b", second, 51), ("a", first, 60)):
            try:
                while taken[name] < last:
                    ledger.take(last - taken[name] if name == "b" else 60 - taken[name])
                    taken[name] += 1
            except BudgetEnded:
                pass
    record = read(shared)
    assert sum(taken.values()) <= record.steps <= 60
    assert record.epsilon("week", 1e-5).value <= 2.0


def test_the_ledger_that_leaves_names_no_folder(tmp_path: Path) -> None:
    shared, said = tmp_path / "data.jsonl", AUDITED
    source = os.pathsep.join(["/clients/alice baker/homes.csv", "/clients/other/more.csv"])
    with Ledger.open(tmp_path / "a", plan(), WEEK, shared=shared, data=said + source) as ledger:
        ledger.take()
    assert read(tmp_path / "a").segments[0].data == said + os.pathsep.join(["homes.csv", "more.csv"])
    assert "clients" not in (tmp_path / "a" / "ledger.jsonl").read_text()
    assert read(shared).segments[0].data == said + source, "the curator's own ledger keeps the place"
    place = tmp_path / "alice: baker" / "homes.csv"
    place.parent.mkdir()
    place.write_text("time,kwh\n")
    with Ledger.open(tmp_path / "b", plan(), WEEK, shared=shared, data=str(place)) as ledger:
        ledger.take()
    assert "alice" not in (tmp_path / "b" / "ledger.jsonl").read_text()


def test_a_run_that_was_copied_is_not_called_the_only_one(tmp_path: Path) -> None:
    """Both copies go on under one number; the data set's ledger has what both spent, and each statement says so."""
    shared, facts = tmp_path / "data.jsonl", {"ledger": "data.jsonl"}
    with Ledger.open(tmp_path / "a", plan(), WEEK, shared=shared, facts=facts) as ledger:
        [ledger.take() for _ in range(8)]
    assert "only private run" in str(Statement.of(read(tmp_path / "a"), everything=read(shared)))
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    for name in "ab":
        with Ledger.open(tmp_path / name, plan(), WEEK, shared=shared, facts=facts) as ledger:
            [ledger.take() for _ in range(8)]
    said = Statement.of(read(tmp_path / "b"), everything=read(shared))
    assert said.together is not None
    assert said.epsilon is not None
    assert said.together.epsilon == read(shared).epsilon("week", 1e-5).value > said.epsilon.value
    assert "only private run" not in str(said)
    assert "has more charges of this run" in str(said)


CHILD = """
import sys
from pathlib import Path
from tamedit.privacy.ledger import Ledger
from tamedit.privacy.plan import PrivacyPlan
from tamedit.privacy.units import Contribution
folder = Path(sys.argv[1])
with Ledger.open(
    folder, PrivacyPlan(**{plan}), {{"week": Contribution(1, "removal", "")}}, shared=folder.parent / "data.jsonl", reserve=1
) as ledger:
    for _ in range(100):
        ledger.take()
"""


def test_processes_write_one_after_the_other(tmp_path: Path) -> None:
    code = CHILD.format(plan=plan().model_dump(mode="json"))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    children = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path / name)], env=environment) for name in ("a", "b")
    ]
    assert [child.wait() for child in children] == [0, 0]
    record = read(tmp_path / "data.jsonl")
    assert [one.steps for one in record.runs.values()] == [100, 100]


def test_a_torn_line_is_repaired_by_whoever_comes_next(tmp_path: Path) -> None:
    shared = tmp_path / "data.jsonl"
    with Ledger.open(tmp_path / "a", plan(), WEEK, shared=shared, reserve=1) as ledger:
        ledger.take()
        shared.write_bytes(shared.read_bytes() + b'{"type":"charge","count":3,"rate":0.05,"noise":1.0,"wh')
        with Ledger.open(tmp_path / "b", plan(), WEEK, shared=shared, reserve=1) as other:
            other.take()
        for _ in range(199):  # the repair is not one of this run's planned steps
            ledger.take()
    assert read(shared).mechanisms == [Mechanism(0.05, 1.0, 1 + 3 + 1 + 199)]


def rewritten(path: Path, change) -> None:
    """Another content with an honest chain, as a program that goes astray would write it."""
    lines, last = [json.loads(line) for line in path.read_text().splitlines()], ""
    change(lines)
    for line in lines:
        line["check"] = last = chained(last, {key: value for key, value in line.items() if key != "check"})
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda lines: lines[1].update(noise=9.0), "a noise multiplier of 9, but the plan that it names has 1"),
        (lambda lines: lines[2].update(rate=0.01), "a sampling rate of 0.01, but the plan that it names has 0.05"),
        (lambda lines: lines[1].update(count=197), "training steps: 201, but the plan that it names has 200"),
        (
            lambda lines: lines[0]["plan"].update(noise_multiplier=9.0),
            "names the plan [0-9a-f]{16}, but contains another",
        ),
    ],
)
def test_charges_are_checked_against_their_plan(change, sentence: str, tmp_path: Path) -> None:
    with Ledger.open(tmp_path, plan(), WEEK, reserve=2) as ledger:
        for _ in range(6):
            ledger.take()
    rewritten(tmp_path / "ledger.jsonl", lambda lines: None)
    assert read(tmp_path).steps == 6
    rewritten(tmp_path / "ledger.jsonl", change)
    with pytest.raises(UserError, match=sentence):
        read(tmp_path)


def test_more_steps_than_planned_are_not_written(tmp_path: Path) -> None:
    with Ledger.open(tmp_path, plan(steps=3), WEEK, reserve=1) as ledger:
        for _ in range(3):
            ledger.take()
        with pytest.raises(UserError, match="training steps: 4, but the plan that it names has 3"):
            ledger.take()
    assert read(tmp_path).steps == 3
