"""A linear layer by oneDNN, forward with what follows it in one call, backward by the same kernel; and GELU with its derivative.

    linear(x, W, b)          x Wᵀ + b
    linear(x, W, b, GELU)    gelu(x Wᵀ + b), the tanh form
    ∂x = g W,  ∂W = gᵀ x,  ∂b = Σ g

    gelu(x) = x s,           s = σ(v),  v = 2 √(2/π) (x + 0.044715 x³)            the same as x (1 + tanh(v / 2)) / 2
    gelu'(x) = s + s (1 − s) (3 v − 4 √(2/π) x)

PyTorch's own linear operator writes the bias, adds the product, and reads the result again for the activation. The fused kernel
is the one that `torch.compile` puts in its place; here it needs no compiler. Its plain products of narrow matrices are faster,
too, so gradients take it as well. PyTorch's GELU computes a tanh forward and the same tanh backward. A logistic function costs a
sixth of it and is computed once here: backward is one product with gelu'(x). Where the kernel does not exist (another device,
another precision, autocast, `torch.func`, a compiler, an older PyTorch), and for small products, the ordinary operators are
called.
"""

import math
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

Then = Literal["none", "gelu"]
GELU: Then = "gelu"
_KERNEL = getattr(torch.ops.mkldnn, "_linear_pointwise", None) if torch.backends.mkldnn.is_available() else None
_SLOPE, _CUBE = 2 * math.sqrt(2 / math.pi), 0.044715
_SMALL = (
    1 << 21
)  # multiply-adds of a product that takes less time than a call of the kernel needs to begin, about 20 µs
_AT_ONCE = 1 << 17  # numbers that GELU takes at once on each thread: they and what is made of them fit the cache


def linear(
    inputs: Float[Tensor, "*rows C"],
    weight: Float[Tensor, "D C"],
    bias: Float[Tensor, " D"] | None,
    then: Then = "none",
) -> Float[Tensor, "*rows D"]:
    """x Wᵀ + b, and the activation after it."""
    if not fuses(inputs, weight) or inputs.numel() * len(weight) < _SMALL:
        plain = F.linear(inputs, weight, bias)
    elif torch.is_grad_enabled():
        plain = _Linear.apply(inputs, weight, bias)
    else:
        fused: Tensor = _KERNEL(inputs, weight, bias, then, [], "tanh" if then == GELU else "")  # type: ignore[misc]
        return fused
    return gelu(plain) if then == GELU else plain


def gelu(inputs: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """GELU in its tanh form."""
    if torch.is_grad_enabled() and inputs.requires_grad and inputs.is_contiguous() and fuses(inputs, inputs):
        activated: Tensor = _Gelu.apply(inputs)
        return activated
    return F.gelu(inputs, approximate="tanh")


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


class _Gelu(torch.autograd.Function):
    """gelu(x), with gelu'(x) made beside it. Beyond |x| of about 1e13, where cubes overflow, the gradient is not finite."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor) -> Tensor:
        activated, slope = torch.empty_like(inputs), torch.empty_like(inputs)
        at_once = _AT_ONCE * torch.get_num_threads()
        rooms = inputs.new_empty(2, min(at_once, inputs.numel()))
        for x, y, d in zip(*(one.view(-1).split(at_once) for one in (inputs, activated, slope)), strict=True):
            v, s = rooms[:, : len(x)]
            torch.mul(x, x, out=v)
            torch.addcmul(x, v, x, value=_CUBE, out=v).mul_(_SLOPE)
            torch.sigmoid(v, out=s)
            torch.mul(x, s, out=y)
            torch.sub(v, x, alpha=2 * _SLOPE / 3, out=v)
            torch.ops.aten.sigmoid_backward.grad_input(v, s, grad_input=d)  # v s (1 − s)
            torch.add(s, d, alpha=3, out=d)
        ctx.save_for_backward(inputs, slope)
        return activated

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        inputs, slope = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody wants the gradient of the gradient
            again: Tensor = torch.ops.aten.gelu_backward(gradients[0], inputs, approximate="tanh")
            return again
        return gradients[0] * slope
