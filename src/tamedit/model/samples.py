"""The first block for many samples of the same windows: what all samples share is computed once.

Before the first block, steps that are observed hold no noise. So at one diffusion step all samples of a window have the same
tokens there, and the same queries, keys and values. With k for these steps and u for the others,

    k asks k    once per window                  k asks u    sample by sample, few keys
    u asks k    all samples' queries at once     u asks u    sample by sample, few queries and keys

and the answers of two sets of keys join by the logarithms l of their sums of exponentials, o = o₁ + σ(l₂ − l₁) (o₂ − o₁). The
result is that of the block itself, up to rounding. Steps come back in another order: k first, then u.
"""

from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from tamedit.model.adaln import Modulation, gated, modulate

_ATTEND = getattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu", None)
MOST_ASKED = 0.4  # of the steps: with more, sharing takes longer than it saves


def can_share(tokens: Float[Tensor, "W L D"], asked: Int64[Tensor, "W R"]) -> bool:
    """Whether few enough steps are asked for, and PyTorch has an attention that returns the logarithms that `_join` needs.

    It has one on a CPU, in single precision, without gradients.
    """
    return (
        asked.shape[1] <= MOST_ASKED * tokens.shape[1]
        and _ATTEND is not None
        and tokens.device.type == "cpu"
        and tokens.dtype == torch.float32
        and not torch.is_grad_enabled()
        and not torch.is_autocast_enabled("cpu")
        and torch._C._functorch.peek_interpreter_stack() is None
        and not torch.compiler.is_compiling()
    )


def each(values: Tensor, samples: int) -> Tensor:
    """(W, …) → (W · samples, …): the same for every sample of a window, next to each other."""
    return values.repeat_interleave(samples, dim=0)


def first_block(
    block: Any,
    known: Float[Tensor, "W N D"],
    unknown: Float[Tensor, "B R D"],
    condition: Float[Tensor, "W D"],
) -> Float[Tensor, "B L D"]:
    """`block` (model/dit.py) of the steps that are known and of those that are not, B = W · samples."""
    windows, samples = len(known), len(unknown) // len(known)
    of_windows, _ = modulations = block.adaln(condition)
    for_attention, for_mlp = (Modulation(*(each(part, samples) for part in one)) for one in modulations)
    project = block.attention.heads_of
    known_query, known_key, known_value = project(modulate(block.norm(known), of_windows))  # (W, H, N, d)
    query, key, value = project(modulate(block.norm(unknown), for_attention))  # (B, H, R, d)
    together = query.unflatten(0, (windows, samples)).transpose(1, 2).flatten(2, 3)  # (W, H, samples · R, d)
    of_known = tuple(each(part, samples) for part in _attend(known_query, known_key, known_value))
    of_unknown = tuple(
        part.unflatten(2, (samples, -1)).transpose(1, 2).flatten(0, 1)
        for part in _attend(together, known_key, known_value)
    )
    mixed = torch.cat(
        [
            _join(of_known, _attend(each(known_query, samples), key, value)),
            _join(of_unknown, _attend(query, key, value)),
        ],
        dim=2,
    )  # (B, H, L, d)
    h = torch.cat([each(known, samples), unknown], dim=1)  # (B, L, D)
    h = h + gated(for_attention, block.attention.out(mixed))
    done: Tensor = h + gated(for_mlp, block.mixed_mlp(modulate(block.norm(h), for_mlp)))
    return done


def _attend(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, ...]:
    """Attention (B, H, N, d), and the logarithm of each query's sum of exponentials (B, H, N)."""
    mixed, logarithm, *_ = _ATTEND(query, key, value)  # type: ignore[misc]
    return mixed, logarithm


def _join(one: tuple[Tensor, ...], other: tuple[Tensor, ...]) -> Tensor:
    """The answer of both sets of keys together."""
    return torch.lerp(one[0], other[0], torch.sigmoid(other[1] - one[1])[..., None])
