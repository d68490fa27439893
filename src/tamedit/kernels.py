"""A linear layer with what follows it in one call of oneDNN, where nothing is differentiated.

    linear(x, W, b)          x Wᵀ + b
    linear(x, W, b, GELU)    gelu(x Wᵀ + b), the tanh form

PyTorch's own operator writes the bias, adds the product, and reads the result again for the activation. The fused kernel is the
one that `torch.compile` puts in its place; here it needs no compiler. Where it does not exist (another device, another
precision, a gradient that is asked for, an older PyTorch), the ordinary operators are called.
"""

from typing import Literal

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
    if fuses(inputs, weight):
        fused: Tensor = _KERNEL(inputs, weight, bias, then, [], "tanh" if then == GELU else "")  # type: ignore[misc]
        return fused
    plain = F.linear(inputs, weight, bias)
    return F.gelu(plain, approximate="tanh") if then == GELU else plain


def fuses(inputs: Tensor, weight: Tensor) -> bool:
    """Whether the fused kernel is there for these, and gives what the operators would give."""
    return (
        _KERNEL is not None
        and not torch.is_grad_enabled()
        and inputs.device.type == "cpu"
        and inputs.dtype == weight.dtype == torch.float32
        and inputs.numel() > 0
        and not torch.is_autocast_enabled("cpu")
        and torch._C._functorch.peek_interpreter_stack() is None  # torch.func has rules for ordinary operators alone
    )
