"""Private standardisation: a level and a scale for each channel, released with Gaussian noise and charged to the ledger.

Readings are clamped to public bounds [a, b]. Two releases, each a sum of one vector per example, for any length of the example,
plus N(0, σ² I). A unit therefore changes a sum by as many examples as it touches (the ledger's contributions):

    level   v_i = ( o m, o ) / √(2K)     m = mean of x in [−1, 1], the reading mapped to the bounds;  level = Σ o m / Σ o
    scale   w_i =   o d / √K             d = mean of |reading − level| / (b − a) in [0, 1];           scale = √(π/2) Σ o d / Σ o

with o = 1 for a channel that has a reading at all; ‖v_i‖ ≤ 1 and ‖w_i‖ ≤ 1. The mean absolute deviation (times √(π/2), which
makes it a Gaussian's standard deviation) is chosen over the variance because its noise grows with b − a, not with its square.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike, NDArray

from tamedit.errors import UserError
from tamedit.privacy.accountant import Mechanism
from tamedit.privacy.ledger import Ledger
from tamedit.privacy.noise import secure_normals
from tamedit.streams import purpose_seed

STANDARDISATION, RELEASES = "standardisation", 2  # what the ledger calls it, and how many releases it takes
TOGETHER = 2**22  # readings that are looked at together


class Examples(Protocol):
    """(N, L, K) float64, NaN where there is no reading: an array, or something that gathers the examples that are asked for."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __getitem__(self, some: slice, /) -> NDArray[np.float64]: ...


def pieces(
    examples: Examples, vectors: Callable[[NDArray[np.float64]], NDArray[np.float64]]
) -> Iterator[NDArray[np.float64]]:
    """The vectors of some examples after others."""
    few = max(TOGETHER // max(math.prod(examples.shape[1:]), 1), 1)
    for first in range(0, max(examples.shape[0], 1), few):
        yield vectors(examples[first : first + few])


@dataclass(frozen=True)
class Standardisation:
    """z = (value − level) / scale, per channel."""

    level: NDArray[np.float64]
    scale: NDArray[np.float64]


def unit_sum(pieces: Iterable[NDArray[np.float64]]) -> Float[np.ndarray, " V"]:
    """Σ v of all pieces, row after row: the same to the bit however they are cut and laid in memory. None of them is kept.

    A piece may have no rows: of no examples the sum is 0, and it is charged and released as any other.
    """
    total = None
    for piece in map(np.ascontiguousarray, pieces):  # another layout would be summed in another order
        if not bool(np.all(np.einsum("ij,ij->i", piece, piece) <= (1.0 + 1e-9) ** 2)):  # without a copy of them
            raise ValueError("the vectors of a release must have norms of at most 1")
        total = piece.sum(axis=0) if total is None else np.concatenate([total[None], piece]).sum(axis=0)
    if total is None:
        raise ValueError("a release needs vectors")
    return total


def noisy_sum(
    vectors: NDArray[np.float64] | Iterable[NDArray[np.float64]],
    noise_multiplier: float,
    ledger: Ledger,
    what: str,
    part: int = 0,
) -> NDArray[np.float64]:
    """Σ_i v_i + N(0, σ² I) of one vector of norm at most 1 per example; the caller has charged the ledger for it.

    `vectors`: (N, V), or pieces of it.

    The noise comes from the operating system's cryptographic stream, whatever training takes: so few numbers cost no time, and
    they are published as they are. In a test it is a function of the seed.
    """
    if not noise_multiplier > 0.0:
        raise UserError(f"noise_multiplier = {noise_multiplier} gives no privacy: give a positive number.")
    plan = ledger.record.segments[-1].plan
    every = [vectors] if isinstance(vectors, np.ndarray) else vectors
    total: NDArray[np.float64] = np.sum([piece.sum(axis=0) for piece in every], axis=0)
    if plan.seed is not None:
        generator = np.random.default_rng(purpose_seed(plan.seed, f"{what} {part}"))
        return total + noise_multiplier * generator.standard_normal(total.shape)
    noise = noise_multiplier * secure_normals(total.size).reshape(total.shape)
    return (
        (total + noise).astype(np.float32).astype(np.float64)
    )  # rounded last and coarsely: low bits say nothing of the sum


def level_vectors(examples: Float[np.ndarray, "N L K"], lower: ArrayLike, upper: ArrayLike) -> Float[np.ndarray, "N V"]:
    """One vector of norm at most 1 for each example; NaN is a missing reading, infinities count as the bounds."""
    low, high = public_bounds(lower, upper, examples.shape[-1])
    seen, clamped = _clamped(examples, low, high)
    unit = np.where(seen, (2.0 * clamped - low - high) / (high - low), 0.0)
    return _bounded(np.concatenate([_mean(unit, seen), seen.any(axis=1)], axis=1), 2 * examples.shape[-1])


def scale_vectors(
    examples: Float[np.ndarray, "N L K"], level: NDArray[np.float64], lower: ArrayLike, upper: ArrayLike
) -> Float[np.ndarray, "N K"]:
    """One vector of norm at most 1 for each example: its mean absolute deviations from a level within the bounds."""
    low, high = public_bounds(lower, upper, examples.shape[-1])
    seen, clamped = _clamped(examples, low, high)
    apart = np.where(seen, np.abs(clamped - np.clip(level, low, high)) / (high - low), 0.0)
    return _bounded(_mean(apart, seen), examples.shape[-1])


def private_standardisation(
    examples: Examples,
    lower: ArrayLike,
    upper: ArrayLike,
    noise_multiplier: float,
    ledger: Ledger,
    *,
    smallest_scale: float = 1e-3,
    what: str = STANDARDISATION,
) -> Standardisation:
    """Level and scale with noise; the ledger is charged two Gaussian releases before the data are read.

    Args:
        examples: the examples that training draws from, so that the ledger's contributions hold for them.
        lower, upper: public bounds, one number or one per channel; never taken from the data.
        noise_multiplier: σ of each of the two releases.
        smallest_scale: floor of the scale, as a share of upper − lower.
        what: the ledger's name for it.
    """
    low, high = public_bounds(lower, upper, examples.shape[-1])
    if not noise_multiplier > 0.0:
        raise UserError(f"noise_multiplier = {noise_multiplier} gives no privacy: give a positive number.")
    ledger.charge(Mechanism(1.0, noise_multiplier), what, RELEASES)

    def released(vectors: Callable[[NDArray[np.float64]], NDArray[np.float64]], part: int) -> NDArray[np.float64]:
        """The noisy sum, in the units before `_bounded` divided by the root of the number of coordinates."""
        found = noisy_sum(pieces(examples, vectors), noise_multiplier, ledger, what, part)
        return found * np.sqrt(len(found))

    first, observed = np.split(released(lambda piece: level_vectors(piece, low, high), 0), 2)
    observed = np.maximum(observed, 1.0)
    level = np.clip(0.5 * (low + high + (high - low) * first / observed), low, high)
    apart = released(lambda piece: scale_vectors(piece, level, low, high), 1) / observed
    scale = (high - low) * np.clip(np.sqrt(np.pi / 2.0) * apart, smallest_scale, 1.0)
    return Standardisation(level, scale)


def _clamped(
    examples: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    seen = ~np.isnan(examples)
    return seen, np.clip(np.where(seen, examples, low), low, high)


def _mean(values: NDArray[np.float64], seen: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The mean of an example's readings per channel; 0 where it has none."""
    return values.sum(axis=1) / np.maximum(seen.sum(axis=1), 1)


def _bounded(vectors: NDArray[np.float64], coordinates: int) -> NDArray[np.float64]:
    """Coordinates within [−1, 1] divided by the root of their number; only rounding can still exceed a norm of 1."""
    scaled = vectors / np.sqrt(coordinates)
    return scaled / np.maximum(1.0, np.linalg.norm(scaled, axis=1, keepdims=True))


def public_bounds(lower: ArrayLike, upper: ArrayLike, channels: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two numbers per channel, or one sentence why they are no intervals."""
    low = np.broadcast_to(np.asarray(lower, dtype=np.float64), (channels,))
    high = np.broadcast_to(np.asarray(upper, dtype=np.float64), (channels,))
    with np.errstate(over="ignore", invalid="ignore"):
        apart = high - low
    if not (np.all(np.isfinite(apart)) and np.all(apart > 0.0)):
        raise UserError(
            f"Public bounds {low.tolist()} and {high.tolist()} are not intervals: give finite numbers, lower below upper."
        )
    return low, high
