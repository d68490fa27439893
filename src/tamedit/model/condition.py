"""The condition c: a time-step embedding plus a summary of what is observed.

    c = MLP(sinusoids(t)) + MLP(statistics(context))

The statistics are taken over observed cells alone, channel by channel (mean, standard deviation, minimum, maximum, last
observed value, share observed), with the structure of the gaps (longest gap, number of gaps) and the mean and spread of
the known covariates. Nothing here mixes examples, and nothing here sees a hidden value.
"""

import math

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from tamedit.windows.batch import Context

STATISTICS = 9  # numbers per target channel: the eight of the docstring and whether the channel is real
TIME_FEATURES = 128


def sinusoids(position: Float[Tensor, " N"], width: int) -> Float[Tensor, "N width"]:
    """cos and sin of the position at wavelengths from 2π to 2π · 10,000."""
    half = width // 2
    frequency = torch.exp(-math.log(10_000.0) * torch.arange(half, device=position.device) / half)
    angle = position[:, None] * frequency
    return torch.cat([angle.cos(), angle.sin()], dim=-1)


def observed_statistics(context: Context) -> Float[Tensor, "B F"]:
    """The features of the condition encoder, F = 9 K + 2 V, all finite for every pattern of observation."""
    values, seen = context.values, context.observed  # (B, L, K)
    length = values.shape[1]
    count = seen.sum(1)  # (B, K)
    some = (count > 0).to(values.dtype)
    mean = values.sum(1) / count.clamp_min(1)  # unknown values are 0 already
    deviation = ((values - mean[:, None]) * seen).square().sum(1) / count.clamp_min(1)
    far = torch.finfo(values.dtype).max
    minimum = values.masked_fill(seen == 0, far).amin(1) * some
    maximum = values.masked_fill(seen == 0, -far).amax(1) * some

    step = torch.arange(1, length + 1, device=values.device, dtype=values.dtype)[None, :, None]
    last_seen = torch.cummax(step * seen, dim=1).values  # index of the latest observed step, 0 if none
    last_value = values.gather(1, last_seen[:, -1:].long().sub(1).clamp_min(0))[:, 0] * some
    longest_gap = (step - last_seen).amax(1)
    gap = 1 - seen
    gap_count = gap[:, 0] + (gap[:, 1:] * seen[:, :-1]).sum(1)

    channels = context.channels
    per_channel = [mean, deviation.sqrt(), minimum, maximum, last_value]
    structure = [count / length, longest_gap * channels / length, gap_count * channels / length, channels]
    known = context.covariates
    pooled = [known.mean(1), known.std(1, unbiased=False)] if known.shape[-1] else []
    return torch.cat([*per_channel, *structure, *pooled], dim=-1)


class TimeEmbedding(nn.Module):
    """The diffusion step t as a vector."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(TIME_FEATURES, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, time: Int64[Tensor, " B"]) -> Float[Tensor, "B D"]:
        weight = self.layers[0].weight
        assert isinstance(weight, Tensor)
        embedded: Tensor = self.layers(sinusoids(time.float(), TIME_FEATURES).to(weight.dtype))
        return embedded


class ConditionEncoder(nn.Module):
    """The observed part of a window as a vector."""

    def __init__(self, target_channels: int, covariate_channels: int, width: int) -> None:
        super().__init__()
        features = STATISTICS * target_channels + 2 * covariate_channels
        self.layers = nn.Sequential(nn.Linear(features, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, context: Context) -> Float[Tensor, "B D"]:
        encoded: Tensor = self.layers(observed_statistics(context))
        return encoded
