"""What a run is looked at for beside its gradients: the conditioning path over training, and the loss by noise level.

    magnitudes      p50 and p99 of ‖c‖, |γ|, |β| and |α| on the same examples, LOOKS times on the way
    loss by time    the trained network's loss at fixed diffusion steps t, on test windows. ε-prediction makes of an error δ at
                    step t an error δ √(1 − ᾱ_t) / √ᾱ_t of the sample, so that the same loss weighs more at large t

Not private: measured without noise.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tamedit.data.calendar import network_covariates
from tamedit.data.split import Split
from tamedit.diffusion.loss import denoising_loss
from tamedit.runs.config import RunConfig
from tamedit.runs.folder import NOT_PRIVATE
from tamedit.tasks.model import Model
from tamedit.training.modulations import recorded, together
from tamedit.training.source import example_losses, noised_batch
from tamedit.windows.cut import cut
from tamedit.windows.examples import Examples

LOOKS, EXAMPLES = 20, 64
TIMES = (25, 100, 200, 300, 400, 500, 600, 700, 800, 900, 975)
FILE = "magnitudes.jsonl"


class Watcher:
    """Measures the conditioning path now and then; one line of JSON per look, so that a killed run loses none."""

    def __init__(self, config: RunConfig, folder: Path) -> None:
        self.config, self.path = config, folder / NOT_PRIVATE / FILE
        self.every = max(config.training.steps // LOOKS, 1)

    @torch.no_grad()
    def __call__(self, step: int, network: torch.nn.Module, examples: Examples) -> None:
        if step % self.every:
            return
        indices = np.random.default_rng(0).integers(0, len(examples), EXAMPLES)
        with recorded(network) as seen:
            example_losses(network, examples, indices, 0, self.config.process, next(network.parameters()).device)
        found = {name: np.quantile(values, (0.5, 0.99)).tolist() for name, values in together(seen).items()}
        with self.path.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps({"step": step, **found}) + "\n")


def magnitude_curves(folder: Path) -> dict[str, list[float]]:
    """p99 of each quantity by step; a step that was done twice counts once."""
    path = folder / NOT_PRIVATE / FILE
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    looks: dict[int, dict[str, Any]] = {one["step"]: one for one in map(json.loads, lines)}
    curves: dict[str, list[float]] = {"magnitude_steps": [float(step) for step in looks]}
    for name in ("condition", "scale", "shift", "gate"):
        curves[f"{name}_p99"] = [one[name][1] if name in one else 0.0 for one in looks.values()]
    return curves


@torch.no_grad()
def losses_by_time(model: Model, config: RunConfig, split: Split) -> dict[str, list[float]]:
    """The mean loss of test windows at each of TIMES."""
    windows = cut(network_covariates(split.test, config.calendar), config.window, config.stride)
    examples = Examples(windows, config.masks, model.spec.scaling_of(), config.examples, seed=0)
    indices = np.linspace(0, len(examples) - 1, EXAMPLES).astype(np.int64)
    batch, time, epsilon = noised_batch(examples, indices, 0, config.process)
    losses = [
        float(denoising_loss(model.network, batch, torch.full_like(time, at), epsilon, config.process).mean())
        for at in TIMES
    ]
    return {"times": [float(at) for at in TIMES], "loss_by_time": losses}
