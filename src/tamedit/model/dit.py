"""The backbone: one token per time step, modulated by a bounded condition.

    tokens = W_noised z_t + W_context [observed values, mask, anchor, covariates] + positions
    h ← h + α₁ ⊙ Attention((1 + γ₁) ⊙ LN(h) + β₁)
    h ← h + α₂ ⊙ MLP((1 + γ₂) ⊙ LN(h) + β₂)             (depth times)
    output = W_out ((1 + γ) ⊙ LN(h) + β)                 W_out = 0 at the start

No batch statistics, no dropout, nothing that mixes examples. What does not depend on the diffusion step is prepared once
for all steps of a sampler.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn
from torch.nn import functional as F

from tamedit.model.adaln import BoundedAdaLNZero, gated, modulate
from tamedit.model.bounds import Bounds, Operator
from tamedit.model.condition import ConditionEncoder, TimeEmbedding, sinusoids
from tamedit.model.zoo import NetworkConfig
from tamedit.windows.batch import Context


class Prepared(NamedTuple):
    """The part of the input that stays the same at every diffusion step."""

    tokens: Float[Tensor, "B L D"]
    condition: Float[Tensor, "B D"]

    def repeat(self, times: int) -> "Prepared":
        return Prepared(*(value.repeat_interleave(times, dim=0) for value in self))


class Attention(nn.Module):
    """Multi-head self-attention over the steps of a window."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query_key_value = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)

    def forward(self, h: Float[Tensor, "B L D"]) -> Float[Tensor, "B L D"]:
        batch, length, width = h.shape
        split = self.query_key_value(h).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4)  # (B, heads, L, D / heads) each
        mixed = F.scaled_dot_product_attention(query, key, value)
        joined: Tensor = self.output(mixed.transpose(1, 2).reshape(batch, length, width))
        return joined


class Block(nn.Module):
    """Attention and MLP, each scaled, shifted and gated by the condition."""

    def __init__(self, width: int, heads: int, mlp_ratio: int, bounds: Bounds, operator: Operator) -> None:
        super().__init__()
        self.adaln = BoundedAdaLNZero(width, width, bounds, operator)
        self.norm = nn.LayerNorm(width, eps=1e-6, elementwise_affine=False)
        self.attention = Attention(width, heads)
        self.mlp = nn.Sequential(
            nn.Linear(width, mlp_ratio * width), nn.GELU(approximate="tanh"), nn.Linear(mlp_ratio * width, width)
        )

    def forward(self, h: Float[Tensor, "B L D"], condition: Float[Tensor, "B D"]) -> Float[Tensor, "B L D"]:
        for_attention, for_mlp = self.adaln(condition)
        h = h + gated(for_attention, self.attention(modulate(self.norm(h), for_attention)))
        return h + gated(for_mlp, self.mlp(modulate(self.norm(h), for_mlp)))


class DiffusionTransformer(nn.Module):
    """Predicts the noise or the velocity of the hidden cells of a window from what is observed."""

    positions: Tensor

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        width, channels = config.width, config.target_channels
        bounds = config.bounds_by_block()
        self.time_embedding = TimeEmbedding(width)
        self.condition_encoder = ConditionEncoder(channels, config.covariate_channels, width)
        self.noised_input = nn.Linear(channels, width, bias=False)
        features = (2 + config.anchor_features) * channels + config.covariate_channels
        self.context_input = nn.Linear(features, width)
        self.blocks = nn.ModuleList(
            Block(width, config.heads, config.mlp_ratio, block_bounds, config.operator) for block_bounds in bounds[:-1]
        )
        self.final_adaln = BoundedAdaLNZero(width, width, bounds[-1], config.operator, branches=1)
        self.final_norm = nn.LayerNorm(width, eps=1e-6, elementwise_affine=False)
        self.output = nn.Linear(width, channels)
        nn.init.zeros_(self.output.weight)
        nn.init.zeros_(self.output.bias)
        steps = torch.arange(config.length, dtype=torch.float32)
        self.register_buffer("positions", sinusoids(steps, width), persistent=False)

    def bound_by(self, config: NetworkConfig) -> None:
        """Take the bounds of another configuration; the weights stay."""
        self.config = config
        parts = [part for part in self.modules() if isinstance(part, BoundedAdaLNZero)]  # the blocks', then the final
        for part, bounds in zip(parts, config.bounds_by_block(), strict=True):
            part.bounds = bounds

    def prepare(self, context: Context) -> Prepared:
        """Tokens and condition of what is observed: computed once, used at every step of a sampler."""
        known = torch.cat([context.values, context.observed, context.anchor, context.covariates], dim=-1)
        tokens = self.context_input(known) + self.positions[: known.shape[1]]  # (B, L, D)
        return Prepared(tokens, self.condition_encoder(context))

    def denoise(
        self, noised: Float[Tensor, "B L K"], time: Int64[Tensor, " B"], prepared: Prepared
    ) -> Float[Tensor, "B L K"]:
        condition = prepared.condition + self.time_embedding(time)  # (B, D)
        h = prepared.tokens + self.noised_input(noised)  # (B, L, D)
        for block in self.blocks:
            h = block(h, condition)  # (B, L, D)
        (final,) = self.final_adaln(condition)
        predicted: Tensor = self.output(modulate(self.final_norm(h), final))  # (B, L, K)
        return predicted

    def forward(
        self, noised: Float[Tensor, "B L K"], time: Int64[Tensor, " B"], context: Context
    ) -> Float[Tensor, "B L K"]:
        return self.denoise(noised, time, self.prepare(context))


def is_conditioning(parameter_name: str) -> bool:
    """θ_cond or θ_other: the condition encoder, the time embedding and every projection to (γ, β, α) are θ_cond.

    The one place that decides; every diagnostic asks here.
    """
    parts = parameter_name.split(".")
    return any(part in {"time_embedding", "condition_encoder", "adaln", "final_adaln"} for part in parts)
