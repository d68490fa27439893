"""The noise process: 1000 steps, β linear from 1e-4 to 0.02.

    x_t = √ᾱ_t x_0 + √(1 − ᾱ_t) ε,       ᾱ_t = Π_{s ≤ t} (1 − β_s)

The network predicts ε (the paper's choice) or the velocity v = √ᾱ_t ε − √(1 − ᾱ_t) x_0. For data of unit variance and no
structure the best velocity is 0, which is what a network with a zero-initialised output says before any training.
"""

from functools import cached_property
from typing import Literal

import torch
from jaxtyping import Float, Int64
from pydantic import NonNegativeInt, PositiveFloat, PositiveInt
from torch import Tensor

from tamedit.choices import Frozen

Prediction = Literal["epsilon", "v"]


class Process(Frozen):
    """The schedule and what the network predicts."""

    steps: PositiveInt = 1000
    beta_first: PositiveFloat = 1e-4
    beta_last: PositiveFloat = 0.02
    prediction: Prediction = "v"
    calls: tuple[NonNegativeInt, ...] | None = None  # a distilled student: the time steps it is asked at, noise first

    @cached_property
    def signal(self) -> Float[Tensor, " T"]:
        """√ᾱ_t for t = 0 … steps − 1."""
        beta = torch.linspace(self.beta_first, self.beta_last, self.steps, dtype=torch.float64)
        return torch.cumprod(1 - beta, 0).sqrt().float()

    @cached_property
    def noise(self) -> Float[Tensor, " T"]:
        """√(1 − ᾱ_t)."""
        return (1 - self.signal.double().square()).sqrt().float()

    def time(self, uniform: Float[Tensor, " B"]) -> Int64[Tensor, " B"]:
        """Steps, all equally likely, from numbers that are uniform in [0, 1]."""
        return (uniform * self.steps).long().clamp(max=self.steps - 1)

    def diffuse(
        self, clean: Float[Tensor, "B L K"], epsilon: Float[Tensor, "B L K"], time: Int64[Tensor, " B"]
    ) -> tuple[Float[Tensor, "B L K"], Float[Tensor, "B L K"]]:
        """x_t, and what the network should answer to it."""
        signal = self.signal.to(clean)[time][:, None, None]
        noise = self.noise.to(clean)[time][:, None, None]
        noised = signal * clean + noise * epsilon
        wanted = epsilon if self.prediction == "epsilon" else signal * epsilon - noise * clean
        return noised, wanted
