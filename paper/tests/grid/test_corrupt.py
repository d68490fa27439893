"""The heavy-tailed test bed: rare, seeded, meter by meter."""

import numpy as np
import pytest

from tamedit.data.simulate import simulate
from tamedit.errors import UserError
from tamedit_paper.grid.corrupt import SENSOR, corrupt

FLEET = simulate(meters=8, hours=24 * 60, seed=4, outage_rate=0.0, spike_rate=0.0)


def test_it_is_rare_and_heavy() -> None:
    disturbed = corrupt(FLEET, seed=1)
    known = np.isfinite(disturbed.values)
    changed = known & (disturbed.values != FLEET.values)
    assert 0 < changed.mean() < 3e-3, "about one reading in a thousand"
    assert (disturbed.values[changed] > 5 * np.nanmean(FLEET.values) * 0.2).all()
    assert 0.005 < (~known).mean() < 0.06, "outages of half a day to three days"
    gaps = np.diff(np.flatnonzero(np.diff(np.concatenate([[0], (~known[:, 0]).astype(int), [0]]))))[::2]
    assert gaps.max() >= 24
    sensor = disturbed.covariates[:, -1]
    assert disturbed.covariate_names[-1] == SENSOR
    assert np.abs(sensor).max() > 50
    assert np.median(np.abs(sensor)) < 1.5


def test_a_meter_is_disturbed_alike_in_any_company() -> None:
    alone, together = corrupt(FLEET.select([3]), seed=5), corrupt(FLEET, seed=5).select([3])
    np.testing.assert_array_equal(alone.values, together.values)
    np.testing.assert_array_equal(alone.covariates, together.covariates)
    assert not np.array_equal(corrupt(FLEET.select([3]), seed=6).covariates, alone.covariates)


def test_nothing_happens_at_rate_zero() -> None:
    same = corrupt(FLEET, spike_rate=0, outage_rate=0, sensor_rate=0)
    np.testing.assert_array_equal(same.values, FLEET.values)
    assert np.abs(same.covariates).max() < 6


def test_a_rate_out_of_range_is_refused() -> None:
    with pytest.raises(UserError, match="must lie between"):
        corrupt(FLEET, spike_rate=2.0)
