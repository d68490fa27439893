"""Private gradients: a Poisson sample, a clipped sum, noise on the sum, a constant divisor.

    gradient = ( Σ_{u in Poisson(q) sample} clip_C( (1/G) Σ_g ∇ℓ_{u,g} ) + N(0, (σC)² I) ) / (q N)

The ledger is paid before any private row is read for the step. An empty sample still gets noise and still makes a step.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tamedit.data.series import Series
from tamedit.diffusion.loss import denoising_loss
from tamedit.diffusion.process import Process
from tamedit.errors import UserError
from tamedit.model.dit import DiffusionTransformer, is_conditioning
from tamedit.privacy.engine import Engine
from tamedit.privacy.ledger import Ledger, affordable_steps
from tamedit.privacy.plan import PrivacyPlan
from tamedit.privacy.request import Privacy
from tamedit.training.distributed import World
from tamedit.training.recipe import RunConfig
from tamedit.training.source import noised_batch
from tamedit.windows.cut import Windows, cut, cut_blocks
from tamedit.windows.examples import Examples
from tamedit.windows.units import Contribution, Layout, contributions

CLEANING_REACH = {"household": 84}  # rows: negative readings are replaced by a centred 7-day average
NOT_PRIVATE = "not-private"  # the folder of what must not leave with a model
LOGGED = f"losses, gradient norms and clipping rates in the folder {NOT_PRIVATE}"
EPSILON_EVERY = 25  # steps between two looks at the ledger for the progress bar


def rows_of_unit(series: Series, unit: str) -> int | None:
    """Rows in a day or a week; None where that is not a whole number or the unit has no fixed length."""
    days = {"day": 1, "week": 7}.get(unit)
    if days is None:
        return None
    rows = days * 86_400 / series.frequency.total_seconds()
    return int(rows) if rows >= 1 and float(rows).is_integer() else None


def week_phase(series: Series) -> np.ndarray:
    """(M,) rows between Monday 00:00 and each meter's first row, on the clock of the stamps."""
    first = series.times[series.offsets[:-1]]
    seconds = first.dayofweek * 86_400 + first.hour * 3600 + first.minute * 60 + first.second
    return np.asarray(seconds / series.frequency.total_seconds(), dtype=np.float64).astype(np.int64)


def private_windows(series: Series, length: int, stride: int, privacy: Privacy) -> Windows:
    """The examples of a private run: blocks that hold whole units where they can, or the paper's overlapping windows."""
    if privacy.layout == "overlapping":
        return cut(series, length, stride)
    if privacy.unit == "series":
        return cut_blocks(series, length, None)
    unit_rows = rows_of_unit(series, privacy.unit)
    if unit_rows is None:
        return cut_blocks(series, length, length)
    block = max(unit_rows, -(-length // unit_rows) * unit_rows)  # whole units, at least a window
    return cut_blocks(series, length, block, align=unit_rows, phase=week_phase(series))


def account_units(
    windows: Windows, series: Series, stride: int, privacy: Privacy, reach: int
) -> tuple[dict[str, Contribution], dict[str, str]]:
    """How many examples each unit touches, and which units cannot be accounted."""
    day = rows_of_unit(series, "day")
    blocks = privacy.layout == "blocks"
    return contributions(
        Layout(
            kind="blocks" if blocks else "overlapping",
            starts=windows.starts,
            length=windows.spans if windows.spans is not None else windows.length,
            offsets=series.offsets,
            steps_per_day=day,
            week_phase=week_phase(series) if day else None,
            gaps="kept",
            stride=None if blocks else stride,
            reach=reach,
        )
    )


def chosen_contribution(unit: str, accounted: dict[str, Contribution], refused: dict[str, str]) -> Contribution:
    if unit not in accounted:
        raise UserError(
            refused.get(unit, f"The unit {unit!r} cannot be accounted here; choose {', '.join(accounted)}.")
        )
    return accounted[unit]


@contextmanager
def private_source(
    network: DiffusionTransformer,
    examples: Examples,
    config: RunConfig,
    folder: Path,
    step: int,
    *,
    world: World,
    not_covered: list[str],
    micro_batch: int | None = None,
) -> Iterator[tuple["PrivateGradients", int]]:
    """The gradient source of a private run that stands at `step`, and the step at which the budget or the plan ends.

    Opens the ledger of the folder (a new segment with a fresh stream of noise); every step is paid there first.
    """
    privacy, training = config.privacy, config.training
    assert privacy is not None
    windows = examples.windows
    reach = CLEANING_REACH.get(config.source, 0)
    accounted, refused = account_units(windows, windows.series, config.stride, privacy, reach)
    contribution = chosen_contribution(privacy.unit, accounted, refused)
    plan = privacy.plan(len(examples), training.batch_size, training.steps, contribution, config.seed)
    if not world.first:
        yield (
            PrivateGradients(network, examples, config.process, plan, privacy, None, until=0, world=world),
            world.same_number(0),
        )
        return
    described = f"{config.source}: {len(windows.series)} rows, {len(windows.series.meters)} meters"
    facts = {"not_covered": not_covered}
    with Ledger.open(folder, plan, accounted, refused=refused, data=described, facts=facts) as ledger:
        left = training.steps - step
        if privacy.epsilon is not None:
            left = affordable_steps(ledger.record, plan, privacy.epsilon, most=left)
        until = world.same_number(step + left)
        yield (
            PrivateGradients(
                network,
                examples,
                config.process,
                plan,
                privacy,
                ledger,
                until=until,
                world=world,
                micro_batch=micro_batch,
            ),
            until,
        )


class PrivateGradients:
    """Leaves the noisy, averaged gradient of a step in the network's parameters."""

    def __init__(
        self,
        network: DiffusionTransformer,
        examples: Examples,
        process: Process,
        plan: PrivacyPlan,
        privacy: Privacy,
        ledger: Ledger | None,
        *,
        until: int,
        world: World | None = None,
        micro_batch: int | None = None,
    ) -> None:
        self.network, self.examples, self.process, self.plan = network, examples, process, plan
        self.ledger, self.until, self.world = ledger, until, world or World()
        self.device = next(network.parameters()).device
        self.sampler = plan.sampler(secure=privacy.secure)
        self.noise = plan.noise(secure=privacy.secure)
        self.engine = Engine(
            network,
            clip=plan.clip,
            mode=privacy.clipping,
            groups=lambda name: "cond" if is_conditioning(name) else "other",
            micro_batch=micro_batch,
        )
        self.epsilon = float("nan")

    def loss_function(self) -> Callable[[Any, Any], torch.Tensor]:
        """The losses of rows of a batch, in the form that the engine wants."""

        def losses(network: Any, rows: Any) -> torch.Tensor:
            batch, time, epsilon = rows
            return denoising_loss(network, batch, time, epsilon, self.process)

        return losses

    def __call__(self, step: int) -> dict[str, float]:
        if self.ledger is not None:
            self.ledger.take(self.until - step)
        drawn = self.world.same_indices(self.sampler.sample(step))
        mine = self.world.share(drawn)
        batch = tuple(
            part.to(self.device) for part in noised_batch(self.examples, mine, step, self.process, self.plan.draws)
        )
        result = self.engine(self.loss_function(), batch, units=len(mine), draws=self.plan.draws)
        sums = list(result.sums.values())
        self.world.add_up(sums)
        if self.world.first:
            self.noise.add_(sums, step=step)
        self.world.same_tensors(sums)
        for name, parameter in self.network.named_parameters():
            parameter.grad = result.sums[name].div_(self.plan.divisor)
        return self._numbers(step, result.losses, result.norms)

    def _numbers(self, step: int, losses: torch.Tensor, norms: torch.Tensor) -> dict[str, float]:
        """What is logged: none of it is private, except ε, which is no secret."""
        if self.ledger is not None and (step % EPSILON_EVERY == 0 or step + 1 == self.until):
            self.epsilon = self.ledger.record.epsilon(self.plan.unit, self.plan.delta, with_rdp=False).value
        seen = len(norms) > 0
        return {
            "loss": float(losses.mean()) if seen else float("nan"),
            "clipped": float((norms > self.plan.clip).float().mean()) if seen else float("nan"),
            "epsilon": self.epsilon,
        }
