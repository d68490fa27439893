"""The ε curve by cells: what privacy costs where it protects someone, on panels of homes.

    ideal/aware/epsilon=8/unit=week/medium/tanh/free/public     the recipe at ε = 8 per home-week
    ideal/non-dp/medium/tanh/free/public                        the same at ε = ∞
    ideal/untuned/medium/tanh/free/public                       the same before it saw any private data

Every arm has both: `aware` has bounds on the conditioning (medium, tanh) and `vanilla` has none, with or without privacy.
Share of the non-private gain that a run keeps, by seed s, for the CRPS of a task:

    kept_s = (free_s − run_s) / (free_s − nonprivate_s)

free is a free probabilistic baseline of the same windows (the fill with a Gaussian around it, or the harder draws from the same
hour), nonprivate the run's partner at ε = ∞ of the same arm, form and beginning. It is defined only if every seed's non-private
model is better than what is free.
"""

from collections.abc import Iterator
from typing import Literal

from tamedit.choices import Anchor
from tamedit.errors import UserError
from tamedit.privacy.units import Unit
from tamedit_paper.grid.cells import Cell, Public
from tamedit_paper.grid.measures import BySeed, Runs, metric
from tamedit_paper.grid.recipes import HEAVY, PANELS

CURVE, HEAVY_BED = "curve", "heavy"
EPSILONS = (8.0, 3.0, 1.0)  # the most informative first
HEAVY_EPSILONS = (8.0, 3.0)
PAPER_SIGMA = 0.1
HEAVY_PANELS = tuple(panel + HEAVY for panel in PANELS)
TASKS = ("imputation", "forecast")
FREE, HARDER = "free_probabilistic", "seasonal_draws"  # the free guesses with a distribution
BoundArm = Literal["aware", "vanilla"]
ARMS: tuple[BoundArm, ...] = ("aware", "vanilla")
FORMS: dict[Anchor, str] = {"free": "anchored", "none": "paper's"}


def private(
    source: str,
    arm: BoundArm,
    epsilon: float,
    unit: Unit = "week",
    anchor: Anchor = "free",
    public: Public = "homes",
) -> str:
    """A run at a budget of a unit that someone owns."""
    return _bounded(arm, source=source, arm=arm, epsilon=epsilon, unit=unit, anchor=anchor, public=public)


def nonprivate(source: str, arm: BoundArm, anchor: Anchor = "free", public: Public = "homes") -> str:
    """ε = ∞."""
    return _bounded(arm, source=source, arm="non-dp", anchor=anchor, public=public)


def untuned(source: str, arm: BoundArm, anchor: Anchor = "free", public: Public = "homes") -> str:
    """The public model as it is."""
    return _bounded(arm, source=source, arm="untuned", anchor=anchor, public=public)


def paper_noise(source: str, arm: BoundArm) -> str:
    """The paper's way: a given σ, its form, from random weights."""
    return _bounded(arm, source=source, arm=arm, sigma=PAPER_SIGMA)


def _bounded(bound_arm: BoundArm, **fields: object) -> str:
    return Cell.model_validate({**fields, "tightness": "medium" if bound_arm == "aware" else "off"}).name


def is_utility(what: str) -> bool:
    """Whether `tamedit reproduce WHAT` means the page of the ε curve."""
    return what in (CURVE, HEAVY_BED) or what.startswith(f"{CURVE}:")


def utility_cells(what: str) -> list[str]:
    """The cells of `curve` (on `ideal`), `curve:SOURCE` (on another panel) or `heavy`, the most informative first."""
    if what == HEAVY_BED:
        return [name for source in HEAVY_PANELS for name in _heavy(source)]
    begin, _, source = what.partition(":")
    source = source if ":" in what else PANELS[0]
    if begin != CURVE or source not in PANELS:
        choices = ", ".join([CURVE, *(f"{CURVE}:{panel}" for panel in PANELS), HEAVY_BED])
        raise UserError(f"{what!r} is not a set of cells of the ε curve; choose one of: {choices}.")
    return list(_curve(source))


def all_cells() -> list[str]:
    """Every cell that the page shows."""
    curves = [name for panel in PANELS for name in utility_cells(f"{CURVE}:{panel}")]
    return [*curves, *utility_cells(HEAVY_BED)]


def _curve(source: str) -> Iterator[str]:
    yield private(source, "aware", EPSILONS[0], public="homes")
    yield untuned(source, "aware", public="homes")
    yield private(source, "aware", EPSILONS[0], "series", public="homes")
    yield nonprivate(source, "aware", public="homes")
    yield private(source, "aware", EPSILONS[0], public="")
    yield from (private(source, "aware", epsilon, public="homes") for epsilon in EPSILONS[1:])
    yield from (private(source, "aware", epsilon, "series", public="homes") for epsilon in EPSILONS[1:])
    yield private(source, "aware", EPSILONS[0], public="household")
    yield nonprivate(source, "aware", public="household")
    yield untuned(source, "aware", public="household")
    yield nonprivate(source, "aware", public="")
    yield private(source, "vanilla", EPSILONS[0], public="homes")
    yield nonprivate(source, "vanilla", public="homes")


def _heavy(source: str) -> Iterator[str]:
    for anchor in FORMS:
        yield from (private(source, arm, epsilon, anchor=anchor) for epsilon in HEAVY_EPSILONS for arm in ARMS)
    yield from (private(source, arm, HEAVY_EPSILONS[0], public="") for arm in ARMS)
    yield from (paper_noise(source, arm) for arm in ARMS)


def arm_of(name: str) -> BoundArm:
    """Whether a cell has bounds, private or not."""
    return "vanilla" if Cell.parse(name).tightness == "off" else "aware"


def without_privacy(name: str) -> str:
    """The same arm, form and beginning at ε = ∞."""
    cell = Cell.parse(name)
    return nonprivate(cell.source, arm_of(name), cell.anchor, cell.public)


def without_bounds(name: str) -> str:
    """The vanilla run that an aware run is compared with: all the same but for the bounds."""
    cell = Cell.parse(name)
    arm = "vanilla" if cell.is_private else cell.arm
    return cell.model_copy(update={"arm": arm, "tightness": "off", "operator": "tanh"}).name


def kept(runs: Runs, name: str, task: str, bar: str = FREE) -> BySeed | None:
    """The share of the non-private CRPS gain by seed; None if there is no gain to keep, empty if a run is missing."""
    own, free = runs.values(name, metric(task, "CRPS")), runs.values(name, metric(task, "CRPS", bar))
    best = runs.values(without_privacy(name), metric(task, "CRPS"))
    seeds = sorted(own.keys() & free.keys() & best.keys())
    if any(free[seed] <= best[seed] for seed in seeds):
        return None
    return {seed: (free[seed] - own[seed]) / (free[seed] - best[seed]) for seed in seeds}
