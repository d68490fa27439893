"""What was spent: ε at a given δ, computed from the mechanisms and their counts alone.

One step releases Σ (clipped gradients of a Poisson sample) + N(0, (σC)² I). A unit that owns k examples has J ~ Binomial(k, q)
of them in the sample, so that, in units of C,

    with the unit   P = Σ_j Pr[J = j] · N(j, σ²)          without it   Q = N(0, σ²)

bounds both directions (Choquette-Choo et al., arXiv 2310.15526, Corollary 4.7). With the loss L = ln(P / Q) under P,
δ(ε) = E[(1 − e^{ε − L})₊].

    removal, any k        the larger ε of (P, Q) and (Q, P); k = 1 is the Poisson-sampled Gaussian
    replacement, k = 1    REPLACE_ONE: (1 − q) N(0, σ²) + q N(±1, σ²) against each other
    replacement, k > 1    through the data set without the examples: ε = ε₁ + ε₂ at δ = δ₁ + e^{ε₁} δ₂,
                          ε₁ from (P, Q), ε₂ from (Q, P), the split chosen on a grid

Headline: privacy loss distributions (PLD) of dp-accounting, discretised pessimistically ("connect the dots"), so that every
number is an upper bound. losses.py chooses the interval so that rounding costs some ten thousandths of ε, and composed.py
composes in arrays of some ten thousand points. RDP is given next to it where dp-accounting has it.
Gaussian DP is not offered: it can underestimate ε.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamedit.errors import UserError
from tamedit.privacy.units import Neighbour

SMALLEST_DELTA = 1e-12
LEAST_EPSILON = 1e-4
LEAST_NOISE, MOST_NOISE = 1e-4, 1e7  # σ beyond which the numbers of a loss distribution leave what floats can hold
MOST_STEPS = 10**9
_SHARES = (0.5, 0.95, 0.8, 0.99, 0.2, 0.05)  # of δ that goes to the first half of a replacement


@dataclass(frozen=True)
class Mechanism:
    """`count` releases of a sum of vectors of norm ≤ 1 over a Poisson sample at rate q, plus noise of deviation σ."""

    sampling_rate: float
    noise_multiplier: float
    count: int = 1


@dataclass(frozen=True)
class Epsilon:
    """ε at one δ. `pld` and `rdp` are None where that accountant has no answer, and `notes` says why."""

    delta: float
    pld: float | None
    rdp: float | None
    fallback: float | None = None
    notes: dict[str, str] = field(default_factory=dict)

    @property
    def value(self) -> float:
        """The headline: PLD, else the smallest of the other bounds."""
        if self.pld is not None:
            return self.pld
        return min((bound for bound in (self.rdp, self.fallback) if bound is not None), default=math.inf)

    @property
    def accountant(self) -> str:
        """The accountant that gave the headline."""
        if self.pld is not None:
            return "PLD"
        return "RDP" if self.rdp is not None and self.rdp == self.value else "Gaussian mechanism without amplification"


def event(sampling_rate: float, noise_multiplier: float, contributions: int = 1) -> Any:
    """One step as a dp-accounting DpEvent under removal of a unit with k = `contributions` examples."""
    import dp_accounting

    from tamedit.privacy.losses import binomial_mixture

    if sampling_rate == 1.0:
        return dp_accounting.GaussianDpEvent(noise_multiplier / contributions)
    if contributions == 1:
        return dp_accounting.PoissonSampledDpEvent(sampling_rate, dp_accounting.GaussianDpEvent(noise_multiplier))
    sensitivities, weights = binomial_mixture(contributions, sampling_rate)
    return dp_accounting.dp_event.MixtureOfGaussiansDpEvent(noise_multiplier, list(sensitivities), list(weights))


def check_delta(delta: float) -> None:
    """Raise one sentence if no accountant can handle this δ."""
    if not SMALLEST_DELTA <= delta < 1.0:
        raise UserError(
            f"delta = {delta:g} is out of range: give a number from {SMALLEST_DELTA:g} up to, but below, 1."
        )


def epsilon(
    mechanisms: Sequence[Mechanism],
    delta: float,
    contributions: int = 1,
    neighbour: Neighbour = "removal",
    *,
    with_rdp: bool = True,
    rough: bool = False,
) -> Epsilon:
    """ε of a composition for a unit with k = `contributions` examples and the given neighbour: PLD, and RDP where it exists.

    `rough`: some thousandths larger instead of some ten thousandths, and several times as fast.
    """
    from tamedit.privacy.losses import Unreachable

    check_delta(delta)
    work = [m for m in mechanisms if m.count > 0 and m.sampling_rate > 0.0]
    for m in work:
        if not LEAST_NOISE <= m.noise_multiplier <= MOST_NOISE:
            raise UserError(
                f"noise_multiplier = {m.noise_multiplier:g} is out of range: give a number from {LEAST_NOISE:g} to "
                f"{MOST_NOISE:g}."
            )
    if not work:
        return Epsilon(delta, 0.0, 0.0)
    notes: dict[str, str] = {}
    simple = contributions == 1 and neighbour == "removal"
    rdp = _rdp(work, delta) if simple and with_rdp else None
    if with_rdp and not simple:
        notes["rdp"] = "dp-accounting has no RDP bound for several examples per unit or for replacement"
    try:
        pld: float | None = _pld(work, delta, contributions, neighbour, rough)
    except Unreachable as error:
        pld, notes["pld"] = None, str(error)
    plain = _unamplified(work, delta, contributions * (2 if neighbour == "replacement" else 1), pld)
    if pld is not None:  # both are bounds; without sampling the closed form is the tighter one
        return Epsilon(delta, min(pld, plain), rdp, None, notes)
    return Epsilon(delta, None, rdp, plain, notes)


def profile(
    mechanisms: Sequence[Mechanism],
    epsilons: NDArray[np.float64],
    contributions: int = 1,
    neighbour: Neighbour = "removal",
) -> NDArray[np.float64]:
    """δ(ε), an upper bound, of a composition at many ε ≥ 0 in increasing order; for a replacement k must be 1."""
    from tamedit.privacy.losses import discretisation

    if neighbour == "replacement" and contributions > 1:
        raise ValueError("a replacement of several examples has no single loss distribution")
    sides = ("replace",) if neighbour == "replacement" else ("remove", "add")
    work, k = [m for m in mechanisms if m.count > 0 and m.sampling_rate > 0.0], contributions
    intervals = {side: discretisation(_parts(work), k, side) for side in sides}
    found = [np.asarray(_composed(work, k, side, intervals[side]).get_delta_for_epsilon(epsilons)) for side in sides]
    return np.minimum(np.max(found, axis=0) + 2.2e-16 * sum(m.count for m in work), 1.0)


def _rdp(work: Sequence[Mechanism], delta: float) -> float | None:
    """ε by Rényi divergences. Orders whose series does not converge are left out by dp-accounting, which is sound."""
    from absl import logging
    from dp_accounting import rdp

    accountant = rdp.RdpAccountant()
    loudness = logging.get_verbosity()
    logging.set_verbosity(logging.ERROR)
    try:
        for m in work:
            accountant.compose(event(m.sampling_rate, m.noise_multiplier), m.count)
        value = float(accountant.get_epsilon(delta))
    finally:
        logging.set_verbosity(loudness)
    return value if math.isfinite(value) else None


def _unamplified(work: Sequence[Mechanism], delta: float, change: float, known: float | None) -> float:
    """Exact ε of the same noise without sampling, the sum moving by `change` each time: one Gaussian, σ / (change √T).

    Its root is found only if it lies below the bound that is `known`; ∞ otherwise.
    """
    from dp_accounting import get_epsilon_gaussian
    from scipy.special import log_ndtr

    precision = sum(m.count * (change / m.noise_multiplier) ** 2 for m in work)
    if precision > 1e6:  # the library's root finder stops near here; ε ≤ s²/2 + s √(2 ln(1/δ)) holds for every s
        return precision / 2 + math.sqrt(2 * precision * math.log(1 / delta))
    root = math.sqrt(precision)
    if known is not None and math.isfinite(known):
        upper, lower = (float(log_ndtr(sign * root / 2 - known / root)) for sign in (1, -1))
        if math.exp(upper) - math.exp(min(known + lower, 0.0)) > delta * (1.0 + 1e-9):  # δ of this Gaussian at that ε
            return math.inf
    return float(get_epsilon_gaussian(1.0 / root, delta, tol=1e-9))


def _pld(work: Sequence[Mechanism], delta: float, k: int, neighbour: Neighbour, rough: bool) -> float:
    """ε by composed loss distributions, as the table in the module's docstring says."""
    from tamedit.privacy.composed import Tail
    from tamedit.privacy.losses import EXCESS, ROUGH, Unreachable, discretisation

    sides = ("replace",) if neighbour == "replacement" and k == 1 else ("remove", "add")
    intervals = {side: discretisation(_parts(work), k, side, ROUGH if rough else EXCESS) for side in sides}
    with np.errstate(over="ignore"):  # an overflow gives ∞, which is sound: the closed form is then the smaller bound
        tails = {side: Tail(_composed(work, k, side, intervals[side])) for side in sides}

    def at(side: str, logarithm: float) -> float:
        """ε of one side at δ = e^logarithm: the FFT errs by about 10⁻¹⁷ per step, so ten times that is subtracted from δ."""
        error = 2.2e-16 * sum(m.count for m in work)
        if logarithm > math.log(4.0 * error):
            return tails[side].epsilon(math.exp(logarithm) - error)
        return _chernoff(work, k, side, intervals[side], logarithm)

    if neighbour == "removal" or k == 1:
        return max(at(side, math.log(delta)) for side in sides)
    best = math.inf
    for share in _SHARES[:2] if rough else _SHARES:
        first = at("remove", math.log(share * delta))
        best = min(best, first + at("add", math.log((1.0 - share) * delta) - first))
    if not math.isfinite(best):
        raise Unreachable("the loss is too large for the route through the data set without the unit")
    return best


def _chernoff(work: Sequence[Mechanism], k: int, side: str, interval: float, logarithm: float) -> float:
    """ε at a δ too small for the FFT, half of δ left for infinite losses. For every λ > 0

    ln δ ≤ Σ T ln E[e^{λL}] − λ ε + λ ln λ − (1 + λ) ln(1 + λ)        as  (1 − e^{−x})₊ ≤ e^{λx} λ^λ / (1 + λ)^{1+λ}.
    """
    from scipy.optimize import minimize_scalar

    from tamedit.privacy.losses import deep

    parts = [(m.count, deep(m.sampling_rate, m.noise_multiplier, k, side, interval)) for m in work]
    infinite = sum(count * pmf._infinity_mass for count, pmf in parts)
    half = logarithm - math.log(2.0)
    if infinite > 0.0 and math.log(infinite) > half:
        return math.inf
    terms = []
    for count, pmf in parts:
        positive = np.flatnonzero(pmf._probs > 0.0)
        terms.append((count, (positive + pmf._lower_loss) * pmf._discretization, np.log(pmf._probs[positive])))

    def bound(log_power: float) -> float:
        power = math.exp(log_power)
        total = power * log_power - (1.0 + power) * math.log1p(power) - half
        for count, losses, logs in terms:
            exponent = power * losses + logs
            top = float(exponent.max())
            total += count * (top + math.log(np.exp(exponent - top).sum()))
        return float(total / power)

    found = minimize_scalar(bound, bounds=(-5.0, 9.0), method="bounded", options={"maxiter": 25, "xatol": 1e-3})
    return max(0.0, float(found.fun))


def _parts(work: Sequence[Mechanism]) -> tuple[tuple[float, float, int], ...]:
    """Rates, noises, and counts up to the next power of two: neighbouring counts share the cached distributions of one step."""
    return tuple((m.sampling_rate, m.noise_multiplier, 1 << max(0, m.count - 1).bit_length()) for m in work)


def _composed(work: Sequence[Mechanism], k: int, side: str, interval: float) -> Any:
    """The distribution of the total loss; T Gaussians without sampling are one of deviation σ / √T."""
    from tamedit.privacy.composed import self_composed
    from tamedit.privacy.losses import single

    composed = None
    for m in work:
        if m.sampling_rate == 1.0:
            part = single(1.0, m.noise_multiplier / math.sqrt(m.count), k, side, interval)
        else:
            part = self_composed(single(m.sampling_rate, m.noise_multiplier, k, side, interval), m.count)
        composed = part if composed is None else composed.compose(part, 1e-15)
    return composed
