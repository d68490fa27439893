"""Private standardisation: bounded sensitivity, an honest charge, useful numbers."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from dp_accounting import get_epsilon_gaussian
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tamedit.errors import UserError
from tamedit.privacy.accountant import Mechanism
from tamedit.privacy.entries import read
from tamedit.privacy.ledger import Ledger
from tamedit.privacy.plan import PrivacyPlan
from tamedit.privacy.statistics import level_vectors, noisy_sum, private_standardisation, scale_vectors
from tamedit.privacy.units import Contribution

UNITS = {"week": Contribution(1, "removal", "")}


def ledger(folder: Path, **change) -> Ledger:
    plan = PrivacyPlan(
        unit="week", examples=50, sampling_rate=0.1, clip=1.0, noise_multiplier=1.0, steps=10, delta=1e-5, **change
    )
    return Ledger.open(folder, plan, UNITS)


values = st.one_of(st.floats(-1e6, 1e6), st.just(np.nan), st.just(np.inf), st.just(-np.inf))


@settings(max_examples=80, deadline=None)
@given(arrays(np.float64, (3, 5, 2), elements=values))
def test_one_example_moves_the_sum_by_at_most_one(examples: np.ndarray) -> None:
    bounds = (-2.0, [3.0, 4.0])
    for vectors_of in (level_vectors, lambda data, *b: scale_vectors(data, np.array([-50.0, 1.0]), *b)):
        vectors = vectors_of(examples, *bounds)
        assert np.all(np.linalg.norm(vectors, axis=1) <= 1.0 + 1e-12)
        assert np.array_equal(vectors_of(examples[1:], *bounds), vectors[1:])  # no example depends on another
        neighbour = vectors_of(examples[:-1], *bounds).sum(axis=0)
        assert np.linalg.norm(vectors.sum(axis=0) - neighbour) <= 1.0 + 1e-12


def test_charged_before_anything_is_read(tmp_path: Path) -> None:
    with ledger(tmp_path) as book:
        for _ in range(2):
            private_standardisation(np.zeros((50, 24, 1)), -1.0, 1.0, 6.0, book)
    record = read(tmp_path)
    assert record.mechanisms == [Mechanism(1.0, 6.0, 4)]
    assert record.steps == 0
    assert record.epsilon("week", 1e-5).value == pytest.approx(get_epsilon_gaussian(6.0 / 2.0, 1e-5))
    with pytest.raises(UserError, match="Cannot write"):  # closed: nothing can be charged, so nothing is read
        private_standardisation(SimpleNamespace(shape=(50, 24, 1)), -1.0, 1.0, 6.0, book)


def test_close_to_the_truth_with_many_examples(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    examples = generator.normal([3.0, -1.0], [0.5, 2.0], size=(4000, 24, 2))
    examples[generator.random(examples.shape) < 0.2] = np.nan
    with ledger(tmp_path) as book:
        found = private_standardisation(examples, [-10.0, -10.0], [10.0, 10.0], 2.0, book)
    assert np.allclose(found.level, [3.0, -1.0], atol=0.06)  # its noise has a deviation of 0.01
    assert np.allclose(found.scale, [0.5, 2.0], atol=0.12)  # 0.02


def test_noise_of_the_stated_size(tmp_path: Path) -> None:
    """With all readings in the middle of the bounds only the noise moves the level: half · noise · √(2K) / N."""
    with ledger(tmp_path) as book:
        levels = [private_standardisation(np.zeros((50, 3, 1)), -1.0, 1.0, 1.0, book).level[0] for _ in range(300)]
    assert np.std(levels) == pytest.approx(np.sqrt(2.0) / 50, rel=0.3)


def test_repeatable_only_as_a_test(tmp_path: Path) -> None:
    examples = np.zeros((50, 3, 1))
    with ledger(tmp_path / "a", test_only=True, seed=1) as book:
        first, second = (private_standardisation(examples, -1.0, 1.0, 1.0, book) for _ in range(2))
    assert first.level == second.level
    with ledger(tmp_path / "b") as book:
        first, second = (private_standardisation(examples, -1.0, 1.0, 1.0, book) for _ in range(2))
    assert first.level != second.level


def test_bad_bounds_cost_nothing(tmp_path: Path) -> None:
    with ledger(tmp_path) as book:
        for lower, upper in ((1.0, 1.0), (2.0, 1.0), (-np.inf, 1.0), (np.nan, 1.0)):
            with pytest.raises(UserError, match="not intervals"):
                private_standardisation(np.zeros((5, 3, 1)), lower, upper, 1.0, book)
        with pytest.raises(UserError, match="no privacy"):
            private_standardisation(np.zeros((5, 3, 1)), 0.0, 1.0, 0.0, book)
    assert read(tmp_path).mechanisms == []


def test_releases_are_rounded_last(tmp_path: Path) -> None:
    """A double-precision sum with noise would show the sum in its low bits; what is released has no more than single ones."""
    vectors = np.random.default_rng(0).random((40, 500)) / 30
    with ledger(tmp_path) as open_ledger:
        secure = noisy_sum(vectors, 5.0, open_ledger, "test")
    assert np.array_equal(secure, secure.astype(np.float32))
    assert np.std(secure - vectors.sum(axis=0)) == pytest.approx(5.0, rel=0.15)


def test_drowned_in_noise_the_numbers_stay_usable_and_have_noise_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts: list[int] = []

    def watched(vectors: np.ndarray, noise: float, book: Ledger, what: str, part: int) -> np.ndarray:
        parts.append(part)
        return noisy_sum(vectors, noise, book, what, part)

    monkeypatch.setattr("tamedit.privacy.statistics.noisy_sum", watched)
    with ledger(tmp_path) as book:
        for _ in range(30):
            found = private_standardisation(np.full((50, 24, 1), np.nan), -1.0, 3.0, 1000.0, book)
            assert -1.0 <= found.level[0] <= 3.0
            assert 4e-3 <= found.scale[0] <= 4.0
    assert parts == [0, 1] * 30, "each release has a stream of its own"
    with ledger(tmp_path / "other", test_only=True, seed=0) as book:
        one, other = (noisy_sum(np.zeros((5, 3)), 1.0, book, "level", part) for part in (0, 1))
        assert (one != other).all()


def test_examples_in_pieces_give_the_same_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    examples = np.random.default_rng(4).gamma(2.0, 1.0, (50, 24, 2))
    examples[::7, 3:9] = np.nan
    found = []
    for together in (2**22, 7 * 48, 1):
        monkeypatch.setattr("tamedit.privacy.statistics.TOGETHER", together)
        with ledger(tmp_path / str(together), test_only=True, seed=0) as book:
            found.append(private_standardisation(examples, 0.0, 9.0, 1.0, book))
    for other in found[1:]:
        assert np.allclose(other.level, found[0].level, rtol=1e-12)
        assert np.allclose(other.scale, found[0].scale, rtol=1e-12)
