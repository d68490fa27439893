"""Before any training the model is the free distribution: the same draws, cell by cell."""

import numpy as np
import pytest
import torch

from tamedit.data.calendar import network_covariates
from tamedit.data.simulate import simulate
from tamedit.data.split import split_by_time
from tamedit.diffusion.sample import SamplerConfig
from tamedit.diffusion.starts import starting_noise
from tamedit.errors import UserError
from tamedit.model.dit import DiffusionTransformer
from tamedit.runs.folder import DataFacts
from tamedit.runs.recipe import make_config
from tamedit.tasks.model import Model
from tamedit.training.run import describe
from tamedit.training.scales import make_scaling
from tamedit.windows.cut import cut
from tamedit.windows.examples import ExampleConfig
from tamedit.windows.free_distribution import free_distribution

LENGTH = 72


def untrained() -> Model:
    series = simulate(hours=1500, seed=8)
    config = make_config(series, "simulated", window=LENGTH)
    train = split_by_time(series).train
    scaling = make_scaling(config, DataFacts(), train)
    return Model(DiffusionTransformer(config.network).eval(), describe(config, DataFacts(), train, scaling, None))


@pytest.mark.parametrize("steps", [1, 8])
def test_the_untrained_model_draws_from_the_free_distribution(steps: int) -> None:
    model = untrained()
    windows = cut(network_covariates(simulate(hours=1500, seed=9), calendar=True), LENGTH, 60)
    numbers = np.arange(len(windows))
    values, covariates = windows.gather(numbers)
    generator = torch.Generator().manual_seed(1)
    observed = torch.isfinite(values) & (torch.rand(values.shape, generator=generator) < 0.6)
    drawn = model.draw(values, observed, covariates, numbers, 6, 4, SamplerConfig(steps=steps))
    units = model.scaling.units(values, observed)
    free = free_distribution(values, observed, 24, *units)
    noise = starting_noise(numbers, 6, (LENGTH, 1), 4, "antithetic")
    expected = torch.where(observed[:, None], values[:, None], free.from_z(noise))
    torch.testing.assert_close(drawn, expected, rtol=1e-5, atol=1e-6)


def test_a_model_of_the_earlier_form_is_refused() -> None:
    with pytest.raises(UserError, match="of an earlier version, which this one does not read; train it again"):
        ExampleConfig.model_validate({"anchor": "seasonal", "period": 24})
