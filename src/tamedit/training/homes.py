"""The model that ships with the package: simulated homes, trained once for everyone, so that nobody waits for a public stage.

It is trained on fleets with rows every 60, 30 and 15 minutes in turn: the network knows no row's length, only its place in the
window, the calendar and what the free distribution says of it. `tools/homes_model.py` makes it anew, to the bit on the same
machine and version of torch. It contains nobody's data. The simulator's constants owe a little to `ideal` (`data.simulate`).
"""

from dataclasses import dataclass, replace
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
import torch

from tamedit.choices import Anchor
from tamedit.data.calendar import network_covariates
from tamedit.data.series import Series
from tamedit.data.simulate import simulate
from tamedit.errors import UserError
from tamedit.model.dit import DiffusionTransformer
from tamedit.model.tuning import Tuning
from tamedit.model.widening import widened
from tamedit.model.zoo import REFERENCE, SIZES, tightened
from tamedit.runs.artifact import save_model
from tamedit.runs.config import RunConfig, Speed
from tamedit.runs.start import Initial, initial_of
from tamedit.statics import Static, columns_of
from tamedit.streams import purpose_seed
from tamedit.training.loop import Progress, Trainer
from tamedit.training.public import FACTS, SOURCE, VARIETY, public_config
from tamedit.training.run import describe
from tamedit.training.scales import make_scaling
from tamedit.training.source import PlainGradients
from tamedit.windows.cut import cut
from tamedit.windows.examples import Examples

DIGEST = "c07dd591fd89e9eb"  # of its weights
PLACE = files("tamedit") / "shipped" / "homes"
SHIPPED_SOURCE = f"{SOURCE}, the model that ships with the package"
SECONDS = (3600, 1800, 900)
STEPS, BATCH, SEED = 3500, 64, 2026


@dataclass(frozen=True)
class Fleet:
    """Simulated homes with one length of row, and how often a step trains on them."""

    minutes: int
    meters: int
    weeks: int
    window: int
    turns: int


FLEETS = (Fleet(60, 600, 12, 168, 4), Fleet(30, 200, 6, 96, 1), Fleet(15, 200, 4, 192, 1))


def homes_of(fleet: Fleet) -> Series:
    """Some weeks of each home, at any season of the year."""
    rows = 60 // fleet.minutes * 168
    year = simulate(
        meters=fleet.meters, hours=(52 + fleet.weeks) * 168, seed=SEED, variety=VARIETY, minutes=fleet.minutes
    )
    starts = rows * np.random.default_rng(SEED).integers(0, 52, fleet.meters)
    return year.between(starts, starts + fleet.weeks * rows)


def homes_config(series: Series, window: int, steps: int = STEPS) -> RunConfig:
    """The configuration of one fleet; all share the network."""
    return public_config(
        series,
        SHIPPED_SOURCE,
        bounds=tightened(REFERENCE["free"], "medium"),
        network=SIZES["mini"],
        steps=steps,
        batch_size=BATCH,
        window=window,
    )


class InTurn:
    """The ordinary gradient, of one fleet after the other."""

    def __init__(self, sources: list[PlainGradients], turns: list[int]) -> None:
        self.sources = [source for source, often in zip(sources, turns, strict=True) for _ in range(often)]

    def __call__(self, step: int) -> dict[str, float]:
        return self.sources[step % len(self.sources)](step)


def train_homes(
    out: Path,
    *,
    fleets: tuple[Fleet, ...] = FLEETS,
    steps: int = STEPS,
    speed: Speed | None = None,
    resume: bool = False,
    progress: Progress | None = None,
) -> bool:
    """Train the model and leave it in `out`; whether it is finished (it can be stopped and resumed)."""
    if speed and speed.threads:
        torch.set_num_threads(speed.threads)
    everything = [homes_of(fleet) for fleet in fleets]
    configs = [homes_config(series, one.window, steps) for series, one in zip(everything, fleets, strict=True)]
    torch.manual_seed(purpose_seed(SEED, "weights"))
    network = DiffusionTransformer(configs[0].network.model_copy(update={"length": max(one.window for one in fleets)}))
    scaling = make_scaling(configs[0], FACTS, everything[0])
    sources = []
    for series, config in zip(everything, configs, strict=True):
        windows = cut(network_covariates(series, config.calendar), config.window, config.stride)
        examples = Examples(windows, config.masks, scaling, config.examples, SEED)
        sources.append(PlainGradients(network, examples, config.process, BATCH))
    out.mkdir(parents=True, exist_ok=True)
    trainer = Trainer(network, configs[0].training, out, speed=speed, progress=progress)
    if resume:
        trainer.resume()
    if not trainer.run(InTurn(sources, [one.turns for one in fleets])).finished:
        return False
    save_model(out, describe(configs[0], FACTS, everything[0], scaling, None), trainer.weights())
    return True


def homes_start(series: Series, anchor: Anchor = "free", *, tuning: Tuning = "all", rank: int = 4) -> Initial:
    """The model that ships with the package, for a run on `series`; attributes of homes are 0 columns of it at first."""
    if anchor != "free":
        raise UserError(f"The model of homes has the anchor 'free', not {anchor!r}; leave out `anchor` or `init`.")
    if len(series.targets) != 1 or series.other_covariates:
        raise UserError(
            "The model of homes has one target and no covariates except the calendar, but these series have "
            f"{len(series.targets)} and {len(series.other_covariates)}; start from a run on public data with the same columns."
        )
    if not any(abs(series.frequency.total_seconds() - seconds) < 1e-6 for seconds in SECONDS):
        raise UserError(
            f"The model of homes knows rows every 15, 30 or 60 minutes, but these series have one every {series.spoken_step}; "
            "resample them, start from a run on public data with the same step, or leave out `init`."
        )
    found = shipped(tuning, rank)
    return _with_attributes(found, series.static) if series.static else found


def _with_attributes(initial: Initial, static: Static) -> Initial:
    """The model with columns for the categories of attributes; its digest stays that of the file."""
    names = columns_of(static)
    network, weights = widened(initial.spec.network, initial.weights, len(names))
    covariates = (*names, *initial.spec.covariates)
    spec = initial.spec.model_copy(update={"network": network, "covariates": covariates, "static": static})
    return replace(initial, spec=spec, weights=weights)


def shipped(tuning: Tuning = "all", rank: int = 4) -> Initial:
    """The model itself, as a start."""
    with as_file(PLACE) as folder:
        found = initial_of(folder, SHIPPED_SOURCE, "public", tuning=tuning, rank=rank)
    if found.start.digest != DIGEST:  # a model that lies here is not public for that
        raise UserError(
            "The model of homes is not the one that this version of the package was made with; install it again."
        )
    return found
