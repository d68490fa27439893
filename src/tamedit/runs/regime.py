"""Where a private run stands, in numbers without units. Runs of two sizes compare only where these agree.

    noise over signal   σ √P / B          length of a step's noise over the longest sum that B clipped gradients can have
    walk                rate √T √width    how far noise alone carries what a layer says
    clipping rate       share of the gradients that are longer than C (measured while training, so not private)
    warm-up, averaging  as shares of the T steps

P is the number of trained parameters. AdamW divides a gradient by its own size, so a coordinate that sees mostly noise moves by
about the learning rate per step whatever σ is: after T steps by rate √T at random, and a layer that adds up `width` such
weights by √width times that. Far enough, the modulation of a network without bounds is noise, and its samples run off. With the
paper's form this was seen from COLLAPSE_WALK and COLLAPSE_NOISE on: on the simulator there, on a real household at twice as much
(paper/docs/reproduction.md has the runs).
"""

import math
from functools import lru_cache
from pathlib import Path

import torch

from tamedit.choices import Frozen
from tamedit.model.dit import DiffusionTransformer
from tamedit.model.tuning import Tuning, prepare, trained
from tamedit.model.zoo import NetworkConfig
from tamedit.privacy.entries import FILE_NAME as LEDGER
from tamedit.privacy.entries import read
from tamedit.runs.config import RunConfig, TrainingConfig

COLLAPSE_WALK, COLLAPSE_NOISE = 1.5, 1.5


class Regime(Frozen):
    """The numbers of one private run."""

    noise_over_signal: float
    walk: float
    warmup_share: float
    averaging_share: float

    @property
    def collapses(self) -> bool:
        """Whether networks without bounds were seen to collapse here."""
        return self.walk >= COLLAPSE_WALK and self.noise_over_signal >= COLLAPSE_NOISE

    def numbers(self) -> str:
        """The numbers in words."""
        averaging = f"{self.averaging_share:.0%}" if self.averaging_share < 1 else "all"
        return (
            f"noise over signal {self.noise_over_signal:.2g}, walk {self.walk:.2g}, warm-up {self.warmup_share:.0%} and "
            f"averaging {averaging} of the steps"
        )

    def advice(self) -> str:
        """What follows for the bounds."""
        if self.collapses:
            return (
                f"here noise may carry the modulation away (walk {COLLAPSE_WALK:g} or more, noise over signal "
                f"{COLLAPSE_NOISE:g} or more), and networks without bounds were seen to collapse: use bounds"
            )
        return "no network without bounds was seen to collapse here"


@lru_cache(maxsize=64)
def parameter_count(network: NetworkConfig, tuning: Tuning = "all", rank: int = 4) -> int:
    """P: how many parameters of a network are trained. Nothing is built."""
    with torch.device("meta"):
        made = DiffusionTransformer(network)
        prepare(made, tuning, rank)
    return sum(one.numel() for one in trained(made).values())


def regime_of(config: RunConfig, noise_multiplier: float) -> Regime:
    """The regime of a private run at the noise that its budget asked for."""
    chosen = () if config.start is None else (config.start.tuning, config.start.rank)
    return regime(parameter_count(config.network, *chosen), config.network.width, noise_multiplier, config.training)


def regime_of_run(folder: Path, config: RunConfig) -> Regime | None:
    """The regime of the private run in a folder, from its plan in the ledger; None without one."""
    if config.privacy is None or not (Path(folder) / LEDGER).is_file():
        return None
    return regime_of(config, read(folder).segments[-1].plan.noise_multiplier)


def regime(parameters: int, width: int, noise_multiplier: float, training: TrainingConfig) -> Regime:
    """The regime of a run with P = `parameters` trained parameters."""
    return Regime(
        noise_over_signal=noise_over_signal(noise_multiplier, parameters, training.batch_size),
        walk=walk(training.learning_rate, training.steps, width),
        warmup_share=training.warmup / training.steps,
        averaging_share=1 / ((1 - training.ema) * training.steps),
    )


def noise_over_signal(noise_multiplier: float, parameters: int, batch_size: int) -> float:
    """σ √P / B."""
    return noise_multiplier * math.sqrt(parameters) / batch_size


def walk(learning_rate: float, steps: int, width: int) -> float:
    """rate √T √width."""
    return learning_rate * math.sqrt(steps * width)
