"""The gradient of one parameter per unit, in the form that is cheapest to store until the clip factors are known.

    Kept       G_u itself, n numbers per unit; the sum is Σ_u η_u G_u, one matrix-vector product
    Factored   G_u = Σ_r g_{u,r} a_{u,r}ᵀ held as its two factors, for few rows r; the sum is (η ⊙ g)ᵀ a
    Rows       the rows of an embedding that a unit touched

Every form gives ‖G_u‖ and adds Σ_u η_u G_u to a total. Units marked as bad (their gradient is not finite) add exactly
nothing: their rows are overwritten by zeros first, because 0 · NaN is NaN.

Rounding. The norm of a large kept gradient is taken in two stages (along the last axis, then over the rest), so that
single precision keeps six digits for millions of entries. A factored norm is taken in double precision: with several rows
it cancels, and the square of one factor may vanish in single precision while the other is large.
"""

import math
from typing import Protocol

import torch
from torch import Tensor

ONE_STAGE = 1 << 16  # entries up to which a norm in one stage is exact enough


def widened(values: Tensor) -> Tensor:
    """In double precision, where the device has it (Apple's has not)."""
    return values.float() if values.device.type == "mps" else values.double()


class Piece(Protocol):
    """A parameter's gradient for every unit of a micro-batch."""

    norms: Tensor  # (U,): ‖G_u‖

    def add_to(self, total: Tensor, factors: Tensor, bad: Tensor | None) -> None:
        """total += Σ_u factors_u · G_u, without the units that `bad` marks."""

    def of(self, unit: int) -> Tensor:
        """G_u of one unit, flat."""


class Kept:
    """G_u in full: `gradient` is (U, *shape of the parameter), contiguous."""

    def __init__(self, gradient: Tensor) -> None:
        self.gradient = gradient
        if math.prod(gradient.shape[1:]) > ONE_STAGE:
            gradient = torch.linalg.vector_norm(gradient, dim=-1)
        self.norms = torch.linalg.vector_norm(gradient.flatten(1), dim=1)

    def add_to(self, total: Tensor, factors: Tensor, bad: Tensor | None) -> None:
        if bad is not None:
            self.gradient[bad] = 0
        total.view(-1).addmv_(self.gradient.flatten(1).t(), factors)

    def of(self, unit: int) -> Tensor:
        return self.gradient[unit].flatten().clone()


class Factored:
    """G_u = Σ_r outputs[u, r] ⊗ inputs[u, r], for (U, R, D_out) and (U, R, D_in) with small R.

    ‖G_u‖² = Σ_{r, s} (a_r · a_s)(g_r · g_s), which for R = 1 is ‖a‖² ‖g‖².
    """

    def __init__(self, outputs: Tensor, inputs: Tensor) -> None:
        self.outputs, self.inputs = outputs, inputs
        g, a = widened(outputs), widened(inputs)
        if outputs.shape[1] == 1:
            norms = torch.linalg.vector_norm(g, dim=(1, 2)) * torch.linalg.vector_norm(a, dim=(1, 2))
        else:
            gram = torch.bmm(g, g.transpose(1, 2)) * torch.bmm(a, a.transpose(1, 2))  # (U, R, R)
            norms = gram.sum((1, 2)).clamp_min(0).sqrt()  # clamp keeps NaN
        self.norms = norms.to(outputs.dtype)

    def add_to(self, total: Tensor, factors: Tensor, bad: Tensor | None) -> None:
        weighted, inputs = self.outputs * factors[:, None, None], self.inputs
        if bad is not None:
            weighted = weighted.masked_fill(bad[:, None, None], 0)
            inputs = inputs.masked_fill(bad[:, None, None], 0)
        total.view(len(total), -1).addmm_(weighted.flatten(0, 1).t(), inputs.flatten(0, 1))

    def of(self, unit: int) -> Tensor:
        return (self.outputs[unit].t() @ self.inputs[unit]).flatten()


class Rows:
    """Few rows of a table per unit: `gradient[i]` belongs to row `rows[i]` and unit `units[i]`."""

    def __init__(self, units: Tensor, rows: Tensor, gradient: Tensor, unit_count: int, row_count: int) -> None:
        self.units, self.rows, self.gradient, self.shape = units, rows, gradient, (row_count, gradient.shape[-1])
        squares = widened(torch.linalg.vector_norm(gradient, dim=-1)).square()
        self.norms = squares.new_zeros(unit_count).index_add_(0, units, squares).sqrt().to(gradient.dtype)

    def add_to(self, total: Tensor, factors: Tensor, bad: Tensor | None) -> None:
        weighted = self.gradient * factors[self.units, None]
        if bad is not None:
            weighted = weighted.masked_fill(bad[self.units, None], 0)
        total.index_add_(0, self.rows, weighted)

    def of(self, unit: int) -> Tensor:
        mine, (count, width) = self.units == unit, self.shape
        whole = self.gradient.new_zeros(count, width)
        return whole.index_add_(0, self.rows[mine], self.gradient[mine]).flatten()
