"""Who the homes are: the distribution of a small vector per example, and the shape of its readings, released with noise.

Readings are clamped to public bounds [a, b]; x = (reading − a) / (b − a). For each channel of an example, u has five numbers in
[−1, 1], each 0 for a channel without a reading:

    log level          level = mean of x, within [10⁻³, 1]
    log spread         standard deviation of x / level, within [0.05, 5]
    zeros              the share of readings with x = 0
    two correlations   of x with itself one step and one season earlier; 0 where x is constant

h is the histogram of log(x / level) over the positive readings, and d the mean of x / level in each of 24 parts of a season
(the hours of a day), minus 1. u is shortened to ‖u‖ ≤ √K, d of a channel to ‖d‖ ≤ 3, and ‖h‖ ≤ √K. Then

    v = (u, u uᵀ, h, d / 3) / √(3K + K²),   ‖v‖ ≤ 1,     released: Σ v + N(0, σ² I),  one Gaussian release for everything

The divisor is the public number of examples. The mean and the covariance of u and the means of h and d make a `Population`: all
that follows is post-processing.

With A static attributes of the meters (`statics.py`) s stands beside u: 0 or 1 for each of their S categories, ‖s‖² ≤ A. Then

    u' = (u, s),   v = (u', u' u'ᵀ, h, d / 3) / √((K + A) + (K + A)² + 2K),   ‖v‖ ≤ 1, since ‖u' u'ᵀ‖ = ‖u'‖² ≤ K + A

and the covariance of u' says how u shifts with the categories (`groups.py`). A = 0 is the form above.

An example is what training draws from: a home with the unit `series`, a home-week with the unit `week`. With a smaller unit the
spread of levels includes how the weeks of one home differ.
"""

import math
from collections.abc import Iterable
from typing import Literal, NamedTuple, Self

import numpy as np
from jaxtyping import Bool, Float, Int64
from numpy.typing import ArrayLike, NDArray
from pydantic import model_validator

from tamedit.choices import Frozen
from tamedit.privacy.accountant import Mechanism
from tamedit.privacy.groups import drawn_marks, positive, regression, shares_of, with_groups
from tamedit.privacy.ledger import Ledger
from tamedit.privacy.statistics import noisy_sum, public_bounds, unit_sum
from tamedit.statics import Static, blocks_of, columns_of

POPULATION = "who the homes are"  # in the ledger
FEATURES, BINS, PARTS = 5, 40, 24
ZEROS = 2  # the place of the share of zeros in u
LONGEST_PROFILE = 3.0
CONSTANT = 1e-6  # standard deviation over level, below which readings count as constant
LEAST_LEVEL, SPREADS, RATIOS = 1e-3, (0.05, 5.0), (-5.0, 4.0)
WORST_ERROR = 0.15  # standard deviation of a released moment: of a mean of numbers within [−1, 1]
OWN = np.triu_indices(FEATURES)  # a covariance of u as a list of numbers
PRIOR_MOMENTS = FEATURES + len(OWN[0]) + BINS + PARTS
ACROSS = 0.05  # deviation of a covariance between two channels, about 0
# A prior without zeros does not bind where the release shows them: above so many errors, with these deviations of their moments.
SEEN_ZEROS, ZEROS_MEAN, ZEROS_COVARIANCE = 3.0, 0.3, 0.1


class Within(Frozen):
    """What is public of the examples: bounds of each channel, rows of a season, of an example, and the days of the study."""

    lower: tuple[float, ...]
    upper: tuple[float, ...]
    period: int
    rows: int
    begin: str
    end: str


class Prior(NamedTuple):
    """What is publicly known of one channel, m = (mean of u, covariance of u, h, d / 3) of a fleet, is N(mean, covariance)."""

    mean: Float[np.ndarray, " moments"]
    covariance: Float[np.ndarray, "moments moments"]


class Population(Frozen):
    """The distribution of u (Gaussian, cut to [−1, 1]) and s, and the mean of h for each channel."""

    mean: tuple[float, ...]  # (5 K + S), the last are the shares of categories
    covariance: tuple[tuple[float, ...], ...]  # (5 K + S, 5 K + S)
    histogram: tuple[tuple[float, ...], ...]  # (K, BINS), each sums to 1
    profile: tuple[tuple[float, ...], ...]  # (K, PARTS), mean of x / level in the parts of a season
    within: Within
    origin: Literal["public", "private", "nonprivate"]
    static: Static = ()  # attributes, with their categories

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        channels, size = len(self.within.lower), FEATURES * len(self.within.lower) + len(columns_of(self.static))
        shapes = [
            np.shape(one) for one in (self.mean, self.covariance, self.histogram, self.profile, self.within.upper)
        ]
        if shapes != [(size,), (size, size), (channels, BINS), (channels, PARTS), (channels,)]:
            raise ValueError("the population has numbers for other channels")
        return self

    def draw_marks(
        self, uniforms: Float[np.ndarray, "H A"], asked: tuple[tuple[str, str], ...] = ()
    ) -> Float[np.ndarray, "H S"]:
        """s for each row of independent uniforms, with the categories that were asked for."""
        size = FEATURES * len(self.within.lower)
        shares, among = np.array(self.mean)[size:], np.array(self.covariance)[size:, size:]
        return drawn_marks(shares, among, self.static, uniforms, asked)

    def draw(
        self,
        normals: Float[np.ndarray, "H F"],
        within_homes: Float[np.ndarray, "5 5"] | None = None,
        marks: Float[np.ndarray, "H S"] | None = None,
    ) -> Float[np.ndarray, "H K 5"]:
        """One vector u for each row of independent standard normals; given s, if `marks` are given.

        `within_homes`: the covariance of u between the examples of one home. It is taken off, as far as a quarter of the
        variance is left in every direction, since a home needs the vectors that lie between homes alone.
        """
        channels = len(self.within.lower)
        size = FEATURES * channels
        both, mean = np.array(self.covariance), np.array(self.mean)
        covariance, centre = both[:size, :size], mean[:size]
        if self.static and marks is not None:
            shift = regression(both, slice(size, None), slice(None, size))
            centre = centre + (marks - mean[size:]) @ shift.T
            covariance = covariance - shift @ both[size:, :size]
        values, axes = np.linalg.eigh(covariance)
        if within_homes is not None:
            white = axes / np.sqrt(np.maximum(values, 1e-12))
            shares, turned = np.linalg.eigh(white.T @ np.kron(np.eye(channels), within_homes) @ white)
            root = axes * np.sqrt(np.maximum(values, 0.0)) @ turned * np.sqrt(np.clip(1.0 - shares, 0.25, 1.0))
        else:
            root = axes * np.sqrt(np.maximum(values, 0.0))
        drawn = np.clip(centre + normals @ root.T, -1.0, 1.0)
        return drawn.reshape(len(normals), channels, FEATURES)

    def levels(self, drawn: Float[np.ndarray, "H K 5"]) -> Float[np.ndarray, "H K"]:
        """The level of x, the reading above the lower bound."""
        span = np.array(self.within.upper) - np.array(self.within.lower)
        return np.asarray(span * _back(drawn[..., 0], LEAST_LEVEL, 1.0))

    def spreads(self, drawn: Float[np.ndarray, "H K 5"]) -> Float[np.ndarray, "H K"]:
        """Standard deviation over level."""
        return _back(drawn[..., 1], *SPREADS)


def _unit(values: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
    """Logarithms of [low, high] mapped to [−1, 1]."""
    middle, half = 0.5 * math.log(low * high), 0.5 * math.log(high / low)
    return np.asarray((np.log(np.clip(values, low, high)) - middle) / half)


def unit_level(share: float) -> float:
    """The first number of u for a level that is this share of the bounds' distance."""
    return float(_unit(np.array(share), LEAST_LEVEL, 1.0))


def _back(unit: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
    return np.asarray(np.exp(0.5 * math.log(low * high) + 0.5 * math.log(high / low) * unit))


def features(
    examples: Float[np.ndarray, "N L K"],
    lower: ArrayLike,
    upper: ArrayLike,
    period: int,
    first: Int64[np.ndarray, " N"] | int = 0,
) -> tuple[Float[np.ndarray, "N K 5"], Float[np.ndarray, "N K bins"], Float[np.ndarray, "N K parts"]]:
    """u, h and d of every example and channel, each from the example alone; 0 where a channel has no reading.

    `first`: the place within a season of each example's first row.
    """
    low, high = public_bounds(lower, upper, examples.shape[-1])
    seen = ~np.isnan(examples)
    x = (np.clip(np.where(seen, examples, low), low, high) - low) / (high - low)
    count = np.maximum(seen.sum(axis=1), 1)
    mean = x.sum(axis=1) / count
    level = np.clip(mean, LEAST_LEVEL, 1.0)
    apart = np.where(seen, x - mean[:, None], 0.0)
    variance = (apart**2).sum(axis=1) / count
    zeros = (seen & (x <= 0.0)).sum(axis=1) / count
    least = (CONSTANT * level) ** 2  # below it a variance is rounding
    correlations = [_correlation(apart, seen, np.maximum(variance, least), lag) for lag in (1, period)]
    size, spread = _unit(level, LEAST_LEVEL, 1.0), _unit(np.sqrt(variance) / level, *SPREADS)
    vectors = np.stack([size, spread, zeros, *correlations], axis=-1) * seen.any(axis=1)[..., None]
    with np.errstate(divide="ignore"):
        ratio = np.log(x / level[:, None])
    place = np.clip((ratio - RATIOS[0]) / (RATIOS[1] - RATIOS[0]) * BINS, 0, BINS - 1).astype(np.int64)
    positive = seen & (x > 0.0)
    rows, _, channels = examples.shape
    cells = (np.arange(rows)[:, None, None] * channels + np.arange(channels)) * BINS + place
    held = np.bincount(cells[positive], minlength=rows * channels * BINS).reshape(rows, channels, BINS)
    return (
        vectors,
        held / np.maximum(held.sum(axis=-1, keepdims=True), 1),
        _profile(x / level[:, None], seen, period, first),
    )


def _profile(
    ratios: Float[np.ndarray, "N L K"],
    seen: Bool[np.ndarray, "N L K"],
    period: int,
    first: Int64[np.ndarray, " N"] | int,
) -> Float[np.ndarray, "N K parts"]:
    """d: the mean of the ratios in each part of a season, minus 1; 0 for a part without readings, and at most 3 long."""
    rows, length, channels = ratios.shape
    part = parts_of(np.broadcast_to(np.asarray(first), (rows,))[:, None] + np.arange(length), period)  # (N, L)
    cells = (np.arange(rows)[:, None, None] * channels + np.arange(channels)) * PARTS + part[:, :, None]
    size = rows * channels * PARTS
    total = np.bincount(cells.ravel(), np.where(seen, ratios, 0.0).ravel(), size)
    count = np.bincount(cells.ravel(), seen.ravel(), size)
    found = np.where(count > 0, total / np.maximum(count, 1), 1.0).reshape(rows, channels, PARTS) - 1.0
    return np.asarray(found / np.maximum(1.0, np.linalg.norm(found, axis=-1, keepdims=True) / LONGEST_PROFILE))


def parts_of(rows: Int64[np.ndarray, "*A"], period: int) -> Int64[np.ndarray, "*A"]:
    """Which of the 24 parts of a season each row lies in."""
    return np.asarray(rows % period * PARTS // period)


def _correlation(
    apart: NDArray[np.float64], seen: NDArray[np.bool_], variance: NDArray[np.float64], lag: int
) -> NDArray[np.float64]:
    if lag >= apart.shape[1]:
        return np.zeros_like(variance)
    pairs = np.maximum((seen[:, lag:] & seen[:, :-lag]).sum(axis=1), 1)
    product = (apart[:, lag:] * apart[:, :-lag]).sum(axis=1) / pairs
    return np.asarray(np.clip(product / variance, -1.0, 1.0))


def population_vectors(
    examples: Float[np.ndarray, "N L K"],
    lower: ArrayLike,
    upper: ArrayLike,
    period: int,
    first: Int64[np.ndarray, " N"] | int = 0,
    shortened: bool = True,
    marks: Float[np.ndarray, "N S"] | None = None,
    static: Static = (),
) -> Float[np.ndarray, "N V"]:
    """v of every example: norm at most 1, whatever its readings and its marks s are.

    Not `shortened`, of exact moments: without privacy.
    """
    vectors, shape, profile = features(examples, lower, upper, period, first)
    channels, u = examples.shape[-1], _flat(vectors)
    if shortened:
        u = u / np.maximum(1.0, np.linalg.norm(u, axis=1, keepdims=True) / math.sqrt(channels))
    if static and marks is not None:
        own = _at_most_one(marks, static)
        u = np.concatenate([u, own], axis=1)
    products = _flat(u[:, :, None] * u[:, None, :])
    parts = [u, products, _flat(shape), _flat(profile) / LONGEST_PROFILE]
    joint = np.concatenate(parts, axis=1) / _norm(channels, len(static))
    return np.asarray(joint / np.maximum(1.0, np.linalg.norm(joint, axis=1, keepdims=True)) if shortened else joint)


def _flat(arrays: NDArray[np.float64]) -> Float[np.ndarray, "N V"]:
    """One vector per example, also of no examples."""
    return arrays.reshape(len(arrays), math.prod(arrays.shape[1:]))


def _at_most_one(marks: Float[np.ndarray, "N S"], static: Static) -> Float[np.ndarray, "N S"]:
    """The marks as 0 and 1, with one 1 at most in each attribute: the first."""
    found = np.zeros(marks.shape)
    for block in blocks_of(static):
        own = marks[:, block] > 0
        rows = np.flatnonzero(own.any(axis=1))
        found[rows, block.start + own[rows].argmax(axis=1)] = 1.0
    return found


def population_of(
    total: Float[np.ndarray, " V"],
    examples: int,
    within: Within,
    origin: Literal["public", "private", "nonprivate"],
    noise: float = 0.0,
    prior: Prior | None = None,
    static: Static = (),
) -> Population:
    """The population from Σ v, with noise of standard deviation `noise` or without, and the public number of examples.

    `prior`: what is publicly known of the moments m of a channel, N(μ, P). With errors e of independent noise the population
    has the mean of m given what was released, μ + P (P + e² I)⁻¹ (m − μ): what the noise hides is as in the prior. Simulated
    homes have no zeros; where the released share of zeros is above 3 e, P is widened for it (`_zeros_allowed`).
    """
    channels, size = len(within.lower), FEATURES * len(within.lower)
    both = size + len(columns_of(static))
    error = expected_error(examples, channels, noise, len(static))
    moments = total * _norm(channels, len(static)) / examples
    joint_mean = np.clip(moments[:both], -1.0, 1.0)
    second = moments[both : both + both**2].reshape(both, both)
    joint = 0.5 * (second + second.T) - np.outer(joint_mean, joint_mean)
    mean, covariance = joint_mean[:size], joint[:size, :size]
    shape = moments[both + both**2 :][: channels * BINS].reshape(channels, BINS)
    profile = moments[both + both**2 + channels * BINS :].reshape(channels, PARTS)
    if prior is not None:
        mean, covariance, shape, profile = _given_prior(mean, covariance, shape, profile, error, prior)
    if static:
        shares = shares_of(joint_mean[size:], static, error)
        covariance = with_groups(covariance, joint, shares, static, error)
        mean = np.concatenate([mean, shares])
    else:
        covariance = positive(covariance, 1e-6)
    shape = np.where(shape > (2.0 * error if prior is None else 0.0), shape, 0.0)  # what noise could be counts as empty
    whole = shape.sum(axis=1, keepdims=True)
    shape = np.where(whole > 0, shape / np.where(whole > 0, whole, 1.0), 1.0 / BINS)
    return Population(
        mean=tuple(mean.tolist()),
        covariance=tuple(map(tuple, covariance.tolist())),
        histogram=tuple(map(tuple, shape.tolist())),
        profile=tuple(map(tuple, np.maximum(1.0 + LONGEST_PROFILE * profile, 0.01).tolist())),
        within=within,
        origin=origin,
        static=static,
    )


def _given_prior(
    mean: NDArray[np.float64],
    covariance: NDArray[np.float64],
    shape: NDArray[np.float64],
    profile: NDArray[np.float64],
    error: float,
    prior: Prior,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """The means of all moments given what was released, channel by channel; covariances between channels about 0."""
    joint = covariance * ACROSS**2 / (ACROSS**2 + error**2)
    mean, shape, profile = mean.copy(), shape.copy(), profile.copy()
    gain = _gain(prior.covariance, error)
    for channel in range(len(shape)):
        own = slice(channel * FEATURES, (channel + 1) * FEATURES)
        found = channel_moments(mean[own], covariance[own, own], shape[channel], profile[channel])
        zeros = bool(found[ZEROS] > SEEN_ZEROS * error)
        found = prior.mean + (_gain(_zeros_allowed(prior.covariance), error) if zeros else gain) @ (found - prior.mean)
        mean[own], listed, shape[channel], profile[channel] = np.split(found, np.cumsum([FEATURES, len(OWN[0]), BINS]))
        block = np.zeros((FEATURES, FEATURES))
        block[OWN] = listed
        joint[own, own] = block + np.triu(block, 1).T
    return np.clip(mean, -1.0, 1.0), joint, shape, profile


def _gain(covariance: Float[np.ndarray, "moments moments"], error: float) -> Float[np.ndarray, "moments moments"]:
    return np.asarray(covariance @ np.linalg.inv(covariance + max(error, 1e-9) ** 2 * np.eye(PRIOR_MOMENTS)))


def _zeros_allowed(covariance: Float[np.ndarray, "moments moments"]) -> Float[np.ndarray, "moments moments"]:
    """P with room for zeros: for their mean share, and for every covariance of u that they have a part in."""
    touched = (OWN[0] == ZEROS) | (OWN[1] == ZEROS)
    more = np.zeros(PRIOR_MOMENTS)
    more[ZEROS] = ZEROS_MEAN**2
    more[FEATURES : FEATURES + len(touched)][touched] = ZEROS_COVARIANCE**2
    return np.asarray(covariance + np.diag(more))


def channel_moments(
    mean: Float[np.ndarray, " 5"],
    covariance: Float[np.ndarray, "5 5"],
    histogram: Float[np.ndarray, " bins"],
    profile: Float[np.ndarray, " parts"],
) -> Float[np.ndarray, " moments"]:
    """m of one channel; `profile` is d / 3."""
    return np.concatenate([mean, covariance[OWN], histogram, profile])


def private_population(
    vectors: Float[np.ndarray, "N V"] | Iterable[NDArray[np.float64]],
    within: Within,
    noise_multiplier: float,
    number: int,
    ledger: Ledger,
    prior: Prior | None = None,
    static: Static = (),
) -> Population:
    """The population with noise: charged as one Gaussian release before the noise is drawn.

    `vectors`: `population_vectors` of the examples, or pieces of them; longer ones would be released with too little noise, and
    are refused. `number`: public, of examples.
    """
    exact = unit_sum([vectors] if isinstance(vectors, np.ndarray) else vectors)  # refused before it is charged
    ledger.charge(Mechanism(1.0, noise_multiplier), POPULATION, 1)
    total = noisy_sum(exact[None], noise_multiplier, ledger, POPULATION)
    return population_of(total, number, within, "private", noise_multiplier, prior, static)


def expected_error(examples: int, channels: int, noise_multiplier: float, attributes: int = 0) -> float:
    """The standard deviation of a released moment."""
    return noise_multiplier * _norm(channels, attributes) / examples


def _norm(channels: int, attributes: int) -> float:
    most = channels + attributes  # of ‖u'‖²
    return math.sqrt(most + most**2 + 2 * channels)
