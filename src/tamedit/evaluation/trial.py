"""The same windows and the same hidden cells for every method: the model and the training-free baselines."""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from tamedit.data.calendar import network_covariates
from tamedit.data.series import Series
from tamedit.data.split import Split
from tamedit.diffusion.sample import SamplerConfig
from tamedit.errors import UserError
from tamedit.evaluation.baselines import (
    BAR,
    BASELINES,
    distribution_draws,
    free_probabilistic,
    own_units,
    seasonal_draws,
)
from tamedit.evaluation.intervals import bootstrap_weights, group_weights, usable_block
from tamedit.tasks.frames import Horizon, steps_ahead
from tamedit.tasks.model import Model
from tamedit.windows.cut import Windows, cut

Guess = tuple[str, Float[np.ndarray, "B S L K"], bool]  # method, samples in the data's units, whether probabilistic

Drawn = Callable[[int], None]  # how many windows were drawn since the last call

LEAST_METERS = 10
WINDOWS_AT_ONCE = 16  # about as many between two reports of progress


class Trial:
    """Test windows of a model, and the standard deviations that make z-units."""

    def __init__(self, model: Model, split: Split, most_windows: int) -> None:
        series = network_covariates(model.read(split.test), model.spec.calendar)
        self.model = model
        self.windows = pick_windows(series, model.spec.network.length, most_windows)
        self.numbers = np.arange(len(self.windows), dtype=np.int64)
        self.values, self.covariates = self.windows.gather(self.numbers)  # NaN where the data has none
        self.deviation = standard_deviation(model.read(split.train).values)

    @property
    def truth(self) -> Float[np.ndarray, "B L K"]:
        return self.values.numpy()

    @property
    def overlap(self) -> int:
        """How many windows in a row share rows with the first of them."""
        if len(self.windows) < 2:
            return 1
        apart = max(float(np.median(np.diff(self.windows.starts))), 1.0)
        return int(np.ceil(self.windows.length / apart))

    @property
    def by_meter(self) -> bool:
        """Whether there are enough meters to resample them instead of windows."""
        return len(np.unique(self.windows.meter_of())) >= LEAST_METERS

    @property
    def block(self) -> int:
        """Neighbouring windows that are resampled together."""
        return 1 if self.by_meter else usable_block(len(self.windows), self.overlap)

    def weights(self, resamples: int, seed: int = 0) -> Float[np.ndarray, "R B"]:
        """The weight of each window in each resample of the bootstrap; no resample if there are too few windows."""
        if self.by_meter:
            return group_weights(self.windows.meter_of(), resamples, seed)
        return bootstrap_weights(len(self.windows), resamples, self.block, seed)

    def guesses(
        self,
        mask: Bool[Tensor, "B L K"],
        samples: int,
        seed: int,
        sampler: SamplerConfig | None,
        drawn: Drawn | None = None,
    ) -> Iterator[Guess]:
        """What every method predicts for the cells that `mask` hides (False); `drawn` hears how many windows the model drew."""
        model, period = self.model, self.model.spec.examples.period
        observed = torch.isfinite(self.values) & mask
        visible = torch.where(observed, self.values, 0.0)
        yield "model", self._model_draws(visible, observed, samples, seed, sampler, drawn).numpy(), True
        fill = BASELINES["free_fill"](visible, observed, period)
        level, scale = own_units(model.scaling).units(visible, observed)
        least = 0.0 if model.spec.non_negative else -torch.inf  # the baselines may use a public fact, too
        free = distribution_draws(visible, observed, (level, scale), period, samples, seed)
        yield BAR, free.clamp_min(least).numpy(), True
        free = free_probabilistic(fill, scale, observed, samples, seed)
        yield "free_probabilistic", free.clamp_min(least).numpy(), True
        draws = seasonal_draws(visible, observed, fill, period, samples, seed)
        yield "seasonal_draws", draws.numpy(), True
        for name, guess in BASELINES.items():
            yield name, guess(visible, observed, period)[:, None].numpy(), False

    def _model_draws(
        self,
        visible: Float[Tensor, "B L K"],
        observed: Bool[Tensor, "B L K"],
        samples: int,
        seed: int,
        sampler: SamplerConfig | None,
        drawn: Drawn | None,
    ) -> Float[Tensor, "B S L K"]:
        """The model's samples, some windows at a time. Whole batches of the network, so the numbers are those of one call."""
        if sampler is not None and sampler.starts == "stratified":
            raise UserError(
                "Scores compare samples with each other, so starts='stratified' is not for them; leave `starts` out."
            )
        batch = max((sampler or SamplerConfig()).rows // samples, 1)
        at_once = batch * max(WINDOWS_AT_ONCE // batch, 1)
        pieces = []
        for first in range(0, len(self.numbers), at_once):
            part = slice(first, first + at_once)
            given = visible[part], observed[part], self.covariates[part], self.numbers[part]
            pieces.append(self.model.draw(*given, samples, seed, sampler))
            if drawn is not None:
                drawn(len(pieces[-1]))
        return torch.cat(pieces)


def pick_windows(series: Series, length: int, most: int) -> Windows:
    """At most `most` windows, spread evenly over the test split."""
    longest = int(series.lengths.max(initial=0))
    if longest < length:
        raise UserError(
            f"The test part has {longest} rows at most, but the model's window needs {length}; give a longer series or train "
            "with a shorter `window`."
        )
    every = cut(series, length, stride=max(length // 8, 1))
    kept = np.unique(np.linspace(0, len(every) - 1, min(most, len(every))).astype(np.int64))
    return Windows(series, every.starts[kept], length)


def standard_deviation(values: Float[np.ndarray, "T K"]) -> Float[np.ndarray, " K"]:
    """Standard deviation of every channel; 1 for a channel that never changes or has no reading."""
    known = np.isfinite(values)
    count = np.maximum(known.sum(axis=0), 1)
    clean = np.where(known, values, 0.0).astype(np.float64)
    mean = clean.sum(axis=0) / count
    deviation = np.sqrt(np.where(known, np.square(clean - mean), 0.0).sum(axis=0) / count)
    usable = deviation > 1e-8 * np.abs(mean)  # rounding alone spreads a constant by 1e-16 of it
    return np.where(usable, deviation, 1.0)


def check_samples(samples: int) -> None:
    if samples < 4:
        raise UserError(f"samples={samples} must be at least 4, so that CRPS can be estimated without bias.")


def forecast_horizon(model: Model, series: Series, horizon: Horizon | None) -> int:
    """Steps to forecast: a season if not said, at most three quarters of the window."""
    length = model.spec.network.length
    if horizon is not None:
        horizon = steps_ahead(series, horizon)
    longest = 3 * length // 4
    if horizon is not None and not 1 <= horizon <= longest:
        raise UserError(
            f"horizon={horizon} must lie between 1 and {longest}, three quarters of the model's window of {length}."
        )
    return horizon or min(model.spec.examples.period, longest)
