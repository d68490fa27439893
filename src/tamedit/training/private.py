"""Private gradients: a Poisson sample, a clipped sum, noise on the sum, a constant divisor.

    gradient = ( Σ_{u in Poisson(q) sample} clip_C( (1/G) Σ_g ∇ℓ_{u,g} ) + N(0, (σC)² I) ) / (q N)

The ledger is paid before any private row is read for the step. An empty sample still gets noise and still makes a step.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import ArrayLike

from tamedit.data.series import Series
from tamedit.diffusion.process import Process
from tamedit.errors import UserError
from tamedit.model.dit import DiffusionTransformer
from tamedit.model.tuning import trained
from tamedit.privacy.accountant import Mechanism
from tamedit.privacy.engine import Engine
from tamedit.privacy.ledger import Ledger, affordable_steps
from tamedit.privacy.plan import PrivacyPlan
from tamedit.privacy.request import Privacy
from tamedit.privacy.statistics import private_standardisation
from tamedit.training.distributed import World
from tamedit.training.recipe import RunConfig
from tamedit.training.recorder import Recorder, path_of
from tamedit.training.source import engine_losses, noised_batch
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


def private_windows(series: Series, length: int, stride: int, privacy: Privacy, least_present: float = 0.5) -> Windows:
    """The examples of a private run: blocks that hold whole units where they can, or the paper's overlapping windows."""
    if privacy.layout == "overlapping":
        return cut(series, length, stride, least_present)
    if privacy.unit == "series":
        return cut_blocks(series, length, None, least_present=least_present)
    unit_rows = rows_of_unit(series, privacy.unit)
    if unit_rows is None:
        return cut_blocks(series, length, length, least_present=least_present)
    block = max(unit_rows, -(-length // unit_rows) * unit_rows)  # whole units, at least a window
    return cut_blocks(series, length, block, align=unit_rows, phase=week_phase(series), least_present=least_present)


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


@dataclass(frozen=True)
class Budget:
    """The plan of a private run and, in the first process, the open ledger that pays for it."""

    plan: PrivacyPlan
    privacy: Privacy
    ledger: Ledger | None
    world: World

    def until(self, step: int) -> int:
        """The step at which the plan or the budget ends, for a run that stands at `step`."""
        left = self.plan.steps - step
        if self.ledger is not None and self.privacy.epsilon is not None:
            left = affordable_steps(self.ledger.record, self.plan, self.privacy.epsilon, most=left)
        return self.world.same_number(step + left)

    def release(
        self, examples: np.ndarray, lower: ArrayLike, upper: ArrayLike, what: str
    ) -> tuple[list[float], list[float]]:
        """A private level and scale a channel of (N, values, K), charged to the ledger; the same in every process."""
        answer = np.zeros((2, np.size(lower)))
        if self.ledger is not None:
            found = private_standardisation(
                examples, lower, upper, self.privacy.statistics_noise, self.ledger, what=what
            )
            answer = np.stack([found.level, found.scale])
        level, scale = self.world.same_indices(answer).tolist()
        return level, scale


def whole_examples(windows: Windows) -> np.ndarray:
    """(N, longest, K) every row of every example, NaN behind the shorter ones."""
    spans = windows.spans if windows.spans is not None else np.full(len(windows), windows.length)
    rows = windows.starts[:, None] + np.arange(spans.max())
    inside = np.arange(spans.max()) < spans[:, None]
    values = windows.series.values[np.minimum(rows, len(windows.series) - 1)].astype(np.float64)
    return np.where(inside[:, :, None], values, np.nan)


@contextmanager
def open_budget(
    windows: Windows, config: RunConfig, folder: Path, *, world: World, not_covered: Sequence[str], statistics: int = 0
) -> Iterator[Budget]:
    """Open the ledger of the folder: a new segment, and with it a fresh stream of noise.

    `statistics` releases besides training are planned, and paid from the same budget.
    """
    privacy, training = config.privacy, config.training
    assert privacy is not None
    reach = CLEANING_REACH.get(config.source, 0)
    # Which examples were dropped for missing readings is private: units are counted on the layout with all of them.
    layout = private_windows(windows.series, config.window, config.stride, privacy, least_present=0.0)
    accounted, refused = account_units(layout, windows.series, config.stride, privacy, reach)
    contribution = chosen_contribution(privacy.unit, accounted, refused)
    besides = [Mechanism(1.0, privacy.statistics_noise, statistics)] if statistics else []
    plan = privacy.plan(len(windows), training.batch_size, training.steps, contribution, config.seed, besides)
    if not world.first:
        yield Budget(plan, privacy, None, world)
        return
    described = f"{config.source}: {len(windows.series)} rows, {len(windows.series.meters)} meters"
    facts = {"not_covered": list(not_covered)}
    with Ledger.open(folder, plan, accounted, refused=refused, data=described, facts=facts) as ledger:
        yield Budget(plan, privacy, ledger, world)


class PrivateGradients:
    """Leaves the noisy, averaged gradient of a step in the network's parameters."""

    def __init__(
        self,
        network: DiffusionTransformer,
        examples: Examples,
        process: Process,
        budget: Budget,
        until: int,
        micro_batch: int | None = None,
        recorder: Recorder | None = None,
    ) -> None:
        plan, privacy = budget.plan, budget.privacy
        self.network, self.examples, self.process, self.plan = network, examples, process, plan
        self.ledger, self.until, self.world = budget.ledger, until, budget.world
        self.device = next(network.parameters()).device
        self.sampler = plan.sampler(secure=privacy.secure)
        self.noise = plan.noise(secure=privacy.secure)
        self.engine = Engine(
            network,
            clip=plan.clip,
            mode=privacy.clipping,
            groups=path_of,
            micro_batch=micro_batch,
        )
        self.epsilon, self.recorder = float("nan"), recorder

    def __call__(self, step: int) -> dict[str, float]:
        if self.ledger is not None:
            self.ledger.take(self.until - step)
        drawn = self.world.same_indices(self.sampler.sample(step))
        mine = self.world.share(drawn)
        batch = tuple(
            part.to(self.device) for part in noised_batch(self.examples, mine, step, self.process, self.plan.draws)
        )
        result = self.engine(engine_losses(self.process), batch, units=len(mine), draws=self.plan.draws)
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
