"""A student is trained: the teacher's network, from its weights, on ends of the teacher's paths (`diffusion.distillation`).

Windows are public or simulated. The teacher carries the starting noise of some hundred windows at a time; the student sees each
of these paths a few times, with windows that hide about as much next to each other, and then come fresh ones.
"""

import tempfile
from copy import deepcopy
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from tamedit.diffusion.angle import angle_steps, straight_steps
from tamedit.diffusion.distillation import Paths, carried, end_loss, unknown
from tamedit.diffusion.process import Process
from tamedit.model.dit import DiffusionTransformer
from tamedit.privacy.engine.workspace import keep_freed_memory
from tamedit.runs.config import Speed, TrainingConfig
from tamedit.streams import example_keys, normals, step_generator
from tamedit.training.loop import Progress, Trainer
from tamedit.windows.examples import Examples

CALLS = 12  # of the teacher: its ends are then exact to 1 % of their spread
FRESH, VISITS, PART = (
    512,
    4,
    32,
)  # paths at a time, how often each is seen, and how many go through the network together
BATCH, RATE, AVERAGE = 64, 1e-3, 0.995
HELD_OUT = 128  # fresh paths on which the student is measured in the end


class Stopped(Exception):
    """Someone asked to stop; nothing was kept."""


class EndGradients:
    """The gradient of the mean loss of a batch of paths; puts it where a `Trainer` wants it."""

    def __init__(
        self, teacher: DiffusionTransformer, student: DiffusionTransformer, examples: Examples, process: Process
    ) -> None:
        """`process`: the student's, which has its calls."""
        self.teacher, self.student, self.examples = teacher, student, examples
        assert process.calls is not None
        self.steps = straight_steps(process, process.calls)
        self.fine = angle_steps(process.model_copy(update={"calls": None}), CALLS)
        self.number, self.paths = -1, None  # type: int, Paths | None
        keep_freed_memory()

    @torch.no_grad()
    def made(self, number: int, count: int) -> Paths:
        """Fresh paths: a function of the seed and the number."""
        seed, device = self.examples.seed, next(self.teacher.parameters()).device
        chosen = step_generator(seed, "contexts", number).integers(0, len(self.examples), count)
        context = self.examples.batch(chosen, number).context
        context = context[unknown(context).amax(2).sum(1).argsort(stable=True)]  # `training.source.by_work`
        shape = context.values.shape
        noise = normals(example_keys(seed, "distillation", number, np.arange(count)), shape[1] * shape[2]).view(shape)
        context, noise = context.to(device), noise.to(device)
        parts = [slice(first, first + PART) for first in range(0, count, PART)]
        ends = [carried(self.teacher, context[part], noise[part], self.fine) for part in parts]
        return Paths(context, noise, torch.cat(ends))

    def batch(self, step: int) -> Paths:
        """The paths of a step."""
        each = FRESH // BATCH  # steps that see every path once
        visit, place = divmod(step, each)
        if self.paths is None or self.number != visit // VISITS:
            self.number = visit // VISITS
            self.paths = self.made(self.number, FRESH)
        order = step_generator(self.examples.seed, "batches", visit).permutation(FRESH)
        return self.paths[torch.from_numpy(np.sort(order[place * BATCH : (place + 1) * BATCH]))]

    def __call__(self, step: int) -> dict[str, float]:
        self.student.zero_grad(set_to_none=False)
        paths, total = self.batch(step), 0.0
        for first in range(0, len(paths), PART):
            loss = end_loss(self.student, paths[slice(first, first + PART)], self.steps).sum() / len(paths)
            loss.backward()
            total += float(loss.detach())
        torch.nn.utils.clip_grad_norm_(self.student.parameters(), 1.0)
        return {"from_the_teacher": total**0.5}

    @torch.no_grad()
    def apart(self, network: DiffusionTransformer) -> float:
        """The root mean square distance of a network's ends from the teacher's, in z, on windows and noise that are new."""
        paths = self.made(2**32, HELD_OUT)
        parts = [paths[slice(first, first + PART)] for first in range(0, HELD_OUT, PART)]
        return float(torch.cat([end_loss(network, part, self.steps) for part in parts]).mean().sqrt())


def student_process(process: Process, calls: int) -> Process:
    """The teacher's process, with the times of the student's calls."""
    return process.model_copy(update={"calls": tuple(angle_steps(process, calls).times.tolist())})


def learn(
    teacher: DiffusionTransformer,
    examples: Examples,
    process: Process,
    steps: int,
    progress: Progress | None = None,
) -> tuple[dict[str, Tensor], float, float]:
    """The weights of a student with this process; how far its ends are from the teacher's, and those of the teacher itself.

    Raises `Stopped` on Ctrl-C.
    """
    student = deepcopy(teacher).requires_grad_(True)
    source = EndGradients(teacher, student, examples, process)
    untrained = source.apart(teacher)
    config = TrainingConfig(
        steps=steps,
        batch_size=BATCH,
        learning_rate=RATE,
        weight_decay=0.0,
        warmup=min(50, max(steps // 10, 1)),
        decay="cosine",
        ema=AVERAGE,
        validate_every=steps,
    )
    with tempfile.TemporaryDirectory(prefix="tamedit-") as aside:
        trainer = Trainer(
            student, config, Path(aside), speed=Speed(checkpoint_seconds=1e9), progress=progress, timed=False
        )
        if not trainer.run(source).finished:
            raise Stopped
        student.load_state_dict(trainer.weights())
    return trainer.weights(), source.apart(student.eval()), untrained
