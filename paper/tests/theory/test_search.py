"""An adversary, and chance, against every bound that the theory states."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tamedit.errors import UserError
from tamedit.model.bounds import Bounds
from tamedit.model.condition import observed_statistics, sinusoids
from tamedit.model.dit import Attention, DiffusionTransformer
from tamedit.windows.batch import Context
from tamedit_paper.theory.norms import AttentionNorms
from tamedit_paper.theory.propagation import InputBounds, norm_lipschitz
from tamedit_paper.theory.search import (
    FREE,
    Example,
    ascend,
    collapsed,
    least_spread,
    norm_of,
    random_example,
    shaken,
)
from tamedit_paper.theory.sensitivity import GROUPS, Theory, analyse, group_of

BOUNDS = Bounds(condition=2.0, scale=0.5, shift=0.4, gate=0.3)
INPUTS = InputBounds(noised=3, wanted=3, values=3, anchor=3, covariates=3)


def propagated(theory: Theory) -> Any:
    assert theory.propagated is not None
    return theory.propagated


def assert_in_bounds(network: DiffusionTransformer, example: Example, inputs: InputBounds) -> None:
    """Compares everything that the theory bounds with what this example gives."""
    theory = analyse(network, inputs, clip=1.0)
    stated, seen = propagated(theory), watch(network, example)
    for index, block in enumerate(stated.blocks):
        for name, branch in zip(("attention", "mlp"), block, strict=True):
            entered, left = seen[f"blocks.{index}.{name}.input"], seen[f"blocks.{index}.{name}.output"]
            assert entered.norm(dim=-1).max() <= branch.radius
            assert left.norm(dim=-1).max() <= branch.sublayer.output
            assert left.abs().max() <= branch.sublayer.entry
        assert seen[f"blocks.{index}.output"].norm(dim=-1).max() <= block[1].token
    for index, most in enumerate(stated.state_gradients[1:]):
        assert seen[f"blocks.{index}.gradient"].norm() <= stated.state_gradients[index + 1] == most
    assert seen["condition.gradient"].norm() <= stated.condition_gradient
    assert ((seen["output.output"] - example.wanted) * example.hidden).abs().max() <= stated.error

    gradients = example.gradients(network)
    for layer, most in stated.layers.items():
        assert norm_of(gradients, lambda name, layer=layer: name.rsplit(".", 1)[0] == layer) <= most, layer
    for group, most in theory.groups.items():
        assert norm_of(gradients, lambda name, group=group: group_of(name) == group) <= most
    assert norm_of(gradients) <= theory.quadrature <= theory.sensitivity


def watch(network: DiffusionTransformer, example: Example) -> dict[str, Tensor]:
    """What enters and leaves every sub-layer, and the gradients of the states and of the condition."""
    seen: dict[str, Tensor] = {}

    def record(name: str) -> Callable[..., None]:
        def hook(module: torch.nn.Module, given: tuple[Tensor, ...], answer: Tensor) -> None:
            answer.retain_grad()
            seen[f"{name}.input"], seen[f"{name}.output"] = given[0], answer

        return hook

    parts = {name: part for name, part in network.named_modules() if name.count(".") == 2 or name.count(".") == 1}
    chosen = {name: part for name, part in parts.items() if name.startswith("blocks") and "adaln" not in name}
    chosen |= {"output": network, "time": network.time_embedding}
    hooks = [part.register_forward_hook(record(name)) for name, part in chosen.items()]
    example.loss(network).backward()
    for hook in hooks:
        hook.remove()
    seen |= {f"{name}.gradient": seen[f"{name}.output"].grad for name in chosen}  # type: ignore[misc]
    seen["condition.gradient"] = seen["time.gradient"]  # c = time embedding + encoder: the same gradient
    network.zero_grad()
    return {name: value.detach() for name, value in seen.items() if value is not None}


@pytest.mark.parametrize("operator", ["tanh", "hard_clamp", "soft_clamp_band", "clamp_ste"])
@pytest.mark.parametrize(("depth", "spread"), [(1, 0.0), (1, 0.1), (2, 0.3), (2, 1.0)])
def test_random_and_collapsed_examples_stay_below_every_bound(operator: str, depth: int, spread: float) -> None:
    generator = torch.Generator().manual_seed(depth)
    for seed in range(3):
        network = shaken(depth, BOUNDS, seed=seed, spread=spread, operator=operator)
        example = random_example(network, INPUTS, generator)
        assert_in_bounds(network, example, INPUTS)
        assert_in_bounds(network, collapsed(network, example, INPUTS), INPUTS)


@pytest.mark.parametrize(("depth", "spread"), [(1, 0.1), (1, 0.5), (2, 0.2)])
def test_an_adversary_stays_below_every_bound(depth: int, spread: float) -> None:
    network = shaken(depth, BOUNDS, seed=depth, spread=spread)
    theory = analyse(network, INPUTS, clip=1.0)
    largest, example = ascend(network, INPUTS, starts=4, steps=8, seed=depth)
    assert largest == pytest.approx(norm_of(example.gradients(network)).item(), rel=1e-6)
    assert largest <= theory.quadrature
    assert_in_bounds(network, example, INPUTS)


@pytest.mark.parametrize("group", GROUPS)
def test_an_adversary_against_one_group_stays_below_its_bound(group: str) -> None:
    network = shaken(1, BOUNDS, spread=0.3)
    largest, _ = ascend(network, INPUTS, starts=2, steps=8, chosen=lambda name: group_of(name) == group)
    assert 0 < largest <= analyse(network, INPUTS, clip=1.0).groups[group]


def test_the_adversary_is_one() -> None:
    network = shaken(1, BOUNDS, spread=0.3)
    chance, _ = ascend(network, INPUTS, starts=1, steps=0)
    climbed, _ = ascend(network, INPUTS, starts=4, steps=8)
    assert climbed > 20 * chance
    with pytest.raises(UserError, match="starts"):
        ascend(network, INPUTS, starts=0)


@pytest.mark.parametrize("spread", [0.1, 0.3])
def test_what_is_given_the_spread_of_the_tokens_holds_for_them(spread: float) -> None:
    network, generator = shaken(2, BOUNDS, spread=spread), torch.Generator().manual_seed(0)
    for _ in range(5):
        example = random_example(network, INPUTS, generator)
        hidden = max(1, int(example.hidden.sum()))
        given = INPUTS.model_copy(
            update={"token_spread": least_spread(network, example) * (1 - 1e-9), "hidden_cells": hidden}
        )
        assert_in_bounds(network, example, given)


def test_at_the_zero_initialisation_the_bound_is_within_a_factor_of_three() -> None:
    network = shaken(1, Bounds(condition=2.0, scale=0.1, shift=0.1, gate=0.1), spread=0.0)
    largest, _ = ascend(network, INPUTS, starts=2, steps=12)
    sensitivity = analyse(network, INPUTS, clip=1.0).sensitivity
    assert sensitivity / 3 < largest <= sensitivity


def test_layer_norm_is_as_steep_as_said() -> None:
    norm = torch.nn.LayerNorm(8, eps=1e-6, elementwise_affine=False)
    generator = torch.Generator().manual_seed(0)
    for size in (0.0, 1e-4, 1e-3, 0.1, 10.0):
        x = 3 + size * torch.randn(8, generator=generator, dtype=torch.float64)
        jacobian = torch.autograd.functional.jacobian(norm, x)
        steepness = torch.linalg.matrix_norm(jacobian, ord=2).item()
        assert steepness == pytest.approx(norm_lipschitz(1e-6, x.std(unbiased=False).item()), rel=1e-6)
        assert steepness <= norm_lipschitz(1e-6) * (1 + 1e-12)
        assert norm(x).norm() <= math.sqrt(8)
        assert norm(x).abs().max() <= math.sqrt(7)


@pytest.mark.parametrize("heads", [1, 2])
def test_attention_is_lipschitz_on_the_ball(heads: int) -> None:
    """The norm of its Jacobian, climbed by gradient ascent, against L_F; and the mix against κ."""
    torch.manual_seed(0)
    attention, length, ball = Attention(4, heads).double(), 3, 6.0
    for parameter in attention.parameters():
        parameter.data *= 2
    stated = AttentionNorms.of(attention, length).at(ball)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        for _ in range(3):
            tokens = torch.randn(1, length, 4, dtype=torch.float64)
            for _ in range(15):
                tokens = (tokens * ball / tokens.norm(dim=-1, keepdim=True)).detach().requires_grad_()
                jacobian = torch.autograd.functional.jacobian(attention, tokens, create_graph=True)
                steepness = torch.linalg.matrix_norm(jacobian.reshape(length * 4, -1), ord=2)
                assert steepness.item() <= stated.lipschitz
                assert attention(tokens).norm(dim=-1).max() <= stated.output
                (slope,) = torch.autograd.grad(steepness, tokens)
                tokens = tokens + slope / slope.norm()


def test_the_features_of_the_condition_are_within_their_norm() -> None:
    generator, network = torch.Generator().manual_seed(0), shaken(1, BOUNDS)
    for _ in range(50):
        example = random_example(network, INPUTS, generator)
        context = Context(
            example.values * example.observed,
            example.observed,
            example.anchor,
            example.covariates,
            torch.ones(1, 2).double(),
        )
        assert observed_statistics(context).norm() <= INPUTS.features(2, 4)
    assert sinusoids(torch.arange(1000.0), 128).double().norm(dim=1).max() == pytest.approx(8.0, rel=1e-6)


def test_examples_stay_within_the_bounds() -> None:
    network, generator = shaken(1, BOUNDS), torch.Generator().manual_seed(0)
    inputs = INPUTS.model_copy(update={"hidden_cells": 4, "anchor": 0.5})
    for _ in range(20):
        for example in (start := random_example(network, inputs, generator), collapsed(network, start, inputs)):
            assert all(getattr(example, name).abs().max() <= getattr(inputs, name) for name in FREE)
            assert example.hidden.sum() >= 4
            assert not (example.hidden * example.observed).any()
    _, found = ascend(network, inputs, starts=2, steps=3)
    assert all(getattr(found, name).abs().max() <= getattr(inputs, name) for name in FREE)
