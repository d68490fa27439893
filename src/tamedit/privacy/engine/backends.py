"""Two ways to the per-unit gradients of a micro-batch: book-keeping (one backward pass) and `torch.func` (slower)."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from tamedit.errors import UserError
from tamedit.privacy.engine.bare import BareSite
from tamedit.privacy.engine.inspection import refuse_batch_statistics, sites_of
from tamedit.privacy.engine.layers import Tape
from tamedit.privacy.engine.mixing import refuse_mixing
from tamedit.privacy.engine.pieces import Kept, Piece
from tamedit.privacy.engine.rows import Rebuild

LossFunction = Callable[[Any, Any], Tensor]


class Backend(Protocol):
    def run(
        self, loss_function: LossFunction, tensors: list[Tensor], rebuild: Rebuild, units: int, draws: int
    ) -> tuple[Tensor, dict[str, Piece]]:
        """The (U · G,) losses, and the pieces by parameter name; a parameter without gradient has none."""


def checked_losses(losses: Tensor, examples: int) -> Tensor:
    if not isinstance(losses, Tensor) or losses.shape != (examples,):
        shape = tuple(losses.shape) if isinstance(losses, Tensor) else type(losses).__name__
        raise UserError(
            f"loss_function returned {shape} for {examples} examples; return one loss per example, shape ({examples},), "
            "not reduced over the batch."
        )
    return losses


class BookKeeping:
    """Catches inputs and output gradients of every layer during one forward and one backward pass."""

    def __init__(self, module: nn.Module) -> None:
        self.module, self.tape = module, Tape()
        self.sites = sites_of(module, self.tape)
        self.bare = [site for site in self.sites if isinstance(site, BareSite)]

    @contextmanager
    def _caught(self) -> Iterator[None]:
        """Sites replace their layers."""
        layers = [site for site in self.sites if not isinstance(site, BareSite)]
        before = [site.module.__dict__.get("forward") for site in layers]
        try:
            for site in layers:
                site.module.forward = site.forward
            for bare in self.bare:
                bare.expand()
            yield
        finally:
            for site, own in zip(layers, before, strict=True):
                del site.module.forward
                if own is not None:
                    site.module.forward = own
            for bare in self.bare:
                bare.restore()

    def run(
        self, loss_function: LossFunction, tensors: list[Tensor], rebuild: Rebuild, units: int, draws: int
    ) -> tuple[Tensor, dict[str, Piece]]:
        losses, pieces = self.once(loss_function, tensors, rebuild, units, draws)
        unsure = [name for site in self.sites if not site.verified for name in site.names.values()]
        if units > 1 and any(name in pieces and pieces[name].norms.any() for name in unsure):
            refuse_mixing(self, loss_function, tensors, rebuild, units, draws)
        return losses, pieces

    def once(
        self,
        loss_function: LossFunction,
        tensors: list[Tensor],
        rebuild: Rebuild,
        units: int,
        draws: int,
        probed: Sequence[int] = (),
    ) -> tuple[Tensor, dict[str, Piece]]:
        """One forward and one backward pass; then, for each unit that is `probed`, one of its loss alone."""
        self.tape.units, self.tape.draws, self.tape.probed = units, draws, None
        for site in self.sites:
            site.used = False
        with self._caught(), torch.enable_grad():
            losses = checked_losses(loss_function(self.module, rebuild(tensors)), units * draws)
            if losses.requires_grad:
                each = torch.full_like(losses, 1 / draws)  # the draws of a unit are averaged before clipping
                self._flow(losses, each, retain=bool(probed))
                for unit in probed:
                    self.tape.probed = unit
                    alone = torch.zeros_like(losses)
                    alone[unit * draws : (unit + 1) * draws] = 1
                    self._flow(losses, alone, retain=True)
                self.tape.probed = None
        pieces = {name: piece for site in self.sites for name, piece in site.pieces.items()}
        for site in self.sites:
            site.pieces = {}
        return losses.detach(), pieces

    def _flow(self, losses: Tensor, weights: Tensor, retain: bool) -> None:
        """One backward pass. A parameter that autograd reaches by itself is used outside its layer: an error."""
        names: list[str] = []
        owned: list[Tensor] = []
        for site in self.sites:
            if not isinstance(site, BareSite):
                names += site.names.values()
                owned += [getattr(site.module, key) for key in site.names]
        copies = [(site, key, copy) for site in self.bare for key, copy in site.copies.items()]
        wanted = [*owned, *(copy for _, _, copy in copies), self.tape.anchor]
        found = torch.autograd.grad(losses, wanted, weights, retain_graph=retain, allow_unused=True)
        for name, gradient in zip(names, found, strict=False):
            if gradient is not None:
                raise UserError(
                    f"parameter {name!r} is used outside the layer that owns it; call the layer itself and let nothing "
                    "else touch its parameters, or pass fallback='torch.func'."
                )
        for (site, key, _), gradient in zip(copies, found[len(owned) :], strict=False):
            if gradient is not None:
                site.receive_copies({key: gradient})


class _Loss(nn.Module):
    """The loss as a module, so that `functional_call` can exchange the parameters."""

    def __init__(self, module: nn.Module, loss_function: LossFunction) -> None:
        super().__init__()
        self.module, self.loss_function = module, loss_function

    def forward(self, batch: Any, examples: int) -> tuple[Tensor, Tensor]:
        losses = checked_losses(self.loss_function(self.module, batch), examples)
        return losses.mean(), losses


class TorchFunc:
    """`vmap` of `grad`, one unit at a time: any module without batch statistics, all gradients held at once."""

    def __init__(self, module: nn.Module) -> None:
        refuse_batch_statistics(module)
        self.module = module

    def run(
        self, loss_function: LossFunction, tensors: list[Tensor], rebuild: Rebuild, units: int, draws: int
    ) -> tuple[Tensor, dict[str, Piece]]:
        whole = _Loss(self.module, loss_function)
        parameters = {name: value.detach() for name, value in whole.named_parameters() if value.requires_grad}

        def loss(values: dict[str, Tensor], *rows: Tensor) -> tuple[Tensor, Tensor]:
            result: tuple[Tensor, Tensor] = torch.func.functional_call(whole, values, (rebuild(list(rows)), draws))
            return result

        per_unit = torch.func.grad(loss, has_aux=True)
        by_unit = [tensor.reshape(units, draws, *tensor.shape[1:]) for tensor in tensors]
        in_axes = (None, *(0 for _ in by_unit))
        gradients, losses = torch.func.vmap(per_unit, in_axes, randomness="different")(parameters, *by_unit)
        pieces: dict[str, Piece] = {
            name.removeprefix("module."): Kept(gradient.contiguous()) for name, gradient in gradients.items()
        }
        return losses.flatten(), pieces
