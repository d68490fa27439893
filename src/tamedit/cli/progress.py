"""Progress of a run: a bar on a terminal, a plain line from time to time elsewhere."""

import sys
import time
from types import TracebackType
from typing import Any


class RunProgress:
    """Shows step, loss, whatever else the run reports (ε so far), and the time left."""

    def __init__(self, quiet: bool = False, plain_seconds: float = 10.0) -> None:
        self.quiet, self.plain_seconds = quiet, plain_seconds
        self.bar: Any = None
        self.started = time.monotonic()
        self.first_step: int | None = None
        self.said = self.started

    def __enter__(self) -> "RunProgress":
        if not self.quiet and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            self.bar = Progress(
                TextColumn("step {task.completed:.0f}/{task.total:.0f}"),
                BarColumn(),
                TextColumn("{task.description}"),
                TimeRemainingColumn(elapsed_when_finished=True),
                console=Console(stderr=True),
            )
            self.bar.start()
            self.bar.add_task("", total=None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.stop()

    def __call__(self, step: int, steps: int, numbers: dict[str, float]) -> None:
        if self.quiet:
            return
        words = "  ".join(f"{name.replace('_', ' ')} {value:.4g}" for name, value in numbers.items())
        if self.bar is not None:
            self.bar.update(self.bar.task_ids[0], completed=step, total=steps, description=words)
            return
        now = time.monotonic()
        if self.first_step is None:
            self.first_step, self.started = step - 1, self.said
        if now - self.said >= self.plain_seconds or step == steps:
            pace = (now - self.started) / max(step - self.first_step, 1)
            print(f"step {step}/{steps}  {words}  {pace * (steps - step):.0f} s left", file=sys.stderr, flush=True)
            self.said = now
