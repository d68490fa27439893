"""Where a private run stands, in numbers without units. Runs of two sizes compare only where these agree.

    noise over signal   σ √P / B          length of a step's noise over the longest sum that B clipped gradients can have
    walk                rate √T √width    how far noise alone carries what a layer says
    clipping rate       share of the gradients that are longer than C (measured while training, so not private)
    warm-up, averaging  as shares of the T steps

P is the number of trained parameters. AdamW divides a gradient by its own size, so a coordinate that sees mostly noise moves by
about the learning rate per step whatever σ is: after T steps by rate √T at random, and a layer that adds up `width` such
weights by √width times that.
"""

import math

from pydantic import BaseModel, ConfigDict

from tamedit.training.config import TrainingConfig


class Regime(BaseModel):
    """The numbers of one private run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    noise_over_signal: float
    walk: float
    warmup_share: float
    averaging_share: float


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
