"""How large the condition and the modulations become when nothing bounds them.

The p99 of ‖c‖, |γ|, |β| and |α| over windows, masks, diffusion steps and blocks is the reference (C₀, Γ₀, B₀, A₀) that the
tightness presets scale. It is measured here on simulated or public series, so that it costs no privacy; on private ones it is
released with noise (`training/private/released_bounds.py`).
"""

from pathlib import Path

import numpy as np
import torch

from tamedit.data.calendar import network_covariates
from tamedit.data.loading import load_split
from tamedit.diffusion.process import Process
from tamedit.errors import UserError
from tamedit.model.bounds import Bounds
from tamedit.runs.artifact import load_model
from tamedit.runs.folder import load_run
from tamedit.runs.provenance import Reference
from tamedit.runs.start import origin_of
from tamedit.training.modulations import QUANTITIES, Seen, recorded, together
from tamedit.training.source import example_losses
from tamedit.windows.cut import cut
from tamedit.windows.examples import Examples

QUANTILES, REFERENCE_QUANTILE = (0.5, 0.9, 0.95, 0.99, 1.0), 0.99


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
            f"{run} was trained with bounds, so its magnitudes show the bounds, not the data; train with bounds='off'."
        )
    origin = origin_of(config, said=public)
    if origin == "not public" and not anyway:
        raise UserError(
            f"{run} was trained on {config.source}, which is not known to be public, and magnitudes are measured without "
            "noise: no guarantee of a later private run would cover what they reveal. Say public=True if the data is public or "
            "simulated, or anyway=True to use them in runs without privacy."
        )
    network, spec = load_model(run)
    if spec.student is not None:
        raise UserError(f"{run} holds a student, which is asked at few angles alone; measure the run that it is from.")
    _, split = load_split(config.source, study=facts.study, **facts.reading)
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
