"""Private evolution: what a home can change, what is charged and when, and that it comes closer."""

from pathlib import Path

import numpy as np
import pytest

from tamedit.data.series import Series
from tamedit.data.simulate import Region, simulate
from tamedit.errors import UserError
from tamedit.privacy.accountant import Mechanism, epsilon
from tamedit.privacy.entries import read
from tamedit.privacy.ledger import Ledger
from tamedit.privacy.plan import PrivacyPlan
from tamedit.privacy.units import Contribution
from tamedit.training.private.evolution import Population, evolve, evolved_homes, voted, votes
from tamedit.windows.cut import Windows, cut_blocks
from tamedit.windows.embedding import embedding

ELSEWHERE = Region(standby=1.6, habits=0.6, appliances=1.4, heating=1.5, heated=0.5, warmer=-3.0, later=1.5)


def fleet(homes: int, seed: int) -> Series:
    return simulate(homes, 24 * 60, seed=seed, variety=0.3, region=ELSEWHERE, start="2024-01-01")


def whole(series: Series) -> Windows:
    return cut_blocks(series, 168, None)


def vectors(series: Series) -> np.ndarray:
    load = series.values.reshape(len(series.meters), -1).astype(np.float64)
    return embedding(load, np.zeros(len(load), dtype=np.int64), 1)


def plan(steps: int = 2, sigma: float = 3.0) -> PrivacyPlan:
    return PrivacyPlan(
        unit="series",
        examples=20,
        sampling_rate=1.0,
        clip=1.0,
        noise_multiplier=sigma,
        steps=steps,
        delta=1e-5,
        test_only=True,
        seed=4,
    )


def energy_distance(one: np.ndarray, other: np.ndarray) -> float:
    def apart(a: np.ndarray, b: np.ndarray) -> float:
        return float(np.linalg.norm(a[:, None] - b[None], axis=2).mean())

    return 2 * apart(one, other) - apart(one, one) - apart(other, other)


def exact(one_hot: np.ndarray, _: int) -> np.ndarray:
    return one_hot.sum(axis=0)


def test_removing_a_home_changes_its_own_vote_alone() -> None:
    homes, candidates = vectors(fleet(12, 1)), vectors(fleet(30, 2))
    every = votes(homes, candidates)
    np.testing.assert_array_equal(np.linalg.norm(every, axis=1), 1.0)
    for gone in range(12):
        fewer = votes(np.delete(homes, gone, axis=0), candidates)
        np.testing.assert_array_equal(fewer, np.delete(every, gone, axis=0))
        assert np.linalg.norm(every.sum(axis=0) - fewer.sum(axis=0)) == 1.0
    nearest = [int(np.argmin([np.linalg.norm(home - one) for one in candidates])) for home in homes]
    assert every.argmax(axis=1).tolist() == nearest


def test_candidates_do_not_depend_on_the_homes() -> None:
    """The same noisy histograms give the same population, whoever voted."""
    histogram = np.random.default_rng(0).random(24)
    one, other = (
        evolve(whole(fleet(homes, seed)), lambda _, number: histogram + number, 24, seed=3)
        for homes, seed in ((5, 1), (9, 8))
    )
    assert one == other


def test_every_round_is_charged_before_its_noise_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def watched(vectors: np.ndarray, *_: object) -> np.ndarray:
        seen.append(read(tmp_path).steps)
        return np.asarray(vectors.sum(axis=0))

    monkeypatch.setattr("tamedit.training.private.evolution.noisy_sum", watched)
    with Ledger.open(tmp_path, plan(), {"series": Contribution(1, "removal", "")}) as ledger:
        evolve(whole(fleet(5, 1)), voted(ledger), 24, rounds=2)
    assert seen == [1, 2]


def test_epsilon_is_that_of_as_many_gaussian_releases(tmp_path: Path) -> None:
    with Ledger.open(tmp_path, plan(), {"series": Contribution(1, "removal", "")}) as ledger:
        evolve(whole(fleet(5, 1)), voted(ledger), 24, rounds=2, noise_multiplier=3.0)
    spent = read(tmp_path).epsilon("series", 1e-5).value
    # Two Gaussian releases with σ are one with σ / √2.
    assert spent == pytest.approx(epsilon([Mechanism(1.0, 3.0 / np.sqrt(2), 1)], 1e-5).value, rel=1e-2)


def test_homes_of_another_region_are_come_closer_to() -> None:
    there, held_out = fleet(80, 3), vectors(fleet(80, 9))
    found = evolve(whole(there), exact, 80, rounds=3)
    started = evolve(whole(there), lambda one_hot, _: np.ones(one_hot.shape[1]), 80, rounds=1)
    before, after = (
        energy_distance(vectors(evolved_homes(one, 80, "2024-01-01", 60)), held_out) for one in (started, found)
    )
    assert after < 0.4 * before


def test_same_seed_same_population_and_a_resumed_run_ends_alike(tmp_path: Path) -> None:
    windows, kept = whole(fleet(6, 1)), []
    first = evolve(windows, exact, 24, rounds=3, keep=kept.append)
    assert first == evolve(windows, exact, 24, rounds=3)
    kept[0].save(tmp_path)
    again = evolve(windows, exact, 24, rounds=3, begun=Population.load(tmp_path))
    np.testing.assert_allclose(again.homes, first.homes)
    assert again.weights == first.weights


def test_a_fleet_is_long_and_positive_and_bad_wishes_get_a_sentence() -> None:
    found = evolve(whole(fleet(5, 1)), exact, 24, rounds=1)
    made = evolved_homes(found, 7, "2024-02-01", 10, seed=2)
    assert (len(made.meters), len(made), made.layout) == (7, 7 * 240, "long")
    assert (made.values > 0).all()
    with pytest.raises(UserError, match="days=0"):
        evolved_homes(found, 7, "2024-02-01", 0)
    with pytest.raises(UserError, match="not a date"):
        evolved_homes(found, 7, "someday", 3)


def test_no_votes_leave_the_simulators_own_homes() -> None:
    found = evolve(whole(fleet(5, 1)), lambda one_hot, _: -np.ones(one_hot.shape[1]), 24, rounds=1)
    assert set(found.weights) == {1 / 24}
