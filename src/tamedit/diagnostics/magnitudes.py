"""How large the condition and the modulations become when nothing bounds them.

The p99 of ‖c‖, |γ|, |β| and |α| over windows, masks, diffusion steps and blocks is the reference (C₀, Γ₀, B₀, A₀) that the
tightness presets scale. It is measured on simulated or public series, so that it costs no privacy; or on private ones with
noise, and then the ledger is charged.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from tamedit.data.calendar import network_covariates
from tamedit.data.catalogue import PUBLIC
from tamedit.diffusion.process import Process
from tamedit.errors import UserError
from tamedit.model.adaln import BoundedAdaLNZero, Modulation
from tamedit.model.bounds import Bounds
from tamedit.privacy.accountant import Mechanism
from tamedit.privacy.ledger import Ledger
from tamedit.privacy.statistics import noisy_sum
from tamedit.tasks.fit import load_split
from tamedit.training.artifact import load_model
from tamedit.training.folder import load_run
from tamedit.training.recipe import Reference
from tamedit.training.source import example_losses
from tamedit.windows.cut import cut
from tamedit.windows.examples import Examples

QUANTITIES = ("condition", "scale", "shift", "gate")
QUANTILES, REFERENCE_QUANTILE = (0.5, 0.9, 0.95, 0.99, 1.0), 0.99


Seen = dict[str, list[np.ndarray]]  # arrays of ‖c‖, |γ|, |β|, |α| by name


@contextmanager
def recorded(network: torch.nn.Module) -> Iterator[list[Seen]]:
    """Collects ‖c‖ and the modulations while the network runs: one entry a block, and the final layer's."""
    parts = [part for part in network.modules() if isinstance(part, BoundedAdaLNZero)]
    seen: list[Seen] = [{name: [] for name in QUANTITIES} for _ in parts]

    def recorder(own: Seen) -> Any:
        def record(module: torch.nn.Module, inputs: tuple[Any, ...], output: tuple[Modulation, ...]) -> None:
            own["condition"].append(inputs[0].detach().norm(dim=-1).cpu().numpy())
            for modulation in output:
                for name, value in zip(QUANTITIES[1:], modulation, strict=True):
                    if value.any():  # the final layer has no gate: its zeros are no magnitudes
                        own[name].append(value.detach().abs().flatten().cpu().numpy())

        return record

    hooks = [part.register_forward_hook(recorder(own)) for part, own in zip(parts, seen, strict=True)]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()


def together(seen: Sequence[Seen]) -> dict[str, np.ndarray]:
    """Everything that was collected, by name; quantities that were zero throughout are left out."""
    joined = {name: [array for own in seen for array in own[name]] for name in QUANTITIES}
    return {name: np.concatenate(arrays) for name, arrays in joined.items() if arrays}


def magnitudes(
    network: torch.nn.Module, examples: Examples, process: Process, batches: int = 8
) -> dict[str, np.ndarray]:
    """Every ‖c‖, |γ|, |β| and |α| of a network on some of these examples; those that are zero throughout are left out."""
    return together(magnitudes_by_block(network, examples, process, batches))


@torch.no_grad()
def magnitudes_by_block(network: torch.nn.Module, examples: Examples, process: Process, batches: int = 8) -> list[Seen]:
    """The same, block by block."""
    device = next(network.parameters()).device
    with recorded(network) as seen:
        for step in range(batches):
            indices = np.random.default_rng(step).integers(0, len(examples), 64)
            example_losses(network, examples, indices, step, process, device)
    return seen


def reference_bounds(
    network: torch.nn.Module,
    examples: Examples,
    process: Process,
    quantile: float = REFERENCE_QUANTILE,
    batches: int = 8,
) -> Bounds:
    """(C₀, Γ₀, B₀, A₀) of an unbounded network on these examples."""
    seen = magnitudes(network, examples, process, batches)
    return Bounds(**{name: float(np.quantile(values, quantile)) for name, values in seen.items()})


def measure_run(run: Path, *, public: bool = False, anyway: bool = False) -> Reference:
    """The reference magnitudes of a finished run without bounds, on windows of its own training data.

    They are measured without noise. `public` states that the data is public or simulated, `anyway` that it is not.
    """
    config, facts = load_run(run)
    if any(bounds != Bounds() for bounds in config.network.bounds):
        raise UserError(
            f"{run} was trained with bounds, so its magnitudes show the bounds and not the data; train with --bounds off."
        )
    origin: Literal["public", "said to be public", "not public"] = "said to be public" if public else "not public"
    if config.source in PUBLIC:
        origin = "public"
    if origin == "not public" and not anyway:
        raise UserError(
            f"{run} was trained on {config.source}, which is not known to be public, and magnitudes are measured without "
            "noise: no guarantee of a later private run would cover what they reveal. Say --public if the data is public or "
            "simulated, or --not-public-anyway to use them in runs without privacy."
        )
    network, spec = load_model(run)
    _, split = load_split(config.source, **facts.reading)
    windows = cut(network_covariates(split.train, config.calendar), config.window, config.stride)
    examples = Examples(windows, config.masks, spec.scaling_of(), config.examples, config.seed)
    by_block = magnitudes_by_block(network, examples, spec.process)
    seen = together(by_block)
    if set(seen) != set(QUANTITIES):
        raise UserError(f"{run} has not learnt to modulate yet (its modulations are zero); train for more steps.")
    found = {
        name: {f"p{round(100 * share)}": float(np.quantile(values, share)) for share in QUANTILES}
        for name, values in seen.items()
    }
    return Reference(
        magnitudes=Bounds(**{name: own[f"p{round(100 * REFERENCE_QUANTILE)}"] for name, own in found.items()}),
        anchor=config.examples.anchor,
        source=config.source,
        origin=origin,
        quantile=REFERENCE_QUANTILE,
        quantiles=found,
        blocks=tuple(_block_bounds(own, found) for own in by_block),
    )


def _block_bounds(own: Seen, everywhere: dict[str, dict[str, float]]) -> Bounds:
    """A block's own p99; of what it does not have (the gate of the final layer), everyone's."""
    share = f"p{round(100 * REFERENCE_QUANTILE)}"
    found = {name: everywhere[name][share] for name in QUANTITIES}
    found |= {name: float(np.quantile(values, REFERENCE_QUANTILE)) for name, values in together([own]).items()}
    return Bounds(**found)


@torch.no_grad()
def unit_magnitudes(
    network: torch.nn.Module, examples: Examples, process: Process, quantile: float = 0.99, step: int = 0
) -> np.ndarray:
    """(N, 4) each example's own quantile of ‖c‖, |γ|, |β| and |α| over blocks and coordinates: from the example alone."""
    device = next(network.parameters()).device
    rows = []
    for index in range(len(examples)):
        with recorded(network) as seen:
            example_losses(network, examples, np.array([index]), step, process, device)
        found = together(seen)
        rows.append([float(np.quantile(found[name], quantile)) if name in found else 0.0 for name in QUANTITIES])
    return np.asarray(rows)


def private_reference_bounds(
    network: torch.nn.Module,
    examples: Examples,
    process: Process,
    *,
    limits: Bounds,
    noise_multiplier: float,
    ledger: Ledger,
) -> Bounds:
    """(C₀, Γ₀, B₀, A₀) of private examples: the noisy mean of each example's own p99, charged to the ledger first.

    Each magnitude is divided by its public limit and clamped to [0, 1], so that an example's four numbers have a norm of at
    most 2; halved, they move the sum by at most 1. The number of examples is public. The answer lies within the limits.
    """
    most = np.array([getattr(limits, name) or 0.0 for name in QUANTITIES])
    if not (most > 0).all():
        raise UserError("Private bounds need a public limit for each of condition, scale, shift and gate.")
    ledger.charge(Mechanism(1.0, noise_multiplier), "bounds")
    measured = np.nan_to_num(unit_magnitudes(network, examples, process), nan=0.0, posinf=np.inf)
    vectors = np.clip(measured / most, 0.0, 1.0) / 2.0
    mean = 2.0 * noisy_sum(vectors, noise_multiplier, ledger, "bounds") / len(examples)
    return Bounds(**dict(zip(QUANTITIES, (np.clip(mean, 1e-3, 1.0) * most).tolist(), strict=True)))
