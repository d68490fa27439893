"""A cell of a table: one trained model, named by what sets it apart.

    household/non-dp
    household/vanilla/sigma=0.1/clip=0.5
    household/aware/sigma=0.05/medium/tanh/condition-only
    household/aware/sigma=0.05/medium/tanh/free
    household/vanilla/sigma=0.1/walk=0.4                            a learning rate that walks less far than the paper's
    simulated/vanilla/sigma=0.1/depth=8                             as many blocks as the paper's network
    simulated/aware/sigma=0.1/bounds=4,0.5,0.5,0.5/tanh             bounds as given: (c, γ, β, α)
    ideal/aware/epsilon=8/unit=week/medium/tanh/free/public     begins from a model of simulated homes
    ideal/untuned/medium/tanh/free/public                       that model itself: no private data at all
    ideal/untuned/medium/tanh/free/public=household             begins from a model of one public household instead
    ideal/non-dp/medium/tanh/free/public=homes                  begins from the model that ships with the package

A run that several tables share is one cell and is trained once.
"""

from typing import Any, Literal, Self, get_args

from pydantic import BaseModel, ConfigDict, PositiveFloat, PositiveInt, model_validator

from tamedit.choices import Anchor
from tamedit.errors import UserError
from tamedit.model.bounds import OPERATORS, Bounds, Operator
from tamedit.model.zoo import TIGHTNESS, Tightness, tightened
from tamedit.privacy.settings import Privacy
from tamedit.privacy.units import Unit

Arm = Literal["non-dp", "vanilla", "aware", "untuned"]
SERIES_DRAWS = 4  # windows of a meter in one step, when the meter is the unit
Public = Literal[
    "", "simulated", "household", "homes"
]  # what the public stage was trained on; "": there is none; homes: shipped
Components = Literal["both", "condition-only", "modulation-only"]


class Cell(BaseModel):
    """What sets a run apart from its neighbours in a table. Everything else is the scale's."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str
    arm: Arm
    sigma: PositiveFloat | None = None  # the paper's way: the noise is given, windows overlap, the unit is a window
    epsilon: PositiveFloat | None = None  # ours: the budget of a unit that someone owns, in disjoint blocks
    unit: Unit = "window"
    tightness: Tightness = "off"
    operator: Operator = "tanh"
    components: Components = "both"
    limits: tuple[PositiveFloat, PositiveFloat, PositiveFloat, PositiveFloat] | None = None  # instead of a tightness
    clip: PositiveFloat = 1.0  # the paper's C; a scale may have another one in its place (`recipes.EFFORT`)
    walk: PositiveFloat | None = None  # None: the paper's
    depth: PositiveInt | None = None  # None: the scale's
    anchor: Anchor = "none"
    public: Public = ""  # begins from the public stage (`training.public`)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        private = (self.sigma is None) + (self.epsilon is None) < 2
        if private != self.is_private:
            raise ValueError(f"{self.arm} needs {'sigma=… or epsilon=…' if self.is_private else 'no noise'}")
        if self.is_private and (self.arm == "vanilla") == self.is_bounded:
            raise ValueError("vanilla has no bounds, and aware has some")
        if self.limits is not None and self.tightness != "off":
            raise ValueError("bounds are given, or a tightness")
        if self.arm == "untuned" and not self.public:
            raise ValueError("untuned is the public model itself")
        return self

    @property
    def is_private(self) -> bool:
        return self.arm in ("vanilla", "aware")

    @property
    def is_bounded(self) -> bool:
        return self.tightness != "off" or self.limits is not None

    @property
    def is_seedless(self) -> bool:
        """Whether every seed gives the same numbers: there is one public model, and all are scored on the same draws."""
        return self.arm == "untuned"

    @property
    def name(self) -> str:
        parts = [self.source, self.arm]
        if self.sigma is not None:
            parts.append(f"sigma={self.sigma:g}")
        if self.epsilon is not None:
            parts += [f"epsilon={self.epsilon:g}", f"unit={self.unit}"]
        if self.limits is not None:
            parts.append("bounds=" + ",".join(f"{limit:g}" for limit in self.limits))
        if self.tightness != "off":
            parts.append(self.tightness)
        if self.is_bounded:
            parts.append(self.operator)
        if self.components != "both":
            parts.append(self.components)
        if self.clip != 1.0:
            parts.append(f"clip={self.clip:g}")
        if self.walk is not None:
            parts.append(f"walk={self.walk:g}")
        if self.depth is not None:
            parts.append(f"depth={self.depth}")
        if self.anchor != "none":
            parts.append(self.anchor)
        if self.public:
            parts.append("public" if self.public == "simulated" else f"public={self.public}")
        return "/".join(parts)

    @classmethod
    def parse(cls, name: str) -> "Cell":
        """The cell of a name; the same name comes back from it."""
        source, *parts = name.split("/")
        words: dict[str, tuple[str, ...]] = {
            "arm": get_args(Arm),
            "tightness": tuple(TIGHTNESS),
            "operator": OPERATORS,
            "components": get_args(Components),
            "anchor": get_args(Anchor),
        }
        found: dict[str, Any] = {"source": source}
        try:
            for part in parts:
                if part == "public":
                    found["public"] = "simulated"
                    continue
                key, _, value = part.partition("=")
                if key == "bounds":
                    found["limits"] = tuple(map(float, value.split(",")))
                    continue
                field = key if value else next(field for field, allowed in words.items() if part in allowed)
                found[field] = float(value) if value and key not in ("unit", "public") else value or part
            cell = cls.model_validate(found)
            if cell.name != name:
                raise ValueError("its parts are in another order")
            return cell
        except (StopIteration, ValueError) as error:
            raise UserError(
                f"{name!r} is not a cell of a table; write it like household/aware/sigma=0.05/medium/tanh, or ask for them "
                "with: tamedit reproduce all --print-commands"
            ) from error

    def bounds(self, reference: Bounds) -> Bounds:
        """The bounds of the cell, from the reference magnitudes that all cells share."""
        if self.limits is not None:
            limits = Bounds(**dict(zip(Bounds.model_fields, self.limits, strict=True)))
        else:
            limits = tightened(reference, self.tightness)
        if self.components == "condition-only":
            return limits.only_condition()
        return limits.only_modulation() if self.components == "modulation-only" else limits

    def privacy(self) -> Privacy | None:
        """Reproducible noise: such a run carries no guarantee, and what its mechanism would cost is stated beside it."""
        if not self.is_private:
            return None
        shared: dict[str, Any] = {"clip": self.clip, "unit": self.unit, "test_only": True}
        if self.sigma is not None:
            return Privacy(noise_multiplier=self.sigma, layout="overlapping", **shared)
        draws = SERIES_DRAWS if self.unit == "series" else 1
        return Privacy(epsilon=self.epsilon, draws=draws, **shared)
