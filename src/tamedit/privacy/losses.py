"""Privacy loss distributions of one step, discretised pessimistically, and the discretisation that a composition needs.

With P = Σ_j w_j N(s_j, σ²) and Q = N(0, σ²) (see accountant.py) the loss at y is the convex, increasing function

    L(y) = ln Σ_j w_j exp((s_j y − s_j² / 2) / σ²)

of which "connect the dots" (Doroshenko et al., arXiv 2207.04380) needs the inverse at every multiple of the interval h.
dp-accounting finds it by one recursive bisection (seconds for 20,000 points); `MixtureLoss` replaces that search by Newton's
method on all points at once. Everything else, sampling included, is dp-accounting's.
"""

import math
from functools import lru_cache
from typing import Any

import numpy as np
from dp_accounting.pld import pld_pmf, privacy_loss_mechanism
from numpy.typing import NDArray
from scipy.special import log_ndtr, logsumexp, ndtr
from scipy.stats import binom

from tamedit.privacy.composed import bounds

SINGLE_POINTS = 40_000
COMPOSED_POINTS = 800_000
GUIDES = 200
LEAST_INTERVAL, LARGEST_INTERVAL = 1e-7, 20.0
EXCESS, ROUGH = 2e-4, 4e-3  # shares of the variance of the loss that rounding adds: about those of ε
TRUNCATION = -50.0  # ln of the mass of one step that may count as an infinite loss
DEEP = -700.0
SIDES = {
    "remove": privacy_loss_mechanism.AdjacencyType.REMOVE,
    "add": privacy_loss_mechanism.AdjacencyType.ADD,
    "replace": privacy_loss_mechanism.AdjacencyType.REPLACE,
}


class Unreachable(Exception):
    """No loss distribution of bounded size represents this mechanism."""


@lru_cache(maxsize=256)
def binomial_mixture(k: int, rate: float, negligible: float = 1e-26) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sensitivities and weights of Binomial(k, q). Weights below `negligible` move *up*, to the next kept value or to k.

    Moving mass to a larger sensitivity only makes P and Q easier to tell apart, so the mixture stays an upper bound.
    """
    values = np.arange(k + 1)
    weights = binom.pmf(values, k, rate)
    kept = np.flatnonzero(weights > negligible)
    low, high = int(kept[0]), int(kept[-1])
    sensitivities, mass = values[low : high + 1].astype(np.float64), weights[low : high + 1].copy()
    mass[0] += weights[:low].sum()
    if high < k:
        sensitivities, mass = np.append(sensitivities, float(k)), np.append(mass, weights[high + 1 :].sum() + 1e-300)
    return sensitivities, mass / mass.sum()


class MixtureLoss(privacy_loss_mechanism.MixtureGaussianPrivacyLoss):
    """dp-accounting's mixture of Gaussians with a vectorised inverse of the loss, and faster normal distributions."""

    def noise_cdf(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Pr[noise ≤ x]."""
        found: NDArray[np.float64] = ndtr(np.asarray(x) / self._standard_deviation)
        return found

    def noise_log_cdf(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """ln Pr[noise ≤ x]."""
        found: NDArray[np.float64] = log_ndtr(np.asarray(x) / self._standard_deviation)
        return found

    def inverse_privacy_losses(
        self, privacy_losses: NDArray[np.float64], precision: float = 1e-6
    ) -> NDArray[np.float64]:
        """Solve L(y) = t for all t at once.

        Without the term s = 0, whose weight is w₀, the equation reads F(y) = ln Σ_{s>0} w_s exp((s y − s²/2) / σ²) = ln(eᵗ − w₀).
        F is convex and increasing with slopes in [s_min, s_max] / σ², so Newton's iteration from a point right of the root
        falls to it without overshooting. δ(ε) is stationary at the root: an error of 10⁻⁹ there moves δ by 10⁻¹⁸.
        """
        add = self.adjacency_type == SIDES["add"]
        target = -privacy_losses if add else privacy_losses
        moving = self.sensitivities > 0
        still = float(self.sampling_probs[~moving].sum())
        with np.errstate(divide="ignore", invalid="ignore"):
            target = target + np.log(-np.expm1(math.log(still) - target)) if still > 0 else target
        target = np.where(np.isnan(target), -np.inf, target)
        slopes = self.sensitivities[moving] / self._variance
        heights = np.log(self.sampling_probs[moving]) - self.sensitivities[moving] ** 2 / (2 * self._variance)
        found = np.full(target.shape, -np.inf)
        finite = np.isfinite(target)
        found[finite] = _newton(target[finite], slopes, heights)
        return found if add else -found


def _newton(
    target: NDArray[np.float64], slopes: NDArray[np.float64], heights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Roots of ln Σ_i exp(heights_i + slopes_i · y) = target, for every target."""
    point = ((target[:, None] - heights) / slopes).min(axis=1)
    if len(point) > 4 * GUIDES:  # begin near the root, between the roots of a few
        order = np.argsort(target, kind="stable")
        guides = order[np.linspace(0, len(order) - 1, GUIDES).astype(np.int64)]
        point = np.interp(target, target[guides], _newton(target[guides], slopes, heights))
    for _ in range(60):
        terms = heights + slopes * point[:, None]
        top = terms.max(axis=1)
        np.exp(terms - top[:, None], out=terms)
        total = terms.sum(axis=1)
        step = (top + np.log(total) - target) * total / (terms @ slopes)
        point -= step
        if np.max(np.abs(step), initial=0.0) <= 1e-9 * max(1.0, float(np.max(np.abs(point), initial=0.0))):
            break
    return point


@lru_cache(maxsize=64)
def loss(rate: float, noise: float, k: int, side: str, truncation: float = TRUNCATION) -> Any:
    """The privacy loss of one step as dp-accounting's object; noise is in units of the clipping norm."""
    if rate == 1.0 or side == "replace":
        return privacy_loss_mechanism.GaussianPrivacyLoss(
            noise / k if rate == 1.0 else noise,
            log_mass_truncation_bound=truncation,
            sampling_prob=rate,
            adjacency_type=SIDES[side],
        )
    return MixtureLoss(
        noise, *binomial_mixture(k, rate), log_mass_truncation_bound=truncation, adjacency_type=SIDES[side]
    )


@lru_cache(maxsize=64)
def single(rate: float, noise: float, k: int, side: str, interval: float, truncation: float = TRUNCATION) -> Any:
    """The pessimistic distribution of the privacy loss of one step, on multiples of `interval`, as a dense PLDPmf."""
    mechanism = loss(rate, noise, k, side, truncation)
    span = mechanism.connect_dots_bounds()
    low, high = math.floor(span.epsilon_lower / interval), math.ceil(span.epsilon_upper / interval)
    high += truncation == DEEP  # beyond the largest loss there is, −ln w₀, where it is bounded
    deltas = np.minimum.accumulate(mechanism.get_delta_for_epsilon(np.arange(low, high + 1) * interval))
    return _connected(interval, low, deltas)


def _connected(interval: float, low: int, deltas: NDArray[np.float64]) -> pld_pmf.DensePLDPmf:
    """Connect the dots δ(low h), δ((low + 1) h), …: dp-accounting's formula, without its dictionary of every point."""
    if len(deltas) == 1:
        return pld_pmf.DensePLDPmf(interval, low, 1.0 - deltas, float(deltas[0]), True)
    growth, rises = math.expm1(interval), np.diff(deltas)
    probs = np.empty_like(deltas)
    probs[0] = 1.0 - deltas[0] + rises[0] / growth
    probs[1:-1] = (rises[1:] - rises[:-1] * (1.0 + growth)) / growth
    probs[-1] = rises[-1] / math.expm1(-interval)
    return pld_pmf.DensePLDPmf(interval, low, np.maximum(probs, 0.0), float(deltas[-1]), True)


def deep(rate: float, noise: float, k: int, side: str, interval: float) -> Any:
    """As `single`, with next to no mass counted as infinite, for tails far beyond the FFT's reach; coarser if it must be."""
    bounds = loss(rate, noise, k, side, DEEP).connect_dots_bounds()
    coarser = (bounds.epsilon_upper - bounds.epsilon_lower) / _points(k, rate)
    return single(rate, noise, k, side, max(interval, coarser), DEEP)


def _points(k: int, rate: float) -> float:
    """The number of points that one step may have: memory grows with points times summands of the mixture."""
    return SINGLE_POINTS * min(1.0, 40.0 / len(binomial_mixture(k, rate)[0]))


@lru_cache(maxsize=256)
def spread(rate: float, noise: float, k: int, side: str) -> float:
    """The standard deviation s of the loss of one step, by quadrature; it decides how fine the interval must be."""
    if rate == 1.0:
        return (2.0 if side == "replace" else 1.0) * k / noise
    sensitivities, weights = binomial_mixture(k, rate)
    reach = 9.0 * noise
    end = reach + (float(sensitivities[-1]) if side != "add" else 0.0)
    grid = np.linspace(-reach, end, 200 + 6 * math.ceil((end + reach) / noise))
    logs = np.log(weights) - sensitivities**2 / (2 * noise**2)

    def likelihood(sign: float) -> NDArray[np.float64]:
        """ln of the mixture's density over that of N(0, σ²)."""
        found: NDArray[np.float64] = logsumexp(logs + np.multiply.outer(sign * grid, sensitivities) / noise**2, axis=1)
        return found

    with_unit = likelihood(1.0)
    losses = with_unit - likelihood(-1.0) if side == "replace" else with_unit
    density = np.exp(-((grid / noise) ** 2) / 2 + (with_unit if side != "add" else 0.0))
    density /= density.sum()
    return math.sqrt(max(float(density @ losses**2) - float(density @ losses) ** 2, 0.0))


@lru_cache(maxsize=256)
def discretisation(parts: tuple[tuple[float, float, int], ...], k: int, side: str, excess: float = EXCESS) -> float:
    """The interval h for a composition of (rate, noise, count): as fine as ε needs, no finer than the arrays allow.

    Connecting the dots keeps Σ p and Σ p e^{−l} of every piece and so adds about h²/6 to the variance of each step's loss. Over
    T steps of variance s² that is a share `excess` of the whole if h² = 6 · excess · Σ T s² / Σ T, and ε, between z √(Σ T s²)
    and Σ T s² / 2, grows by no more than that share.
    """
    alone = [
        (1.0, noise / math.sqrt(count), 1) if rate == 1.0 else (rate, noise, count) for rate, noise, count in parts
    ]
    variance = sum(count * spread(rate, noise, k, side) ** 2 for rate, noise, count in alone)
    interval = max(math.sqrt(6.0 * excess * variance / sum(count for *_, count in alone)), LEAST_INTERVAL)
    for rate, noise, _ in alone:
        span = loss(rate, noise, k, side).connect_dots_bounds()
        interval = max(interval, (span.epsilon_upper - span.epsilon_lower) / _points(k, rate))
        if interval > LARGEST_INTERVAL:
            raise Unreachable(f"a noise multiplier of {noise:g} gives losses too large for a loss distribution")
    for rate, noise, count in alone:
        if count > 1:
            low, high = bounds(single(rate, noise, k, side, interval)._probs, count)
            interval = max(interval, (high - low) * interval / COMPOSED_POINTS)
        if interval > LARGEST_INTERVAL:
            raise Unreachable(f"{count} steps at a noise multiplier of {noise:g} lose too much for a loss distribution")
    return interval
