"""How large the condition and the modulations become when nothing bounds them.

The p99 of ‖c‖, |γ|, |β| and |α| over windows, masks, diffusion steps and blocks is the reference (C₀, Γ₀, B₀, A₀) that the
tightness presets scale. It is measured on simulated or public series, so that it costs no privacy.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from tamedit.diffusion.process import Process
from tamedit.model.adaln import BoundedAdaLNZero, Modulation
from tamedit.model.bounds import Bounds
from tamedit.training.source import example_losses
from tamedit.windows.examples import Examples

QUANTITIES = ("condition", "scale", "shift", "gate")


@contextmanager
def recorded(network: torch.nn.Module) -> Iterator[dict[str, list[np.ndarray]]]:
    """Collects ‖c‖ and the modulations of every block while the network runs."""
    seen: dict[str, list[np.ndarray]] = {name: [] for name in QUANTITIES}

    def record(module: torch.nn.Module, inputs: tuple[Any, ...], output: tuple[Modulation, ...]) -> None:
        seen["condition"].append(inputs[0].detach().norm(dim=-1).cpu().numpy())
        for modulation in output:
            for name, value in zip(QUANTITIES[1:], modulation, strict=True):
                if value.any():  # the final layer has no gate: its zeros are no magnitudes
                    seen[name].append(value.detach().abs().flatten().cpu().numpy())

    hooks = [part.register_forward_hook(record) for part in network.modules() if isinstance(part, BoundedAdaLNZero)]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()


@torch.no_grad()
def reference_bounds(
    network: torch.nn.Module, examples: Examples, process: Process, quantile: float = 0.99, batches: int = 8
) -> Bounds:
    """(C₀, Γ₀, B₀, A₀) of an unbounded network on these examples."""
    device = next(network.parameters()).device
    with recorded(network) as seen:
        for step in range(batches):
            indices = np.random.default_rng(step).integers(0, len(examples), 64)
            example_losses(network, examples, indices, step, process, device)
    values = {name: float(np.quantile(np.concatenate(parts), quantile)) for name, parts in seen.items() if parts}
    return Bounds(**values)
