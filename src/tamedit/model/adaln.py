"""DP-aware AdaLN-Zero: a condition vector modulates a block, within bounds.

    ĉ = c · min(1, c_max / ‖c‖₂)
    (γ, β, α)_raw = W ĉ + b,        W = 0, b = 0 at the start
    γ = B_{γ_max}(γ_raw), β = B_{β_max}(β_raw), α = B_{α_max}(α_raw)
    v = (1 + γ) ⊙ LN(h) + β,        h ← h + α ⊙ F(v)

The privacy mechanism stays unchanged. Only the forward pass is bounded, so that rare contexts cannot make
the gradients of an example explode. If every bound is None, this is the AdaLN-Zero of DiT, with the same code.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from tamedit.errors import UserError
from tamedit.model.bounds import OPERATORS, Bounds, Operator, bound, project
from tamedit.model.zoo import REFERENCE, tightened

MEDIUM = tightened(REFERENCE["none"], "medium")


class Modulation(NamedTuple):
    """γ, β and α of one branch of a block, for every example."""

    scale: Float[Tensor, "B D"]  # γ
    shift: Float[Tensor, "B D"]  # β
    gate: Float[Tensor, "B D"]  # α


class BoundedAdaLNZero(nn.Module):
    """Maps a condition to bounded modulations, one for every branch of a block (attention, then MLP).

    Put it where a DiT block keeps its `adaLN_modulation`:

        self.adaln = BoundedAdaLNZero(width, condition_width)                     # W = 0: the block is the identity
        attention, mlp = self.adaln(c)                                            # two triples of (B, D)
        h = h + gated(attention, self.attention(modulate(self.norm1(h), attention)))
        h = h + gated(mlp, self.mlp(modulate(self.norm2(h), mlp)))

    Without `bounds` it has those of the preset medium; `Bounds()` leaves everything free. Guarantees, for every finite c and
    every operator but `none`: ‖ĉ‖₂ ≤ c_max, |γ| ≤ γ_max, |β| ≤ β_max, |α| ≤ α_max. The only parameters are those of one
    `nn.Linear`, so every per-example gradient library can handle it.
    """

    def __init__(
        self, width: int, condition_width: int, bounds: Bounds = MEDIUM, operator: Operator = "tanh", branches: int = 2
    ) -> None:
        super().__init__()
        if not isinstance(bounds, Bounds):
            raise UserError(f"bounds={bounds!r} is not possible; give Bounds(…), or Bounds() to leave everything free.")
        if operator not in OPERATORS:
            raise UserError(f"operator={operator!r} is unknown; choose {', '.join(OPERATORS)}.")
        self.bounds = bounds
        self.operator: Operator = operator
        self.branches = branches
        self.projection = nn.Linear(condition_width, branches * 3 * width)
        nn.init.zeros_(self.projection.weight)
        nn.init.zeros_(self.projection.bias)

    def forward(self, condition: Float[Tensor, "B C"]) -> tuple[Modulation, ...]:
        if condition.ndim != 2:
            raise UserError(
                f"The condition has the shape {tuple(condition.shape)}; give one vector per example (B, C), not one per token."
            )
        raw = self.projection(project(condition, self.bounds.condition))  # (B, branches · 3 · D)
        limits = (self.bounds.scale, self.bounds.shift, self.bounds.gate)
        kinds = raw.unflatten(-1, (self.branches, 3, -1)).unbind(2)  # γ, β and α of all branches: (B, branches, D)
        bounded = [bound(kind, limit, self.operator) for kind, limit in zip(kinds, limits, strict=True)]
        return tuple(Modulation(*branch) for branch in zip(*(kind.unbind(1) for kind in bounded), strict=True))

    @torch.no_grad()
    def load_dit(self, weight: Float[Tensor, "R C"], bias: Float[Tensor, " R"]) -> None:
        """Take `adaLN_modulation.1.weight` and `.bias` of a DiT checkpoint; the condition to give is SiLU(c) from then on.

        DiT's rows are (shift, scale, gate) for each branch, ours (scale, shift, gate). DiT's final layer has no gate: ours is 0.
        """
        if self.branches == 1 and 3 * len(bias) == 2 * self.projection.out_features:
            none = len(bias) // 2
            weight, bias = (torch.cat([theirs, torch.zeros_like(theirs[:none])]) for theirs in (weight, bias))
        if weight.shape != self.projection.weight.shape or bias.shape != self.projection.bias.shape:
            raise UserError(
                f"The checkpoint's {tuple(weight.shape)} and {tuple(bias.shape)} do not fit this module's "
                f"{tuple(self.projection.weight.shape)}; check width, condition_width and branches."
            )
        for ours, theirs in ((self.projection.weight, weight), (self.projection.bias, bias)):
            ours.copy_(theirs.unflatten(0, (self.branches, 3, -1))[:, [1, 0, 2]].flatten(0, 2))

    def extra_repr(self) -> str:
        return f"bounds=({self.bounds}), operator={self.operator!r}"


def modulate(normalised: Float[Tensor, "B L D"], modulation: Modulation) -> Float[Tensor, "B L D"]:
    """v = (1 + γ) ⊙ u + β."""
    return torch.addcmul(modulation.shift[:, None, :], normalised, 1 + modulation.scale[:, None, :])


def gated(modulation: Modulation, branch: Float[Tensor, "B L D"]) -> Float[Tensor, "B L D"]:
    """α ⊙ F(v)."""
    return modulation.gate[:, None, :] * branch
