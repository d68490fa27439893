"""A private run that could not write is continued once there is room, whatever it could not write, within its budget."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors import SafetensorError

from tamedit.data.series import Series
from tamedit.data.simulate import simulate
from tamedit.data.split import split_by_time
from tamedit.errors import Resumable, UserError
from tamedit.privacy.chain import Chain
from tamedit.privacy.entries import read
from tamedit.privacy.settings import Privacy
from tamedit.runs.agreement import check_agreement
from tamedit.runs.config import Speed
from tamedit.runs.folder import CHECKPOINT, DataFacts
from tamedit.runs.recipe import make_config
from tamedit.training import checkpoint
from tamedit.training.checkpoint import load_state
from tamedit.training.run import RunOutcome, train

STEPS = 24


@pytest.fixture(scope="module")
def fleet() -> Series:
    return simulate(meters=4, hours=24 * 20, seed=1)


def run(series: Series, folder: Path, resume: bool = False) -> RunOutcome:
    privacy = Privacy(epsilon=6.0, unit="day", examples=58)
    config = make_config(
        series, "homes", scale="smoke", steps=STEPS, window=24, size="tiny", privacy=privacy, batch_size=4
    )
    facts = DataFacts(typical_level=(0.35,), typical_scale=(0.35,), ledger=str(folder.parent / "data.jsonl"))
    speed = Speed(threads=1, diagnose_every=0, log_every=1)
    return train(split_by_time(series), config, folder, facts=facts, speed=speed, resume=resume)


def full_from(number: int, file: str) -> Callable[[Chain, bytes], None]:
    """The disk is full from the n-th line of a ledger on, and takes half of that line."""
    real, lines = Chain._write, [0]

    def write(self: Chain, content: bytes) -> None:
        if self.path.name == file:
            lines[0] += 1
            if lines[0] >= number:
                os.write(self._handle, content[: len(content) // 2])
                raise Resumable(
                    f"Cannot write {self.path}: No space left on device; free some space, then resume the run."
                )
        real(self, content)

    return write


@pytest.mark.parametrize("file", ["ledger.jsonl", "data.jsonl"])
@pytest.mark.parametrize(("line", "most_lost"), [(1, 0), (2, 8), (3, 16)])
def test_a_ledger_that_could_not_be_written(
    file: str, line: int, most_lost: int, fleet: Series, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(Chain, "_write", full_from(line, file))
        with pytest.raises(UserError, match="No space left on device; free some space, then resume"):
            run(fleet, folder)
    done = run(fleet, folder, resume=True)
    assert done.finished
    assert STEPS - most_lost <= done.step <= STEPS
    record, everything = check_agreement(folder)
    assert everything is not None
    assert everything.epsilon("day", 1e-5).value <= 6.0
    assert everything.steps >= record.steps >= done.step


def test_a_checkpoint_that_could_not_be_written(fleet: Series, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last one; a checkpoint of step 0 is there, and what is left of the budget is trained."""
    folder, real = tmp_path / "run", checkpoint.save_file

    def torn(tensors: dict[str, Any], *arguments: Any, **options: Any) -> None:
        if any(name.startswith("optimizer/") for name in tensors):  # not before the first step
            raise SafetensorError("I/O error: No space left on device")
        real(tensors, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "save_file", torn)
        patch.setattr(
            "tamedit.training.metrics_log.MetricsLog.write",
            lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left on device")),
        )
        with pytest.raises(OSError, match="No space left"):
            run(fleet, folder)
    assert load_state(folder / CHECKPOINT).step == 0
    paid = read(folder).steps
    assert 0 < paid < STEPS
    assert run(fleet, folder, resume=True).step >= STEPS - paid - 1
