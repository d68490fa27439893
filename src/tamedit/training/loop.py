"""The one training loop: gradients come from a source, everything else happens here.

    for step in …:   gradient = source(step);   AdamW;   average;   from time to time validate, log, checkpoint

The loop knows neither diffusion nor privacy. A `GradientSource` puts a gradient into every `parameter.grad` and says
what it cost. The ordinary one averages over a batch. The private one clips every unit and adds noise to the sum.
"""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from tamedit.errors import Resumable, UserError
from tamedit.model.tuning import trained
from tamedit.runs.config import Speed, TrainingConfig
from tamedit.runs.folder import CHECKPOINT
from tamedit.training.checkpoint import State, load_state, optimizer_tensors, restore_optimizer, save_state
from tamedit.training.distributed import World
from tamedit.training.ema import MovingAverage
from tamedit.training.metrics_log import MetricsLog


class GradientSource(Protocol):
    """Puts the gradient of a step into the network's parameters."""

    def __call__(self, step: int) -> dict[str, float]:
        """Numbers to log: at least `loss`."""


class Ended(Exception):
    """A source has no gradient to give any more: the run ends before this step."""


class Progress(Protocol):
    """Shows a person how far a run is."""

    def __call__(self, step: int, steps: int, numbers: dict[str, float]) -> None: ...


class StepRecord(Protocol):
    """Records measurements during training; on disk it is never behind a checkpoint."""

    def step(self, step: int, seconds: float) -> None:
        """A step, counted from 1, and what it took."""

    def flush(self) -> None: ...

    def rewind(self, step: int) -> None:
        """Drop what came after `step`."""


@dataclass
class Outcome:
    """What a call of `Trainer.run` did."""

    step: int
    finished: bool
    seconds: float


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Yields a function that says whether to stop. Ctrl-C and SIGTERM make it true, instead of interrupting a step."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked.is_set
        return

    def ask(number: int, frame: Any) -> None:
        if asked.is_set():  # asked twice: stop at once
            raise KeyboardInterrupt
        asked.set()

    previous = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield asked.is_set
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


class Trainer:
    """Trains a network in a folder; resumes from the folder's checkpoint if asked."""

    def __init__(
        self,
        network: nn.Module,
        config: TrainingConfig,
        folder: Path,
        *,
        speed: Speed | None = None,
        validate: Callable[[nn.Module], float] | None = None,
        progress: Progress | None = None,
        metrics: Path | None = None,
        world: World | None = None,
        record: StepRecord | None = None,
        watch: Callable[[int], None] | None = None,
        timed: bool = True,
    ) -> None:
        """`timed`: whether a checkpoint says how long training took. In a private run that hints at the number of examples."""
        self.network, self.config, self.folder = network, config, Path(folder)
        self.world, self.record, self.watch = world or World(), record, watch
        self.speed, self.timed = speed or Speed(), timed
        self.validate = validate
        self.progress = progress or (lambda step, steps, numbers: None)
        moving = trained(network)
        self.names = list(moving)
        self.optimizer = torch.optim.AdamW(
            moving.values(), lr=config.learning_rate, weight_decay=config.weight_decay, foreach=True
        )
        self.average = MovingAverage(network, config.ema)
        self.best: dict[str, Tensor] = {}
        self.best_loss: float | None = None
        self.step = 0
        self.seconds = 0.0
        self.metrics = MetricsLog(metrics or self.folder / "metrics.jsonl")

    def resume(self) -> None:
        """Load the folder's checkpoint."""
        state = load_state(self.folder / CHECKPOINT)
        self.network.load_state_dict(state.group("network"))
        for name, value in state.group("average").items():
            self.average.weights[name].copy_(value)
        self.best, self.best_loss = state.group("best"), state.best_loss
        restore_optimizer(self.optimizer, self.names, state.group("optimizer"))
        self.step, self.seconds = state.step, state.seconds
        if self.world.first:
            self.metrics.rewind(self.step)
            if not self.timed:
                self.seconds = max((float(row.get("seconds", 0.0)) for row in self.metrics.read()), default=0.0)

    def save(self) -> None:
        """Write the checkpoint, completely or not at all."""
        if not self.world.first:
            return
        if self.record is not None:
            self.record.flush()
        groups: dict[str, dict[str, Tensor]] = {
            "network": {**dict(self.network.named_parameters())},
            "average": self.average.weights,
            "best": self.best,
        }
        tensors = {f"{group}/{name}": value for group, named in groups.items() for name, value in named.items()}
        tensors |= optimizer_tensors(self.optimizer, self.names)
        seconds = self.seconds if self.timed else 0.0
        save_state(self.folder / CHECKPOINT, State(self.step, seconds, self.best_loss, tensors))

    def weights(self) -> dict[str, Tensor]:
        """The weights that become the model."""
        return self.best if self.config.select == "best" and self.best else self.average.weights

    def run(self, source: GradientSource, until: int | None = None) -> Outcome:
        """Train to the configured number of steps (or to `until`), or until someone asks to stop; the state is on disk."""
        steps, started, saved = self.config.steps if until is None else until, time.monotonic(), time.monotonic()
        earlier = self.seconds
        if self.record is not None:
            self.record.rewind(self.step)
        with interruptible() as asked_to_stop:
            while self.step < steps:
                try:
                    if self.world.any(asked_to_stop()):
                        break
                    numbers = self._step(source, steps)
                except Resumable:  # what was paid for is not lost, if the state still finds room
                    with suppress(UserError, SafetensorError):
                        self.save()
                    raise
                except Ended:
                    steps = self.step
                    break
                self.seconds = earlier + time.monotonic() - started
                self._report(steps, numbers)
                if time.monotonic() - saved > self.speed.checkpoint_seconds:
                    self.save()
                    saved = time.monotonic()
            self.save()
        return Outcome(self.step, self.step >= steps, self.seconds)

    def _report(self, steps: int, numbers: dict[str, float]) -> None:
        if self.world.first:
            if self.step % self.speed.log_every == 0 or self.step == steps:
                self.metrics.write({"step": self.step, **numbers, "seconds": round(self.seconds, 3)})
            self.progress(self.step, steps, numbers)

    def _step(self, source: GradientSource, steps: int) -> dict[str, float]:
        """One gradient, one optimiser step, and validation if it is due."""
        started = time.perf_counter()
        self.network.train()
        rate = self.config.rate(self.step)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        numbers = source(self.step)
        self.optimizer.step()
        self.step += 1
        self.average.update(self.network, self.step)
        if self.record is not None:
            self.record.step(self.step, time.perf_counter() - started)
        if self.watch is not None:
            self.watch(self.step)
        if self.validate and (self.step % self.config.validate_every == 0 or self.step == steps):
            numbers["validation_loss"] = self._validated()
        return numbers

    def _validated(self) -> float:
        """The validation loss of the averaged weights; the best weights are kept."""
        assert self.validate is not None
        current = {name: value.detach().clone() for name, value in self.network.named_parameters()}
        self.network.load_state_dict(self.average.weights)
        self.network.eval()
        loss = self.validate(self.network)
        self.network.load_state_dict(current)
        if self.best_loss is None or loss < self.best_loss:
            self.best_loss = loss
            self.best = {name: value.clone() for name, value in self.average.weights.items()}
        return loss
