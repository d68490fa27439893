"""Records ‖c‖ and the modulations γ, β, α of a network while it runs."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from tamedit.model.adaln import BoundedAdaLNZero, Modulation

QUANTITIES = ("condition", "scale", "shift", "gate")

Seen = dict[str, list[np.ndarray]]  # ‖c‖ as (B, 1) and |γ|, |β|, |α| as (B, D) of every batch and branch, by name


@contextmanager
def recorded(network: torch.nn.Module) -> Iterator[list[Seen]]:
    """Collects ‖c‖ and the modulations while the network runs: one entry per block, and the final layer's, without a gate."""
    parts = [part for part in network.modules() if isinstance(part, BoundedAdaLNZero)]
    seen: list[Seen] = [{name: [] for name in QUANTITIES} for _ in parts]

    def recorder(own: Seen) -> Any:
        def record(module: BoundedAdaLNZero, inputs: tuple[Any, ...], output: tuple[Modulation, ...]) -> None:
            own["condition"].append(inputs[0].detach().norm(dim=-1, keepdim=True).cpu().numpy())
            names = QUANTITIES[1:] if module.branches > 1 else QUANTITIES[1:3]
            for modulation in output:
                for name, value in zip(names, modulation, strict=False):
                    own[name].append(value.detach().abs().cpu().numpy())

        return record

    hooks = [part.register_forward_hook(recorder(own)) for part, own in zip(parts, seen, strict=True)]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()


def together(seen: Sequence[Seen]) -> dict[str, np.ndarray]:
    """Everything that was collected, by name; quantities that were zero throughout are left out."""
    joined = {name: [array.ravel() for own in seen for array in own[name]] for name in QUANTITIES}
    found = {name: np.concatenate(arrays) for name, arrays in joined.items() if arrays}
    return {name: values for name, values in found.items() if values.any()}


def by_example(seen: Sequence[Seen]) -> list[np.ndarray]:
    """What one batch of B examples showed, for each of QUANTITIES: (B, values), empty where the quantity does not exist."""
    examples = len(seen[0]["condition"][0])
    nothing = np.empty((examples, 0))
    return [np.concatenate([nothing, *(array for own in seen for array in own[name])], axis=1) for name in QUANTITIES]
