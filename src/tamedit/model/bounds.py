"""Bounds on the conditioning path: the projection of c and the operators B_M on γ, β, α.

    ĉ = c · min(1, c_max / ‖c‖₂)
    tanh              B_M(x) = M · tanh(x / M)
    hard_clamp        B_M(x) = min(M, max(−M, x))
    soft_clamp_band   x up to M − ε, then M − ε + ε t (2 − t) with t = (|x| − M + ε) / 2ε, then M; odd
    clamp_ste         hard_clamp forward, identity backward
    none              x

Every operator but `none` is odd, monotone and within ±M for every finite input. The cubic that joins the identity to the
constant with matching slopes over a band of 2ε is the parabola above: its third-order term vanishes.
"""

from collections.abc import Callable
from typing import Any, get_args

import torch
from jaxtyping import Float
from pydantic import PositiveFloat
from torch import Tensor

from tamedit.choices import Frozen, Operator

OPERATORS: tuple[Operator, ...] = get_args(Operator)
BAND = 0.1  # ε as a share of M


class Bounds(Frozen):
    """(c_max, γ_max, β_max, α_max) of one block; None leaves a quantity unbounded. `Bounds()` is the vanilla arm."""

    condition: PositiveFloat | None = None  # c_max
    scale: PositiveFloat | None = None  # γ_max
    shift: PositiveFloat | None = None  # β_max
    gate: PositiveFloat | None = None  # α_max

    def only_condition(self) -> "Bounds":
        """The component ablation that bounds c and leaves the modulation free."""
        return Bounds(condition=self.condition)

    def only_modulation(self) -> "Bounds":
        """The component ablation that bounds (γ, β, α) and leaves c free."""
        return self.model_copy(update={"condition": None})

    def scaled(self, factor: float) -> "Bounds":
        """The same bounds, all multiplied: what a tightness preset does to the reference magnitudes."""
        return Bounds(**{name: None if value is None else value * factor for name, value in self})


def project(condition: Float[Tensor, "B C"], limit: float | None) -> Float[Tensor, "B C"]:
    """ĉ = c · min(1, c_max / ‖c‖₂), example by example. Zero stays zero, and its gradient is finite.

    The norm is taken of c divided by its largest entry, so that it does not overflow for entries near the largest float.
    """
    if limit is None:
        return condition
    tiny = torch.finfo(condition.dtype).tiny
    largest = condition.detach().abs().amax(dim=-1, keepdim=True).clamp_min(tiny)  # (B, 1)
    direction = condition / largest
    length = torch.linalg.vector_norm(direction, dim=-1, keepdim=True).clamp_min(tiny)  # ‖c‖ / largest
    return direction * torch.minimum(largest, limit / length)


class _ClampStraightThrough(torch.autograd.Function):
    """Forward: clamp to ±M. Backward: as if nothing had been clamped."""

    generate_vmap_rule = True

    @staticmethod
    def forward(value: Tensor, limit: float) -> Tensor:
        return value.clamp(-limit, limit)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, float], output: Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0], None


def _soft_clamp_band(value: Tensor, limit: float) -> Tensor:
    band = BAND * limit
    inner = limit - band
    t = ((value.abs() - inner) / (2 * band)).clamp(0, 1)
    bent = value.clamp(-inner, inner) + torch.copysign(band * t * (2 - t), value)
    return torch.where(t < 1, bent, torch.copysign(torch.full_like(value, limit), value))  # M exactly


_BOUND: dict[str, Callable[[Tensor, float], Tensor]] = {
    "tanh": lambda value, limit: limit * torch.tanh(value / limit),
    "hard_clamp": lambda value, limit: value.clamp(-limit, limit),
    "soft_clamp_band": _soft_clamp_band,
    "clamp_ste": lambda value, limit: _ClampStraightThrough.apply(value, limit),
    "none": lambda value, limit: value,
}


def bound(value: Float[Tensor, "*shape"], limit: float | None, operator: Operator = "tanh") -> Float[Tensor, "*shape"]:
    """B_M(value) with M = limit, coordinate by coordinate; the identity where the limit is None."""
    return value if limit is None else _BOUND[operator](value, limit)
