"""The loss of T steps from that of one, and ε from it: what dp-accounting's dense distributions do, on shorter arrays.

A loss distribution is p_i on the losses i h, with a mass at infinity that is left out of p.

    T steps    p * p * … * p by one FFT over the losses [a, b], outside of which at most τ of the mass lies. By Chernoff's bound
               b ≤ (T ln M(θ) + ln(2/τ)) / θ for every θ > 0, M the moment generating function of p, and likewise a for θ < 0.
               The best θ is near √(2 ln(2/τ) / (T var)); dp-accounting tries ±1 … ±20 over the length of p instead, and gets
               arrays up to ten times as long. τ counts as infinite loss.
    ε at δ     δ(ε) = m∞ + Σ_{l > ε} p_l (1 − e^{ε − l}). With U_i = m∞ + Σ_{j > i} p_j and the recursion
               D_i = Σ_{j > i} p_j e^{l_i − l_j} = e^{−h} (p_{i+1} + D_{i+1}), δ(l_i) = U_i − D_i, and between two losses
               ε = l_i + ln((U_i − δ) / D_i).
"""

import math

import numpy as np
from dp_accounting.pld.pld_pmf import DensePLDPmf
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.signal import lfilter

TAIL = 1e-15
LARGEST_ORDER = 50.0  # of a moment of whole places: enough where hardly any mass lies beside one place
_ORDERS = np.array([1 / 64, 1 / 16, 1 / 4, 1 / 2, 0.7, 1.0, 1.4])  # in units of the order that suits a Gaussian


def self_composed(pmf: DensePLDPmf, count: int) -> DensePLDPmf:
    """The distribution of the sum of `count` independent losses."""
    if count == 1:
        return pmf
    low, high = bounds(pmf._probs, count)
    size = next_fast_len(max(high - low + 1, len(pmf._probs)), real=True)
    probs = irfft(_power(rfft(pmf._probs, size), count), size)
    # The transform wraps around: what lies outside of [low, high] is no more than TAIL.
    kept = np.roll(probs, -(low % size))[: high - low + 1]
    infinite = TAIL - math.expm1(count * math.log1p(-pmf._infinity_mass))
    return DensePLDPmf(pmf._discretization, pmf._lower_loss * count + low, kept, infinite, True)


def bounds(probs: NDArray[np.float64], count: int) -> tuple[int, int]:
    """First and last place of the sum of `count` draws from `probs`, with at most TAIL of the mass outside."""
    most = (len(probs) - 1) * count
    place = np.flatnonzero(probs > 0.0).astype(np.float64)
    if not len(place):  # all mass is at infinity
        return 0, 0
    probs = probs[probs > 0.0]
    mean = float(probs @ place) / float(probs.sum())
    away = place - mean
    deviation = math.sqrt(max(float(probs @ away**2), 1e-300))
    allowed = math.log(2.0 / TAIL)
    orders = np.minimum(_ORDERS * math.sqrt(2.0 * allowed / count) / deviation, LARGEST_ORDER)
    ends = []
    for side in (-1.0, 1.0):
        exponents = np.multiply.outer(orders, side * away)
        top = exponents.max(axis=1)
        logarithms = top + np.log(np.exp(exponents - top[:, None]) @ probs)
        ends.append(float(np.min((count * logarithms + allowed) / orders)))
    return max(0, math.floor(count * mean - ends[0])), min(most, math.ceil(count * mean + ends[1]))


def _power(values: NDArray[np.complex128], count: int) -> NDArray[np.complex128]:
    """values ** count by repeated squaring: faster than through the logarithm, and as exact."""
    answer, square = None, values.copy()
    while True:
        if count & 1:
            answer = square.copy() if answer is None else np.multiply(answer, square, out=answer)
        count >>= 1
        if not count:
            return answer  # type: ignore[return-value]
        np.multiply(square, square, out=square)


class Tail:
    """δ(ε) of a distribution, from the largest loss down; ε at as many δ as are asked."""

    def __init__(self, pmf: DensePLDPmf) -> None:
        falling, step = pmf._probs[::-1], math.exp(-pmf._discretization)
        self.interval, self.infinite = pmf._discretization, pmf._infinity_mass
        self.top = pmf._lower_loss + len(falling) - 1
        self.mass = self.infinite + np.cumsum(falling)  # U
        self.damped = lfilter([step], [1.0, -step], falling)  # D, at the loss below
        self.deltas = self.mass - self.damped

    def epsilon(self, delta: float) -> float:
        """The smallest ε ≥ 0 with δ(ε) ≤ delta."""
        if self.infinite > delta:
            return math.inf
        reached = self.deltas >= delta
        last = int(np.argmax(reached)) if reached.any() else len(reached) - 1
        if self.mass[last] <= delta:
            return 0.0
        below = (self.top - 1 - last) * self.interval
        found = below + math.log((self.mass[last] - delta) / self.damped[last]) if self.damped[last] > 0.0 else math.inf
        return max(0.0, min(found, below + self.interval) if reached[last] else found)
