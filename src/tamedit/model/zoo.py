"""Named sizes, tightness presets with the magnitudes that they scale, and the configuration that builds a network."""

from pydantic import PositiveInt, model_validator

from tamedit.choices import Frozen, Tightness
from tamedit.errors import UserError
from tamedit.model.bounds import Bounds, Operator

SIZES: dict[str, dict[str, int]] = {
    "tiny": {"depth": 2, "width": 32, "heads": 2},
    "mini": {"depth": 2, "width": 64, "heads": 4},
    "small": {"depth": 3, "width": 64, "heads": 4},
    "base": {"depth": 4, "width": 128, "heads": 8},
    "paper": {"depth": 8, "width": 256, "heads": 8},
}

TIGHTNESS: dict[str, float] = {"loose": 1.00, "medium": 0.90, "tight": 0.75, "too_tight": 0.50}

# (C₀, Γ₀, B₀, A₀). "free": p99 of ‖c‖, |γ|, |β|, |α| in unbounded training without noise on 50 simulated meters, size small
# (benchmarks/reference_magnitudes.py, 600 steps). "none", the paper's form: the best share of such a p99 under the
# paper's noise on the simulator, divided by the 0.9 of the preset medium (`tamedit reproduce reference`).
REFERENCE: dict[str, Bounds] = {
    "free": Bounds(condition=7.9, scale=2.1, shift=0.72, gate=1.8),
    "none": Bounds(condition=5.3, scale=0.92, shift=0.39, gate=0.69),
}


class NetworkConfig(Frozen):
    """Everything that decides the shape of a network. `bounds`: one for all, or one per block and one for the final layer."""

    target_channels: PositiveInt
    covariate_channels: int = 0
    anchor_features: PositiveInt = 1  # per target channel, as `windows.examples.ANCHOR_FEATURES` says
    length: PositiveInt
    depth: PositiveInt = SIZES["small"]["depth"]
    width: PositiveInt = SIZES["small"]["width"]
    heads: PositiveInt = SIZES["small"]["heads"]
    mlp_ratio: PositiveInt = 4
    operator: Operator = "tanh"
    bounds: tuple[Bounds, ...] = (Bounds(),)

    @model_validator(mode="after")
    def _check(self) -> "NetworkConfig":
        if self.width % self.heads or self.width % 2:
            raise UserError(
                f"width={self.width} must be even and divisible by heads={self.heads}; choose another width."
            )
        if len(self.bounds) not in (1, self.depth + 1):
            raise UserError(
                f"bounds has {len(self.bounds)} entries for depth={self.depth}; give one for all blocks, "
                f"or {self.depth + 1}: one per block and one for the final layer."
            )
        return self

    def bounds_by_block(self) -> tuple[Bounds, ...]:
        """One entry per block, and one for the final layer."""
        return self.bounds if len(self.bounds) > 1 else self.bounds * (self.depth + 1)


def tightened(reference: Bounds, tightness: Tightness) -> Bounds:
    """The bounds of a preset: the reference magnitudes (C₀, Γ₀, B₀, A₀) times 1.00, 0.90, 0.75 or 0.50; none for `off`."""
    return Bounds() if tightness == "off" else reference.scaled(TIGHTNESS[tightness])
