"""What makes one simulated home differ from another: its traits, each a number, with the law that draws it.

The simulator asks for a trait by name. Without a given home the trait is drawn there and then, from the meter's own random
stream; with a given home it is the home's. So a home is an explicit vector that can be kept, changed and simulated again.

A home can be moved in the space of its traits. Every trait has a public range [a, b], and a place in it

    u = (f(x) − f(a)) / (f(b) − f(a)) in [0, 1],   f = log for factors and sizes, else the identity.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

VARIETY = 0.5  # deviation of the logarithm of the four factors, where homes are drawn as vectors
Law = Callable[[np.random.Generator], float]


@dataclass(frozen=True)
class Trait:
    """How one number of a home is drawn, and the range in which it may be moved."""

    draw: Law
    low: float
    high: float
    logarithmic: bool = False


def _factor() -> Trait:
    return Trait(lambda stream: float(np.exp(VARIETY * stream.standard_normal())), 0.1, 10.0, True)


TRAITS: dict[str, Trait] = {
    "standby": _factor(),
    "habits": _factor(),
    "appliances": _factor(),
    "heating": _factor(),
    "size": Trait(lambda stream: stream.lognormal(0.0, 0.45), 0.1, 10.0, True),
    "rise": Trait(lambda stream: stream.normal(7.3, 0.9), 4.0, 12.0),
    "return_home": Trait(lambda stream: stream.normal(18.5, 1.0), 14.0, 23.0),
    "at_home": Trait(lambda stream: stream.beta(1.2, 1.8), 0.0, 1.0),
    "lie_in": Trait(lambda stream: stream.uniform(0.5, 2.5), 0.0, 3.0),
    "morning": Trait(lambda stream: stream.uniform(0.6, 1.8), 0.1, 3.0),
    "evening": Trait(lambda stream: stream.uniform(1.4, 2.8), 0.1, 4.0),
    "morning_width": Trait(lambda stream: stream.uniform(1.0, 1.8), 0.5, 3.0),
    "evening_width": Trait(lambda stream: stream.uniform(1.7, 2.8), 0.8, 4.0),
    "night": Trait(lambda stream: stream.beta(1, 6), 0.0, 1.0),
    "base": Trait(lambda stream: stream.lognormal(0.0, 0.25), 0.2, 5.0, True),
    "regular": Trait(lambda stream: stream.beta(2, 4), 0.0, 1.0),
    "season": Trait(lambda stream: stream.uniform(0.05, 0.35), 0.0, 0.6),
    "spill": Trait(lambda stream: stream.uniform(0.15, 0.45), 0.05, 0.5),
    "heats": Trait(lambda stream: stream.random(), 0.0, 1.0),  # heats with electricity if below the region's share
    "heat": Trait(lambda stream: stream.uniform(0.015, 0.05), 0.005, 0.1, True),
}
NAMES = tuple(TRAITS)
_LOW = np.array([trait.low for trait in TRAITS.values()])
_HIGH = np.array([trait.high for trait in TRAITS.values()])
_LOGARITHMIC = np.array([trait.logarithmic for trait in TRAITS.values()])


@dataclass(frozen=True)
class Traits:
    """The traits of one meter while it is simulated: those of a given home, or drawn when they are asked for."""

    stream: np.random.Generator
    home: Mapping[str, float] | None = None

    def __getitem__(self, name: str) -> float:
        return TRAITS[name].draw(self.stream) if self.home is None else self.home[name]


def draw_homes(count: int, stream: np.random.Generator) -> Float[np.ndarray, "H P"]:
    """Homes as the simulator draws them with `variety`, within the public ranges."""
    drawn = [[trait.draw(stream) for trait in TRAITS.values()] for _ in range(count)]
    return np.clip(np.array(drawn).reshape(count, len(NAMES)), _LOW, _HIGH)


def mutated(homes: Float[np.ndarray, "H P"], width: float, stream: np.random.Generator) -> Float[np.ndarray, "H P"]:
    """Homes moved by normal steps of `width` in u, reflected at the ends of the range."""
    ends = [_coordinate(end) for end in (_LOW, _HIGH)]
    places = (_coordinate(homes) - ends[0]) / (ends[1] - ends[0])
    moved = np.abs(places + width * stream.standard_normal(homes.shape))
    reflected = 1 - np.abs(1 - moved % 2)
    back = ends[0] + reflected * (ends[1] - ends[0])
    return np.clip(np.where(_LOGARITHMIC, np.exp(np.where(_LOGARITHMIC, back, 0.0)), back), _LOW, _HIGH)


def _coordinate(homes: np.ndarray) -> np.ndarray:
    return np.where(_LOGARITHMIC, np.log(np.where(_LOGARITHMIC, homes, 1.0)), homes)
