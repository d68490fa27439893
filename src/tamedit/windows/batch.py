"""What the network may see of an example, and what it must predict.

Axis letters, for the whole package:

    B examples · L time steps · K target channels · V known covariates · A features of the anchor · D width ·
    U privacy units · G draws per unit · S samples per window

`Context` holds everything that may reach the network. It is built from observed cells alone, so that no hidden value can
change the condition, the anchor or any other input. `Batch` adds the hidden cells, for the loss.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

T = TypeVar("T", bound="_Tensors")


class _Tensors:
    """Moves and indexes every tensor of a dataclass at once."""

    def _map(self: T, change: Callable[[Any], Any]) -> T:
        return type(self)(**{field.name: change(getattr(self, field.name)) for field in fields(self)})  # type: ignore[arg-type]

    def to(self: T, device: torch.device | str) -> T:
        return self._map(lambda value: value.to(device))

    def __getitem__(self: T, rows: slice | Tensor) -> T:
        return self._map(lambda value: value[rows])


@dataclass(frozen=True, eq=False)
class Context(_Tensors):
    """What may be seen: a function of the observed cells, of the stamps and of nothing else. Model units."""

    values: Float[Tensor, "B L K"]  # observed values, 0 where unknown
    observed: Float[Tensor, "B L K"]  # 1 where a value is observed
    anchor: Float[Tensor, "B L A"]  # what the free distribution says of every cell; 0 without an anchor
    covariates: Float[Tensor, "B L V"]  # known at every step
    channels: Float[Tensor, "B K"]  # 1 for a real channel, 0 for padding

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True, eq=False)
class Batch(_Tensors):
    """A context with what it hides: the residual is the number z that the anchor leaves open (`coordinates`)."""

    context: Context
    residual: Float[Tensor, "B L K"]  # z at hidden cells, 0 elsewhere
    hidden: Float[Tensor, "B L K"]  # 1 where a value exists and is hidden: the loss is taken here

    def __len__(self) -> int:
        return len(self.residual)
