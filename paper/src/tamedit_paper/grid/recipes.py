"""From a cell, a scale and a seed to a whole configuration. No logic: what differs between cells is in the cell.

The private arms of a scale share network, optimiser, steps, batches and seeds; the reference magnitudes of the bounds are
those of the simulator (`runs.recipe.REFERENCE`), the same for every data set. Scale `laptop` stands where the paper
stands (`matching`): it has its own σ, learning rate and clipping norm in the place of the paper's.
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
from tamedit.evaluation.task_table import NAMES as EVERY_TASK
from tamedit.evaluation.task_table import TWO
from tamedit.model.bounds import Bounds
from tamedit.model.zoo import NetworkConfig
from tamedit.runs.config import RunConfig
from tamedit.runs.provenance import Start
from tamedit.runs.recipe import REFERENCE, Scale, make_config
from tamedit.training.homes import shipped
from tamedit.training.public import SOURCE, fleet, public_config
from tamedit_paper.grid.cells import Cell
from tamedit_paper.grid.matching import PAPER, matched_noise, matched_rate, plain_rate

SIMULATED, FLEET = "simulated", "fleet"
PANELS = ("ideal", FLEET)
PAPER_STRIDE = {
    "household": 24,
    "etth1": 1,
    "ettm1": 1,
    SIMULATED: 6,
}  # the arms of the paper's tables share their windows


@dataclass(frozen=True)
class Effort:
    """What a scale spends on every run."""

    network: dict[str, int]
    training: dict[str, Any]
    windows: int  # of the test split
    samples: int
    sampler: SamplerConfig
    look_every: int  # steps between looks at the gradients of a run without privacy
    matched: bool = True  # whether σ and the learning rate are those of the paper's regime
    clip: float = 1.0  # in the place of the paper's C = 1, so that about as many gradients are clipped
    tasks: tuple[str, ...] = TWO  # the paper's; stored results have these


EFFORT: dict[Scale, Effort] = {
    "smoke": Effort(
        network={"depth": 1, "width": 16, "heads": 2},
        training={"steps": 3, "batch_size": 6, "warmup": 1, "ema": 0.5, "validate_every": 3},
        windows=4,
        samples=4,
        sampler=SamplerConfig(steps=2),
        look_every=1,
        matched=False,  # three steps stand nowhere
    ),
    "laptop": Effort(  # about a minute and a half on one core
        network={"depth": 2, "width": 64, "heads": 4},
        training={"steps": 1000, "batch_size": 16, "warmup": 50, "ema": 0.98, "validate_every": 1000},
        windows=32,
        samples=10,
        sampler=SamplerConfig(),
        look_every=20,
        clip=2.0,
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


# Panels of homes, at an ε that protects someone. Chosen on simulated homes (benchmarks/private_recipe.py).
PRIVATE_STEPS: dict[Scale, dict[str, Any]] = {
    "smoke": {"steps": 3, "batch_size": 8, "warmup": 1, "ema": 0.5, "validate_every": 3},
    "laptop": {"steps": 40, "batch_size": 384, "learning_rate": 1e-3, "warmup": 3, "ema": 0.9, "validate_every": 40},
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
PANEL_REFERENCE = REFERENCE | {"none": Bounds(condition=19.0, scale=3.3, shift=1.4, gate=2.5)}  # a p99 without noise
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
    windows, samples = PANEL_WINDOWS[scale], PANEL_SAMPLES[scale]
    return replace(
        effort, training=training, windows=windows, samples=samples, matched=False, clip=1.0, tasks=EVERY_TASK
    )


def training_of(cell: Cell, scale: Scale) -> dict[str, Any]:
    """The optimiser's settings that a cell changes, with the learning rate of the paper's regime."""
    effort = effort_of(cell, scale)
    if not effort.matched:
        return effort.training
    steps, width = effort.training.get("steps", PAPER.steps), effort.network["width"]
    rate = matched_rate(steps, width, cell.walk) if cell.is_private else plain_rate(width)
    return effort.training | {"learning_rate": rate}


def network_of(cell: Cell, scale: Scale) -> dict[str, int]:
    """The size of a cell's network."""
    return EFFORT[scale].network | ({} if cell.depth is None else {"depth": cell.depth})


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
    network = config.network.model_dump() | network_of(cell, scale)
    network |= {"bounds": (cell.bounds(_reference(cell)),), "operator": cell.operator}
    training = config.training.model_dump() | training_of(cell, scale)
    changed = {"network": network, "training": training, "start": public_start(cell, scale) if cell.public else None}
    if config.privacy is not None and effort.matched and cell.sigma is not None:
        sigma = matched_noise(cell.sigma, NetworkConfig.model_validate(network), training["batch_size"])
        changed["privacy"] = config.privacy.model_dump() | {"noise_multiplier": sigma, "clip": cell.clip * effort.clip}
    return RunConfig.model_validate(config.model_dump() | changed)


def _reference(cell: Cell) -> Bounds:
    return (PANEL_REFERENCE if is_panel(cell.source) else REFERENCE)[cell.anchor]


def public_stage(cell: Cell, scale: Scale) -> tuple[RunConfig, Series]:
    """The configuration and the data of the public model that a cell begins from: the same for every seed."""
    size = PUBLIC_STAGE[scale]
    if cell.public == "household":
        source, series = "household", load_data("household")[0]
    else:
        source, series = SOURCE, _fleet(size["meters"], size["weeks"])
    config = public_config(
        series,
        source,
        anchor=cell.anchor,
        bounds=cell.bounds(_reference(cell)),
        operator=cell.operator,
        network=EFFORT[scale].network,
        steps=size["steps"],
        batch_size=size["batch_size"],
    )
    return config, series


def public_start(cell: Cell, scale: Scale) -> Start:
    """What a cell begins from; its digest is that of the configuration that makes it, known before it is made."""
    if cell.public == "homes":
        return shipped().start
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
def _fleet(meters: int, weeks: int) -> Series:
    return fleet(meters, weeks)


def is_panel(source: str) -> bool:
    return source in PANELS


def data_of(cell: Cell) -> tuple[Series, Split]:
    """The data of a cell. All cells of a panel are trained and tested on the same windows: those on the grid of the study."""
    return load_data(cell.source, cell.is_private or is_panel(cell.source))


@lru_cache(maxsize=4)
def load_data(source: str, private: bool = False) -> tuple[Series, Split]:
    """The data of a cell: a named data set; `simulated`, one meter of PrivatePower's extent; `fleet`, as many simulated
    homes as `ideal` has."""
    if source == SIMULATED:
        series = simulate(seed=2023)
        return series, split_by_time(series)
    if source == FLEET:
        series = simulate(meters=254, hours=17 * 168, seed=77)
        return series, split_by_meter(series, draw_meters(series, 54), validation_share=0.15)  # as many as of `ideal`
    return load_split(source, private=private)
