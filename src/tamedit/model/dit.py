"""The backbone: one token per time step, modulated by a bounded condition.

    tokens = W_noised z_t + W_context [observed values, mask, anchor, covariates] + positions
    h ← h + α₁ ⊙ Attention((1 + γ₁) ⊙ LN(h) + β₁)
    h ← h + α₂ ⊙ MLP((1 + γ₂) ⊙ LN(h) + β₂)             (depth times)
    output = W_out ((1 + γ) ⊙ LN(h) + β)                 W_out = 0 at the start

No batch statistics, no dropout, nothing that mixes examples. What does not depend on the diffusion step is prepared once
for all steps of a sampler. Nobody asks for cells that are observed, so the last block and the output are computed for the
R steps alone that hold an unknown cell (`asked_steps`): all steps are its keys and values, but only these ask. Elsewhere
the prediction is 0.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor, nn
from torch.nn import functional as F

from tamedit.kernels import GELU, Then, gelu, linear
from tamedit.model.adaln import BoundedAdaLNZero, gated, modulate
from tamedit.model.bounds import Bounds, Operator
from tamedit.model.condition import ConditionEncoder, TimeEmbedding, sinusoids
from tamedit.model.samples import can_share, each, first_block
from tamedit.model.zoo import NetworkConfig
from tamedit.windows.batch import Context


class Prepared(NamedTuple):
    """The part of the input that stays the same at every diffusion step."""

    tokens: Float[Tensor, "B L D"]
    condition: Float[Tensor, "B D"]
    unknown: Bool[Tensor, "B L"]  # the steps that hold an unknown cell
    asked: Int64[Tensor, "B R"] | None  # the steps that the last block computes, these among them; None: all of them
    known: Int64[Tensor, "B N"] | None = None  # the other steps; given if samples may share what they are
    samples: int = 1  # how many rows follow for each of these

    def repeat(self, times: int) -> "Prepared":
        """The same for every window `times` times: only their number is kept if samples share the first block."""
        if self.known is not None and times > 1:
            return self._replace(samples=self.samples * times)
        tokens, condition, unknown = (each(value, times) for value in self[:3])
        return Prepared(tokens, condition, unknown, None if self.asked is None else each(self.asked, times))

    def written_out(self) -> "Prepared":
        """One row for every sample."""
        return self._replace(known=None, samples=1).repeat(self.samples)


def asked_steps(unknown: Bool[Tensor, "B L"]) -> tuple[Tensor | None, Tensor | None]:
    """The steps (B, R) with unknown cells, as many of each window as the window with most has, and the others (B, L − R).

    Observed steps fill up the windows that have fewer. None if that is every step, or under `torch.func.vmap`, where no size may
    depend on numbers.
    """
    if torch._C._functorch.peek_interpreter_stack() is not None or not len(unknown):
        return None, None
    most = int(unknown.sum(1).max())
    if most == unknown.shape[1]:
        return None, None
    order = unknown.byte().argsort(dim=1, descending=True, stable=True)
    return order[:, : max(most, 1)], order[:, max(most, 1) :]


def at_steps(h: Float[Tensor, "B L *D"], asked: Int64[Tensor, "B R"] | None) -> Float[Tensor, "B R *D"]:
    """The rows of these steps."""
    return h if asked is None else h.flatten(0, 1).index_select(0, _flat(asked, h.shape[1])).unflatten(0, asked.shape)


def _flat(asked: Int64[Tensor, "B R"], length: int) -> Int64[Tensor, " N"]:
    """Their numbers when the windows lie end to end."""
    return (asked + length * torch.arange(len(asked), device=asked.device)[:, None]).flatten()


def apply(layer: nn.Module, inputs: Float[Tensor, "B L C"], then: Then = "none") -> Float[Tensor, "B L D"]:
    """A layer and the activation after it; by oneDNN's kernel if it is an ordinary one that nobody listens to."""
    if type(layer) is nn.Linear and not watched(layer):
        return linear(inputs, layer.weight, layer.bias, then)
    plain: Tensor = layer(inputs)
    return gelu(plain) if then == GELU else plain


def watched(layer: nn.Module) -> bool:
    """Whether somebody wants the layer itself to be called: hooks (Opacus), or another forward (the private engine)."""
    hooks = (layer._forward_hooks, layer._forward_pre_hooks, layer._backward_hooks, layer._backward_pre_hooks)
    return "forward" in layer.__dict__ or any(hooks)


class Attention(nn.Module):
    """Multi-head self-attention over the steps of a window."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query_key_value = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)

    def forward(self, h: Float[Tensor, "B L D"], asked: Int64[Tensor, "B R"] | None = None) -> Float[Tensor, "B R D"]:
        query, key, value = self.heads_of(h, asked)
        return self.out(F.scaled_dot_product_attention(query, key, value))

    def heads_of(self, h: Float[Tensor, "B L D"], asked: Int64[Tensor, "B R"] | None = None) -> tuple[Tensor, ...]:
        """Queries of the steps that ask (B, heads, R, D / heads), keys and values of all steps."""
        query, key, value = apply(self.query_key_value, h).unflatten(-1, (3, self.heads, -1)).unbind(2)
        return at_steps(query, asked).transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2)

    def out(self, mixed: Float[Tensor, "B heads R C"]) -> Float[Tensor, "B R D"]:
        return apply(self.output, mixed.transpose(1, 2).flatten(2))


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

    def forward(
        self, h: Float[Tensor, "B L D"], condition: Float[Tensor, "B D"], asked: Int64[Tensor, "B R"] | None = None
    ) -> Float[Tensor, "B R D"]:
        for_attention, for_mlp = self.adaln(condition)
        mixed = self.attention(modulate(self.norm(h), for_attention), asked)
        h = at_steps(h, asked) + gated(for_attention, mixed)
        return h + gated(for_mlp, self.mixed_mlp(modulate(self.norm(h), for_mlp)))

    def mixed_mlp(self, v: Float[Tensor, "B R D"]) -> Float[Tensor, "B R D"]:
        if watched(self.mlp) or watched(self.mlp[1]):
            mixed: Tensor = self.mlp(v)
            return mixed
        return apply(self.mlp[2], apply(self.mlp[0], v, GELU))


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
        tokens = apply(self.context_input, known) + self.positions[: known.shape[1]]  # (B, L, D)
        unknown = (context.observed < context.channels[:, None, :]).any(-1)  # (B, L)
        asked, others = asked_steps(unknown)
        others = others if self._shares(tokens, asked) else None
        return Prepared(tokens, self.condition_encoder(context), unknown, asked, others)

    def _shares(self, tokens: Float[Tensor, "B L D"], asked: Int64[Tensor, "B R"] | None) -> bool:
        """Whether samples of a window may share its first block: here and now, and if nobody wants the block itself called."""
        if asked is None or torch.is_grad_enabled() or len(self.blocks) < 2:
            return False
        first = self.blocks[0]
        ours = type(first) is Block and not watched(first) and not watched(first.attention)
        return ours and can_share(tokens, asked)

    def denoise(
        self, noised: Float[Tensor, "B L K"], time: Int64[Tensor, " B"], prepared: Prepared
    ) -> Float[Tensor, "B L K"]:
        """The prediction; of several samples of a window, observed cells are taken to hold no noise."""
        if prepared.samples > 1:
            if self._shares(prepared.tokens, prepared.asked) and (time == time[0]).all():
                return self._denoise_samples(noised, time, prepared)
            prepared = prepared.written_out()
        condition = prepared.condition + self.time_embedding(time)  # (B, D)
        h = prepared.tokens + self.noised_input(noised)  # (B, L, D)
        h = self._through(list(self.blocks), h, condition, prepared.asked)  # (B, R, D)
        return self._predicted(h, condition, prepared.unknown, prepared.asked, noised)

    def _denoise_samples(
        self, noised: Float[Tensor, "B L K"], time: Int64[Tensor, " B"], prepared: Prepared
    ) -> Float[Tensor, "B L K"]:
        """The same for all samples of a window at one diffusion step (see `model/samples.py`)."""
        samples, asked = prepared.samples, prepared.asked
        assert asked is not None  # (W, R), or nothing would be shared
        condition = prepared.condition + self.time_embedding(time[: len(prepared.condition)])  # (W, D)
        of_noise = self.noised_input(at_steps(noised, each(asked, samples)))  # (B, R, D)
        unknown = each(at_steps(prepared.tokens, asked), samples) + of_noise
        h = first_block(self.blocks[0], at_steps(prepared.tokens, prepared.known), unknown, condition)  # (B, L, D)
        last = torch.arange(h.shape[1] - asked.shape[1], h.shape[1]).expand(len(h), -1)
        condition = each(condition, samples)  # (B, D)
        h = self._through(list(self.blocks)[1:], h, condition, last)
        return self._predicted(h, condition, each(prepared.unknown, samples), each(asked, samples), noised)

    def _through(
        self,
        blocks: list[nn.Module],
        h: Float[Tensor, "B L D"],
        condition: Float[Tensor, "B D"],
        asked: Int64[Tensor, "B R"] | None,
    ) -> Float[Tensor, "B R D"]:
        """Block after block; the last one for the steps alone that are asked for."""
        for number, block in enumerate(blocks, start=1):
            h = block(h, condition, asked if number == len(blocks) else None)
        return h

    def _predicted(
        self,
        h: Float[Tensor, "B R D"],
        condition: Float[Tensor, "B D"],
        unknown: Bool[Tensor, "B L"],
        asked: Int64[Tensor, "B R"] | None,
        noised: Float[Tensor, "B L K"],
    ) -> Float[Tensor, "B L K"]:
        """The final layer; 0 where nobody asks."""
        (final,) = self.final_adaln(condition)
        predicted: Tensor = self.output(modulate(self.final_norm(h), final))  # (B, R, K)
        if asked is not None:
            everywhere = predicted.new_zeros(noised.shape).flatten(0, 1)
            steps = _flat(asked, noised.shape[1])
            predicted = everywhere.index_copy(0, steps, predicted.flatten(0, 1)).view_as(noised)
        return predicted * unknown[:, :, None]  # (B, L, K)

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
