"""Proposition 1 for a concrete network: a number that no per-example gradient exceeds.

    ‖∇_θ ℓ‖₂ ≤ S_aware = A₀ + a_c c_max + a_γ γ_max + a_β β_max + a_α α_max        ρ ≤ S_aware / C
    S_aware / S_ref = λ₀ + λ_c r_c + λ_γ r_γ + λ_β r_β + λ_α r_α ≤ max(1, r_c, r_γ, r_β, r_α)

S_aware is a function of the four maxima that is far from linear: they multiply each other and, block after block,
themselves. The constants are therefore those of a box: with S(M) the sum of all layers' bounds at the maxima M,

    A₀ = S(0, 0, 0, 0),     a_i M_i = the mean, over all orders of raising the maxima from 0 to M, of what raising i adds

so that the linear form equals S at the corner M and dominates it in the whole box between 0 and M: S is convex in every
maximum and has increasing differences. `paper/docs/theory.md` has the derivation and says how loose the bound is.

    analyse(network, InputBounds(noised=4, wanted=4, values=3), clip=1.0).sensitivity
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from tamedit.errors import UserError
from tamedit.model.bounds import Bounds
from tamedit.model.dit import DiffusionTransformer
from tamedit_paper.theory.norms import NetworkNorms
from tamedit_paper.theory.propagation import InputBounds, Maxima, Propagated, in_quadrature, propagate

GROUPS = ("sublayers", "projections", "remaining")  # F; W_γ, W_β, W_α; everything else


def group_of(layer: str) -> str:
    """The paper's three groups of parameters, by the name of a layer or of a parameter."""
    parts = layer.split(".")
    if "projection" in parts:
        return "projections"
    return "sublayers" if parts[0] == "blocks" else "remaining"


@dataclass(frozen=True)
class LinearForm:
    """A₀ and (a_c, a_γ, a_β, a_α), all non-negative."""

    constant: float
    slopes: Maxima

    def at(self, maxima: Maxima) -> float:
        return self.constant + sum(slope * value for slope, value in zip(self.slopes, maxima, strict=True))


def linear_form(sensitivity: Callable[[Maxima], float], corner: Maxima) -> LinearForm:
    """The linear form that equals the sensitivity at the corner and dominates it between 0 and the corner."""
    known: dict[frozenset[int], float] = {}

    def raised(chosen: frozenset[int]) -> float:
        if chosen not in known:
            known[chosen] = sensitivity(Maxima(*(corner[i] if i in chosen else 0.0 for i in range(4))))
        return known[chosen]

    added = [0.0] * 4
    orders = list(permutations(range(4)))
    for order in orders:
        for place, index in enumerate(order):
            before = frozenset(order[:place])
            added[index] += (raised(before | {index}) - raised(before)) / len(orders)
    slopes = Maxima(*(max(0.0, share) / value for share, value in zip(added, corner, strict=True)))
    return LinearForm(raised(frozenset()), slopes)


@dataclass(frozen=True)
class ConvexForm:
    """Appendix B: S_aware relative to the same form at reference magnitudes.

    The constants are those of the box that reaches from 0 to the larger of bound and reference, so that the linear form is
    true at both ends.
    """

    linear: LinearForm
    sensitivity: float  # the linear form at the bounds
    reference_sensitivity: float  # D = S_ref: the linear form at the references
    weights: tuple[float, ...]  # λ₀, λ_c, λ_γ, λ_β, λ_α: non-negative, they sum to 1
    ratios: Maxima  # r_c, r_γ, r_β, r_α

    @classmethod
    def of(cls, linear: LinearForm, maxima: Maxima, reference: Maxima) -> "ConvexForm":
        whole = linear.at(reference)
        shares = (linear.constant, *(slope * value for slope, value in zip(linear.slopes, reference, strict=True)))
        ratios = Maxima(*(value / base for value, base in zip(maxima, reference, strict=True)))
        return cls(linear, linear.at(maxima), whole, tuple(share / whole for share in shares), ratios)

    @property
    def ratio(self) -> float:
        """S_aware / S_ref = λ₀ + Σ λ_i r_i."""
        return self.weights[0] + sum(weight * r for weight, r in zip(self.weights[1:], self.ratios, strict=True))

    @property
    def ceiling(self) -> float:
        """max(1, r_c, r_γ, r_β, r_α): what a convex combination cannot exceed."""
        return max(1.0, *self.ratios)


@dataclass(frozen=True)
class Theory:
    """What can be said of every example's gradient. `unbounded` names the maxima that are missing: then nothing can be."""

    clip: float
    block_jacobians: tuple[float, ...]  # C_block, attention and MLP branch together
    unbounded: tuple[str, ...]
    propagated: Propagated | None
    linear: LinearForm | None
    quadrature: float  # the same bound, layers combined by √Σ², ≤ S_aware
    convex: ConvexForm | None = None

    @property
    def groups(self) -> dict[str, float]:
        """The bounds of the paper's three groups; they add up to S_aware."""
        layers: Mapping[str, float] = self.propagated.layers if self.propagated else {}
        if not layers:
            return dict.fromkeys(GROUPS, math.inf)
        return {group: sum(value for name, value in layers.items() if group_of(name) == group) for group in GROUPS}

    @property
    def sensitivity(self) -> float:
        """S_aware; infinite if a maximum is missing."""
        return sum(self.groups.values())

    @property
    def rho_bound(self) -> float:
        """ρ ≤ S_aware / C. Above 1 it says nothing: clipping keeps ρ at 1 or below anyway."""
        return self.sensitivity / self.clip

    def to_dict(self) -> dict[str, Any]:
        """For JSON: None stands for infinity."""

        def number(value: float) -> float | None:
            return value if math.isfinite(value) else None

        answer: dict[str, Any] = {
            "S_aware": number(self.sensitivity),
            "quadrature": number(self.quadrature),
            "rho_bound": number(self.rho_bound),
            "clip": self.clip,
            "C_block": [number(value) for value in self.block_jacobians],
            "groups": {name: number(value) for name, value in self.groups.items()},
            "unbounded": list(self.unbounded),
        }
        if self.linear and self.propagated:
            answer["constants"] = _constants(self.linear)
            answer["layers"] = {name: number(value) for name, value in self.propagated.layers.items()}
        if self.convex:
            answer["convex"] = {
                "lambda": list(self.convex.weights),
                "r": list(self.convex.ratios),
                "S_ref": number(self.convex.reference_sensitivity),
                "ratio": self.convex.ratio,
                "ceiling": self.convex.ceiling,
                "constants": _constants(self.convex.linear),
            }
        return answer


def _constants(linear: LinearForm) -> dict[str, float]:
    return {"A0": linear.constant} | dict(zip(("a_c", "a_gamma", "a_beta", "a_alpha"), linear.slopes, strict=True))


def _spread_over_blocks(peaks: Maxima, by_block: Sequence[Maxima]) -> list[Maxima]:
    """The blocks' maxima, each moved so that the largest over the blocks is the peak."""
    largest = [max(column) for column in zip(*by_block, strict=True)]
    return [Maxima(*(p * v / m for p, v, m in zip(peaks, limit, largest, strict=True))) for limit in by_block]


def _maxima(bounds: Bounds) -> Maxima:
    missing = [name for name, value in bounds if value is None]
    if missing:
        raise UserError(f"The bounds ({bounds}) lack {', '.join(missing)}; give all four numbers.")
    return Maxima(*(float(value) for _, value in bounds))


def analyse(network: DiffusionTransformer, inputs: InputBounds, clip: float, reference: Bounds | None = None) -> Theory:
    """S_aware of this network, with these weights, over all examples within the input bounds.

    `reference` (C_ref, Γ_ref, B_ref, A_ref) adds the convex combination of appendix B. Blocks may have bounds of their own:
    the four maxima are then the largest over the blocks, and the smaller ones move in proportion.
    """
    if not clip > 0:
        raise UserError(f"clip={clip} must be positive: it is the C of DP-SGD.")
    norms, by_block = NetworkNorms.of(network), network.config.bounds_by_block()
    names = [name for name in Bounds.model_fields if any(getattr(bounds, name) is None for bounds in by_block)]
    if network.config.operator == "none":
        names = sorted({*names, "scale", "shift", "gate"}, key=list(Bounds.model_fields).index)
    if names:
        free = any(name != "condition" for name in names)  # C_block does not depend on c_max
        placeholders = [Bounds(condition=1.0, **bounds.model_dump(exclude={"condition"})) for bounds in by_block]
        within = None if free else propagate(norms, inputs, [_maxima(bounds) for bounds in placeholders])
        jacobians = _jacobians(within) if within else (math.inf,) * len(norms.blocks)
        return Theory(clip, jacobians, tuple(names), None, None, math.inf)

    maxima = [_maxima(bounds) for bounds in by_block]
    corner = Maxima(*(max(column) for column in zip(*maxima, strict=True)))

    def sensitivity(peaks: Maxima) -> float:
        return sum(propagate(norms, inputs, _spread_over_blocks(peaks, maxima)).layers.values())

    propagated = propagate(norms, inputs, maxima)
    quadrature = in_quadrature(list(propagate(norms, inputs, maxima, in_quadrature).layers.values()))
    convex = None
    if reference is not None:
        base = _maxima(reference)
        box = Maxima(*(max(pair) for pair in zip(corner, base, strict=True)))
        convex = ConvexForm.of(linear_form(sensitivity, box), corner, base)
    jacobians = _jacobians(propagated)
    return Theory(clip, jacobians, (), propagated, linear_form(sensitivity, corner), quadrature, convex)


def _jacobians(propagated: Propagated) -> tuple[float, ...]:
    return tuple(attention.jacobian * mlp.jacobian for attention, mlp in propagated.blocks)
