"""The time left comes from the pace of the work itself, with a clock that the test turns."""

import pytest

from tamedit.cli import progress
from tamedit.cli.progress import RunProgress


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(progress, "time", made)
    monkeypatch.setattr("sys.stderr.isatty", lambda: False, raising=False)
    return made


@pytest.mark.parametrize("counted", [None, "window"])
def test_minutes_of_reading_are_no_pace(clock: Clock, capsys: pytest.CaptureFixture[str], counted: str | None) -> None:
    """300 s of reading, then 1 s a step: at the first report nothing can be said, at the second the rest takes 8 s."""
    with RunProgress(counted=counted) as bar:
        clock.now += 300
        bar(1, 10)
        assert "left" not in (first := capsys.readouterr().err)
        assert "1/10" in first
        clock.now += 1
        bar.plain_seconds = 0
        bar(2, 10)
        assert "8 s left" in capsys.readouterr().err
        clock.now += 2
        bar(4, 10)
        assert "6 s left" in capsys.readouterr().err


def test_a_second_stage_and_a_resumed_run_have_their_own_pace(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with RunProgress(plain_seconds=0) as bar:
        for step in (1, 2, 3):
            clock.now += 1
            bar(step, 3)
        assert capsys.readouterr().err.splitlines()[-1].endswith("0 s left")
        clock.now += 100  # between the stages
        bar(501, 1000)  # resumed
        assert "left" not in capsys.readouterr().err
        clock.now += 4
        bar(503, 1000)
        assert "994 s left" in capsys.readouterr().err


def test_work_of_one_step_ends_with_nothing_left(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with RunProgress() as bar:
        clock.now += 50
        bar(1, 1)
    assert capsys.readouterr().err == "step 1/1  0 s left\n"
