"""A generator that copies training homes sets off the alarm; one that draws fresh homes does not."""

from dataclasses import replace

import numpy as np
import pytest

from tamedit.data.series import Series
from tamedit.data.simulate import simulate
from tamedit.errors import UserError
from tamedit.evaluation.fidelity import leak_alarms

HOURS = 24 * 7 * 6


@pytest.fixture(scope="module")
def population() -> Series:
    return simulate(110, hours=HOURS, seed=11, variety=0.3)


def test_copies_of_training_homes_set_off_the_alarm(population: Series) -> None:
    training, held = population.select(range(60)), population.select(range(60, 90))
    noise = np.random.default_rng(0).lognormal(0, 0.1, training.values.shape).astype(np.float32)
    copies = replace(training, values=training.values * noise, meters=tuple(f"copy_{n}" for n in training.meters))
    found = leak_alarms(copies, training, held)
    assert found.alarm
    assert found.homes == 30
    assert found.closer > 0.7 > found.closer_expected[1]
    assert found.auc > 0.95
    assert found.epsilon_lower > 1
    assert "not a guarantee" in found.to_dict()["reading"]


def test_fresh_homes_do_not(population: Series) -> None:
    training, held, fresh = (population.select(range(*ends)) for ends in ((0, 40), (40, 80), (80, 110)))
    found = leak_alarms(fresh, training, held)
    assert not found.alarm
    assert found.closer_expected[0] < 0.5 < found.closer_expected[1]
    assert found.closer_expected[0] <= found.closer <= found.closer_expected[1]
    assert found.epsilon_lower < 0.5


def test_a_home_on_both_sides_is_refused(population: Series) -> None:
    with pytest.raises(UserError, match="hold out whole homes"):
        leak_alarms(population, population.select([0, 1, 2]), population.select([2, 3, 4]))
