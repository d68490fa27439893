"""Who the homes are: a bounded vector per example, an honest charge, and numbers that come back."""

import math
from pathlib import Path

import numpy as np
import pytest
from dp_accounting import get_epsilon_gaussian
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tamedit.errors import UserError
from tamedit.privacy import population as people
from tamedit.privacy.accountant import Mechanism
from tamedit.privacy.entries import read
from tamedit.privacy.ledger import Ledger
from tamedit.privacy.plan import PrivacyPlan
from tamedit.privacy.population import (
    POPULATION,
    Population,
    Prior,
    Within,
    features,
    population_of,
    population_vectors,
    private_population,
)
from tamedit.privacy.statistics import unit_sum
from tamedit.privacy.units import Contribution

WITHIN = Within(lower=(0.0,), upper=(5.0,), period=24, rows=168, begin="2023-01-01", end="2023-12-31")
UNITS = {
    "week": Contribution(1, "removal", ""),
    "day": Contribution(1, "replacement", ""),
    "series": Contribution(4, "removal", ""),
}


def ledger(folder: Path, **change: object) -> Ledger:
    plan = PrivacyPlan(
        unit="week", examples=50, sampling_rate=0.1, clip=1.0, noise_multiplier=1.0, steps=10, delta=1e-5, **change
    )
    return Ledger.open(folder, plan, UNITS)


def slow_features(readings: np.ndarray, low: float, high: float, period: int, first: int) -> tuple[list, list, list]:
    """u, h and d of one channel of one example, reading by reading."""
    x = [None if math.isnan(one) else (min(max(one, low), high) - low) / (high - low) for one in readings]
    seen = [one for one in x if one is not None]
    if not seen:
        return [0.0] * 5, [0.0] * 40, [0.0] * 24
    mean = sum(seen) / len(seen)
    level = min(max(mean, 1e-3), 1.0)
    variance = sum((one - mean) ** 2 for one in seen) / len(seen)

    def unit(value: float, bottom: float, top: float) -> float:
        middle, half = math.log(bottom * top) / 2, math.log(top / bottom) / 2
        return (math.log(min(max(value, bottom), top)) - middle) / half

    def correlation(lag: int) -> float:
        pairs = [(x[i], x[i + lag]) for i in range(len(x) - lag) if x[i] is not None and x[i + lag] is not None]
        if not pairs:
            return 0.0
        product = sum((a - mean) * (b - mean) for a, b in pairs) / len(pairs)
        return min(max(product / max(variance, (1e-6 * level) ** 2), -1.0), 1.0)

    u = [unit(level, 1e-3, 1.0), unit(math.sqrt(variance) / level, 0.05, 5.0) if variance else -1.0]
    u += [sum(one == 0 for one in seen) / len(seen), correlation(1), correlation(period)]
    bins, positive = [0.0] * 40, [one / level for one in seen if one > 0]
    for ratio in positive:
        bins[min(max(int((math.log(ratio) + 5) / 9 * 40), 0), 39)] += 1 / len(positive)
    parts: list[list[float]] = [[] for _ in range(24)]
    for row, one in enumerate(x):
        if one is not None:
            parts[(first + row) % period * 24 // period].append(one / level)
    d = [sum(part) / len(part) - 1 if part else 0.0 for part in parts]
    length = math.sqrt(sum(one**2 for one in d))
    return u, bins, [one / max(1.0, length / 3) for one in d]


@pytest.mark.parametrize("period", [1, 4, 7, 24, 96])
def test_features_are_those_of_a_slow_loop(period: int) -> None:
    generator = np.random.default_rng(period)
    examples = generator.gamma(0.4, 1.0, (6, 3 * period + 50, 2))
    examples[generator.random(examples.shape) < 0.3] = 0.0
    examples[generator.random(examples.shape) < 0.1] = np.nan
    examples[0], examples[1, :, 0], examples[2, 5:] = np.nan, 0.7, np.nan
    first = generator.integers(0, period, 6)
    found = features(examples, (0.0, -1.0), (2.0, 3.0), period, first)
    for example in range(6):
        for channel, bounds in enumerate([(0.0, 2.0), (-1.0, 3.0)]):
            wanted = slow_features(examples[example, :, channel], *bounds, period, int(first[example]))
            for one, other in zip(found, wanted, strict=True):
                np.testing.assert_allclose(one[example, channel], other, atol=1e-9)


EDGES = [np.nan, np.inf, -np.inf, 0.0, -0.0, 3e38, -3e38, 5e-324, 1e-3, 1.0, 2.0, -7.0]
numbers = st.one_of(st.sampled_from(EDGES), st.floats(-10, 10), st.floats(allow_nan=True, allow_infinity=True))
bounds = st.sampled_from(
    [(0.0, 1.0), (-2.0, 3.0), (1e-300, 2e-300), (-1e307, 1e307), (5.0, 5.0 + 1e-9), ((0, -1e5), (2.0, 1e9))]
)


@settings(max_examples=150, deadline=None)
@given(
    data=arrays(np.float64, st.tuples(st.just(3), st.integers(1, 9), st.just(2)), elements=numbers),
    between=bounds,
    period=st.integers(1, 12),
    first=arrays(np.int64, 3, elements=st.integers(0, 11)),
)
def test_one_example_moves_the_sum_by_at_most_one(
    data: np.ndarray, between: tuple, period: int, first: np.ndarray
) -> None:
    vectors = population_vectors(data, *between, period, first)
    norms = np.linalg.norm(vectors, axis=1)
    assert np.all(norms <= 1.0 + 1e-12), "not a number is more than 1, too"
    for gone in range(3):  # to the last bit: no example depends on another
        kept = [one for one in range(3) if one != gone]
        np.testing.assert_array_equal(population_vectors(data[kept], *between, period, first[kept]), vectors[kept])


def test_constants_and_single_readings_have_vectors_of_their_own() -> None:
    one = np.full((4, 48, 1), np.nan)
    one[0], one[1], one[2, 7] = 0.1, 0.0, 0.3
    u, h, d = features(one, 0.0, 1.0, 24)
    np.testing.assert_allclose(
        u[0, 0], [1 / 3, -1, 0, 0, 0], atol=1e-12
    )  # 0.1: two thirds of the way, and no correlation
    np.testing.assert_allclose(u[1, 0], [-1, -1, 1, 0, 0], atol=1e-12)
    np.testing.assert_allclose(u[2, 0, 1:], [-1, 0, 0, 0], atol=1e-12)
    assert (h.sum(axis=2)[:, 0] == [1, 0, 1, 0]).all()
    assert not u[3].any()
    assert not d[3].any(), "an example without readings says nothing"


def test_the_longest_vector_that_there_can_be_is_one() -> None:
    """A bound that no input could come near would waste budget: this one is met within a factor."""
    week = np.zeros((1, 168, 1))
    week[0, ::24] = 5.0
    assert 0.5 < np.linalg.norm(population_vectors(week, 0.0, 5.0, 24)) <= 1.0


def test_bounds_that_are_no_intervals_are_refused() -> None:
    for pair in ((0.0, 0.0), (1.0, 0.0), (0.0, np.inf), (np.nan, 1.0), (-1e308, 1e308)):
        with pytest.raises(UserError, match="not intervals"):
            population_vectors(np.ones((1, 4, 1)), *pair, 2)


def test_without_noise_the_moments_come_back() -> None:
    generator = np.random.default_rng(3)
    level, shape = np.exp(generator.normal(-1.0, 0.5, (400, 1, 1))), generator.gamma(1.5, 1.0, (400, 168, 1))
    examples = level * shape / 1.5
    u, h, d = (one[:, 0] for one in features(examples, 0.0, 5.0, 24))
    found = population_of(population_vectors(examples, 0.0, 5.0, 24).sum(axis=0), 400, WITHIN, "nonprivate")
    short = u / np.maximum(1.0, np.linalg.norm(u, axis=1, keepdims=True))
    np.testing.assert_allclose(found.mean, short.mean(axis=0), atol=1e-12)
    centred = short - short.mean(axis=0)
    values, axes = np.linalg.eigh(centred.T @ centred / 400)
    np.testing.assert_allclose(found.covariance, (axes * np.maximum(values, 1e-6)) @ axes.T, atol=1e-12)
    np.testing.assert_allclose(found.histogram[0], h.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(found.profile[0], 1 + d.mean(axis=0), atol=1e-12)
    median = found.levels(np.array([[[found.mean[0], 0, 0, 0, 0]]]))[0, 0]
    assert median == pytest.approx(math.exp(-1.0), rel=0.06)


def test_noise_has_the_stated_size_and_the_prior_its_share() -> None:
    """The error of a released moment is σ √(3K + K²) / N, and a prior takes e² / (e² + s²) of the way."""
    generator = np.random.default_rng(0)
    noise, examples = 8.0, 100
    error = people.expected_error(examples, 1, noise)
    assert error == pytest.approx(8.0 * 2.0 / 100)
    draws = [
        population_of(noise * generator.standard_normal(94), examples, WITHIN, "private", noise) for _ in range(300)
    ]
    means = np.array([one.mean for one in draws])
    assert means.std() == pytest.approx(error, rel=0.06)


def test_a_prior_is_moved_as_far_as_the_noise_allows() -> None:
    """μ + P (P + e² I)⁻¹ (m − μ), number by number where P is diagonal, together where it is not; nothing without noise."""
    generator = np.random.default_rng(2)
    u, h = generator.uniform(-0.4, 0.4, (50, 5)), generator.dirichlet(np.ones(40), 50)
    d = generator.normal(0.0, 0.1, (50, 24)) / 3.0
    products = (u[:, :, None] * u[:, None, :]).reshape(50, -1)
    total = np.concatenate([u, products, h, d], axis=1).sum(axis=0) / 2.0
    own = np.cov(u.T, bias=True)
    own = 0.5 * (own + own.T)
    found = people.channel_moments(u.mean(axis=0), own, h.mean(axis=0), d.mean(axis=0))
    root = generator.normal(size=(people.PRIOR_MOMENTS, 8)) * 0.01
    prior = Prior(0.5 * found + 0.01, root @ root.T + 1e-4 * np.eye(people.PRIOR_MOMENTS))
    error = people.expected_error(50, 1, 4.0)
    gain = prior.covariance @ np.linalg.inv(prior.covariance + error**2 * np.eye(people.PRIOR_MOMENTS))
    wanted = prior.mean + gain @ (found - prior.mean)
    noisy = population_of(total, 50, WITHIN, "private", 4.0, prior)
    np.testing.assert_allclose(noisy.mean, wanted[:5], atol=1e-12)
    np.testing.assert_allclose(noisy.profile[0], np.maximum(1.0 + 3.0 * wanted[-24:], 0.01), atol=1e-12)
    shape = np.maximum(wanted[20:60], 0.0)
    np.testing.assert_allclose(noisy.histogram[0], shape / shape.sum(), atol=1e-12)
    exact = population_of(total, 50, WITHIN, "private", 0.0, prior)
    np.testing.assert_allclose(exact.mean, u.mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(exact.covariance, own, atol=1e-6)


def no_zeros() -> Prior:
    """As of simulated regions: exact zeros do not occur, and their moments hardly differ."""
    mean = people.channel_moments(
        np.array([-0.1, 0.2, 0.0, 0.5, 0.3]), np.diag([0.03, 0.01, 0.0, 0.01, 0.01]), np.full(40, 0.025), np.zeros(24)
    )
    deviations = np.full(people.PRIOR_MOMENTS, 0.02)
    touched = [5 + place for place, pair in enumerate(zip(*people.OWN, strict=True)) if 2 in pair]
    deviations[[2, *touched]] = 2e-4
    deviations[0] = 10.0
    return Prior(mean, np.diag(deviations**2))


@pytest.mark.parametrize(("share", "low", "high"), [(0.0, -0.001, 0.01), (0.3, 0.25, 0.35)])
@pytest.mark.parametrize("error", [0.002, 0.03])
def test_zeros_that_the_release_shows_are_kept(share: float, low: float, high: float, error: float) -> None:
    """A prior of homes without zeros does not take them from solar panels; where none were seen there are none."""
    generator = np.random.default_rng(5)
    examples = generator.gamma(1.5, 0.3, (400, 168, 1))
    examples[generator.random(examples.shape) < share] = 0.0
    total, noise = population_vectors(examples, 0.0, 15.0, 24).sum(axis=0), error * 400 / 2.0
    normals = generator.standard_normal((500, 5))
    means, drawn = [], []
    for seed in range(8):
        noisy = total + noise * np.random.default_rng(seed).standard_normal(len(total))
        found = population_of(noisy, 400, WITHIN, "private", noise, no_zeros())
        means.append(found.mean[2])
        drawn.append(np.clip(found.draw(normals)[:, 0, 2], 0.0, 1.0).mean())
    assert low <= np.mean(means) <= high
    assert low <= np.mean(drawn) <= high


def test_zeros_that_noise_could_be_leave_the_prior_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to 3 errors the answer is, to the bit, the one without any room for zeros; above, another."""
    prior, noise = no_zeros(), 4.0
    error = people.expected_error(50, 1, noise)
    for zeros, same in ((2.9 * error, True), (3.1 * error, False)):
        total = np.random.default_rng(1).normal(size=94)
        total[2] = zeros * 50 / 2.0
        found = population_of(total, 50, WITHIN, "private", noise, prior)
        with monkeypatch.context() as patch:
            patch.setattr(people, "SEEN_ZEROS", math.inf)
            assert (found == population_of(total, 50, WITHIN, "private", noise, prior)) == same


def test_drawn_vectors_have_the_mean_and_the_covariance() -> None:
    root = np.random.default_rng(1).normal(size=(5, 5)) * 0.05
    own = root @ root.T + 1e-3 * np.eye(5)
    covariance, mean = np.kron([[1.0, 0.4], [0.4, 1.0]], own), np.linspace(-0.2, 0.2, 10)
    two = Population(
        mean=tuple(mean),
        covariance=tuple(map(tuple, covariance)),
        histogram=((1 / 40,) * 40,) * 2,
        profile=((1.0,) * 24,) * 2,
        within=WITHIN.model_copy(update={"lower": (0.0, 1.0), "upper": (5.0, 3.0)}),
        origin="public",
    )
    normals = np.random.default_rng(2).standard_normal((200_000, 10))
    drawn = two.draw(normals).reshape(-1, 10)
    np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=3e-3)
    np.testing.assert_allclose(np.cov(drawn.T), covariance, atol=5e-4)  # channels keep their dependence
    between = two.draw(normals, 0.3 * own).reshape(-1, 10)
    np.testing.assert_allclose(np.cov(between.T), covariance - np.kron(np.eye(2), 0.3 * own), atol=5e-4)
    least = two.draw(normals, 2.0 * own).reshape(-1, 10)
    np.testing.assert_allclose(np.cov(least.T), 0.25 * covariance, atol=5e-4)  # a quarter is left in every direction


def test_levels_are_those_of_the_bounds() -> None:
    flat = population_of(np.zeros(94), 10, WITHIN, "public")
    ends = flat.levels(np.array([[[-1.0, 0, 0, 0, 0]], [[1.0, 0, 0, 0, 0]]]))
    np.testing.assert_allclose(ends[:, 0], [5e-3, 5.0])
    assert people.unit_level(0.1) == pytest.approx(1 / 3)


def test_charged_once_before_noise_and_for_every_unit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the unit of the plan: 4 examples of a series move the sum by 4, a replaced one by 2."""
    paid: list[list[Mechanism]] = []

    def drawn(vectors: np.ndarray, *_: object) -> np.ndarray:
        paid.append(read(tmp_path).charged(POPULATION))
        return vectors.sum(axis=0)

    monkeypatch.setattr(people, "noisy_sum", drawn)
    with ledger(tmp_path) as book:
        private_population(np.zeros((50, 94)), WITHIN, 6.0, 50, book)
    assert paid == [[Mechanism(1.0, 6.0, 1)]]
    record = read(tmp_path)
    for unit, moved in (("week", 1), ("day", 2), ("series", 4)):
        assert record.epsilon(unit, 1e-5).value == pytest.approx(get_epsilon_gaussian(6.0 / moved, 1e-5), rel=1e-3)


@pytest.mark.parametrize("piece", [1, 7, 50, 99])
def test_pieces_give_the_same_to_the_bit(tmp_path: Path, piece: int) -> None:
    vectors = np.random.default_rng(0).normal(size=(50, 94)) ** 3
    vectors /= np.maximum(1.0, np.linalg.norm(vectors, axis=1, keepdims=True))
    found = []
    for number, cut in enumerate((vectors, (vectors[first : first + piece] for first in range(0, 50, piece)))):
        with ledger(tmp_path / str(number), seed=3, test_only=True) as book:
            found.append(private_population(cut, WITHIN, 6.0, 50, book))
    assert found[0] == found[1]


def test_the_layout_in_memory_and_empty_pieces_change_no_bit() -> None:
    vectors = np.random.default_rng(0).normal(size=(5000, 94)) / 100
    total = unit_sum([vectors])
    assert np.array_equal(total, unit_sum([np.asfortranarray(vectors)]))
    assert np.array_equal(total, unit_sum([vectors[:0], vectors[:9], vectors[:0], np.asfortranarray(vectors[9:])]))
    assert np.array_equal(unit_sum([vectors[:0]]), np.zeros(94))


def test_longer_vectors_are_neither_charged_nor_released(tmp_path: Path) -> None:
    with ledger(tmp_path) as book:
        short, long = np.zeros((3, 94)), np.full((3, 94), 0.2)
        for wrong in (long, np.full((3, 94), np.nan), iter([short, long]), iter([])):
            with pytest.raises(ValueError, match=r"norms of at most 1|needs vectors"):
                private_population(wrong, WITHIN, 6.0, 50, book)
    assert not read(tmp_path).mechanisms


def test_what_is_released_is_rounded_and_fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cryptographic noise whatever training takes, another at each call, and no low bits of the sum."""
    seen: list[np.ndarray] = []
    true = people.noisy_sum
    monkeypatch.setattr(people, "noisy_sum", lambda *given: seen.append(true(*given)) or seen[-1])
    with ledger(tmp_path, secure=False) as book:
        for _ in range(2):
            private_population(np.zeros((50, 94)), WITHIN, 6.0, 50, book)
    assert (seen[0] != seen[1]).all()
    assert all((one == one.astype(np.float32)).all() for one in seen)
    assert np.concatenate(seen).std() == pytest.approx(6.0, rel=0.25)


def test_exact_moments_are_not_shortened() -> None:
    """With bounds as tight as this u is longer than 1; a run without privacy has no reason to shorten it."""
    examples = np.random.default_rng(1).uniform(0.8, 1.0, (50, 168, 1))
    u = features(examples, 0.0, 1.0, 24)[0][:, 0]
    assert np.linalg.norm(u, axis=1).min() > 1.0
    exact = population_vectors(examples, 0.0, 1.0, 24, shortened=False)
    found = population_of(exact.sum(axis=0), 50, WITHIN, "nonprivate")
    np.testing.assert_allclose(found.mean, u.mean(axis=0), atol=1e-12)
