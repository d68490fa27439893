"""Private calibration: (C₀, Γ₀, B₀, A₀) of the private data itself, released with noise and charged to the ledger.

The public model that training starts from is run once on every example, without its bounds. This gives each example some
values of ‖c‖, |γ|, |β| and |α|; they are clamped to [0, LIMIT · public reference], and their level and scale are released
like those of readings (`privacy/statistics.py`: two Gaussian releases, one vector of norm at most 1 per example). Then

    p99 ≈ level + z · scale     z = 2.33 of a normal for ‖c‖;  2.89 of the absolute value of one for |γ|, |β|, |α|

A p99 itself would need noise that is small compared with one example in a hundred. A network with random initial weights has no
modulations to measure: γ = β = α = 0.
"""

import json
import math
from pathlib import Path

import numpy as np
import torch

from tamedit.errors import UserError
from tamedit.files import write_text
from tamedit.model.bounds import Bounds
from tamedit.model.dit import DiffusionTransformer
from tamedit.model.zoo import NetworkConfig
from tamedit.runs.config import RunConfig
from tamedit.runs.folder import BOUNDS
from tamedit.runs.start import Initial
from tamedit.training.modulations import QUANTITIES, by_example, recorded
from tamedit.training.private.budget import Budget
from tamedit.training.source import example_losses
from tamedit.windows.examples import Examples

WHAT = "bounds"  # in the ledger
LIMIT = 4.0  # times the public reference: magnitudes are clamped to this
Z = (2.33, 2.89, 2.89, 2.89)
AT_ONCE = 256
WORST_ERROR = 0.25  # of the public reference; with more noise than that the reference itself is the better guess


def private_network(
    config: RunConfig, initial: Initial | None, examples: Examples, budget: Budget, folder: Path
) -> NetworkConfig:
    """The network with bounds from private magnitudes: released once, stored with the run, read again on resume."""
    place, shape = folder / BOUNDS, config.network
    if budget.world.same_number(place.is_file()):
        budget.check_paid(WHAT, place)
    else:
        released = _released(config, initial, examples, budget)
        if budget.world.first:
            write_text(place, json.dumps([one.model_dump() for one in released], indent=2) + "\n")
        budget.world.wait()
    kept = tuple(Bounds(**one) for one in json.loads(place.read_text(encoding="utf-8")))
    return shape.model_copy(update={"bounds": kept})


def _released(config: RunConfig, initial: Initial | None, examples: Examples, budget: Budget) -> tuple[Bounds, ...]:
    """One private entry for each entry of the network's public bounds, of the same tightness."""
    assert initial is not None
    assert config.private_bounds is not None
    public, tightness = config.network.bounds, config.private_bounds
    reference = np.array([[getattr(one, name) / tightness for name in QUANTITIES] for one in public]).ravel()
    values = example_magnitudes(config, initial, examples) if budget.ledger is not None else np.empty((0, 0, 0))
    level, scale = budget.release(values, np.zeros_like(reference), LIMIT * reference, WHAT)
    found = np.array(level) + np.tile(Z, len(public)) * np.array(scale)
    found = tightness * np.clip(found, 1e-3 * reference, LIMIT * reference).reshape(len(public), -1)
    return tuple(Bounds(**dict(zip(QUANTITIES, row, strict=True))) for row in found.tolist())


def expected_error(examples: int, channels: int, noise_multiplier: float) -> float:
    """The standard deviation of a released magnitude, as a share of its public reference, at worst (z = 2.89).

    level: LIMIT / 2 · σ √(2 channels) / N;   scale: LIMIT · √(π/2) · σ √channels / N.
    """
    level = LIMIT / 2 * math.sqrt(2 * channels)
    scale = LIMIT * math.sqrt(math.pi / 2 * channels)
    return noise_multiplier * math.hypot(level, max(Z) * scale) / examples


def refuse_noise(config: RunConfig, examples: int) -> None:
    """Raise one sentence, before anything is written or charged, if private bounds would be mostly noise."""
    if config.private_bounds is None or config.privacy is None:
        return
    channels = len(QUANTITIES) * len(config.network.bounds)
    error = expected_error(examples, channels, config.privacy.statistics_noise)
    if error > WORST_ERROR:
        raise UserError(
            f"Private bounds from so few examples would be off by more than {WORST_ERROR:.0%} of the public reference, mostly "
            "noise; use the bounds of a preset, or measure on public data (`tamedit diagnose`) and give `reference`."
        )


@torch.no_grad()
def example_magnitudes(config: RunConfig, initial: Initial, examples: Examples) -> np.ndarray:
    """(N, values, channels) what every example shows the unbounded public model, each from the example alone; NaN: no value."""
    free = DiffusionTransformer(config.network.model_copy(update={"bounds": (Bounds(),)}))
    free.load_state_dict(initial.weights)
    by_block = len(config.network.bounds) > 1
    rows = []
    for first in range(0, len(examples), AT_ONCE):
        indices = np.arange(first, min(first + AT_ONCE, len(examples)))
        with recorded(free) as seen:
            example_losses(free, examples, indices, 0, config.process, torch.device("cpu"))
        groups = [[own] for own in seen] if by_block else [seen]
        columns = [column for group in groups for column in by_example(group)]
        width = max(column.shape[1] for column in columns)
        padded = [np.pad(one, ((0, 0), (0, width - one.shape[1])), constant_values=np.nan) for one in columns]
        rows.append(np.stack(padded, axis=-1).astype(np.float64))
    return np.concatenate(rows)
