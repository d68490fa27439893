"""One plan, one set of numbers."""

import dp_accounting
import numpy as np
import pytest

from tamedit.errors import UserError
from tamedit.privacy.accountant import Mechanism, epsilon
from tamedit.privacy.plan import PrivacyPlan

COMMON = {"unit": "day", "examples": 200, "sampling_rate": 0.05, "clip": 0.5, "steps": 300, "delta": 1e-5}


def test_everything_follows_from_the_plan() -> None:
    plan = PrivacyPlan(**COMMON, noise_multiplier=1.2, contributions=3)
    assert plan.noise_standard_deviation == pytest.approx(0.6)
    assert plan.divisor == pytest.approx(10.0)
    assert plan.adjacency == "ADD_OR_REMOVE_ONE"
    assert plan.noise().standard_deviation == plan.noise_standard_deviation
    sampler = plan.sampler()
    assert (sampler.examples, sampler.sampling_rate) == (200, 0.05)
    event = plan.event(7)
    assert event.count == 7
    assert isinstance(event.event, dp_accounting.dp_event.MixtureOfGaussiansDpEvent)
    assert event.event.standard_deviation == 1.2
    assert plan.epsilon().value == epsilon([Mechanism(0.05, 1.2, 300)], 1e-5, 3).value
    assert plan.epsilon(10).value < plan.epsilon().value


def test_the_event_is_what_dp_accounting_would_account() -> None:
    plan = PrivacyPlan(**COMMON, noise_multiplier=1.2)
    theirs = dp_accounting.pld.PLDAccountant(value_discretization_interval=1e-3).compose(plan.event())
    assert plan.epsilon().value == pytest.approx(theirs.get_epsilon(1e-5), abs=2e-3)


def test_numbers_of_any_kind() -> None:
    full = PrivacyPlan(**(COMMON | {"sampling_rate": 1, "examples": np.int64(200)}), noise_multiplier=np.float32(2.0))
    assert (full.divisor, full.examples, full.noise_multiplier) == (200.0, 200, 2.0)


def test_divisor_is_a_constant_of_the_plan() -> None:
    """Neighbouring data sets differ in their number of examples; the plan's divisor is given once and for all."""
    assert PrivacyPlan(**COMMON, noise_multiplier=1.0, divisor=12.5).divisor == 12.5
    changed = PrivacyPlan(**(COMMON | {"examples": 199}), noise_multiplier=1.0, divisor=12.5)
    assert changed.divisor == 12.5


@pytest.mark.parametrize(("k", "neighbour"), [(1, "removal"), (2, "removal"), (2, "replacement")])
def test_calibrated_noise_stays_within_the_target(k: int, neighbour: str) -> None:
    plan = PrivacyPlan.for_epsilon(4.0, **COMMON, contributions=k, neighbour=neighbour)
    assert 3.98 <= plan.epsilon().value <= 4.0


def test_calibration_leaves_room_for_what_is_charged() -> None:
    release = Mechanism(1.0, 4.0, 1)
    plan = PrivacyPlan.for_epsilon(4.0, charged=[release], **COMMON)
    total = epsilon([release, Mechanism(0.05, plan.noise_multiplier, 300)], 1e-5).value
    assert 3.98 <= total <= 4.0
    with pytest.raises(UserError, match="spent before training"):
        PrivacyPlan.for_epsilon(0.5, charged=[Mechanism(1.0, 1.0, 1)], **COMMON)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"noise_multipler": 1.0}, "no argument 'noise_multipler'"),
        ({"sampling_rate": 1.5}, "sampling_rate = 1.5"),
        ({"sampling_rate": 0.0}, "sampling_rate = 0.0"),
        ({"clip": -1.0}, "clip = -1.0"),
        ({"noise_multiplier": 0.0}, "noise_multiplier = 0.0"),
        ({"noise_multiplier": float("inf")}, "noise_multiplier = inf"),
        ({"delta": 0.0}, "delta = 0.0"),
        ({"unit": "person"}, "unit = 'person'"),
        ({"steps": 0}, "steps = 0"),
        ({"divisor": 0.0}, "divisor"),
        ({"contributions": 0}, "contributions = 0"),
        ({"seed": 3}, "test_only"),
        ({"test_only": True}, "test_only"),
    ],
)
def test_mistakes_are_named(change: dict, words: str) -> None:
    with pytest.raises(UserError, match=words):
        PrivacyPlan(**({**COMMON, "noise_multiplier": 1.0} | change))


def test_missing_and_contradicting_arguments() -> None:
    with pytest.raises(UserError, match="'noise_multiplier'"):
        PrivacyPlan(**COMMON)
    with pytest.raises(UserError, match="either epsilon or noise_multiplier"):
        PrivacyPlan.for_epsilon(1.0, noise_multiplier=1.0, **COMMON)
    with pytest.raises(UserError, match="positive"):
        PrivacyPlan.for_epsilon(-1.0, **COMMON)


def test_frozen_and_fingerprinted() -> None:
    plan = PrivacyPlan(**COMMON, noise_multiplier=1.0)
    with pytest.raises(Exception, match="frozen"):
        plan.clip = 2.0
    assert plan.fingerprint == PrivacyPlan(**COMMON, noise_multiplier=1.0).fingerprint
    assert plan.fingerprint != PrivacyPlan(**COMMON, noise_multiplier=1.1).fingerprint
    assert PrivacyPlan(**plan.model_dump(mode="json")) == plan
