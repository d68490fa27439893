"""A wider network does what the narrow one did, and can learn from what is new."""

import numpy as np
import pytest
import torch

import tamedit as tame
from tamedit.data.calendar import network_covariates
from tamedit.data.simulate import simulate
from tamedit.diffusion.sample import SamplerConfig
from tamedit.model.dit import DiffusionTransformer
from tamedit.model.widening import CONDITION, TOKENS, widened
from tamedit.model.zoo import NetworkConfig
from tamedit.runs.recipe import make_config
from tamedit.tasks.model import Model
from tamedit.training.homes import homes_start, shipped
from tamedit.windows.batch import Context


def context(config: NetworkConfig, seed: int = 0) -> Context:
    generator = torch.Generator().manual_seed(seed)
    shape, channels = (4, config.length), config.target_channels
    values = torch.randn(*shape, channels, generator=generator)
    observed = (torch.rand(*shape, channels, generator=generator) < 0.6).float()
    anchor = torch.randn(*shape, config.anchor_features * channels, generator=generator)
    covariates = torch.randn(*shape, config.covariate_channels, generator=generator)
    return Context(values * observed, observed, anchor, covariates, torch.ones(4, channels))


def with_new(given: Context, new: torch.Tensor) -> Context:
    constant = new[:, None].expand(-1, given.values.shape[1], -1)
    covariates = torch.cat([constant, given.covariates], dim=-1)
    return Context(given.values, given.observed, given.anchor, covariates, given.channels)


@pytest.mark.parametrize(("channels", "anchor_features", "before"), [(1, 6, 6), (2, 6, 3), (2, 1, 0)])
def test_the_new_columns_do_nothing_at_first(channels: int, anchor_features: int, before: int) -> None:
    """Columns in any other place would mix up what the others mean: all parts of the context differ here."""
    torch.manual_seed(1)
    config = NetworkConfig(
        target_channels=channels,
        covariate_channels=before,
        anchor_features=anchor_features,
        length=24,
        depth=2,
        width=32,
        heads=2,
        bounds=shipped().spec.network.bounds[:1],
    )
    narrow = DiffusionTransformer(config)
    for one in narrow.parameters():  # at the start of training the condition does nothing
        torch.nn.init.normal_(one, std=0.2)
    given = context(config)
    wider, weights = widened(config, dict(narrow.named_parameters()), 3)
    wide = DiffusionTransformer(wider)
    wide.load_state_dict({name: one.detach() for name, one in weights.items()})
    noised, time = torch.randn(4, 24, channels), torch.tensor([1, 5, 40, 90])
    with torch.no_grad():
        same = narrow(noised, time, given)
        for new in (torch.zeros(4, 3), torch.randn(4, 3)):
            torch.testing.assert_close(wide(noised, time, with_new(given, new)), same, rtol=1e-5, atol=1e-6)
    assert same.abs().max() > 0.1, "or the test would say nothing"
    wide(noised, time, with_new(given, torch.ones(4, 3))).square().sum().backward()
    gradients = dict(wide.named_parameters())
    first = (2 + anchor_features) * channels
    for name, columns in ((TOKENS, slice(first, first + 3)), (CONDITION, slice(9 * channels, 9 * channels + 3))):
        gradient = gradients[name].grad
        assert gradient is not None
        assert gradient[:, columns].abs().max() > 0, "what is new can be learned"


def test_the_shipped_model_begins_where_it_is() -> None:
    """With attributes of homes the same draws as without, whatever the attributes are."""
    frame = simulate(3, 24 * 14, seed=4, outage_rate=0, negative_rate=0).frame()
    frame["kwh"] = frame["kwh"].mask(np.arange(len(frame)) % 17 < 5)
    frame["heat"] = frame["meter"].map(dict(zip(frame["meter"].unique(), ("gas", "oil", None), strict=True)))
    plain = shipped()
    narrow = DiffusionTransformer(plain.spec.network)
    narrow.load_state_dict(plain.weights)
    model = Model(narrow.eval(), plain.spec)
    series = model.read(frame.drop(columns="heat"))
    with_heat = tame.read(frame, static="heat=gas|oil")
    found = homes_start(with_heat)
    assert found.start == plain.start, "the digest is that of the shipped file"
    assert found.spec.covariates == ("heat=gas", "heat=oil")
    network = DiffusionTransformer(found.spec.network)
    network.load_state_dict(found.weights)
    wider = Model(network.eval(), found.spec)
    fast = SamplerConfig(steps=3)
    one, other = (
        made.impute(data, samples=3, all_samples=True, sampler=fast)["kwh"].to_numpy()
        for made, data in ((model, series), (wider, with_heat))
    )
    np.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-5)
    assert network_covariates(with_heat, True).covariates.shape[1] == found.spec.network.covariate_channels
    assert make_config(with_heat, "a", start=found.start).network.covariate_channels == 8
