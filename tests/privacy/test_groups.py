"""Static attributes in who the homes are: a bounded vector, shares, and how u shifts with a category."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tamedit.privacy import population as people
from tamedit.privacy.groups import SHIFT, drawn_marks, shares_of, with_groups
from tamedit.privacy.population import Population, Within, features, population_of, population_vectors
from tamedit.statics import Static

WITHIN = Within(lower=(0.0,), upper=(5.0,), period=24, rows=168, begin="2023-01-01", end="2023-12-31")
STATIC: Static = (("tariff", ("flat", "night")), ("heating", ("gas", "oil", "heat pump")))
EDGES = [np.nan, np.inf, -np.inf, 0.0, 3e38, -3e38, 1e-3, 1.0, 2.0, -7.0]


@given(
    data=arrays(
        np.float64, st.tuples(st.just(3), st.integers(1, 9), st.integers(1, 3)), elements=st.sampled_from(EDGES)
    ),
    marks=arrays(np.float64, (3, 5), elements=st.sampled_from([0.0, 1.0, 0.88, np.nan, 7.0])),
    period=st.integers(1, 12),
)
def test_one_example_moves_the_sum_by_at_most_one(data: np.ndarray, marks: np.ndarray, period: int) -> None:
    """Whatever its readings are, and whatever stands in the marks: even two categories of one attribute."""
    vectors = population_vectors(data, 0.0, 2.0, period, marks=marks, static=STATIC)
    assert np.all(np.linalg.norm(vectors, axis=1) <= 1.0 + 1e-12), "not a number is more than 1, too"
    for gone in range(3):  # to the last bit: no example depends on another
        kept = [one for one in range(3) if one != gone]
        others = population_vectors(data[kept], 0.0, 2.0, period, marks=marks[kept], static=STATIC)
        np.testing.assert_array_equal(others, vectors[kept])
    unlike = marks.copy()
    unlike[0] = [0.0, 1.0, 1.0, 0.0, 0.0]
    np.testing.assert_array_equal(
        population_vectors(data, 0.0, 2.0, period, marks=unlike, static=STATIC)[1:], vectors[1:]
    )


def test_the_bound_is_nearly_met_and_joint_shortening_is_not_needed() -> None:
    """‖u'‖² ≤ K + A and so on: the norm is what the docstring says, not what the last division makes of it."""
    week = np.zeros((1, 168, 1))
    week[0, ::24] = 5.0
    marks = np.array([[0.0, 1.0, 0.0, 0.0, 1.0]])
    vector = population_vectors(week, 0.0, 5.0, 24, marks=marks, static=STATIC)[0]
    u, h, d = (one.reshape(-1) for one in features(week, 0.0, 5.0, 24))
    u = np.concatenate([u / max(1.0, np.linalg.norm(u)), marks[0]])
    norm = math.sqrt(3 + 9 + 1 + 1)
    np.testing.assert_allclose(vector, np.concatenate([u, np.outer(u, u).ravel(), h, d / 3]) / norm, atol=1e-15)
    assert 0.5 < np.linalg.norm(vector) <= 1.0


@pytest.mark.parametrize("channels", [1, 2])
def test_without_attributes_nothing_changed(channels: int) -> None:
    """The form of before, written down again: to the last bit."""
    generator = np.random.default_rng(channels)
    examples, bounds = generator.gamma(1.0, 1.0, (30, 72, channels)), ((0.0,) * channels, (5.0,) * channels)
    u, h, d = features(examples, *bounds, 24)
    flat = u.reshape(30, -1)
    flat = flat / np.maximum(1.0, np.linalg.norm(flat, axis=1, keepdims=True) / math.sqrt(channels))
    parts = [flat, (flat[:, :, None] * flat[:, None, :]).reshape(30, -1), h.reshape(30, -1), d.reshape(30, -1) / 3.0]
    wanted = np.concatenate(parts, axis=1) / math.sqrt(3 * channels + channels**2)
    vectors = population_vectors(examples, *bounds, 24)
    np.testing.assert_array_equal(vectors, wanted / np.maximum(1.0, np.linalg.norm(wanted, axis=1, keepdims=True)))
    assert people.expected_error(70, channels, 3.0) == 3.0 * math.sqrt(3 * channels + channels**2) / 70
    size = 5 * channels
    within = WITHIN.model_copy(update={"lower": bounds[0], "upper": bounds[1]})
    total = vectors.sum(axis=0) + generator.standard_normal(vectors.shape[1])
    moments = total * math.sqrt(3 * channels + channels**2) / 30
    mean = np.clip(moments[:size], -1.0, 1.0)
    second = moments[size : size + size**2].reshape(size, size)
    values, axes = np.linalg.eigh(0.5 * (second + second.T) - np.outer(mean, mean))
    found = population_of(total, 30, within, "private", 1.0)
    np.testing.assert_array_equal(found.mean, mean)
    np.testing.assert_array_equal(found.covariance, (axes * np.clip(values, 1e-6, None)) @ axes.T)
    old = found.model_dump(mode="json")
    assert Population.model_validate({name: one for name, one in old.items() if name != "static"}) == found


def fleet(homes: int = 4000) -> tuple[np.ndarray, np.ndarray]:
    """Homes whose levels depend on both attributes, which depend on one another; the tariff of a tenth is not known."""
    generator = np.random.default_rng(5)
    night = generator.random(homes) < 0.3
    heating = np.where(generator.random(homes) < np.where(night, 0.8, 0.1), 2, generator.integers(0, 2, homes))
    marks = np.zeros((homes, 5))
    marks[np.arange(homes), night.astype(int)] = 1.0
    marks[generator.random(homes) < 0.1, :2] = 0.0
    marks[np.arange(homes), 2 + heating] = 1.0
    level = np.exp(generator.normal(-2.0, 0.3, homes) + 0.5 * marks[:, 1] + 0.7 * (heating == 2))
    shape = generator.gamma(2.0, 0.5, (homes, 48))
    return (level[:, None] * shape)[:, :, None], marks


@pytest.fixture(scope="module")
def learned() -> tuple[Population, np.ndarray, np.ndarray]:
    examples, marks = fleet()
    vectors = population_vectors(examples, 0.0, 5.0, 24, shortened=False, marks=marks, static=STATIC)
    found = population_of(vectors.sum(axis=0), len(examples), WITHIN, "nonprivate", static=STATIC)
    return found, features(examples, 0.0, 5.0, 24)[0][:, 0], marks


def test_without_noise_the_homes_of_a_category_are_those_of_a_regression(
    learned: tuple[Population, np.ndarray, np.ndarray],
) -> None:
    """The oracle is a least-squares fit of u on s, home by home, and the covariance of what it leaves."""
    found, u, marks = learned
    np.testing.assert_allclose(found.mean[5:], marks.mean(axis=0), atol=1e-12)
    design = np.column_stack([np.ones(len(u)), marks])
    fit = np.linalg.lstsq(design, u, rcond=None)[0]
    left = np.cov((u - design @ fit).T, bias=True)
    normals = np.random.default_rng(1).standard_normal((100_000, 5))
    for wanted in ([0, 1, 0, 0, 1], [1, 0, 1, 0, 0], [0, 0, 0, 1, 0]):
        row = np.array(wanted, dtype=np.float64)
        drawn = found.draw(normals, marks=np.tile(row, (len(normals), 1)))[:, 0]
        np.testing.assert_allclose(drawn.mean(axis=0), np.concatenate([[1.0], row]) @ fit, atol=5e-3)
        np.testing.assert_allclose(np.cov(drawn.T), left, atol=1e-3)
    everyone = found.draw(normals)[:, 0]
    np.testing.assert_allclose(everyone.mean(axis=0), u.mean(axis=0), atol=5e-3)
    np.testing.assert_allclose(np.cov(everyone.T), np.cov(u.T), atol=2e-3)


def test_attributes_are_drawn_from_their_shares_given_those_that_were_asked_for(
    learned: tuple[Population, np.ndarray, np.ndarray],
) -> None:
    found, _, marks = learned
    uniforms = np.random.default_rng(2).random((50_000, 2))
    drawn = found.draw_marks(uniforms)
    assert set(drawn.sum(axis=1)) <= {1.0, 2.0}
    np.testing.assert_allclose(drawn.mean(axis=0), marks.mean(axis=0), atol=0.01)
    np.testing.assert_allclose((drawn[:, 1] * drawn[:, 4]).mean(), (marks[:, 1] * marks[:, 4]).mean(), atol=0.01)
    pumps = found.draw_marks(uniforms, (("heating", "heat pump"),))
    assert (pumps[:, 2:] == [0, 0, 1]).all()
    among = marks[marks[:, 4] == 1][:, :2].mean(axis=0)
    np.testing.assert_allclose(pumps[:, :2].mean(axis=0), among, atol=0.01)
    assert abs(among[1] - marks[:, 1].mean()) > 0.2, "or the test would say nothing"
    np.testing.assert_array_equal(found.draw_marks(uniforms[:7]), drawn[:7])


def test_noise_moves_a_shift_as_far_as_the_prior_says() -> None:
    """Against the posterior mean of a linear model, solved for all entries of B at once."""
    generator = np.random.default_rng(3)
    static: Static = (("heating", ("gas", "oil", "heat pump")),)
    shares, error = np.array([0.5, 0.3, 0.1]), 0.02
    among = np.diag(shares) - np.outer(shares, shares)
    released = np.zeros((8, 8))
    released[:5, 5:] = generator.normal(0.0, 0.05, (5, 3))
    own = np.eye(5)
    made = with_groups(own, released, shares, static, error)
    design = np.kron(np.eye(5), among)  # C = B Σ, row by row
    inverse = np.linalg.inv(design.T @ design / error**2 + np.eye(15) / SHIFT**2)
    wanted = (inverse @ design.T @ released[:5, 5:].ravel() / error**2).reshape(5, 3)
    np.testing.assert_allclose(made[:5, 5:], wanted @ among, atol=1e-12)
    np.testing.assert_allclose(made[5:, 5:], among, atol=1e-12)
    np.testing.assert_allclose(made[:5, :5], own, atol=1e-12)
    hidden = with_groups(own, released, shares, static, 100.0)
    assert np.abs(hidden[:5, 5:]).max() < 1e-3


@given(
    noise=arrays(np.float64, (10, 10), elements=st.floats(-0.3, 0.3)),
    found=arrays(np.float64, 5, elements=st.floats(-0.5, 1.5)),
    error=st.sampled_from([0.0, 0.01, 0.15]),
)
def test_any_noise_leaves_a_distribution(noise: np.ndarray, found: np.ndarray, error: float) -> None:
    shares = shares_of(found, STATIC, error)
    assert (shares >= 0).all()
    assert shares[:2].sum() <= 1 + 1e-9
    assert shares[2:].sum() <= 1 + 1e-9
    made = with_groups(0.1 * np.eye(5), noise + noise.T, shares, STATIC, error)
    assert np.isfinite(made).all()
    assert np.linalg.eigvalsh(made).min() > -1e-9
    marks = drawn_marks(shares, made[5:, 5:], STATIC, np.random.default_rng(0).random((20, 2)))
    assert set(np.unique(marks)) <= {0.0, 1.0}
    assert marks[:, :2].sum(axis=1).max() <= 1
    assert not marks[:, shares == 0].any(), "nobody has a category without a share"


def test_what_noise_could_be_is_no_rest() -> None:
    static: Static = (("tariff", ("flat", "night")),)
    np.testing.assert_allclose(shares_of(np.array([0.5, 0.3]), static, 0.0), [0.5, 0.3])  # a fifth is not known
    np.testing.assert_allclose(shares_of(np.array([0.5, 0.3]), static, 0.1), [0.625, 0.375])
    np.testing.assert_allclose(shares_of(np.array([0.9, 0.3]), static, 0.0), [0.75, 0.25])
    np.testing.assert_allclose(shares_of(np.array([-0.1, -0.2]), static, 0.1), [0.0, 0.0])
    nobody = drawn_marks(np.zeros(2), np.zeros((2, 2)), static, np.full((3, 1), 0.4))
    assert not nobody.any()
