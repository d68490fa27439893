"""Training-free baselines ("free guesses"): no training, no privacy cost, only the window's own observed cells.

A useful model beats them all. Three are probabilistic. `free_probabilistic` is the free fill with a Gaussian of the window's own
scale around it, which is what the anchored network samples before any training. `seasonal_draws` assumes no shape: it
draws from what the window itself shows around the same time of day. For skewed loads it is harder to beat.
`free_distribution` (`windows/free_distribution.py`) is made of both ideas, with shares that each window finds for itself. It is
the bar: nothing may be called useful that does not beat it.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tamedit.data.scaling import Scaling
from tamedit.streams import example_keys, normals, uniforms
from tamedit.windows.anchor import free_fill, linear_interpolation, seasonal_mean, seasonal_naive
from tamedit.windows.free_distribution import DEFAULT, Constants, free_distribution

BAR = "free_distribution"  # the free guess that a model has to beat
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
    """The window's own scale without any floor: the same baseline for every model, with any floor in training.

    The reference scale stays, for windows in which nothing is observed.
    """
    none = (0.0,) * len(scaling.floor)
    return replace(scaling, mode="instance", floor=none, relative_floor=none)


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


def distribution_draws(
    values: Float[Tensor, "B L K"],
    observed: Bool[Tensor, "B L K"],
    units: tuple[Float[Tensor, "B 1 K"], Float[Tensor, "B 1 K"]],
    period: int,
    samples: int,
    seed: int,
    constants: Constants = DEFAULT,
) -> Float[Tensor, "B S L K"]:
    """Every unobserved cell is drawn from its free distribution, independently of the others. `units`: level and scale."""
    batch, length, channels = values.shape
    keys = example_keys(seed, "free distribution", 0, np.arange(batch, dtype=np.int64))
    z = normals(keys, samples * length * channels).view(batch, samples, length, channels)
    drawn = free_distribution(values, observed, period, *units, constants).from_z(z)
    return torch.where(observed[:, None], values[:, None], drawn)


def seasonal_draws(
    values: Float[Tensor, "B L K"],
    observed: Bool[Tensor, "B L K"],
    fill: Float[Tensor, "B L K"],
    period: int,
    samples: int,
    seed: int,
) -> Float[Tensor, "B S L K"]:
    """Every unobserved cell is drawn from the window's observed cells of the same phase and its two neighbours, equally likely.

    Where there is none, the free fill is used. Cells are drawn independently of each other.
    """
    batch, length, channels = values.shape
    keys = example_keys(seed, "seasonal draws", 0, np.arange(batch, dtype=np.int64))
    ranks = uniforms(keys, samples * length * channels).view(batch, samples, length, channels)
    phases = torch.arange(length) % period
    drawn = fill[:, None].expand(batch, samples, length, channels).clone()
    for phase in range(min(period, length)):
        apart = (phases - phase).abs()
        near = torch.nonzero(torch.minimum(apart, period - apart) <= 1)[:, 0]
        own = torch.nonzero(phases == phase)[:, 0]
        known, order = observed[:, near].sort(dim=1, descending=True, stable=True)  # the observed candidates first
        candidates = values[:, near].gather(1, order)
        count = known.sum(dim=1)[:, None, None]  # (B, 1, 1, K)
        chosen = (ranks[:, :, own] * count).long().clamp(max=len(near) - 1)
        picked = candidates[:, None].expand(-1, samples, -1, -1).gather(2, chosen)
        free = ~observed[:, None, own] & (count > 0)
        drawn[:, :, own] = torch.where(free, picked, drawn[:, :, own])
    return drawn
