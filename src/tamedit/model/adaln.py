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

from tamedit.model.bounds import Bounds, Operator, bound, project


class Modulation(NamedTuple):
    """γ, β and α of one branch of a block, for every example."""

    scale: Float[Tensor, "B D"]  # γ
    shift: Float[Tensor, "B D"]  # β
    gate: Float[Tensor, "B D"]  # α


class BoundedAdaLNZero(nn.Module):
    """Maps a condition to bounded modulations, one for every branch of a block (attention, then MLP).

    Put it where a DiT block keeps its `adaLN_modulation`:

        self.adaln = BoundedAdaLNZero(width, condition_width, Bounds(condition=8, scale=1, shift=1, gate=1))
        attention, mlp = self.adaln(c)                                            # two triples of (B, D)
        h = h + gated(attention, self.attention(modulate(self.norm1(h), attention)))
        h = h + gated(mlp, self.mlp(modulate(self.norm2(h), mlp)))

    Guarantees, for every finite c: ‖ĉ‖₂ ≤ c_max, |γ| ≤ γ_max, |β| ≤ β_max, |α| ≤ α_max. The only parameters are those of
    one `nn.Linear`, so every per-example gradient library can handle it.
    """

    def __init__(
        self,
        width: int,
        condition_width: int,
        bounds: Bounds | None = None,
        operator: Operator = "tanh",
        branches: int = 2,
    ) -> None:
        super().__init__()
        self.bounds = bounds or Bounds()
        self.operator: Operator = operator
        self.branches = branches
        self.projection = nn.Linear(condition_width, branches * 3 * width)
        nn.init.zeros_(self.projection.weight)
        nn.init.zeros_(self.projection.bias)

    def forward(self, condition: Float[Tensor, "B C"]) -> tuple[Modulation, ...]:
        raw = self.projection(project(condition, self.bounds.condition))  # (B, branches · 3 · D)
        limits = (self.bounds.scale, self.bounds.shift, self.bounds.gate)
        return tuple(
            Modulation(
                *(bound(part, limit, self.operator) for part, limit in zip(triple.chunk(3, -1), limits, strict=True))
            )
            for triple in raw.chunk(self.branches, -1)
        )

    def extra_repr(self) -> str:
        return f"bounds=({self.bounds}), operator={self.operator!r}"


def modulate(normalised: Float[Tensor, "B L D"], modulation: Modulation) -> Float[Tensor, "B L D"]:
    """v = (1 + γ) ⊙ u + β."""
    return torch.addcmul(modulation.shift[:, None, :], normalised, 1 + modulation.scale[:, None, :])


def gated(modulation: Modulation, branch: Float[Tensor, "B L D"]) -> Float[Tensor, "B L D"]:
    """α ⊙ F(v)."""
    return modulation.gate[:, None, :] * branch
