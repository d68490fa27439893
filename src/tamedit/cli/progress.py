"""Progress of a run: a bar on a terminal, a plain line from time to time elsewhere."""

import sys
import time
from types import TracebackType
from typing import Any


class RunProgress:
    """Shows step, loss, whatever else the run reports (ε so far), and the time left."""

    def __init__(self, quiet: bool = False, plain_seconds: float = 10.0, counted: str | None = None) -> None:
        """`counted`: what is counted instead of steps; from 0, several at a time, and no line for work that is soon done."""
        self.quiet, self.plain_seconds, self.counted = quiet, plain_seconds, counted
        self.bar: Any = None
        self.said = time.monotonic()
        self.begun, self.first = 0.0, 0  # the first report of this stage: when, and its step
        self.last, self.steps = 0, 0  # the last report

    def __enter__(self) -> "RunProgress":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.stop()

    def __call__(self, step: int, steps: int, numbers: dict[str, float] | None = None) -> None:
        numbers = numbers or {}
        if self.quiet:
            return
        words = "  ".join(f"{name.replace('_', ' ')} {value:.4g}" for name, value in numbers.items())
        begins = step <= self.last or steps != self.steps
        self.last, self.steps = step, steps
        if sys.stderr.isatty():
            self._draw(step, steps, words, begins)
            return
        now = time.monotonic()
        if begins:  # training, or a public stage before it
            self.first, self.begun = step, now
        if now - self.said >= self.plain_seconds or (step == steps and not self.counted):
            left = self._left(step, steps, now)
            said = [f"{self.counted or 'step'} {step}/{steps}", words, left]
            print("  ".join(one for one in said if one), file=sys.stderr, flush=True)
            self.said = now

    def _left(self, step: int, steps: int, now: float) -> str:
        """From the pace since the first report: what came before it (reading, preparing) says nothing about the pace."""
        if step == self.first:
            return "" if step < steps else "0 s left"
        return f"{(now - self.begun) / (step - self.first) * (steps - step):.0f} s left"

    def _draw(self, step: int, steps: int, words: str, begins: bool) -> None:
        if self.bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            self.bar = Progress(
                TextColumn((self.counted or "step") + " {task.completed:.0f}/{task.total:.0f}"),
                BarColumn(),
                TextColumn("{task.description}"),
                TimeRemainingColumn(elapsed_when_finished=True),
                console=Console(stderr=True),
            )
            self.bar.start()
        if begins:
            self.bar.add_task("", total=steps)
        self.bar.update(self.bar.task_ids[-1], completed=step, total=steps, description=words)
