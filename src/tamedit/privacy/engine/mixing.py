"""Does a module mix examples? Then no gradient belongs to one unit, and clipping bounds nothing.

Tested before a layer's first gradient is used, and again while some layer's own gradient was zero. Two tests:

    reach    the loss of one unit flows back to no other unit's rows; the error names the layer
    alone    the gradient of a unit is the same when its rows are alone in the batch. A statistic of the batch without a gradient
             of its own (detached) is found here: it changes other units' gradients, which no clipping notices

A tiny gradient can be a sum of large terms that cancel, and then two batches round it differently by more than TOLERANCE. Such a
unit is compared again in double precision: rounding goes away there, mixing stays.

A few units are tested, those whose gradient alone is finite; beside a unit that is NaN it must be what it was. If no unit is
finite, the next micro-batch is tested. Nothing of this changes what the engine computes: random numbers and memory are
put back.
"""

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from tamedit.errors import UserError
from tamedit.privacy.engine.layers import Site, Tape
from tamedit.privacy.engine.pieces import Piece, widened
from tamedit.privacy.engine.rows import Rebuild
from tamedit.privacy.engine.workspace import Workspace

TOLERANCE = 1e-4  # of a gradient's norm; batches of other sizes round differently, by about 1e-6
TESTED = 3  # units
RANDOM = (
    "The loss draws random numbers, so it could not be tested whether a statistic of the batch without a gradient mixes "
    "examples; draw them before, as a part of the batch, and it will be."
)
Gradient = dict[str, Tensor]  # of one unit, flat, by parameter


class Passes(Protocol):
    """What computes the pieces of a micro-batch, layer by layer."""

    module: nn.Module
    tape: Tape
    sites: list[Site]

    def once(
        self,
        loss_function: Callable[[Any, Any], Tensor],
        tensors: list[Tensor],
        rebuild: Rebuild,
        units: int,
        draws: int,
        probed: Sequence[int] = (),
    ) -> tuple[Tensor, dict[str, Piece]]: ...


def refuse_mixing(
    backend: Passes,
    loss_function: Callable[[Any, Any], Tensor],
    tensors: list[Tensor],
    rebuild: Rebuild,
    units: int,
    draws: int,
) -> None:
    """Raise one sentence if the units of this micro-batch do not have gradients of their own."""

    def alone(unit: int, tensors: list[Tensor] = tensors) -> tuple[Tensor, Gradient]:
        rows = [tensor[unit * draws : (unit + 1) * draws] for tensor in tensors]
        losses, pieces = backend.once(loss_function, rows, rebuild, 1, draws)
        return losses, {name: piece.of(0).detach() for name, piece in pieces.items()}

    def in_double(unit: int) -> tuple[Gradient, Gradient]:
        wide = [tensor.double() if tensor.is_floating_point() else tensor for tensor in tensors]
        with _double(backend.module):
            first = alone(unit, wide)[1]
            pieces = backend.once(loss_function, wide, rebuild, units, draws)[1]
        return first, {name: piece.of(unit).detach() for name, piece in pieces.items()}

    before = [site.verified for site in backend.sites]
    with _aside(backend, {tensor.device for tensor in tensors}):
        expected: dict[int, Gradient] = {}
        for unit in sorted(range(units), key=lambda unit: (unit % max(units // TESTED, 1), unit)):
            losses, gradient = alone(unit)
            if math.isfinite(_norm(gradient)):
                expected[unit] = gradient
                again = alone(unit)[0] if len(expected) == 1 else losses
                if not torch.equal(losses, again):
                    warnings.warn(RANDOM, stacklevel=2)
                    expected = {unit: {}}
                    break
            if len(expected) == TESTED:
                break
        _, pieces = backend.once(loss_function, tensors, rebuild, units, draws, probed=list(expected))
        for unit, gradient in expected.items():
            both = gradient, {name: piece.of(unit).detach() for name, piece in pieces.items()}
            if gradient and not _apart(*both) <= TOLERANCE:  # NaN, too
                with suppress(RuntimeError, TypeError):  # a module or a device that has no double
                    both = in_double(unit)
                _compare(*both)
    if not expected:  # nothing finite was there to compare: the next micro-batch is tested
        for site, verified in zip(backend.sites, before, strict=True):
            site.verified = verified


@contextmanager
def _aside(backend: Passes, devices: set[torch.device]) -> Iterator[None]:
    """In full precision, with memory and random numbers that are put back."""
    kept, backend.tape.workspace = backend.tape.workspace, Workspace()
    kinds = {device.type for device in devices}
    try:
        kind = kinds.pop() if len(kinds) == 1 else "cpu"
        cuda = [device for device in devices if device.type == "cuda"]
        with torch.random.fork_rng(devices=cuda), torch.autocast(kind, enabled=False):
            yield
    finally:
        backend.tape.workspace = kept


def _norm(gradient: Gradient) -> float:
    return math.sqrt(sum(float(widened(part).square().sum()) for part in gradient.values()))


def _apart(alone: Gradient, together: Gradient) -> float:
    """The norm of the difference, as a share of the larger norm."""
    none = {name: torch.zeros_like(part) for name, part in {**alone, **together}.items()}
    apart = {name: alone.get(name, zero) - together.get(name, zero) for name, zero in none.items()}
    return _norm(apart) / (max(_norm(alone), _norm(together)) or 1.0)


def _compare(alone: Gradient, together: Gradient) -> None:
    share = _apart(alone, together)
    if not share <= TOLERANCE:
        raise UserError(
            f"the gradient of a unit has the norm {_norm(alone):.4g} alone and {_norm(together):.4g} in a batch, and differs by "
            f"{share:.1e} of it: the module or the loss mixes examples; do not use statistics over the batch, do not divide by a "
            "count over it, and let only the caller of the engine turn on autocast."
        )


@contextmanager
def _double(module: nn.Module) -> Iterator[None]:
    """The module's parameters and buffers in double precision, then as they were to the bit."""
    kept = [(one, one.data) for one in (*module.parameters(), *module.buffers()) if one.is_floating_point()]
    try:
        for one, data in kept:
            one.data = data.double()
        yield
    finally:
        for one, data in kept:
            one.data = data
