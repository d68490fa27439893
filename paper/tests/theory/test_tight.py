"""Each inequality of the theory by itself, in a case made so that it is (nearly) an equality.

S_aware multiplies so many of them that a forgotten √L would hide in the slack; here it cannot: every stated number must be
at least what happens, and at most a little more.
"""

import math
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from tamedit.model.bounds import Bounds
from tamedit.model.condition import ConditionEncoder
from tamedit.model.dit import Attention, Block, DiffusionTransformer
from tamedit_paper.theory.norms import GELU_SLOPE, SILU_SLOPE, AttentionNorms, EncoderNorms, NetworkNorms
from tamedit_paper.theory.propagation import Backward, Branch, InputBounds, Maxima, propagate, radius
from tamedit_paper.theory.search import Example, ascend, shaken

WIDTH, LENGTH, SLOPE, BIAS = 4, 3, 0.75, 30.0
LIMIT = Maxima(condition=2.0, scale=0.5, shift=0.25, gate=0.5)


def assert_nearly(found: float | Tensor, stated: float, slack: float = 1e-6) -> None:
    """found ≤ stated ≤ found · (1 + slack)."""
    assert float(found) <= stated * (1 + 1e-9)
    assert stated <= float(found) * (1 + slack)


def one_block() -> DiffusionTransformer:
    """Attention off; the MLP is SLOPE · v + constant, GELU being straight so far to the right; γ, β, α at their maxima."""
    bounds = Bounds(**LIMIT._asdict())
    shape = {"width": WIDTH, "length": LENGTH, "heads": 1, "mlp_ratio": 1, "operator": "hard_clamp"}
    network = shaken(1, bounds, spread=0.0, **shape)
    block = network.blocks[0]
    assert isinstance(block, Block)
    for parameter in block.parameters():
        parameter.data.zero_()
    block.mlp[0].weight.data.copy_(torch.eye(WIDTH))
    block.mlp[0].bias.data.fill_(BIAS)
    block.mlp[2].weight.data.copy_(SLOPE * torch.eye(WIDTH))
    shift = LIMIT.shift * torch.tensor([1.0, 1.0, -1.0, -1.0])  # the signs of the tokens below
    triple = torch.cat([torch.full((WIDTH,), LIMIT.scale), shift, torch.full((WIDTH,), LIMIT.gate)])
    block.adaln.projection.bias.data.copy_(triple.repeat(2))
    return network


def through(network: DiffusionTransformer, token: Sequence[float], direction: Sequence[float]) -> tuple[Tensor, Tensor]:
    """The block's gradients for the same token and the same ∂ℓ/∂h at every step: ∂ℓ/∂h_in; parameters hold theirs."""
    h = torch.tensor(token, dtype=torch.float64).repeat(1, LENGTH, 1).requires_grad_()
    above = torch.tensor(direction, dtype=torch.float64).repeat(1, LENGTH, 1)
    condition = torch.tensor([[2.0, 0.0, 0.0, 0.0]], dtype=torch.float64)  # ‖c‖ = c_max
    network.zero_grad()
    (network.blocks[0](h, condition) * above).sum().backward()
    assert h.grad is not None
    return h.grad, above


def stated(network: DiffusionTransformer, state: float, spread: float) -> tuple[float, Backward, list[float], Branch]:
    """The same by the theory, and the parts of the modulation: γ, β, α of the MLP, then of the attention."""
    norms, parts = NetworkNorms.of(network), []
    inputs = InputBounds(noised=1, wanted=1, values=1, token_spread=spread)
    blocks = propagate(norms, inputs, [LIMIT] * 2).blocks

    def keep(given: Sequence[float]) -> float:
        parts.extend(given)
        return math.hypot(*given)

    backward = Backward(norms, keep)
    return backward.block("it", norms.blocks[0], blocks[0], LIMIT, state), backward, parts, blocks[0][1]


def modulation_gradient(network: DiffusionTransformer, part: int) -> Tensor:
    """∂ℓ/∂(W, b) of γ, β or α of the MLP branch."""
    layer, rows = network.blocks[0].adaln.projection, slice((3 + part) * WIDTH, (4 + part) * WIDTH)  # type: ignore[union-attr]
    return torch.cat([layer.weight.grad[rows], layer.bias.grad[rows, None]], dim=1)


def test_a_branch_with_tokens_of_the_largest_norm() -> None:
    network = one_block()
    _, above = through(network, [1.0, 1.0, -1.0, -1.0], [1.0, 0.0, 0.0, 0.0])
    _, backward, (_, shift, *_), branch = stated(network, above.norm().item(), spread=1.0)
    mlp = network.blocks[0].mlp  # type: ignore[union-attr]
    assert branch.radius == pytest.approx(2 * (1.5 + 0.25)) == radius(WIDTH, LIMIT)
    for index, slack in ((0, GELU_SLOPE - 1), (2, 0.06)):  # the biases are not in the direction of the tokens
        found = math.hypot(mlp[index].weight.grad.norm(), mlp[index].bias.grad.norm())
        assert_nearly(found, backward.layers[f"it.mlp.{index}"], slack + 1e-3)
    whole = math.hypot(2.0, 1.0)  # of [ĉ, 1]
    assert_nearly(modulation_gradient(network, 1).norm(), shift * whole, GELU_SLOPE - 1 + 1e-3)
    sent = network.blocks[0].adaln.projection  # type: ignore[union-attr]
    assert math.hypot(sent.weight.grad.norm(), sent.bias.grad.norm()) <= backward.layers["it.adaln.projection"]


def test_the_scale_with_tokens_of_one_large_entry() -> None:
    network = one_block()
    through(network, [3.0, -1.0, -1.0, -1.0], [1.0, 0.0, 0.0, 0.0])
    _, _, (scale, *_), _ = stated(network, math.sqrt(LENGTH), spread=math.sqrt(3))
    assert_nearly(modulation_gradient(network, 0).norm(), scale * math.hypot(2.0, 1.0), GELU_SLOPE - 1 + 1e-3)


def test_the_gate_with_a_constant_sublayer() -> None:
    network = one_block()
    mlp = network.blocks[0].mlp  # type: ignore[union-attr]
    for parameter in mlp.parameters():
        parameter.data.zero_()
    mlp[2].bias.data.copy_(torch.tensor([5.0, 1.0, 2.0, 3.0]))
    through(network, [1.0, 1.0, -1.0, -1.0], [1.0, 0.0, 0.0, 0.0])
    _, backward, (_, _, gate, *_), branch = stated(network, math.sqrt(LENGTH), spread=1.0)
    assert branch.sublayer.output == pytest.approx(math.sqrt(39))
    assert_nearly(modulation_gradient(network, 2).norm(), gate * math.hypot(2.0, 1.0))
    assert_nearly(mlp[2].bias.grad.norm(), backward.layers["it.mlp.2"])  # nothing but the bias has a gradient


def test_the_condition_receives_what_the_modulation_sends() -> None:
    network = one_block()
    block = network.blocks[0]
    assert isinstance(block, Block)
    for parameter in block.mlp.parameters():
        parameter.data.zero_()
    block.mlp[2].bias.data[0] = 5.0
    block.adaln.projection.weight.data[5 * WIDTH, 1] = 3.0  # the first gate of the MLP, by the second entry of c
    condition = torch.zeros(1, WIDTH, dtype=torch.float64, requires_grad=True)
    block(torch.randn(1, LENGTH, WIDTH).double(), condition)[..., 0].sum().backward()
    _, backward, _, _ = stated(network, math.sqrt(LENGTH), spread=1.0)
    assert condition.grad is not None
    assert_nearly(condition.grad.norm(), backward.condition)


def test_the_jacobian_of_a_branch_is_reached_across_the_tokens() -> None:
    network, size = one_block(), 0.01
    through_it, above = through(network, [size, size, -size, -size], [1.0, -1.0, 0.0, 0.0])  # ⟂ to 1 and to the token
    state, _, _, branch = stated(network, above.norm().item(), spread=size)
    assert branch.jacobian == pytest.approx(1 + 0.5 * GELU_SLOPE * SLOPE * 1.5 / math.sqrt(1e-6 + size**2), rel=1e-12)
    assert state == pytest.approx(
        above.norm().item() * branch.jacobian, rel=1e-12
    )  # the attention is off: its factor is 1
    assert_nearly(through_it.norm(), above.norm().item() * branch.jacobian, GELU_SLOPE - 1 + 1e-3)


def test_every_part_of_the_softmax_mix() -> None:
    """Two tokens ±R e₁ share the attention, six at −R e₂ get none; each part of κ is the largest in turn."""
    ball, length = 1.0, 8
    tokens = torch.zeros(1, length, 2, dtype=torch.float64)
    tokens[0, 0, 0], tokens[0, 1, 0], tokens[0, 2:, 1] = ball, -ball, -ball
    for value, key, query, slack in ((0.01, 40.0, 40.0, 2.0), (50.0, 100.0, 1.0, 1.1), (50.0, 10.0, 20.0, 1.45)):
        attention = Attention(2, 1).double()
        layer = attention.query_key_value
        layer.weight.data.copy_(torch.cat([torch.zeros(2, 2), key * torch.eye(2), value * torch.eye(2)]))
        layer.bias.data.zero_()[1] = query  # every query is `query` · e₂
        slope = AttentionNorms.of(attention, length).slope(ball)
        mix = layer(tokens).detach().view(1, length, 3, 2).permute(2, 0, 1, 3)
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            jacobian = torch.autograd.functional.jacobian(lambda x: F.scaled_dot_product_attention(*x), mix)
        found = torch.linalg.matrix_norm(jacobian.reshape(2 * length, -1), ord=2)
        assert_nearly(found, slope, slack - 1)


def test_attention_to_one_token_multiplies_its_value() -> None:
    """All steps attend to the first: ‖∂O/∂V‖ = √L."""
    attention, length = Attention(2, 1).double(), 5
    value = torch.zeros(length, 2, dtype=torch.float64)
    query, key = torch.full((length, 2), 50.0).double(), torch.zeros(length, 2).double()
    key[0] = 50.0
    jacobian = torch.autograd.functional.jacobian(lambda v: F.scaled_dot_product_attention(query, key, v), value)
    attention.query_key_value.weight.data.zero_()
    stated_slope = AttentionNorms.of(attention, length).slope(1.0)
    assert_nearly(torch.linalg.matrix_norm(jacobian.reshape(2 * length, -1), ord=2), stated_slope)


def test_attention_over_one_token_is_linear() -> None:
    """F(v) = W_O W_V v: the norms of both layers are reached, and so are the gradients of their parameters."""
    attention = Attention(2, 1).double()
    layer, sent = attention.query_key_value, attention.output
    for parameter in attention.parameters():
        parameter.data.zero_()
    layer.weight.data[4:] = 2 * torch.eye(2)
    sent.weight.data[:] = 3 * torch.eye(2)
    token = torch.tensor([[[5.0, 0.0]]], dtype=torch.float64)
    most = AttentionNorms.of(attention, 1).at(5.0)
    jacobian = torch.autograd.functional.jacobian(attention, token).reshape(2, 2)
    assert_nearly(torch.linalg.matrix_norm(jacobian, ord=2), most.lipschitz)
    answer = attention(token)
    assert_nearly(answer.detach().norm(), most.output)
    assert_nearly(answer.detach().abs().max(), most.entry)
    answer[0, 0, 0].backward()
    for name, part in (("query_key_value", layer), ("output", sent)):
        assert part.weight.grad is not None
        assert part.bias.grad is not None
        assert_nearly(math.hypot(part.weight.grad.norm(), part.bias.grad.norm()), most.layers[f"attention.{name}"])


def test_the_layers_of_the_condition_encoder() -> None:
    """SiLU is straight far to the right, so all but its slope is reached."""
    encoder = ConditionEncoder(1, 0, 2).double()
    features = torch.zeros(1, 9, dtype=torch.float64)
    features[0, 0] = 40.0
    for index in (0, 2):
        encoder.layers[index].weight.data.zero_()  # type: ignore[union-attr]
        encoder.layers[index].weight.data[0, 0] = 2.0  # type: ignore[union-attr]
        encoder.layers[index].bias.data.zero_()  # type: ignore[union-attr]
    encoder.layers(features)[0, 0].backward()
    gains = EncoderNorms.of(encoder).layers(40.0)
    for index, slack in ((0, SILU_SLOPE - 1), (2, 0.0)):
        layer = encoder.layers[index]
        found = math.hypot(layer.weight.grad.norm(), layer.bias.grad.norm())  # type: ignore[arg-type, union-attr]
        assert_nearly(found, gains[f"layers.{index}"], slack + 1e-6)


def test_the_way_from_the_loss_to_the_inputs() -> None:
    """Equal tokens with spread 1, blocks as good as off, an output that looks across the tokens, equal inputs at all steps."""
    off = Bounds(condition=1e-9, scale=1e-9, shift=1e-9, gate=1e-9)
    network = shaken(1, off, spread=0.0, width=WIDTH, length=LENGTH, heads=1, target_channels=1)
    network.positions.zero_()
    network.noised_input.weight.data.zero_()
    network.context_input.weight.data.zero_()
    network.context_input.bias.data.copy_(torch.tensor([1.0, 1.0, -1.0, -1.0]))
    network.output.weight.data.copy_(0.01 * torch.tensor([[1.0, -1.0, 0.0, 0.0]]))
    cells = torch.ones(1, LENGTH, 1, dtype=torch.float64)
    known = cells.repeat(1, 1, 4)
    time = torch.tensor([500])
    example = Example(3 * cells, 3 * cells, 0 * cells, 50 * cells, 50 * known, 0 * cells, cells, time)
    given = InputBounds(
        noised=3, wanted=3, values=0, anchor=50, covariates=50, hidden_cells=LENGTH, token_spread=1 - 1e-9
    )
    answer = propagate(NetworkNorms.of(network), given, [Maxima(1e-9, 1e-9, 1e-9, 1e-9)] * 2)
    gradients = example.gradients(network)
    bias = gradients["context_input.bias"].norm() / math.sqrt(LENGTH)  # = ‖∂ℓ/∂h‖_F, as every step's is the same
    assert_nearly(bias, answer.state_gradients[0], 0.02)
    assert_nearly(gradients["noised_input.weight"].norm(), answer.layers["noised_input"], 0.02)
    assert_nearly(gradients["context_input.weight"].norm(), answer.layers["context_input"], 0.02)


@pytest.mark.parametrize(("layer", "slack"), [("output", 2.0), ("final_adaln", 12.0)])
def test_the_last_layer_is_searched_to_within_a_small_factor(layer: str, slack: float) -> None:
    network = shaken(1, Bounds(condition=0.1, scale=0.01, shift=0.01, gate=0.01), spread=0.0)
    network.output.weight.data[:] = 0.02 * torch.eye(2, 8)
    inputs = InputBounds(noised=3, wanted=3, values=3, anchor=3, covariates=3)
    found, _ = ascend(network, inputs, starts=2, steps=12, chosen=lambda name: name.startswith(layer))
    (most,) = (
        value
        for name, value in propagate(
            NetworkNorms.of(network), inputs, [Maxima(0.1, 0.01, 0.01, 0.01)] * 2
        ).layers.items()
        if name.startswith(layer)
    )
    assert found <= most <= slack * found
