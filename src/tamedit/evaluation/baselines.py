"""Guesses that cost nothing: no training, no privacy, the window's own observed cells alone.

A useful model beats them all. `free_probabilistic` is the free fill with a Gaussian of the window's own scale around it,
which is what the anchored network samples before any training.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tamedit.data.scaling import Scaling
from tamedit.streams import example_keys, normals
from tamedit.windows.anchor import free_fill, linear_interpolation, seasonal_mean, seasonal_naive

Fill = Callable[[Float[Tensor, "B L K"], Bool[Tensor, "B L K"], int], Float[Tensor, "B L K"]]


def _else_line(season: Callable[..., tuple[Tensor, Tensor]]) -> Fill:
    """Where no cell of the same phase is observed, the straight line."""

    def fill(values: Tensor, observed: Tensor, period: int) -> Tensor:
        filled, known = season(values, observed, period)
        return torch.where(observed, values, torch.where(known, filled, linear_interpolation(values, observed)))

    return fill


BASELINES: dict[str, Fill] = {
    "linear_interpolation": lambda values, observed, period: linear_interpolation(values, observed),
    "seasonal_naive": _else_line(seasonal_naive),
    "seasonal_mean": _else_line(seasonal_mean),
    "free_fill": free_fill,
}


def own_units(scaling: Scaling) -> Scaling:
    """The window's own scale without any floor: the same bar for every model, whatever floor it was trained with.

    The reference scale stays, for windows in which nothing is observed.
    """
    return replace(scaling, mode="instance", floor=(0.0,) * len(scaling.floor), relative_floor=0.0)


def free_probabilistic(
    fill: Float[Tensor, "B L K"],
    scale: Float[Tensor, "B 1 K"],
    observed: Bool[Tensor, "B L K"],
    samples: int,
    seed: int,
) -> Float[Tensor, "B S L K"]:
    """The free fill plus Gaussian draws of the window's own scale at every unobserved cell; antithetic if S is even."""
    batch, length, channels = fill.shape
    drawn = samples // 2 if samples % 2 == 0 else samples
    keys = example_keys(seed, "free baseline", 0, np.arange(batch, dtype=np.int64))
    noise = normals(keys, drawn * length * channels).view(batch, drawn, length, channels)
    spread = torch.where(observed, 0.0, scale.expand_as(fill))[:, None]
    return fill[:, None] + (noise if drawn == samples else torch.cat([noise, -noise], dim=1)) * spread
