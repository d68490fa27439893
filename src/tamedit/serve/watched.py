"""A model that can be interrupted: it asks between two calls of its network whether anyone still waits.

`FreeGuess` is the same model with the free distribution in the place of its network: the same windows, the same order of gaps.
"""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from tamedit.data.series import Series
from tamedit.diffusion.sample import SamplerConfig
from tamedit.diffusion.starts import OneOf
from tamedit.evaluation.baselines import distribution_draws, own_units
from tamedit.model.dit import DiffusionTransformer
from tamedit.tasks.model import Model

Check = Callable[[], None]


class WatchedNetwork:
    """A network that calls `check` before every answer."""

    def __init__(self, network: DiffusionTransformer, check: Check) -> None:
        self._network, self._check = network, check
        self.parameters = network.parameters

    def prepare(self, context: Any) -> Any:
        self._check()
        return self._network.prepare(context)

    def denoise(self, noised: Tensor, time: Tensor, prepared: Any) -> Tensor:
        self._check()
        return self._network.denoise(noised, time, prepared)


class Watched(Model):
    """The model itself; `check` may raise."""

    def __init__(self, model: Model, check: Check) -> None:
        super().__init__(cast(DiffusionTransformer, WatchedNetwork(model.network, check)), model.spec, model.folder)
        self.check = check

    def cells(self, series: Series, wanted: np.ndarray, samples: int, seed: int) -> Float[np.ndarray, "S M"]:
        """Draws of the wanted missing cells alone, in the order of `np.nonzero(wanted)`; those of `impute(all_samples=True)`."""
        return self._draw_missing(series, wanted, samples, None, seed, None)


class FreeGuess(Watched):
    """What the windows say of themselves, without any training."""

    def draw(
        self,
        values: Tensor,
        observed: Tensor,
        covariates: Tensor,
        windows: np.ndarray,
        samples: int | OneOf,
        seed: int,
        sampler: SamplerConfig | None,
    ) -> Tensor:
        self.check()
        visible = torch.where(observed, values, 0.0)
        units = own_units(self.scaling).units(visible, observed)
        count = 1 if isinstance(samples, OneOf) else samples
        drawn = distribution_draws(visible, observed, units, self.spec.examples.period, count, seed)
        return drawn.clamp_min(0) if self.spec.non_negative else drawn
