"""The audit as a test: the real mechanism passes it, close to what it claims; six sabotaged ones do not."""

import numpy as np
import pytest
from sabotage import ClippedPerDraw, FixedBatch, NoiseForgotten, NoiseHalved, RealisedDivisor
from scipy.stats import binom, norm

from tamedit.errors import UserError
from tamedit.privacy.audit import (
    Claim,
    DiracStep,
    along_canary,
    batch_size,
    held_out_rates,
    repeat,
    toss,
    white_box,
)
from tamedit.privacy.audit.dirac import likelihood_ratio
from tamedit.privacy.audit.finding import CURVE, ONE_RUN, STEPS
from tamedit.privacy.plan import PrivacyPlan


def plan_for(epsilon: float, **values) -> PrivacyPlan:
    usual = {"unit": "week", "examples": 1000, "sampling_rate": 0.9, "steps": 3, "clip": 0.7, "delta": 1e-5, "draws": 3}
    return PrivacyPlan.for_epsilon(epsilon, test_only=True, seed=1, **{**usual, **values})


@pytest.mark.parametrize(("k", "neighbour"), [(1, "removal"), (3, "removal"), (2, "replacement")])
def test_the_score_is_the_likelihood_ratio(k: int, neighbour: str) -> None:
    plan = PrivacyPlan(
        unit="week",
        examples=10,
        sampling_rate=0.3,
        clip=1.0,
        noise_multiplier=0.8,
        steps=1,
        delta=1e-5,
        contributions=k,
        neighbour=neighbour,
    )
    x = np.linspace(-2.0, 4.0, 7)

    def density(sign: float) -> np.ndarray:
        return sum(binom.pmf(j, k, 0.3) * norm.pdf(x, sign * j, 0.8) for j in range(k + 1))

    expected = np.log(density(1.0) / density(-1.0 if neighbour == "replacement" else 0.0))
    np.testing.assert_allclose(likelihood_ratio(plan)(x), expected, atol=1e-9)


def test_a_step_without_noise_is_the_clipped_sum_of_those_drawn() -> None:
    plan = plan_for(4.0, sampling_rate=0.5)
    step = DiracStep(plan, np.array([0, 1, 1, 3]), np.array([70.0, 0.1, -70.0, 0.7]), 5)
    step.noise.add_ = lambda tensors, step: None
    released, drawn = step(0)
    clipped = np.array([0.7, 0.1, -0.7, 0.7])
    expected = np.zeros(5)
    np.add.at(expected, np.array([0, 1, 1, 3])[drawn], clipped[drawn])
    assert 0 < len(drawn) < 4
    np.testing.assert_allclose(released.numpy(), expected / plan.divisor, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize(
    ("values", "shares"),
    [
        ({"sampling_rate": 0.2, "steps": 20}, (0.2, 0.25, 0.85)),
        ({"sampling_rate": 0.2, "steps": 20, "contributions": 2}, (0.2, 0.25, 0.7)),
        ({"neighbour": "replacement"}, (0.25, 0.4, 0.75)),
    ],
)
def test_the_mechanism_is_below_its_epsilon_and_close_to_it(values: dict, shares: tuple[float, float, float]) -> None:
    found = white_box(plan_for(4.0, **values), toss(2000, seed=0))
    assert not found.broken
    assert found.stated == pytest.approx(4.0, rel=1e-3)
    for name, share in zip((ONE_RUN, CURVE, STEPS), shares, strict=True):
        assert share * found.stated < found.bounds[name] < found.stated, name
    assert found.noise[0] < 1.0 < found.noise[1]
    assert found.auroc > 0.65


@pytest.mark.parametrize(
    ("make", "examples_per_unit"),
    [(NoiseForgotten, 1), (NoiseHalved, 1), (ClippedPerDraw, 1), (DiracStep, 2)],
    ids=["noise of micro-batches forgotten", "noise halved", "clipped per draw", "two windows accounted as one"],
)
def test_one_run_catches(make: type[DiracStep], examples_per_unit: int) -> None:
    plan, coins = plan_for(2.0), toss(3000, seed=0)
    found = white_box(plan, coins, make=make, examples_per_unit=examples_per_unit)
    assert found.lower > 1.4 * found.stated
    assert found.broken


def test_the_real_mechanism_passes_the_test_that_catches_the_others() -> None:
    found = white_box(plan_for(2.0), toss(3000, seed=0))
    assert 1.4 < found.lower < found.stated
    assert not found.broken


# A data set that an attacker chose: the others pull against the canary, or are there to be counted.
AGAINST, COUNTED = {"others": -np.ones(9)}, {"others": np.zeros(1), "dimension": 200}


@pytest.mark.parametrize(("make", "caught"), [(DiracStep, False), (FixedBatch, True)])
def test_repeated_runs_catch_a_fixed_batch(make: type[DiracStep], caught: bool, monkeypatch) -> None:
    """A fixed batch puts one of the others in the place of a canary that is absent: twice the change that was accounted."""
    monkeypatch.setattr(FixedBatch, "batches_of", 10)
    plan = plan_for(6.0, steps=1, draws=1, examples=10)
    rates = held_out_rates(*repeat(plan, 300, along_canary, make=make, **AGAINST), 0.05)
    assert rates.rejects(Claim.of(plan).curve()) is caught


@pytest.mark.parametrize(("make", "caught"), [(DiracStep, False), (RealisedDivisor, True)])
def test_repeated_runs_catch_the_realised_batch_size(make: type[DiracStep], caught: bool) -> None:
    """Noise that is divided by the size of the batch shows the size, and the size shows the canary."""
    plan = plan_for(2.0, steps=1, draws=1, examples=2)
    rates = held_out_rates(*repeat(plan, 300, batch_size, make=make, **COUNTED), 0.05)
    assert (rates.epsilon(plan.delta) > plan.epsilon().value) is caught
    assert rates.rejects(Claim.of(plan).curve()) is caught


def test_coins_are_fair_and_mistakes_are_said() -> None:
    assert abs(toss(10_000, seed=0).mean() - 0.5) < 0.02
    assert not np.array_equal(toss(64), toss(64))
    with pytest.raises(UserError, match="at least 2"):
        toss(1)
    with pytest.raises(UserError, match="confidence"):
        white_box(plan_for(4.0), toss(4, seed=0), confidence=1.0)
