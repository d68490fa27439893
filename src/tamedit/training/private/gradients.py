"""Private gradients: a Poisson sample, a clipped sum, noise on the sum, a constant divisor.

    gradient = ( Σ_{u in Poisson(q) sample} clip_C( (1/G) Σ_g ∇ℓ_{u,g} ) + N(0, (σC)² I) ) / (q N)

Each step is charged to the ledger before any private row is read for it. An empty sample still gets noise and is still a step.
"""

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Self

import torch

from tamedit.diffusion.process import Process
from tamedit.model.dit import DiffusionTransformer
from tamedit.model.tuning import trained
from tamedit.privacy.engine import Engine
from tamedit.privacy.engine.backends import LossFunction
from tamedit.privacy.ledger import BudgetEnded
from tamedit.runs.folder import NOT_PRIVATE
from tamedit.training.loop import Ended
from tamedit.training.private.budget import Budget
from tamedit.training.recorder import Recorder, path_of
from tamedit.training.source import by_work, engine_losses, noised_batch
from tamedit.windows.examples import Examples

LOGGED = f"losses, gradient norms and clipping rates in the folder {NOT_PRIVATE}"
EPSILON_EVERY, UPDATES = 100, 20  # ε in the progress bar: so many steps between two updates at least, so many at most


def steps_between_updates(steps: int) -> int:
    """How many steps show the same ε: computing it takes less than a thousandth of training (`benchmarks/accountant.py`)."""
    return max(EPSILON_EVERY, math.ceil(steps / UPDATES))


@contextmanager
def opened(
    network: DiffusionTransformer,
    process: Process,
    ledger: AbstractContextManager[Budget],
    there: int,
    recorder: Recorder | None = None,
) -> Iterator["PrivateGradients"]:
    """The whole mechanism of a private run (engine, plan, sampler, noise, ledger), before any reading reaches it.

    `there`: how many examples there really are, which the plan need not know.
    """
    losses = engine_losses(process)
    with ledger as budget:
        yield PrivateGradients(network, process, losses, budget, there, recorder)


class PrivateGradients:
    """Puts the noisy, averaged gradient of a step into the network's parameters."""

    examples: Examples
    until: int

    def __init__(
        self,
        network: DiffusionTransformer,
        process: Process,
        losses: LossFunction,
        budget: Budget,
        there: int,
        recorder: Recorder | None = None,
    ) -> None:
        plan, privacy = budget.plan, budget.privacy
        self.network, self.process, self.losses, self.budget, self.plan = network, process, losses, budget, plan
        self.ledger, self.world = budget.ledger, budget.world
        self.device = next(network.parameters()).device
        self.sampler, self.noise = plan.sampler(examples=there), plan.noise()
        self.engine = Engine(network, clip=plan.clip, mode=privacy.clipping, groups=path_of)
        self.epsilon, self.recorder = float("nan"), recorder

    def over(self, examples: Examples, until: int) -> Self:
        """What to draw from, and the step at which training ends: known once the budget has paid for every statistic."""
        self.examples, self.until = examples, until
        return self

    def __call__(self, step: int) -> dict[str, float]:
        self._pay(step)
        drawn = self.world.same_indices(self.sampler.sample(step))
        mine = self.world.share(drawn)
        batch = by_work(
            noised_batch(self.examples, mine, step, self.process, self.plan.draws, self.device), self.plan.draws
        )
        result = self.engine(self.losses, batch, units=len(mine), draws=self.plan.draws)
        if self.recorder is not None and self.recorder.due(step):
            self.recorder.examples(step, result)
        sums = list(result.sums.values())
        self.world.add_up(sums)
        if self.world.first:
            self.noise.add_(sums, step=step)
        self.world.same_tensors(sums)
        for name, parameter in trained(self.network).items():
            parameter.grad = result.sums[name].div_(self.plan.divisor)
        return self._numbers(step, result.losses, result.norms)

    def _pay(self, step: int) -> None:
        """Charge the step; the run ends here if other runs on the same data have spent the rest of the budget."""
        paid = True
        if self.ledger is not None:
            try:
                self.ledger.take(self.until - step)
            except BudgetEnded:
                if step == 0:
                    raise
                paid = False
        if not self.world.same_number(paid):
            raise Ended

    def _numbers(self, step: int, losses: torch.Tensor, norms: torch.Tensor) -> dict[str, float]:
        """What is logged: none of it is private, except ε, which is no secret."""
        if self.ledger is not None and (
            step % steps_between_updates(self.until) == 0 or step + 1 == self.until or math.isnan(self.epsilon)
        ):
            self.epsilon = self.ledger.record.epsilon(self.plan.unit, self.plan.delta, with_rdp=False).value
        seen = len(norms) > 0
        numbers = {"loss": float(losses.mean()) if seen else float("nan"), "epsilon": self.epsilon}
        if self.recorder is not None and self.recorder.every:
            numbers["clipped"] = float((norms > self.plan.clip).float().mean()) if seen else float("nan")
        return numbers
