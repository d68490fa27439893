"""Parameters that a module uses by itself, outside any layer: learned positions, a learned token, a gain.

What a module does with such a parameter is not known, but a leading axis of 1 is there to broadcast over the examples.
So one copy per example replaces the parameter during the forward pass, and the gradient of the copies is the
per-example gradient. If a module uses that axis in another way, the probe finds it and raises an error.
"""

from typing import Any

from torch import Tensor

from tamedit.privacy.engine.layers import Site, Tape
from tamedit.privacy.engine.pieces import Kept


class BareSite(Site):
    """Parameters with a leading axis of 1 that a module uses by itself: one copy per example replaces them."""

    def __init__(self, name: str, module: Any, tape: Tape) -> None:
        super().__init__(name, module, tape)
        self.parameters = {key: module._parameters[key] for key in self.names}
        self.copies: dict[str, Tensor] = {}

    def expand(self) -> None:
        examples = self.tape.units * self.tape.draws
        for key, parameter in self.parameters.items():
            shape = (examples, *parameter.shape[1:])
            self.copies[key] = parameter.detach().expand(shape).requires_grad_()
            self.module._parameters[key] = self.copies[key]

    def restore(self) -> None:
        self.module._parameters.update(self.parameters)
        self.copies = {}

    def receive_copies(self, gradients: dict[str, Tensor]) -> None:
        for key, gradient in gradients.items():
            by_unit = gradient.reshape(self.tape.units, self.tape.draws, *gradient.shape[1:])
            if self.tape.probed is not None:
                self.probe(by_unit, self.tape.probed)
            else:
                summed = by_unit.sum(1, keepdim=True)  # (U, 1, …), the parameter's own shape
                self.pieces[self.names[key]] = Kept(summed)
