"""The backbone: per example, unhurt by hidden values, and the partition covers every parameter once."""

import numpy as np
import pytest
import torch
from torch import nn

from tamedit.errors import UserError
from tamedit.model.bounds import Bounds
from tamedit.model.condition import observed_statistics, sinusoids
from tamedit.model.dit import DiffusionTransformer, is_conditioning
from tamedit.model.zoo import SIZES, TIGHTNESS, NetworkConfig, tightened
from tamedit.windows.batch import Context


def make_context(batch: int = 5, length: int = 24, channels: int = 2, covariates: int = 3, seed: int = 0) -> Context:
    generator = torch.Generator().manual_seed(seed)
    seen = (torch.rand(batch, length, channels, generator=generator) < 0.6).float()
    return Context(
        torch.randn(batch, length, channels, generator=generator) * seen,
        seen,
        torch.randn(batch, length, channels, generator=generator),
        torch.randn(batch, length, covariates, generator=generator),
        torch.ones(batch, channels),
    )


def make_network(bounds: Bounds | None = None, **changes: object) -> DiffusionTransformer:
    torch.manual_seed(0)
    config = NetworkConfig(
        target_channels=2,
        covariate_channels=3,
        length=24,
        **{"depth": 2, "width": 16, "heads": 2, "bounds": (bounds or Bounds(),), **changes},  # type: ignore[arg-type]
    )
    return DiffusionTransformer(config)


def shake(network: nn.Module) -> None:
    """Away from the zero initialisation, so that everything matters."""
    generator = torch.Generator().manual_seed(1)
    for parameter in network.parameters():
        parameter.data += 0.1 * torch.randn(parameter.shape, generator=generator)


def test_the_untrained_network_says_zero() -> None:
    network = make_network()
    assert not network(torch.randn(5, 24, 2), torch.arange(5), make_context()).any()


def test_steps_that_nobody_asks_for_change_nothing() -> None:
    """The last block computes steps with unknown cells alone: the answer and every gradient are those of all steps."""
    network, context = make_network(Bounds(condition=1.0, scale=1.0, shift=1.0, gate=1.0)), make_context()
    shake(network)
    seen = context.observed.clone()
    seen[:, 10:] = 1
    seen[3] = 1  # a window with nothing to ask
    context = Context(context.values, seen, context.anchor, context.covariates, context.channels)
    noised, time = torch.randn(5, 24, 2), torch.arange(5) * 200
    prepared = network.prepare(context)
    assert prepared.asked is not None
    assert prepared.asked.shape[1] == (seen < 1).any(-1).sum(1).max() < 24
    few, every = network.denoise(noised, time, prepared), network.denoise(noised, time, prepared._replace(asked=None))
    torch.testing.assert_close(few, every)
    assert (few != 0).any(-1).equal((seen < 1).any(-1))
    weights = torch.randn_like(few)
    parameters = list(network.parameters())
    for one, other in zip(
        torch.autograd.grad((few * weights).sum(), parameters, retain_graph=True),
        torch.autograd.grad((every * weights).sum(), parameters),
        strict=True,
    ):
        torch.testing.assert_close(one, other)
    with torch.inference_mode():  # the fused kernels
        torch.testing.assert_close(network.denoise(noised, time, network.prepare(context)), every)


@pytest.mark.parametrize("kind", ["forward", "forward_pre", "full_backward", "full_backward_pre"])
@pytest.mark.parametrize("layer", ["attention.query_key_value", "mlp.0", "mlp.1", "mlp.2", "mlp"])
def test_who_listens_to_a_layer_hears_it(kind: str, layer: str) -> None:
    """The layers are computed by a kernel, unless a hook (Opacus has them) wants the module itself to be called."""
    network, context = make_network(), make_context()
    shake(network)
    heard: list[str] = []
    part = network.blocks[0].get_submodule(layer)
    getattr(part, f"register_{kind}_hook")(lambda *arguments: heard.append(kind))
    network(torch.randn(5, 24, 2), torch.arange(5) * 200, context).sum().backward()
    assert heard == [kind]


def test_examples_do_not_mix() -> None:
    network, context = make_network(Bounds(condition=1.0, scale=1.0, shift=1.0, gate=1.0)).double(), make_context()
    shake(network)
    context = Context(
        *(getattr(context, name).double() for name in ("values", "observed", "anchor", "covariates", "channels"))
    )
    noised, time = torch.randn(5, 24, 2, dtype=torch.float64), torch.arange(5) * 200
    whole = network(noised, time, context)
    for index in range(5):
        one = slice(index, index + 1)
        torch.testing.assert_close(network(noised[one], time[one], context[one]), whole[one], rtol=1e-10, atol=1e-12)


def test_everything_the_network_is_given_matters() -> None:
    network, context = make_network(), make_context()
    shake(network)
    noised, time = torch.randn(5, 24, 2), torch.full((5,), 300)
    answer = network(noised, time, context)
    assert not torch.equal(answer, network(noised + 1, time, context))
    assert not torch.equal(answer, network(noised, time + 100, context))
    for name in ("values", "anchor", "covariates"):
        changed = Context(**{**vars(context), name: getattr(context, name) + 0.5})
        assert not torch.allclose(answer, network(noised, time, changed))


def test_statistics_by_hand() -> None:
    values = torch.tensor([[[1.0], [0.0], [0.0], [4.0], [0.0]]])
    seen = torch.tensor([[[1.0], [0.0], [0.0], [1.0], [0.0]]])
    known = torch.tensor([[[1.0], [2.0], [3.0], [4.0], [5.0]]])
    context = Context(values, seen, torch.zeros_like(values), known, torch.ones(1, 1))
    mean, deviation, low, high, last, share, longest, gaps, real, pooled, spread = observed_statistics(context)[
        0
    ].tolist()
    assert (mean, deviation, low, high, last) == pytest.approx((2.5, 1.5, 1, 4, 4))
    assert (share, longest, gaps, real) == pytest.approx((2 / 5, 2 / 5, 2 / 5, 1))
    assert (pooled, spread) == pytest.approx((3, np.std([1, 2, 3, 4, 5])))


def test_statistics_are_finite_and_zero_when_nothing_is_seen() -> None:
    empty = torch.zeros(2, 6, 3)
    features = observed_statistics(Context(empty, empty, empty, torch.zeros(2, 6, 0), torch.ones(2, 3)))
    assert torch.isfinite(features).all()
    assert not features[:, : 5 * 3].any()


def test_statistics_have_finite_gradients_for_constant_windows() -> None:
    values = torch.ones(1, 6, 1, requires_grad=True)
    ones = torch.ones(1, 6, 1)
    observed_statistics(Context(values, ones, ones, torch.zeros(1, 6, 0), torch.ones(1, 1)))
    assert torch.isfinite(
        observed_statistics(Context(values.detach(), ones, ones, torch.zeros(1, 6, 0), torch.ones(1, 1)))
    ).all()


def test_sinusoids_are_cosines_and_sines() -> None:
    table = sinusoids(torch.tensor([0.0, 3.0]), 8)
    assert table[0].tolist() == [1, 1, 1, 1, 0, 0, 0, 0]
    expected = [np.cos(3 * 10_000 ** (-i / 4)) for i in range(4)]
    np.testing.assert_allclose(table[1, :4], expected, rtol=1e-5)


def test_the_partition_names_the_conditioning_path() -> None:
    network = make_network()
    conditioning = {name.split(".")[0] for name, _ in network.named_parameters() if is_conditioning(name)}
    assert conditioning == {"time_embedding", "condition_encoder", "blocks", "final_adaln"}
    inside_blocks = {
        name for name, _ in network.named_parameters() if name.startswith("blocks") and is_conditioning(name)
    }
    assert inside_blocks == {f"blocks.{i}.adaln.projection.{p}" for i in range(2) for p in ("weight", "bias")}
    other = {name.split(".")[0] for name, _ in network.named_parameters() if not is_conditioning(name)}
    assert other == {"noised_input", "context_input", "blocks", "output"}


def test_no_layer_mixes_examples() -> None:
    kinds = {type(module) for module in make_network().modules()}
    assert not kinds & {nn.BatchNorm1d, nn.Dropout}


@pytest.mark.parametrize("size", SIZES)
def test_named_sizes_build(size: str) -> None:
    config = NetworkConfig(target_channels=7, length=96, **SIZES[size])
    assert len(config.bounds_by_block()) == config.depth + 1


def test_the_papers_size() -> None:
    assert SIZES["paper"] == {"depth": 8, "width": 256, "heads": 8}


def test_bounds_by_block_reach_their_blocks() -> None:
    bounds = tuple(Bounds(gate=float(i + 1)) for i in range(3))
    network = make_network(bounds=None, **{}).__class__(
        NetworkConfig(target_channels=2, length=24, depth=2, width=16, heads=2, bounds=bounds)
    )
    assert [block.adaln.bounds.gate for block in network.blocks] == [1.0, 2.0]
    assert network.final_adaln.bounds.gate == 3.0


def test_tightness_presets_scale_the_reference() -> None:
    reference = Bounds(condition=10, scale=2, shift=3, gate=4)
    for name, factor in TIGHTNESS.items():
        assert tightened(reference, name).gate == pytest.approx(4 * factor)
    assert tightened(reference, "off") == Bounds()


@pytest.mark.parametrize("wrong", [{"width": 15}, {"width": 20, "heads": 3}, {"bounds": (Bounds(),) * 2}])
def test_impossible_sizes_are_refused(wrong: dict) -> None:
    with pytest.raises((UserError, ValueError), match=r"must be even|bounds has"):
        NetworkConfig(target_channels=1, length=8, **{"depth": 4, **wrong})


def test_tight_bounds_tame_the_gradients_of_an_extreme_context() -> None:
    norms = {}
    for name, bounds in {"vanilla": Bounds(), "aware": Bounds(condition=1.0, scale=0.1, shift=0.1, gate=0.1)}.items():
        network, context = make_network(bounds), make_context(batch=1)
        shake(network)
        wild = Context(context.values * 1e3, context.observed, context.anchor, context.covariates, context.channels)
        network(torch.randn(1, 24, 2), torch.tensor([10]), wild).square().mean().backward()
        norms[name] = sum(float(p.grad.square().sum()) for p in network.parameters() if p.grad is not None) ** 0.5
    assert norms["aware"] < 0.01 * norms["vanilla"]
