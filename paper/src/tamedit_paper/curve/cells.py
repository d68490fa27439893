"""The ε curve by cells: our own form on real homes (`ideal`), at an ε that protects someone.

    ideal/aware/epsilon=8/unit=week/medium/tanh/free/public=homes     from the shipped model, at ε = 8 per home-week
    ideal/non-dp/medium/tanh/free/public=homes                        the same at ε = ∞
    ideal/untuned/medium/tanh/free/public=homes                       the shipped model itself: no private data

`aware` has bounds on the conditioning (medium, tanh) and `vanilla` has none, with or without privacy.
Share of the non-private gain that a run keeps, by seed s, for the CRPS of a task:

    kept_s = (free_s − run_s) / (free_s − nonprivate_s)

free is the free distribution on the same windows, nonprivate the run's partner at ε = ∞ of the same arm and beginning. It is
defined only if every seed's non-private model is better than what is free.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tamedit.evaluation.baselines import BAR
from tamedit.privacy.units import Unit
from tamedit_paper.grid.cells import Cell, Public
from tamedit_paper.grid.measures import BySeed, Runs, metric

CURVE, SOURCE = "curve", "ideal"
EPSILONS = (8.0, 3.0, 1.0)  # the most informative first
HOUR = "seasonal_draws"  # draws from the same hour: the free guess that was the hardest before the free distribution
BoundArm = Literal["aware", "vanilla"]
BEGINNINGS: dict[Public, str] = {
    "homes": "the shipped model",
    "household": "one public household",
    "": "random weights",
}
OWNED: dict[Unit, str] = {"week": "per home-week", "series": "per whole home"}


def private(arm: BoundArm, epsilon: float, unit: Unit = "week", public: Public = "homes") -> str:
    """A run at a budget of a unit that someone owns."""
    return _bounded(arm, arm=arm, epsilon=epsilon, unit=unit, public=public)


def nonprivate(arm: BoundArm, public: Public = "homes") -> str:
    """ε = ∞."""
    return _bounded(arm, arm="non-dp", public=public)


def untuned(public: Public = "homes") -> str:
    """The public model as it is."""
    return _bounded("aware", arm="untuned", public=public)


def _bounded(bound_arm: BoundArm, **fields: object) -> str:
    tightness = "medium" if bound_arm == "aware" else "off"
    return Cell.model_validate({"source": SOURCE, "anchor": "free", "tightness": tightness, **fields}).name


def curve_cells() -> list[str]:
    """The cells of `curve`, the most informative first."""
    return list(_curve())


def _curve() -> Iterator[str]:
    yield private("aware", EPSILONS[0])
    yield untuned()
    yield private("aware", EPSILONS[0], "series")
    yield nonprivate("aware")
    yield private("aware", EPSILONS[0], public="")
    yield from (private("aware", epsilon) for epsilon in EPSILONS[1:])
    yield from (private("aware", epsilon, "series") for epsilon in EPSILONS[1:])
    yield private("aware", EPSILONS[0], public="household")
    yield nonprivate("aware", public="household")
    yield untuned("household")
    yield nonprivate("aware", public="")
    yield private("vanilla", EPSILONS[0])
    yield nonprivate("vanilla")


@dataclass(frozen=True)
class Group:
    """The runs of one table: one beginning and one unit, from no private data to no privacy."""

    title: str
    cells: tuple[str, ...]


def groups() -> list[Group]:
    """The cells as the page shows them. A cell may stand in two groups: the shipped model begins both units."""
    homes, rising = BEGINNINGS["homes"], sorted(EPSILONS)
    week = (*(private("aware", epsilon) for epsilon in rising), private("vanilla", EPSILONS[0]))
    without = (nonprivate("aware"), nonprivate("vanilla"))
    return [
        Group(f"From {homes}, ε {OWNED['week']}", (untuned(), *week, *without)),
        Group(
            f"From {homes}, ε {OWNED['series']}",
            (untuned(), *(private("aware", epsilon, "series") for epsilon in rising)),
        ),
        Group(
            f"From {BEGINNINGS['household']}, ε {OWNED['week']}",
            (untuned("household"), private("aware", EPSILONS[0], public="household"), nonprivate("aware", "household")),
        ),
        Group(
            f"From {BEGINNINGS['']}, ε {OWNED['week']}",
            (private("aware", EPSILONS[0], public=""), nonprivate("aware", "")),
        ),
    ]


def arm_of(name: str) -> BoundArm:
    """Whether a cell has bounds, private or not."""
    return "vanilla" if Cell.parse(name).tightness == "off" else "aware"


def without_privacy(name: str) -> str:
    """The same arm and beginning at ε = ∞."""
    return nonprivate(arm_of(name), Cell.parse(name).public)


def without_bounds(name: str) -> str:
    """The vanilla run that an aware run is compared with: all the same but for the bounds."""
    cell = Cell.parse(name)
    arm = "vanilla" if cell.is_private else cell.arm
    return cell.model_copy(update={"arm": arm, "tightness": "off", "operator": "tanh"}).name


def kept(runs: Runs, name: str, task: str) -> BySeed | None:
    """The share of the non-private CRPS gain by seed; None if there is no gain to keep, empty if a run is missing."""
    own, free = runs.values(name, metric(task, "CRPS")), runs.values(name, metric(task, "CRPS", BAR))
    best = runs.values(without_privacy(name), metric(task, "CRPS"))
    seeds = sorted(own.keys() & free.keys() & best.keys())
    if any(free[seed] <= best[seed] for seed in seeds):
        return None
    return {seed: (free[seed] - own[seed]) / (free[seed] - best[seed]) for seed in seeds}
