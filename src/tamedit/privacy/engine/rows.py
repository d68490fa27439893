"""Turns any nest of tensors into a list of tensors and back, so that rows can be taken from all of them at once."""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from torch import Tensor

from tamedit.errors import UserError

Rebuild = Callable[[list[Tensor]], Any]


def flatten(batch: Any) -> tuple[list[Tensor], Rebuild]:
    """The tensors of a batch (a tensor, or tuples, lists, mappings, dataclasses of them) and how to put them back."""
    if isinstance(batch, Tensor):
        return [batch], lambda tensors: tensors[0]
    if is_dataclass(batch) and not isinstance(batch, type):
        names = [field.name for field in fields(batch)]
        kind: Any = type(batch)
        return _nest(
            [getattr(batch, name) for name in names], lambda parts: kind(**dict(zip(names, parts, strict=True)))
        )
    if isinstance(batch, Mapping):
        keys = list(batch)
        return _nest([batch[key] for key in keys], lambda parts: dict(zip(keys, parts, strict=True)))
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return _nest(list(batch), lambda parts: type(batch)(*parts))
    if isinstance(batch, tuple | list):
        return _nest(list(batch), type(batch))
    raise UserError(
        f"batch holds a {type(batch).__name__}; build it from tensors, tuples, lists, dicts and dataclasses, "
        "every tensor with one row per example."
    )


def _nest(parts: list[Any], wrap: Callable[[list[Any]], Any]) -> tuple[list[Tensor], Rebuild]:
    flat = [flatten(part) for part in parts]

    def rebuild(tensors: list[Tensor]) -> Any:
        rest, rebuilt = list(tensors), []
        for own, inner in flat:
            rebuilt.append(inner(rest[: len(own)]))
            rest = rest[len(own) :]
        return wrap(rebuilt)

    return [tensor for own, _ in flat for tensor in own], rebuild


def check_rows(tensors: list[Tensor], units: int, draws: int) -> None:
    """Every tensor of the batch has units · draws rows."""
    if units < 0 or draws < 1:
        raise UserError(f"units={units} and draws={draws} must be at least 0 and 1; pass the true counts of the batch.")
    for tensor in tensors:
        if tensor.dim() == 0 or len(tensor) != units * draws:
            raise UserError(
                f"batch holds a tensor of shape {tuple(tensor.shape)}, but units={units} and draws={draws} need "
                f"{units * draws} rows; give one row per example, with the draws of one unit in consecutive rows."
            )
