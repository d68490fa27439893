"""How many samples a question needs, how they start, and where among them a quantile lies."""

import math
from collections.abc import Sequence

import numpy as np

from tamedit.diffusion.sample import SamplerConfig

STRATIFIED, SEEN, MOST = (
    40,
    100,
    1000,
)  # samples per cell: of which quantiles alone are given, that are given out, at most


def enough_samples(levels: Sequence[float]) -> int:
    """Stratified samples per cell: so many that these quantiles lie among them, and at most 1000."""
    return max(STRATIFIED, min(math.ceil(1 / min(*levels, *(1 - level for level in levels))), MOST))


def drawing_for(
    levels: Sequence[float] | None, samples: int | None, sampler: SamplerConfig | None
) -> tuple[int, SamplerConfig]:
    """The number of samples and their sampler; what is None is chosen. No levels: the samples themselves are given out."""
    config = sampler or SamplerConfig()
    if config.starts is None and levels is not None:
        config = config.model_copy(update={"starts": "stratified"})
    if samples is None:
        samples = enough_samples(levels) if levels is not None and config.starts == "stratified" else SEEN
    return samples, config


def quantiles(drawn: np.ndarray, levels: Sequence[float], stratified: bool) -> np.ndarray:
    """Quantiles (Q, …) of samples (S, …).

    They are at position p (S + 1) of the sorted samples, so that few samples do not make the intervals too narrow; of
    stratified samples, whose noise lies in one of S equally likely intervals each, at p S + 1/2.
    """
    cuts: np.ndarray = np.quantile(drawn, tuple(levels), axis=0, method="hazen" if stratified else "weibull")
    return cuts
