"""A linear layer by oneDNN: forward with what follows it in one call, backward by the same kernel.

    linear(x, W, b)          x Wᵀ + b
    linear(x, W, b, GELU)    gelu(x Wᵀ + b), the tanh form
    ∂x = g W,  ∂W = gᵀ x,  ∂b = Σ g

PyTorch's own operator writes the bias, adds the product, and reads the result again for the activation. The fused kernel is the
one that `torch.compile` puts in its place; here it needs no compiler. Its plain products of narrow matrices are faster, too, so
gradients take it as well. Where it does not exist (another device, another precision, autocast, `torch.func`, a compiler, an
older PyTorch), the ordinary operators are called.
"""

from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

Then = Literal["none", "gelu"]
GELU: Then = "gelu"
_KERNEL = getattr(torch.ops.mkldnn, "_linear_pointwise", None) if torch.backends.mkldnn.is_available() else None


def linear(
    inputs: Float[Tensor, "*rows C"],
    weight: Float[Tensor, "D C"],
    bias: Float[Tensor, " D"] | None,
    then: Then = "none",
) -> Float[Tensor, "*rows D"]:
    """x Wᵀ + b, and the activation after it."""
    if not fuses(inputs, weight):
        plain = F.linear(inputs, weight, bias)
    elif torch.is_grad_enabled():
        plain = _Linear.apply(inputs, weight, bias)
    else:
        fused: Tensor = _KERNEL(inputs, weight, bias, then, [], "tanh" if then == GELU else "")  # type: ignore[misc]
        return fused
    return F.gelu(plain, approximate="tanh") if then == GELU else plain


def fuses(inputs: Tensor, weight: Tensor) -> bool:
    """Whether the fused kernel is there for these, and gives what the operators would give."""
    return (
        _KERNEL is not None
        and inputs.device.type == weight.device.type == "cpu"
        and inputs.dtype == weight.dtype == torch.float32
        and inputs.numel() > 0
        and not torch.is_autocast_enabled("cpu")
        and torch._C._functorch.peek_interpreter_stack() is None  # torch.func has rules for ordinary operators alone
        and not torch.compiler.is_compiling()
    )


class _Linear(torch.autograd.Function):
    """x Wᵀ + b with gradients by the kernel. They are made of `linear` again, so that they have gradients themselves."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(inputs, weight)
        return linear(inputs, weight, bias)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        inputs, weight = ctx.saved_tensors
        gradient, (for_inputs, for_weight, for_bias) = gradients[0], ctx.needs_input_grad
        rows, seen = (one.reshape(-1, one.shape[-1]) for one in (gradient, inputs))  # (N, D), (N, C)
        return (
            linear(gradient, weight.t().contiguous(), None) if for_inputs else None,
            _product(rows, seen) if for_weight else None,
            rows.sum(0) if for_bias else None,
        )


def _product(rows: Float[Tensor, "N D"], seen: Float[Tensor, "N C"]) -> Float[Tensor, "D C"]:
    """rowsᵀ seen. The kernel copies the first factor into order, so that is the narrow one."""
    if rows.shape[1] <= seen.shape[1]:
        return linear(rows.t(), seen.t(), None)
    return linear(seen.t(), rows.t(), None).t().contiguous()
