"""The ledger never forgets: crashes, torn lines, edits, two processes, other plans, and the wall of a budget."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tamedit.errors import UserError
from tamedit.privacy.accountant import Mechanism, epsilon
from tamedit.privacy.entries import Record, Segment, read
from tamedit.privacy.ledger import Ledger, affordable_steps
from tamedit.privacy.plan import PrivacyPlan
from tamedit.privacy.units import Contribution

UNITS = {
    "window": Contribution(1, "removal", "one block is one example"),
    "day": Contribution(2, "replacement", "a gap is kept"),
    "week": Contribution(1, "removal", "each week holds its 1 example whole"),
}


def plan(**change) -> PrivacyPlan:
    values = {
        "unit": "week",
        "examples": 100,
        "sampling_rate": 0.05,
        "clip": 1.0,
        "noise_multiplier": 1.0,
        "steps": 200,
        "delta": 1e-5,
    }
    return PrivacyPlan(**(values | change))


def test_paid_before_applied_and_derived_from_the_file_alone(tmp_path: Path) -> None:
    with Ledger.open(tmp_path, plan(), UNITS, data="fingerprint", facts={"scaling": "instance"}, reserve=8) as ledger:
        for done in range(20):
            ledger.take(left=20 - done)
            assert read(tmp_path).steps >= done + 1
        ledger.charge(Mechanism(1.0, 5.0), "standardisation")
    record = read(tmp_path)
    assert record.steps == 20  # blocks of 8, 8 and 4: nothing is wasted when the number of steps is known
    segment = record.segments[0]
    assert (segment.plan, segment.data, segment.facts) == (plan(), "fingerprint", {"scaling": "instance"})
    assert segment.contributions == UNITS
    expected = epsilon([Mechanism(0.05, 1.0, 20), Mechanism(1.0, 5.0, 1)], 1e-5)
    assert record.epsilon("week", 1e-5) == expected
    assert record.epsilon("day", 1e-5).value > expected.value


def test_reopening_appends_and_never_resets(tmp_path: Path) -> None:
    for number, noise in enumerate((1.0, 2.0, 1.0), start=1):
        with Ledger.open(tmp_path, plan(noise_multiplier=noise), UNITS, reserve=1) as ledger:
            for _ in range(5):
                ledger.take()
        record = read(tmp_path)
        assert record.steps == 5 * number
        assert len(record.segments) == number
    assert sorted(record.mechanisms, key=lambda m: m.count) == [Mechanism(0.05, 2.0, 5), Mechanism(0.05, 1.0, 10)]
    with Ledger.open(tmp_path, plan(), {**UNITS, "day": Contribution(3, "removal", "")}) as ledger:
        assert ledger.record.steps == 15
    assert read(tmp_path).contribution("day") == Contribution(3, "replacement", "")


def test_append_only(tmp_path: Path) -> None:
    seen = b""
    for _ in range(3):
        with Ledger.open(tmp_path, plan(), UNITS) as ledger:
            ledger.take()
        now = (tmp_path / "ledger.jsonl").read_bytes()
        assert now.startswith(seen)
        seen = now


def test_torn_at_every_byte(tmp_path: Path) -> None:
    """Whatever a crash leaves of the last line, nothing that was whole is lost, and the file is mended by appending."""
    with Ledger.open(tmp_path / "whole", plan(), UNITS, reserve=4) as ledger:
        for _ in range(12):
            ledger.take()
    content = (tmp_path / "whole" / "ledger.jsonl").read_bytes()
    lines = content.splitlines(keepends=True)
    begin = len(content) - len(lines[-1])
    folder = tmp_path / "torn"
    folder.mkdir()
    for cut in range(begin, len(content)):
        (folder / "ledger.jsonl").write_bytes(content[:cut])
        steps = read(folder).steps
        assert steps == (8 if cut == begin else 12)
        if cut % 7 == 0 or cut == len(content) - 1:
            with Ledger.open(folder, plan(), UNITS, reserve=4) as ledger:
                assert ledger.record.steps == steps
                ledger.take(left=1)
            assert (folder / "ledger.jsonl").read_bytes().startswith(content[:cut])
            assert read(folder).steps == steps + 1


def test_torn_header_and_torn_repair(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(b'{"type":"segm')
    with pytest.raises(UserError, match="empty"):
        read(tmp_path)
    with Ledger.open(tmp_path, plan(), UNITS, reserve=4) as ledger:
        ledger.take()
    assert read(tmp_path).steps == 4
    path.write_bytes(path.read_bytes() + b'{"type":"cha\n{"type":"rep')
    assert read(tmp_path).steps == 8
    with Ledger.open(tmp_path, plan(), UNITS, reserve=4):
        pass
    assert read(tmp_path).steps == 8
    path.write_bytes(path.read_bytes() + b'{"type":"charge","count":2,"rate":1.0,"noise":4.0,"wh')
    assert Mechanism(1.0, 4.0, 2) in read(tmp_path).mechanisms
    path.write_bytes(path.read_bytes()[:-50] + b"\0\0\0\0")
    assert read(tmp_path).steps >= 8


def test_edits_are_noticed(tmp_path: Path) -> None:
    with Ledger.open(tmp_path, plan(), UNITS, reserve=1) as ledger:
        for _ in range(4):
            ledger.take()
    path = tmp_path / "ledger.jsonl"
    lines = path.read_text().splitlines()
    damaged = {
        "edited": [lines[0], lines[1].replace('"count":1', '"count":0'), *lines[2:]],
        "removed": [lines[0], *lines[2:]],
        "illegible": [lines[0], lines[1][:30], *lines[2:]],
        "another header": [lines[0].replace('"noise_multiplier":1.0', '"noise_multiplier":9.0'), *lines[1:]],
    }
    for content in damaged.values():
        path.write_text("\n".join(content) + "\n")
        with pytest.raises(UserError, match="was changed"):
            read(tmp_path)
        with pytest.raises(UserError, match="was changed"):
            Ledger.open(tmp_path, plan(), UNITS)


def test_one_process_at_a_time(tmp_path: Path) -> None:
    with Ledger.open(tmp_path, plan(), UNITS), pytest.raises(UserError, match="Another process"):
        Ledger.open(tmp_path, plan(), UNITS)
    Ledger.open(tmp_path, plan(), UNITS).close()
    assert read(tmp_path).steps == 0


def test_plan_must_cover_the_layout(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="layout has 2 by replacement"):
        Ledger.open(tmp_path, plan(unit="day"), UNITS)
    with pytest.raises(UserError, match="cannot account"):
        Ledger.open(tmp_path, plan(unit="series"), UNITS)
    assert not (tmp_path / "ledger.jsonl").exists()
    with pytest.raises(UserError, match="No ledger"):
        read(tmp_path)


def test_a_charge_that_cannot_be_written_stops_the_run(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path, plan(), UNITS)
    os.close(ledger.own._handle)
    with pytest.raises(UserError, match="Cannot write"):
        ledger.take()
    assert ledger.record.steps == 0
    ledger.own._handle = -1


def test_budget_is_a_wall(tmp_path: Path) -> None:
    limit = plan().epsilon(100).value + 1e-9
    with Ledger.open(tmp_path, plan(), UNITS, reserve=8) as ledger:
        assert affordable_steps(ledger.record, plan(), limit) == 100
        assert affordable_steps(ledger.record, plan(), limit, most=30) == 30
        for _ in range(40):
            ledger.take()
    with Ledger.open(tmp_path, plan(), UNITS, reserve=8) as ledger:
        left = affordable_steps(ledger.record, plan(), limit)
        assert 59 <= left <= 60
        while left:
            ledger.take(left)
            left -= 1
        assert affordable_steps(ledger.record, plan(), limit) <= 1
    assert read(tmp_path).epsilon("week", 1e-5).value <= limit
    other = plan(noise_multiplier=0.5)
    assert affordable_steps(read(tmp_path), other, limit) == 0


CHILD = """
import os, sys
from pathlib import Path
from tamedit.privacy.ledger import Ledger
from tamedit.privacy.plan import PrivacyPlan
from tamedit.privacy.units import Contribution
folder = Path(sys.argv[1])
plan = PrivacyPlan(**({plan} | {{"steps": 10**6}}))
applied = os.open(folder / "applied", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
with Ledger.open(folder, plan, {{"week": Contribution(1, "removal", "")}}, reserve=3) as ledger:
    print("ready", flush=True)
    while True:
        ledger.take()
        os.write(applied, b".")
"""


def test_killed_at_random_moments(tmp_path: Path) -> None:
    code = CHILD.format(plan=plan().model_dump(mode="json"))
    chance = random.Random(7)
    for _ in range(4):
        child = subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(chance.uniform(0.0, 0.2))
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        applied = (tmp_path / "applied").stat().st_size
        assert read(tmp_path).steps >= applied
        assert read(tmp_path).steps <= applied + 4 * 3 * 2
    assert applied > 0
    assert len(read(tmp_path).segments) == 4


def test_lines_are_plain_json(tmp_path: Path) -> None:
    with Ledger.open(tmp_path, plan(), UNITS) as ledger:
        ledger.take()
    first, second = map(json.loads, (tmp_path / "ledger.jsonl").read_text().splitlines())
    assert first["type"] == "segment"
    assert first["fingerprint"] == plan().fingerprint
    assert first["units"]["day"] == {"k": 2, "neighbour": "replacement", "reason": "a gap is kept"}
    assert (second["type"], second["count"], second["rate"], second["noise"]) == ("charge", 8, 0.05, 1.0)


@pytest.mark.parametrize("earlier", [Contribution(3, "removal", ""), Contribution(1, "replacement", "")])
def test_the_wall_counts_what_earlier_segments_said_of_the_unit(earlier: Contribution) -> None:
    before = plan(contributions=earlier.k, neighbour=earlier.neighbour)
    record = Record([Segment(before, {"week": earlier}, charges=[(before.mechanism, "training")])])
    limit = epsilon([Mechanism(0.05, 1.0, 40)], 1e-5, earlier.k, earlier.neighbour, with_rdp=False).value
    assert affordable_steps(record, plan(), limit * (1 + 1e-9)) == 39
    assert affordable_steps(Record([]), plan(), limit) > 60


def test_a_charge_is_on_the_disk_before_the_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power cut after the step must not find a ledger without it."""
    flushed: list[bytes] = []
    real = os.fsync

    def watched(handle: int) -> None:
        real(handle)
        flushed.append((tmp_path / "ledger.jsonl").read_bytes())

    monkeypatch.setattr(os, "fsync", watched)
    with Ledger.open(tmp_path, plan(), UNITS, reserve=1) as ledger:
        before = len(flushed)
        ledger.take()
        assert len(flushed) > before
        assert b'"charge"' in flushed[-1].splitlines()[-1]
