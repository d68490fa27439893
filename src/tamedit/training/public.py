"""The public stage: a model of simulated homes (or of a public series) from which private training can start.

It contains nobody's data, so it costs no privacy. The fleet is drawn with `variety`: homes that differ more from each other than
real ones are likely to, because the model must not depend on how well the simulator's constants were guessed.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from tamedit.choices import Anchor
from tamedit.data.series import Series
from tamedit.data.simulate import simulate
from tamedit.data.split import Split, draw_meters, split_by_meter
from tamedit.errors import UserError
from tamedit.model.bounds import Bounds, Operator
from tamedit.model.tuning import Tuning
from tamedit.model.zoo import SIZES
from tamedit.runs.artifact import WEIGHTS
from tamedit.runs.config import RunConfig, Speed
from tamedit.runs.folder import DataFacts, load_run, recognised
from tamedit.runs.recipe import make_config
from tamedit.runs.start import Initial, load_initial_run
from tamedit.training.loop import Progress
from tamedit.training.run import train

PLACE = "public"  # the subfolder of the new run where it is trained
SOURCE = "simulated fleet"
METERS, WEEKS, VARIETY, SEED = 400, 12, 0.6, 2024
TYPICAL = 0.4  # kWh per hour
FACTS = DataFacts(non_negative=True, typical_level=(TYPICAL,), typical_scale=(TYPICAL,))


def fleet(meters: int = METERS, weeks: int = WEEKS) -> Series:
    """The simulated homes of the public stage: some weeks of each, at any season of the year."""
    year = simulate(meters=meters, hours=(52 + weeks) * 168, seed=SEED, variety=VARIETY)
    starts = 168 * np.random.default_rng(SEED).integers(0, 52, meters)
    return year.between(starts, starts + weeks * 168)


def public_config(
    series: Series,
    source: str = SOURCE,
    *,
    anchor: Anchor = "free",
    bounds: Bounds | None = None,
    operator: Operator = "tanh",
    network: dict[str, int] | None = None,
    steps: int = 1500,
    batch_size: int = 64,
    window: int = 168,
    stride: int | None = None,
) -> RunConfig:
    """The configuration of the public stage; `network` overrides the size."""
    config = make_config(series, source, anchor=anchor, bounds="off", operator=operator, window=window, stride=stride)
    shape = config.network.model_dump() | (network or {}) | {"bounds": (bounds or Bounds(),)}
    training = config.training.model_dump() | {
        "steps": steps,
        "batch_size": batch_size,
        "learning_rate": 1e-3,
        "decay": "cosine",
        "warmup": max(steps // 15, 1),
        "ema": 0.995,
        "validate_every": steps,
        "select": "last",
    }
    return RunConfig.model_validate(config.model_dump() | {"network": shape, "training": training})


def split_fleet(series: Series) -> Split:
    return split_by_meter(series, draw_meters(series, max(1, len(series.meters) // 25)), validation_share=0.1)


def train_public(
    config: RunConfig, split: Split, folder: Path, *, speed: Speed | None = None, progress: Progress | None = None
) -> bool:
    """Train the public stage in a folder, or continue it; whether it is finished."""
    resume, facts = (folder / "run.json").exists(), FACTS if config.source == SOURCE else DataFacts()
    outcome = train(split, config, folder, facts=facts, speed=speed, resume=resume, progress=progress)
    return outcome.finished


def _is_of(homes: Series, folder: Path) -> bool:
    """Whether the model in a folder was trained, from random weights, on exactly these simulated homes."""
    config, facts = load_run(folder)
    if config.source != SOURCE or config.start is not None or config.privacy is not None:
        return False
    return facts.data == recognised(split_fleet(homes).train, private=False)


def simulated_start(
    run: Path,
    series: Series,
    *,
    anchor: Anchor,
    bounds: Bounds,
    operator: Operator,
    tuning: Tuning = "all",
    rank: int = 4,
    speed: Speed | None = None,
    progress: Progress | None = None,
) -> Initial:
    """A model of simulated homes, for a run on `series`: trained in the run's folder, or found there."""
    if series.static:
        raise UserError(
            "A model of simulated homes knows no attributes of meters, so init='simulated' does not go with `static`; "
            "begin from init='homes'."
        )
    if len(series.targets) != 1 or series.covariate_names:
        raise UserError(
            "A model of simulated homes has one target and no covariates except the calendar, but these series have "
            f"{len(series.targets)} and {len(series.covariate_names)}; start from a run on public data with the same columns."
        )
    if abs(series.frequency.total_seconds() - 3600) > 1e-6:
        raise UserError(
            f"A model of simulated homes has hourly rows, but these series have one every {series.spoken_step}; start from a "
            "run on public data with the same step, or leave out `init`."
        )
    folder, homes = run / PLACE, fleet()
    config = public_config(homes, anchor=anchor, bounds=bounds, operator=operator, network=SIZES["mini"])
    if not (folder / WEIGHTS).exists() and not train_public(
        config, split_fleet(homes), folder, speed=speed, progress=progress
    ):
        raise KeyboardInterrupt("stopped in the public stage; continue with the same command.")
    found, _ = load_run(folder)
    if not _is_of(homes, folder):  # a model that lies here is not public for that
        raise UserError(
            f"{folder} contains a model of {found.source}, not of our simulated homes; move it, or use another `out`."
        )
    if found != config:
        changed = sorted(name for name, value in found if value != getattr(config, name))
        raise UserError(
            f"{folder} contains a public stage with another {', '.join(changed)}; move it, or use another `out`."
        )
    initial = load_initial_run(folder, tuning=tuning, rank=rank)
    return replace(initial, start=initial.start.model_copy(update={"origin": "public"}))
