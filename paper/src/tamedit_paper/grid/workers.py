"""Many runs on a few processes: finished runs are skipped, unfinished runs are resumed.

Every worker process takes one job at a time from its input (`work.py`). If it is killed, only the steps
since a run's last checkpoint are lost, and the same command continues. A worker whose parent has died ends with its job.

Why no pool of a library: in those of `concurrent.futures` and joblib a worker that dies fails every job that waits, and Ctrl-C
reaches the workers, too. Here its own job fails alone, and Ctrl-C lets each worker write its checkpoint.
"""

import contextlib
import json
import os
import selectors
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tamedit_paper.grid.results import Job
from tamedit_paper.grid.work import is_done


@dataclass
class Outcome:
    """What a grid did."""

    skipped: int = 0
    made: int = 0
    failed: dict[str, str] = field(default_factory=dict)  # command → why
    stopped: bool = False


Report = Callable[[Outcome, int, float], None]  # so far, jobs in all, seconds since the start


def run_grid(jobs: Sequence[Job], results: Path, work: Path, workers: int, report: Report) -> Outcome:
    """Make the missing results; Ctrl-C stops it cleanly, and `stopped` says so."""
    outcome, started = Outcome(), time.monotonic()
    due = deque(job for job in jobs if not is_done(job, results))
    outcome.skipped = len(jobs) - len(due)
    report(outcome, len(jobs), 0.0)
    crew = [_Worker(results, work) for _ in range(min(workers, len(due)))]
    try:
        with selectors.DefaultSelector() as selector:
            for worker in crew:
                worker.give(due.popleft())
                selector.register(worker.answers, selectors.EVENT_READ, worker)
            while any(worker.job for worker in crew):
                for key, _ in selector.select():
                    worker = key.data
                    job, error = worker.answer()
                    if error:
                        outcome.failed[job.command] = error
                    else:
                        outcome.made += 1
                    report(outcome, len(jobs), time.monotonic() - started)
                    if due and not worker.alive:  # it crashed: start a new one
                        selector.unregister(worker.answers)
                        worker = _Worker(results, work)
                        crew.append(worker)
                        selector.register(worker.answers, selectors.EVENT_READ, worker)
                    if due:
                        worker.give(due.popleft())
                    else:
                        selector.unregister(worker.answers)
    except KeyboardInterrupt:
        outcome.stopped = True
    finally:
        for worker in crew:
            worker.close(stop=outcome.stopped)
    return outcome


class _Worker:
    """A process that makes one result at a time, on one thread."""

    def __init__(self, results: Path, work: Path) -> None:
        self.job: Job | None = None
        environment = os.environ | dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tamedit_paper.grid.work", str(results), str(work)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            start_new_session=True,  # Ctrl-C reaches only this process, which then stops the workers cleanly
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.orders, self.answers = self.process.stdin, self.process.stdout

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def give(self, job: Job) -> None:
        self.job = job
        with contextlib.suppress(BrokenPipeError):  # it died; the empty answer says so
            self.orders.write(job.model_dump_json() + "\n")
            self.orders.flush()

    def answer(self) -> tuple[Job, str | None]:
        """The job that is over, and what went wrong with it."""
        job, line = self.job, self.answers.readline()
        assert job is not None
        self.job = None
        if line:
            error: str | None = json.loads(line)["error"]
            return job, error
        return job, f"the process ended with code {self.process.wait()}"

    def close(self, stop: bool) -> None:
        """No more jobs. With `stop` the one at hand is broken off at its next step; its checkpoint stays."""
        if stop and self.alive:
            self.process.terminate()
        with contextlib.suppress(BrokenPipeError):
            self.orders.close()
        self.process.wait()
        self.answers.close()
