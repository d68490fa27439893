"""Static attributes in who the homes are: how frequent the categories are, and how u shifts with them.

s has a 1 for the category of each attribute of a home, and 0 elsewhere (`statics.py`). Released are the means of s, s sᵀ and
u sᵀ, with errors of deviation e. Then

    p       the shares: at least 0. Of an attribute they sum to at most 1; the rest is "not known", unless noise could be the rest
    Σ_ss    diag(p) − p pᵀ within an attribute; between attributes as released, times a² / (a² + e²), a = ACROSS
    B       u = E u + B (s − p) + rest: what C = Cov(u, s) = B Σ_ss says of B with B ~ N(0, b²) beforehand, b = SHIFT,

                B = C Σ_ss (Σ_ss² + (e / b)² I)⁻¹,   without noise   C Σ_ss⁺

    Cov(u | s) = Cov(u) − B Σ_ss Bᵀ, in every direction at least LEAST

so a category that few homes have shifts u as far as the noise allows. The prior is centred at "no shift" and public.
"""

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from tamedit.statics import Static, blocks_of

ACROSS = 0.05  # deviation of a covariance between two attributes, about 0
SHIFT = 0.25  # deviation of a shift of u with a category: a factor of 2.4 in level
LEAST = 1e-6
SEEN = 1e-9  # variance of s, from which it counts


def positive(covariance: NDArray[np.float64], least: float) -> NDArray[np.float64]:
    """The covariance with at least this variance in every direction."""
    values, axes = np.linalg.eigh(covariance)
    return np.asarray((axes * np.clip(values, least, None)) @ axes.T)


def shares_of(found: Float[np.ndarray, " S"], static: Static, error: float) -> Float[np.ndarray, " S"]:
    """p, from the released mean of s."""
    shares = np.clip(found, 0.0, 1.0)
    for block in blocks_of(static):
        total = shares[block].sum()
        noise = 2.0 * error * np.sqrt(block.stop - block.start)
        if total > 1.0 - max(noise, 1e-9) and total > 0.0:
            shares[block] /= total
    return shares


def with_groups(
    own: Float[np.ndarray, "U U"],
    found: Float[np.ndarray, "J J"],
    shares: Float[np.ndarray, " S"],
    static: Static,
    error: float,
) -> Float[np.ndarray, "J J"]:
    """The covariance of (u, s), from that of u and the released one of both: Cov(u | s) is positive by construction."""
    size = len(own)
    among = found[size:, size:] * (ACROSS**2 / (ACROSS**2 + error**2))
    for block in blocks_of(static):
        p = shares[block]
        among[block, block] = np.diag(p) - np.outer(p, p)
    values, axes = np.linalg.eigh(among)
    values = np.where(values > SEEN, values, 0.0)
    among = (axes * values) @ axes.T
    inverse = np.divide(values, values**2 + (error / SHIFT) ** 2, out=np.zeros_like(values), where=values > 0)
    shift = found[:size, size:] @ (axes * inverse) @ axes.T  # (U, S)
    explained = shift @ among @ shift.T
    across = shift @ among
    return np.block([[positive(own - explained, LEAST) + explained, across], [across.T, among]])


def regression(covariance: Float[np.ndarray, "J J"], given: slice, wanted: slice) -> Float[np.ndarray, "W G"]:
    """The shift of the wanted numbers with the given ones, B = Σ_wg Σ_gg⁺."""
    return np.asarray(covariance[wanted, given] @ np.linalg.pinv(covariance[given, given], rcond=1e-7, hermitian=True))


def drawn_marks(
    shares: Float[np.ndarray, " S"],
    among: Float[np.ndarray, "S S"],
    static: Static,
    uniforms: Float[np.ndarray, "H A"],
    asked: tuple[tuple[str, str], ...] = (),
) -> Float[np.ndarray, "H S"]:
    """s of homes: categories that were asked for, then attribute after attribute given those before it.

    The chances of an attribute are the regression of its s on that of the others, cut at 0 and scaled to the sum of its shares:
    with two attributes exactly the shares among homes with the other's category.
    """
    wanted, blocks = dict(asked), blocks_of(static)
    order = sorted(range(len(static)), key=lambda number: static[number][0] not in wanted)
    marks, before = np.zeros((len(uniforms), len(shares))), np.zeros(0, dtype=np.int64)
    for number in order:
        (name, categories), block = static[number], blocks[number]
        if name in wanted:
            marks[:, block.start + categories.index(wanted[name])] = 1.0
        else:
            shift = among[block, before] @ np.linalg.pinv(among[np.ix_(before, before)], rcond=1e-7, hermitian=True)
            chance = np.clip(shares[block] + (marks[:, before] - shares[before]) @ shift.T, 0.0, None)
            chance = chance * (shares[block] > 0.0)
            chance = np.where(chance.sum(axis=1, keepdims=True) > SEEN, chance, shares[block])
            ends, total = np.cumsum(chance, axis=1), float(shares[block].sum())
            if total > SEEN:
                ends = ends / ends[:, -1:] * (1.0 if total > 1.0 - SEEN else total)
                place = (uniforms[:, number, None] >= ends).sum(axis=1)
                homes = np.flatnonzero(place < len(categories))
                marks[homes, block.start + place[homes]] = 1.0
        before = np.concatenate([before, np.arange(block.start, block.stop)])
    return marks
