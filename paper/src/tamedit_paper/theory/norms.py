"""Norms of a concrete network, and what a sub-layer F can do on a ball of radius R.

Every token that enters F is v = (1 + γ) ⊙ LN(h) + β, so ‖v_l‖ ≤ R = √D (1 + γ_max + β_max). All that is said here of F is
a convex, non-decreasing function of that one number; `paper/docs/theory.md` derives each line.

    Linear       ‖W a + b‖ ≤ ‖W‖₂ ‖a‖ + ‖b‖,         |(W a + b)_i| ≤ ‖w_i‖ ‖a‖ + |b_i|
    GELU, SiLU   |φ(x)| ≤ |x|,  |φ'| ≤ 1.13 and 1.1
    softmax mix  O = softmax(Q Kᵀ / √d) V, head by head, with r_• = ‖W_•‖₂ R:
                 ‖O_l‖ ≤ r_V + ‖b_V‖
                 ‖∂O/∂V‖ ≤ √L,  ‖∂O/∂Q‖ ≤ r_V r_K / √d,  ‖∂O/∂K‖ ≤ √L r_V (r_Q + ‖b_Q‖) / √d
    a layer's gradient over L tokens:  ‖Σ_l g_l [a_l, 1]ᵀ‖_F ≤ ‖G‖_F √L √(max_l ‖a_l‖² + 1)
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from tamedit.model.condition import TIME_FEATURES, ConditionEncoder, TimeEmbedding
from tamedit.model.dit import Attention, Block, DiffusionTransformer

GELU_SLOPE = 1.13  # the largest |φ'| of GELU in its tanh form is 1.12899…
SILU_SLOPE = 1.1  # that of SiLU is 1.09983…
TIME_NORM = math.sqrt(TIME_FEATURES / 2)  # cos² + sin² = 1, TIME_FEATURES / 2 times


@dataclass(frozen=True)
class Affine:
    """The norms of x ↦ W x + b."""

    operator: float  # ‖W‖₂
    bias: float  # ‖b‖₂
    rows: np.ndarray  # ‖w_i‖₂
    offsets: np.ndarray  # |b_i|

    @classmethod
    def measure(cls, weight: Tensor, bias: Tensor | None = None) -> "Affine":
        matrix = weight.detach().double().cpu()
        offset = torch.zeros(len(matrix)).double() if bias is None else bias.detach().double().cpu()
        operator = float(torch.linalg.matrix_norm(matrix, ord=2))
        return cls(operator, float(offset.norm()), matrix.norm(dim=1).numpy(), offset.abs().numpy())

    @classmethod
    def of(cls, layer: nn.Module | Tensor, rows: int | None = None) -> "Affine":
        """The norms of a linear layer, or of its first rows alone."""
        assert isinstance(layer, nn.Linear)
        return cls.measure(layer.weight[:rows], None if layer.bias is None else layer.bias[:rows])

    def reach(self, radius: float) -> float:
        """A bound on ‖W a + b‖ for ‖a‖ ≤ radius."""
        return self.operator * radius + self.bias

    def largest(self, radius: float) -> float:
        """A bound on every entry of W a + b for ‖a‖ ≤ radius."""
        return float((self.rows * radius + self.offsets).max())


class Sublayer(NamedTuple):
    """What F does to tokens of norm at most R."""

    output: float  # H_max: ‖F(v)_l‖ for every token l
    entry: float  # |F(v)_li|
    lipschitz: float  # L_F, in the Frobenius norm over all tokens
    layers: dict[str, float]  # ‖gradient of a layer's weight and bias‖_F for ‖∂ℓ/∂F‖_F = 1


def _parameters(radius: float, length: int) -> float:
    """√L √(R² + 1): the Frobenius norm of L inputs [a, 1] with ‖a‖ ≤ R."""
    return math.sqrt(length) * math.hypot(radius, 1.0)


class Head(NamedTuple):
    query: Affine
    key: Affine
    value: Affine


@dataclass(frozen=True)
class AttentionNorms:
    heads: tuple[Head, ...]
    joint: Affine  # query, key and value of all heads at once
    output: Affine
    length: int
    head_width: int

    @classmethod
    def of(cls, attention: Attention, length: int) -> "AttentionNorms":
        layer, width = attention.query_key_value, attention.output.in_features
        weight = layer.weight.view(3, attention.heads, -1, width)
        bias = layer.bias.view(3, attention.heads, -1)
        heads = tuple(
            Head(*(Affine.measure(weight[part, head], bias[part, head]) for part in range(3)))
            for head in range(attention.heads)
        )
        return cls(heads, Affine.of(layer), Affine.of(attention.output), length, width // attention.heads)

    def slope(self, radius: float) -> float:
        """κ: the largest norm of the Jacobian of the softmax mix by (Q, K, V). Heads touch separate entries of them."""
        root, temperature = math.sqrt(self.length), math.sqrt(self.head_width)
        return max(
            math.hypot(
                root,
                head.value.operator * head.key.operator * radius**2 / temperature,
                root * head.value.operator * radius * head.query.reach(radius) / temperature,
            )
            for head in self.heads
        )

    def at(self, radius: float) -> Sublayer:
        mixed = math.hypot(*(head.value.reach(radius) for head in self.heads))
        back = self.slope(radius) * self.output.operator
        return Sublayer(
            output=self.output.reach(mixed),
            entry=self.output.largest(mixed),
            lipschitz=back * self.joint.operator,
            layers={
                "attention.output": _parameters(mixed, self.length),
                "attention.query_key_value": back * _parameters(radius, self.length),
            },
        )


@dataclass(frozen=True)
class MLPNorms:
    first: Affine
    second: Affine
    length: int

    @classmethod
    def of(cls, mlp: nn.Sequential, length: int) -> "MLPNorms":
        return cls(Affine.of(mlp[0]), Affine.of(mlp[2]), length)

    def at(self, radius: float) -> Sublayer:
        hidden = self.first.reach(radius)
        back = GELU_SLOPE * self.second.operator
        return Sublayer(
            output=self.second.reach(hidden),
            entry=self.second.largest(hidden),
            lipschitz=back * self.first.operator,
            layers={"mlp.2": _parameters(hidden, self.length), "mlp.0": back * _parameters(radius, self.length)},
        )


class BlockNorms(NamedTuple):
    attention: AttentionNorms
    mlp: MLPNorms
    projection: Affine
    epsilon: float  # of the LayerNorm


class EncoderNorms(NamedTuple):
    first: Affine
    second: Affine

    @classmethod
    def of(cls, encoder: TimeEmbedding | ConditionEncoder) -> "EncoderNorms":
        return cls(Affine.of(encoder.layers[0]), Affine.of(encoder.layers[2]))

    def layers(self, features: float) -> dict[str, float]:
        """‖gradient of a layer's weight and bias‖_F for ‖∂ℓ/∂c‖ = 1 and features of that norm."""
        return {
            "layers.2": math.hypot(self.first.reach(features), 1.0),
            "layers.0": SILU_SLOPE * self.second.operator * math.hypot(features, 1.0),
        }


@dataclass(frozen=True)
class NetworkNorms:
    """Everything that the bounds need to know of a network."""

    width: int
    length: int
    channels: int
    anchor_features: int
    covariates: int
    noised_input: Affine
    context_input: Affine
    blocks: tuple[BlockNorms, ...]
    final_projection: Affine
    final_epsilon: float
    output: Affine
    time_embedding: EncoderNorms
    condition_encoder: EncoderNorms

    @classmethod
    def of(cls, network: DiffusionTransformer) -> "NetworkNorms":
        config = network.config
        blocks = []
        for block in network.blocks:
            assert isinstance(block, Block)
            attention, mlp = AttentionNorms.of(block.attention, config.length), MLPNorms.of(block.mlp, config.length)
            blocks.append(BlockNorms(attention, mlp, Affine.of(block.adaln.projection), block.norm.eps))
        return cls(
            width=config.width,
            length=config.length,
            channels=config.target_channels,
            anchor_features=config.anchor_features,
            covariates=config.covariate_channels,
            noised_input=Affine.of(network.noised_input),
            context_input=Affine.of(network.context_input),
            blocks=tuple(blocks),
            final_projection=Affine.of(network.final_adaln.projection, 2 * config.width),  # its gate is not used
            final_epsilon=network.final_norm.eps,
            output=Affine.of(network.output),
            time_embedding=EncoderNorms.of(network.time_embedding),
            condition_encoder=EncoderNorms.of(network.condition_encoder),
        )
