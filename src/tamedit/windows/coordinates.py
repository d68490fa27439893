"""The coordinates in which a network sees the hidden cells of a window: there and back.

    without an anchor      z = (x − level) / scale                 (`Standardised`, the paper's form)
    free distribution      z = Φ⁻¹(F_t(x))                         (`free_distribution.FreeDistribution`)

Both are made from the window's observed cells and from public facts alone.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor


@runtime_checkable
class Coordinates(Protocol):
    """A monotone map of every cell, with its exact inverse."""

    def to_z(self, values: Float[Tensor, "B L K"]) -> Float[Tensor, "B L K"]:
        """What the network predicts, of a value in the data's units for every cell."""

    def from_z(self, z: Float[Tensor, "B S L K"]) -> Float[Tensor, "B S L K"]:
        """The inverse, for S numbers per cell."""


@dataclass(frozen=True, eq=False)
class Standardised:
    """Every cell in units of its window and channel."""

    level: Float[Tensor, "B 1 K"]
    scale: Float[Tensor, "B 1 K"]

    def to_z(self, values: Float[Tensor, "B L K"]) -> Float[Tensor, "B L K"]:
        return (values - self.level) / self.scale

    def from_z(self, z: Float[Tensor, "B S L K"]) -> Float[Tensor, "B S L K"]:
        return z * self.scale[:, None] + self.level[:, None]
