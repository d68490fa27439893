"""sktime's own checks of a forecaster and a transformer, all of them, and the same numbers as the model's."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("sktime", reason="sktime is not installed; `make test-adapters` installs it")

from sktime.forecasting.base import ForecastingHorizon
from sktime.utils.estimator_checks import check_estimator
from small_meter import load

from tamedit.adapters.sktime import TameForecaster, TameImputer
from tamedit.diffusion.sample import SamplerConfig
from tamedit.errors import UserError
from tamedit.tasks.model import Model

FAST = {"samples": 9, "steps": 2}


@pytest.mark.parametrize(("estimator", "least"), [(TameForecaster, 700), (TameImputer, 300)])
def test_sktime_accepts_it(estimator: Any, least: int) -> None:
    """All of sktime's own checks: about a minute for the forecaster, seconds for the imputer."""
    found = check_estimator(estimator, verbose=0)
    assert {name: result for name, result in found.items() if result != "PASSED"} == {}
    assert len(found) >= least


def test_a_forecast_is_that_of_the_model(smoke_run: Path) -> None:
    """Medians and quantiles at the steps asked for, against `model.forecast` of the same rows."""
    model = Model.load(smoke_run, "cpu")
    y = load(100).rename("kwh")
    y.index.freq = "h"
    forecaster = TameForecaster(str(smoke_run), **FAST).fit(y)
    frame = y.rename_axis("time").reset_index().assign(home="0")
    wanted = model.forecast(
        frame, 9, samples=9, quantiles=(0.1, 0.9), sampler=SamplerConfig(steps=2), id="home", time="time", value="kwh"
    ).set_index("time")
    chosen = [1, 2, 9]
    found = forecaster.predict(fh=chosen)
    rows = wanted.iloc[np.array(chosen) - 1]
    np.testing.assert_allclose(found, rows["kwh"], rtol=1e-6)
    assert (found.index == rows.index).all()
    bands = forecaster.predict_quantiles(fh=chosen, alpha=[0.1, 0.9])
    np.testing.assert_allclose(bands, rows[["kwh_q10", "kwh_q90"]], rtol=1e-6)
    intervals = forecaster.predict_interval(fh=chosen, coverage=0.8)
    np.testing.assert_allclose(intervals, bands, rtol=1e-6)


def test_later_rows_are_the_new_context(smoke_run: Path) -> None:
    """Whatever `update_params` says, the forecast after an update is that of the whole series."""
    y = load(100).rename("kwh")
    y.index.freq = "h"
    whole = TameForecaster(str(smoke_run), **FAST).fit(y).predict(fh=[1, 5])
    for update_params in (True, False):
        forecaster = TameForecaster(str(smoke_run), **FAST).fit(y[:80])
        found = forecaster.update(y[78:], update_params=update_params).predict(fh=ForecastingHorizon([1, 5]))
        pd.testing.assert_series_equal(found, whole)


def test_gaps_are_filled_as_the_model_fills_them(smoke_run: Path) -> None:
    model = Model.load(smoke_run, "cpu")
    y = load(100).rename("kwh").to_frame()
    y.iloc[40:47] = np.nan
    found = TameImputer(str(smoke_run), **FAST).fit_transform(y)
    frame = y.rename_axis("time").reset_index().assign(home="0")
    wanted = model.impute(frame, samples=9, sampler=SamplerConfig(steps=2), id="home", time="time", value="kwh")
    np.testing.assert_allclose(found["kwh"], wanted["kwh"], rtol=1e-6)
    pd.testing.assert_frame_equal(found[y["kwh"].notna()], y[y["kwh"].notna()])


def test_another_rhythm_is_refused_unless_the_index_is_left_aside(smoke_run: Path) -> None:
    days = load(60).set_axis(pd.date_range("2024-01-01", periods=60, freq="D"))
    with pytest.raises(UserError, match="series 0 are not 1 hour apart"):
        TameForecaster(str(smoke_run), **FAST).fit(days).predict(fh=[1])
    found = TameForecaster(str(smoke_run), use_index=False, **FAST).fit(days).predict(fh=[1])
    assert found.index[0] == pd.Timestamp("2024-03-01")


def test_several_targets_go_together() -> None:
    """A model of two targets takes both columns at once; a model of one takes each column by itself."""
    two = pd.DataFrame({"a": load(100), "b": load(100, 2)})
    two.index.freq = "h"
    found = TameForecaster("homes", **FAST).fit(two).predict(fh=[1, 2])
    alone = TameForecaster("homes", **FAST).fit(two[["b"]]).predict(fh=[1, 2])
    assert list(found.columns) == ["a", "b"]
    np.testing.assert_allclose(found[["b"]], alone)
