"""Partial and low-rank tuning: what moves, what stays, and that folding changes nothing."""

import torch

from tamedit.model.dit import DiffusionTransformer
from tamedit.model.tuning import folded, prepare, trained
from tamedit.model.zoo import NetworkConfig
from tamedit.windows.batch import Context

CONFIG = NetworkConfig(target_channels=2, covariate_channels=3, length=12, depth=2, width=16, heads=2)


def made(seed: int = 0) -> DiffusionTransformer:
    torch.manual_seed(seed)
    network = DiffusionTransformer(CONFIG)
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    return network


def answer(network: DiffusionTransformer) -> torch.Tensor:
    generator = torch.Generator().manual_seed(5)
    values, covariates = torch.randn(3, 12, 2, generator=generator), torch.randn(3, 12, 3, generator=generator)
    context = Context(values, torch.zeros_like(values), values, covariates, torch.ones(3, 2))
    answered: torch.Tensor = network(values, torch.tensor([1, 500, 900]), context)
    return answered


def test_low_rank_begins_as_the_network_itself() -> None:
    before = answer(made())
    network = made()
    prepare(network, "low_rank", rank=2)
    torch.testing.assert_close(answer(network), before)


def test_folded_weights_are_the_corrected_network() -> None:
    network = made()
    prepare(network, "low_rank", rank=2)
    for name, parameter in trained(network).items():
        assert name.split(".")[-2] in ("down", "up")
        torch.nn.init.normal_(parameter, std=0.1)
    plain = DiffusionTransformer(CONFIG)
    plain.load_state_dict(folded({name: value.detach() for name, value in network.named_parameters()}))
    torch.testing.assert_close(answer(plain), answer(network), rtol=1e-4, atol=1e-5)
    assert not torch.allclose(answer(plain), answer(made()), atol=1e-3)


def test_low_rank_trains_few_parameters() -> None:
    network, whole = made(), made()
    prepare(network, "low_rank", rank=1)
    linear = [layer for layer in whole.modules() if isinstance(layer, torch.nn.Linear)]
    assert sum(one.numel() for one in trained(network).values()) == sum(
        layer.in_features + layer.out_features for layer in linear
    )


def test_modulation_moves_the_steering_and_the_output_alone() -> None:
    network = made()
    prepare(network, "modulation", rank=1)
    moving = set(trained(network))
    expected = {
        *(f"blocks.{block}.adaln.projection.{part}" for block in (0, 1) for part in ("weight", "bias")),
        *(f"{layer}.{part}" for layer in ("final_adaln.projection", "output") for part in ("weight", "bias")),
    }
    assert moving == expected


def test_all_moves_everything_and_folding_leaves_it_alone() -> None:
    network = made()
    prepare(network, "all", rank=1)
    assert set(trained(network)) == {name for name, _ in network.named_parameters()}
    weights = dict(network.named_parameters())
    assert folded(weights) == weights
