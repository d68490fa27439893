"""An exponential moving average of the weights: post-processing, so it costs no privacy.

    θ̄ ← θ̄ + (1 − d_t)(θ − θ̄),      d_t = min(d, (1 + t) / (10 + t))

The rising d_t forgets the random start in short runs; after about 10 / (1 − d) steps it is d.
"""

import torch
from torch import Tensor, nn


class MovingAverage:
    """The averaged weights of a network, by name."""

    def __init__(self, network: nn.Module, decay: float) -> None:
        self.decay = decay
        self.weights: dict[str, Tensor] = {name: p.detach().clone() for name, p in network.named_parameters()}

    @torch.no_grad()
    def update(self, network: nn.Module, step: int) -> None:
        """Fold in the weights after `step` steps."""
        decay = min(self.decay, (1 + step) / (10 + step))
        torch._foreach_lerp_(list(self.weights.values()), [p.detach() for p in network.parameters()], 1 - decay)
