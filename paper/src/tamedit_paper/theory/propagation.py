"""The per-example gradient of `denoising_loss`, bounded layer by layer: once forward, once backward.

With e ≥ |prediction − wanted|, n hidden cells, L_LN = 1 / √(ε + s²), and for each branch the R, H, L_F of `theory_norms`:

    ‖∂ℓ/∂prediction‖_F ≤ 2 e / √n,         Σ_l ‖∂ℓ/∂prediction_l‖ ≤ 2 e min(1, √(L / n))
    ‖∂ℓ/∂h_last‖_F ≤ L_LN (1 + γ_max) ‖W_out‖₂ ‖∂ℓ/∂prediction‖_F
    ‖∂ℓ/∂h_in‖_F ≤ (1 + α_max L_F (1 + γ_max) L_LN) ‖∂ℓ/∂h_out‖_F
    ‖∂ℓ/∂F‖_F ≤ α_max G,   ‖∂ℓ/∂α‖ ≤ √L max|F| G,   ‖∂ℓ/∂β‖ ≤ √L L_F α_max G,   ‖∂ℓ/∂γ‖ ≤ √(D − 1) ‖∂ℓ/∂β‖_bound
    ‖∂ℓ/∂(W, b)‖_F ≤ ‖∂ℓ/∂(γ, β, α)‖ √(c_max² + 1),     ‖∂ℓ/∂c‖ ≤ Σ_blocks ‖W‖₂ ‖∂ℓ/∂(γ, β, α)‖

Parts that stand beside each other (γ, β, α of a block; the layers of a network) are added up, as the paper does, or
combined in quadrature, which is smaller and as true. The sum has one advantage: it is convex in each of c_max, γ_max,
β_max, α_max, and has increasing differences, which is what the linear form of Proposition 1 rests on.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, NonNegativeFloat, PositiveInt

from tamedit_paper.theory.norms import TIME_NORM, BlockNorms, NetworkNorms, Sublayer

Combine = Callable[[Sequence[float]], float]


def in_quadrature(parts: Sequence[float]) -> float:
    return math.hypot(*parts)


class InputBounds(BaseModel):
    """X_max: what is assumed of an example, entry by entry, in model units. An entry bound m gives a norm of √(L K) m.

    `hidden_cells` is the fewest cells a loss is taken over. `token_spread` is s, the least standard deviation of a token
    (over its D entries) at any LayerNorm: 0 assumes nothing; any other value makes the result hold for those examples only
    whose tokens never fall below it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    noised: NonNegativeFloat  # |x_t|
    wanted: NonNegativeFloat  # |ε| or |v|: what the network should answer
    values: NonNegativeFloat  # |observed values|
    anchor: NonNegativeFloat = 0.0  # |features of the anchor|
    covariates: NonNegativeFloat = 1.0
    hidden_cells: PositiveInt = 1
    token_spread: NonNegativeFloat = 0.0

    @classmethod
    def from_data(
        cls, residual: float, epsilon: float, values: float, anchor: float = 0.0, covariates: float = 1.0
    ) -> "InputBounds":
        """From |residual| and |ε|: as signal² + noise² = 1, both x_t and v are at most √(residual² + ε²)."""
        both = math.hypot(residual, epsilon)
        return cls(noised=both, wanted=both, values=values, anchor=anchor, covariates=covariates)

    def token(self, channels: int, covariates: int, anchor_features: int) -> float:
        """‖[values, mask, anchor, covariates]‖ of one step."""
        each = self.values**2 + 1 + anchor_features * self.anchor**2
        return math.sqrt(channels * each + covariates * self.covariates**2)

    def features(self, channels: int, covariates: int) -> float:
        """The norm of the condition encoder's features.

        mean² + std² ≤ values² (they share the second moment), and so for covariates; minimum, maximum and last value are at
        most `values` each; share observed² + longest gap² ≤ 1, number of gaps / L ≤ 1, channel ≤ 1.
        """
        return math.sqrt(channels * (4 * self.values**2 + 3) + covariates * self.covariates**2)


class Maxima(NamedTuple):
    """(c_max, γ_max, β_max, α_max) as numbers; zero is allowed, which `Bounds` does not."""

    condition: float
    scale: float
    shift: float
    gate: float


class Branch(NamedTuple):
    """One sub-layer of a block: u = LN(h), v = (1 + γ) ⊙ u + β, h ← h + α ⊙ F(v)."""

    radius: float  # R ≥ ‖v_l‖
    sublayer: Sublayer
    jacobian: float  # 1 + α_max L_F (1 + γ_max) L_LN ≥ ‖∂h_out/∂h_in‖
    token: float  # ≥ ‖h_l‖ after the branch


class Propagated(NamedTuple):
    """Bounds on what is computed on the way, and on the gradient of every layer (weight and bias together)."""

    blocks: tuple[tuple[Branch, Branch], ...]
    error: float  # ≥ |prediction − wanted| at every cell
    state_gradients: tuple[float, ...]  # ≥ ‖∂ℓ/∂h‖_F before every block, and after the last
    condition_gradient: float  # ≥ ‖∂ℓ/∂c‖
    layers: dict[str, float]


def radius(width: int, maxima: Maxima) -> float:
    """‖(1 + γ) ⊙ LN(h) + β‖ ≤ (1 + γ_max) √D + √D β_max."""
    return math.sqrt(width) * (1 + maxima.scale + maxima.shift)


def norm_lipschitz(epsilon: float, spread: float = 0.0) -> float:
    """L_LN: the Jacobian of LayerNorm has eigenvalues 0, 1/s and ε/s³ with s² = variance + ε, so 1/√ε when nothing is known."""
    return 1 / math.sqrt(epsilon + spread**2)


def _forward(norms: NetworkNorms, inputs: InputBounds, maxima: Sequence[Maxima]) -> tuple[tuple[Branch, Branch], ...]:
    token = norms.noised_input.reach(math.sqrt(norms.channels) * inputs.noised)
    token += norms.context_input.reach(
        inputs.token(norms.channels, norms.covariates, norms.anchor_features)
    ) + math.sqrt(norms.width / 2)
    blocks = []
    for block, limit in zip(norms.blocks, maxima, strict=False):
        branches = []
        steepness = (1 + limit.scale) * norm_lipschitz(block.epsilon, inputs.token_spread)
        for part in (block.attention, block.mlp):
            reach = radius(norms.width, limit)
            sublayer = part.at(reach)
            token += limit.gate * sublayer.output
            branches.append(Branch(reach, sublayer, 1 + limit.gate * sublayer.lipschitz * steepness, token))
        blocks.append((branches[0], branches[1]))
    return tuple(blocks)


class Backward:
    """Collects the bounds of the layers' gradients on the way from the loss to the inputs."""

    def __init__(self, norms: NetworkNorms, combine: Combine) -> None:
        self.norms, self.combine = norms, combine
        self.condition = 0.0  # ‖∂ℓ/∂c‖ so far
        self.layers: dict[str, float] = {}

    def modulation(self, name: str, operator: float, parts: list[float], limit: Maxima) -> None:
        """The projection to (γ, β, α), given the gradients of its parts. Bounding operators and ĉ are 1-Lipschitz."""
        gradient = self.combine(parts)
        self.layers[f"{name}.projection"] = gradient * math.hypot(limit.condition, 1.0)
        self.condition += operator * gradient

    def block(
        self, name: str, block: BlockNorms, branches: tuple[Branch, Branch], limit: Maxima, state: float
    ) -> float:
        """From ‖∂ℓ/∂h‖ after a block to the one before it."""
        root, entry = math.sqrt(self.norms.length), math.sqrt(self.norms.width - 1)  # |LN(h)_i| ≤ √(D − 1)
        parts = []
        for branch in reversed(branches):
            inside = limit.gate * state
            shift = root * branch.sublayer.lipschitz * inside
            parts += [entry * shift, shift, root * branch.sublayer.entry * state]
            for layer, gain in branch.sublayer.layers.items():
                self.layers[f"{name}.{layer}"] = gain * inside
            state *= branch.jacobian
        self.modulation(f"{name}.adaln", block.projection.operator, parts, limit)
        return state


def propagate(norms: NetworkNorms, inputs: InputBounds, maxima: Sequence[Maxima], combine: Combine = sum) -> Propagated:
    """All bounds, for the maxima of every block and of the final layer (the last entry)."""
    blocks, final = _forward(norms, inputs, maxima), maxima[-1]
    reach = radius(norms.width, final)
    error = norms.output.largest(reach) + inputs.wanted
    outcome = 2 * error / math.sqrt(inputs.hidden_cells)  # ‖∂ℓ/∂prediction‖_F
    summed = 2 * error * min(1.0, math.sqrt(norms.length / inputs.hidden_cells))

    backward = Backward(norms, combine)
    backward.layers["output"] = summed * math.hypot(reach, 1.0)
    shift = norms.output.operator * summed
    parts = [math.sqrt(norms.width - 1) * shift, shift]
    backward.modulation("final_adaln", norms.final_projection.operator, parts, final)
    steepness = (1 + final.scale) * norm_lipschitz(norms.final_epsilon, inputs.token_spread)
    states = [steepness * norms.output.operator * outcome]
    for index in reversed(range(len(blocks))):
        states.append(backward.block(f"blocks.{index}", norms.blocks[index], blocks[index], maxima[index], states[-1]))

    root, channels, covariates = math.sqrt(norms.length), norms.channels, norms.covariates
    backward.layers["noised_input"] = states[-1] * root * math.sqrt(channels) * inputs.noised
    backward.layers["context_input"] = (
        states[-1] * root * math.hypot(inputs.token(channels, covariates, norms.anchor_features), 1.0)
    )
    features = inputs.features(channels, covariates)
    for name, encoder, size in (
        ("time_embedding", norms.time_embedding, TIME_NORM),
        ("condition_encoder", norms.condition_encoder, features),
    ):
        for layer, gain in encoder.layers(size).items():
            backward.layers[f"{name}.{layer}"] = gain * backward.condition
    return Propagated(blocks, error, tuple(reversed(states)), backward.condition, backward.layers)
