"""Gradients without privacy: the mean over a batch of windows drawn at every step."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch

from tamedit.diffusion.loss import denoising_loss, draw_noise
from tamedit.diffusion.process import Process
from tamedit.model.dit import DiffusionTransformer
from tamedit.privacy.engine import ClippedSum, Engine
from tamedit.privacy.engine.workspace import keep_freed_memory
from tamedit.streams import example_keys, step_generator
from tamedit.training.distributed import World
from tamedit.training.recorder import Recorder, path_of
from tamedit.windows.batch import Batch
from tamedit.windows.examples import Examples

PART = 24  # examples of a plain step at once on a CPU: cache, and windows that are alike


def noised_batch(
    examples: Examples,
    indices: np.ndarray,
    step: int,
    process: Process,
    draws: int = 1,
    device: torch.device | str = "cpu",
) -> tuple[Batch, torch.Tensor, torch.Tensor]:
    """The batch of some examples at a step with its diffusion times and noise: `draws` rows per example."""
    batch = examples.batch(indices, step, draws).to(device)
    keys = example_keys(examples.seed, "diffusion", step, examples.names(indices, draws))
    time, epsilon = draw_noise(keys, batch, process)
    return batch, time.to(device), epsilon.to(device)


Noised = tuple[Batch, torch.Tensor, torch.Tensor]


def by_work(noised: Noised, draws: int = 1) -> Noised:
    """The same examples, those with few unknown steps first; the draws of an example stay together.

    A network computes its last block for as many steps as the window with most unknown ones has (`model/dit.py`), so windows
    that are alike belong into one part of a batch. No sum over the batch changes, apart from rounding.
    """
    context = noised[0].context
    unknown = (context.observed < context.channels[:, None, :]).any(-1).sum(1).view(-1, draws)  # (U, G)
    order = unknown.amax(1).argsort(stable=True)
    rows = (order[:, None] * draws + torch.arange(draws, device=order.device)).flatten()
    return noised[0][rows], noised[1][rows], noised[2][rows]


def engine_losses(process: Process) -> Callable[[Any, Any], torch.Tensor]:
    """The losses of rows of a batch, in the form that the engine needs."""

    def losses(network: Any, rows: Any) -> torch.Tensor:
        batch, time, epsilon = rows
        return denoising_loss(network, batch, time, epsilon, process)

    return losses


def example_losses(
    network: torch.nn.Module, examples: Examples, indices: np.ndarray, step: int, process: Process, device: torch.device
) -> torch.Tensor:
    """The losses of some windows at a step, each a function of its own window and stream. Shape (B,)."""
    return noised_losses(network, noised_batch(examples, indices, step, process, device=device), process)


def noised_losses(network: torch.nn.Module, noised: Noised, process: Process) -> torch.Tensor:
    """The losses of rows of a noised batch. Shape (B,)."""
    batch, time, epsilon = noised
    # bfloat16 where the device gains from it; on a CPU it does not.
    precision = torch.autocast("cuda", torch.bfloat16) if time.device.type == "cuda" else nullcontext()
    with precision:
        return denoising_loss(network, batch, time, epsilon, process)


class PlainGradients:
    """The ordinary gradient of the mean loss."""

    def __init__(
        self,
        network: DiffusionTransformer,
        examples: Examples,
        process: Process,
        batch_size: int,
        world: World | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        self.network, self.examples, self.process = network, examples, process
        self.batch_size, self.world, self.recorder = batch_size, world or World(), recorder
        self.device = next(network.parameters()).device
        self.engine = Engine(network, groups=path_of, keep_memory=False) if recorder and recorder.every else None
        keep_freed_memory()  # for the whole process, as the private engine asks for

    def indices(self, step: int) -> np.ndarray:
        """Windows of this step: drawn with equal chances, a function of the seed and the step."""
        generator = step_generator(self.examples.seed, "batches", step)
        return generator.integers(0, len(self.examples), self.batch_size)

    def __call__(self, step: int) -> dict[str, float]:
        self.network.zero_grad(set_to_none=False)
        mine = self.world.share(self.indices(step))
        batch = noised_batch(self.examples, mine, step, self.process, device=self.device)
        losses = self._backward(by_work(batch) if self.device.type == "cpu" else batch)
        self.world.add_up([parameter.grad for parameter in self.network.parameters() if parameter.grad is not None])
        if self.recorder is not None and self.recorder.due(step):
            with self.recorder.aside():
                self.recorder.examples(step, self.look(step, mine))
        return {"loss": float(losses.mean())}

    def _backward(self, noised: Noised) -> torch.Tensor:
        """Adds the gradient of the batch, part after part; the losses. A GPU takes the batch as a whole."""
        count = len(noised[1])
        at_once = PART if self.device.type == "cpu" else max(count, 1)
        losses = []
        for first in range(0, count, at_once):
            part = slice(first, first + at_once)
            each = noised_losses(self.network, (noised[0][part], noised[1][part], noised[2][part]), self.process)
            (each.sum() / self.batch_size).backward()
            losses.append(each.detach())
        return torch.cat(losses) if losses else torch.empty(0)

    def look(self, step: int, indices: np.ndarray) -> ClippedSum:
        """The gradient of each example, for the record; the training gradient does not change."""
        assert self.engine is not None
        batch = noised_batch(self.examples, indices, step, self.process, device=self.device)
        return self.engine(engine_losses(self.process), batch, units=len(indices))


@torch.no_grad()
def validation_loss(
    network: torch.nn.Module, examples: Examples, process: Process, at_once: int = 256, most: int = 1024
) -> float:
    """The mean loss over validation windows, with the same masks and noise each time it is asked."""
    device = next(network.parameters()).device
    chosen = np.unique(np.linspace(0, len(examples) - 1, min(most, len(examples))).astype(np.int64))
    parts = [chosen[first : first + at_once] for first in range(0, len(chosen), at_once)]
    losses = [example_losses(network, examples, part, 0, process, device) for part in parts]
    return float(torch.cat(losses).mean())
