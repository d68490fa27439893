"""From a cell, a scale and a seed to a whole configuration. No logic: what differs between cells is in the cell.

All arms of a scale share network, optimiser, steps, batches and seeds; the reference magnitudes of the bounds are
those of the simulator (`runs.recipe.REFERENCE`), the same for every data set.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from tamedit.data.loading import load_split
from tamedit.data.series import Series
from tamedit.data.simulate import simulate
from tamedit.data.split import Split, draw_meters, split_by_meter, split_by_time
from tamedit.diffusion.sample import SamplerConfig
from tamedit.runs.provenance import Start
from tamedit.runs.recipe import REFERENCE, RunConfig, Scale, make_config
from tamedit.training.public import SOURCE, fleet, public_config
from tamedit_paper.grid.cells import Cell
from tamedit_paper.grid.corrupt import corrupt

SIMULATED, FLEET, HEAVY = "simulated", "fleet", "-heavy"
PANELS = ("ideal", FLEET)
PAPER_STRIDE = {
    "household": 24,
    "etth1": 1,
    "ettm1": 1,
    SIMULATED: 6,
}  # the arms of the paper's tables share their windows
HEAVY_STRIDE = 6  # the heavy-tailed bed compares two arms; its public models were made before windows began everywhere


@dataclass(frozen=True)
class Effort:
    """What a scale spends on every run."""

    network: dict[str, int]
    training: dict[str, Any]
    windows: int  # of the test split
    samples: int
    sampler: SamplerConfig
    look_every: int  # steps between looks at the gradients of a run without privacy


EFFORT: dict[Scale, Effort] = {
    "smoke": Effort(
        network={"depth": 1, "width": 16, "heads": 2},
        training={"steps": 3, "batch_size": 6, "warmup": 1, "ema": 0.5, "validate_every": 3},
        windows=4,
        samples=4,
        sampler=SamplerConfig(steps=2),
        look_every=1,
    ),
    "laptop": Effort(  # about two minutes on one core
        network={"depth": 2, "width": 64, "heads": 4},
        training={"steps": 600, "batch_size": 32, "warmup": 30, "ema": 0.99, "validate_every": 600},
        windows=48,
        samples=10,
        sampler=SamplerConfig(),
        look_every=10,
    ),
    "paper": Effort(
        network={"depth": 8, "width": 256, "heads": 8},
        training={},  # the defaults of `TrainingConfig`
        windows=512,
        samples=20,
        sampler=SamplerConfig(),
        look_every=100,
    ),
}


# Panels of homes, at an ε that protects someone. Chosen on simulated homes (paper/docs/private-utility.md).
PRIVATE_STEPS: dict[Scale, dict[str, Any]] = {
    "smoke": {"steps": 3, "batch_size": 8, "warmup": 1, "ema": 0.5, "validate_every": 3},
    "laptop": {"steps": 60, "batch_size": 512, "learning_rate": 1e-3, "warmup": 5, "ema": 0.9, "validate_every": 60},
    "paper": {
        "steps": 250,
        "batch_size": 1024,
        "learning_rate": 1e-3,
        "warmup": 20,
        "ema": 0.98,
        "validate_every": 250,
    },
}
SCRATCH_STEPS: dict[Scale, dict[str, Any]] = {  # private, from random weights: twice as many steps, and a falling rate
    "smoke": PRIVATE_STEPS["smoke"],
    "laptop": {
        **PRIVATE_STEPS["laptop"],
        **{"steps": 120, "warmup": 10, "ema": 0.95, "decay": "cosine", "validate_every": 120},
    },
    "paper": {**PRIVATE_STEPS["paper"], **{"steps": 500, "warmup": 40, "decay": "cosine", "validate_every": 500}},
}
PLAIN_STEPS: dict[Scale, dict[str, Any]] = {
    "smoke": PRIVATE_STEPS["smoke"],
    "laptop": {
        **{"steps": 600, "batch_size": 64, "learning_rate": 1e-3, "decay": "cosine", "warmup": 30, "ema": 0.99},
        "validate_every": 600,
    },
    "paper": {"steps": 6000, "batch_size": 96, "learning_rate": 1e-3, "decay": "cosine", "warmup": 300, "ema": 0.999},
}
PANEL_WINDOWS: dict[Scale, int] = {"smoke": 4, "laptop": 96, "paper": 512}
PANEL_SAMPLES: dict[Scale, int] = {"smoke": 4, "laptop": 20, "paper": 100}  # a 90 % band needs 19 at least
PUBLIC_STAGE: dict[Scale, dict[str, int]] = {
    "smoke": {"meters": 25, "weeks": 12, "steps": 2, "batch_size": 8},
    "laptop": {"meters": 400, "weeks": 12, "steps": 1500, "batch_size": 64},
    "paper": {"meters": 2000, "weeks": 26, "steps": 20_000, "batch_size": 96},
}


def effort_of(cell: Cell, scale: Scale) -> Effort:
    """The paper's tables share one effort; panels of homes have theirs, the same for all their private arms."""
    effort = EFFORT[scale]
    if not is_panel(cell.source):
        return effort
    private = PRIVATE_STEPS if cell.public else SCRATCH_STEPS
    training = (private if cell.is_private else PLAIN_STEPS)[scale]
    return replace(effort, training=training, windows=PANEL_WINDOWS[scale], samples=PANEL_SAMPLES[scale])


def recipe(cell: Cell, scale: Scale, seed: int, series: Series) -> RunConfig:
    """The configuration of a cell."""
    effort = effort_of(cell, scale)
    config = make_config(
        series,
        cell.source,
        scale="paper",
        anchor=cell.anchor,
        seed=seed,
        privacy=cell.privacy(),
        bounds="off",
        stride=None if is_panel(cell.source) else PAPER_STRIDE[cell.source],
    )
    network = config.network.model_dump() | effort.network
    network |= {"bounds": (cell.bounds(REFERENCE[cell.anchor]),), "operator": cell.operator}
    training = config.training.model_dump() | effort.training
    changed = {"network": network, "training": training, "start": public_start(cell, scale) if cell.public else None}
    if cell.source.endswith(HEAVY):
        changed["crop"] = None  # as its public models: made before crops began at every hour
    return RunConfig.model_validate(config.model_dump() | changed)


def public_stage(cell: Cell, scale: Scale) -> tuple[RunConfig, Series]:
    """The configuration and the data of the public model that a cell begins from: the same for every seed."""
    size = PUBLIC_STAGE[scale]
    if cell.public == "household":
        source, series = "household", load_data("household")[0]
    else:
        source, series = SOURCE, _fleet(size["meters"], size["weeks"], cell.source.endswith(HEAVY))
    config = public_config(
        series,
        source,
        anchor=cell.anchor,
        bounds=cell.bounds(REFERENCE[cell.anchor]),
        operator=cell.operator,
        network=EFFORT[scale].network,
        steps=size["steps"],
        batch_size=size["batch_size"],
        stride=HEAVY_STRIDE if cell.source.endswith(HEAVY) else None,
    )
    return config, series


def public_start(cell: Cell, scale: Scale) -> Start:
    """What a cell begins from; its digest is that of the configuration that makes it, known before it is made."""
    config, series = public_stage(cell, scale)
    told = config.model_dump_json(exclude_defaults=True) + f"{len(series)} rows"
    shape = config.network
    return Start(
        source=config.source,
        origin="public" if config.source == SOURCE else "said to be public",  # a household is someone's
        digest=blake2b(told.encode(), digest_size=8).hexdigest(),
        sizes={"depth": shape.depth, "width": shape.width, "heads": shape.heads, "mlp_ratio": shape.mlp_ratio},
    )


@lru_cache(maxsize=2)
def _fleet(meters: int, weeks: int, heavy: bool) -> Series:
    series = fleet(meters, weeks)
    return corrupt(series) if heavy else series


def is_panel(source: str) -> bool:
    return source.removesuffix(HEAVY) in PANELS


@lru_cache(maxsize=4)
def load_data(source: str, private: bool = False) -> tuple[Series, Split]:
    """The data of a cell: a named data set; `simulated`, one meter of PrivatePower's extent; `fleet`, as many simulated
    homes as `ideal` has; `…-heavy`, the same with spikes, outages and a covariate with outliers."""
    if source.endswith(HEAVY):
        plain, split = load_data(source.removesuffix(HEAVY), private)
        series = corrupt(plain)
        return series, split_by_meter(series, split.test.meters, validation_share=0.15)
    if source == SIMULATED:
        series = simulate(seed=2023)
        return series, split_by_time(series)
    if source == FLEET:
        series = simulate(meters=254, hours=17 * 168, seed=77)
        return series, split_by_meter(series, draw_meters(series, 54), validation_share=0.15)  # as many as of `ideal`
    return load_split(source, private=private)
