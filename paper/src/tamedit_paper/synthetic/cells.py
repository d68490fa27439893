"""The fidelity of synthetic homes by cells: a fleet, a unit and a budget.

    ideal/unit=week/epsilon=8      both generators, trained at ε = 8 per home-week, and noisy marginals of the same release
    ideal/unit=series/epsilon=1    the same per whole home
    ideal/non-private              both generators without noise
    ideal/free                     the simulator's homes, and other real homes: what is to be had without any budget

One seed of a cell trains what it needs, generates HOMES homes and measures them beside the held-out homes. `elsewhere` are
simulated homes of another region than any that a model was made with: choices are made there, and `ideal` is looked at once.
"""

from typing import Literal, Self

from pydantic import PositiveFloat

from tamedit.choices import Frozen
from tamedit.errors import UserError

SYNTHETIC = "synthetic"
EPSILONS = (8.0, 3.0, 1.0)
SEEDS = 3
Fleet = Literal["ideal", "elsewhere"]
Owned = Literal["week", "series"]


class SyntheticCell(Frozen):
    """What sets a row of the table apart."""

    fleet: Fleet = "ideal"
    unit: Owned = "week"
    epsilon: PositiveFloat | None = None
    free: bool = False

    @property
    def name(self) -> str:
        if self.free:
            return f"{self.fleet}/free"
        if self.epsilon is None:
            return f"{self.fleet}/non-private"
        return f"{self.fleet}/unit={self.unit}/epsilon={self.epsilon:g}"

    @classmethod
    def parse(cls, name: str) -> Self:
        """The cell of a name."""
        for fleet in ("ideal", "elsewhere"):
            for cell in cells(fleet):
                if cell.name == name:
                    return cls(**cell.model_dump())
        raise UserError(f"{name!r} is not a cell of the table of synthetic homes; one is ideal/unit=week/epsilon=8.")


def cells(fleet: Fleet = "ideal") -> list[SyntheticCell]:
    """All cells of a fleet, the most informative first."""
    made = [SyntheticCell(fleet=fleet, free=True)]
    for epsilon in EPSILONS:
        made += [SyntheticCell(fleet=fleet, unit=unit, epsilon=epsilon) for unit in ("week", "series")]
    return [*made, SyntheticCell(fleet=fleet)]
