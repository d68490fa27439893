"""How a model answers: its columns, its keywords, what it says it is."""

import inspect
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_meter import meter, with_gaps

import tamedit as tame
from tamedit.cli import fill as cli
from tamedit.diffusion.sample import SamplerConfig
from tamedit.tasks.frames import QUANTILES
from tamedit.tasks.model import Data, Model

FAST = SamplerConfig(steps=2)  # rough draws, and enough to see what matters here
LEVELS = [f"q{round(100 * level):02d}" for level in QUANTILES]


@pytest.fixture(scope="module")
def model(smoke_run: Path) -> Model:
    return Model.load(smoke_run, "cpu")


def test_the_columns_of_an_answer_follow_the_quantiles(model: Model) -> None:
    frame = with_gaps(meter())
    filled = model.impute(frame, samples=9, quantiles=(0.1, 0.5, 0.9), sampler=FAST)
    assert list(filled.columns) == ["kwh", "kwh_q10", "kwh_q50", "kwh_q90", "kwh_filled"]
    np.testing.assert_array_equal(filled["kwh_filled"], frame["kwh"].isna())
    assert model.impute(frame, samples=9, only_filled=True, sampler=FAST)["kwh_filled"].eq(1).all()
    np.testing.assert_array_equal(filled["kwh"], filled["kwh_q50"])
    ahead = model.forecast(frame, "5h", samples=9, quantiles=(0.1, 0.9), sampler=FAST)
    assert list(ahead.columns) == ["kwh", "kwh_q10", "kwh_q90"]
    pd.testing.assert_frame_equal(ahead, model.forecast(frame, 5, samples=9, quantiles=[0.1, 0.9], sampler=FAST))
    usual = model.impute(frame, samples=9, sampler=FAST)
    pd.testing.assert_frame_equal(usual, model.impute(frame, samples=9, quantiles=QUANTILES, sampler=FAST))
    for task in (model.impute, model.forecast):
        assert inspect.signature(task).parameters["quantiles"].default == QUANTILES
    assert inspect.signature(cli.impute).parameters["quantiles"].default == ",".join(map(str, QUANTILES))


@pytest.mark.parametrize("data", [meter(120), tame.read(meter(120))], ids=["table", "series"])
def test_an_unknown_keyword_is_refused_at_the_call_it_was_given_to(model: Model, data: Data) -> None:
    unexpected = r"\(\) got an unexpected keyword argument "
    with pytest.raises(TypeError, match=f"^impute{unexpected}'quantile'; did you mean 'quantiles'"):
        model.impute(data, quantile=(0.1, 0.9))
    with pytest.raises(TypeError, match=f"^forecast{unexpected}'sample'; did you mean 'samples'"):
        model.forecast(data, 3, sample=4)
    with pytest.raises(TypeError, match=f"^forecast{unexpected}'timezon'; did you mean 'timezone'"):
        model.forecast(data, 3, timezon="UTC")
    with pytest.raises(TypeError, match=f"^impute{unexpected}'xyz'; it takes samples, quantiles, .*timezone"):
        model.impute(data, xyz=1)
    with pytest.raises(TypeError, match=f"^read{unexpected}'quantiles'"):
        model.read(data, quantiles=(0.1, 0.9))
    with pytest.raises(TypeError, match=f"^impute{unexpected}'source'"):
        model.impute(data, source="etth1")


def test_what_a_model_says_it_is(model: Model) -> None:
    parameters = sum(one.numel() for one in model.network.parameters())
    kind = f"Model(1 target (kwh), rows every 1 hour, windows of 48 rows, {parameters:,} parameters, "
    assert repr(model) == kind + "without privacy)"

    def told(**changes: object) -> str:
        return repr(Model(model.network, model.spec.model_copy(update=changes)))

    bought = {"private": True, "unit": "week", "epsilon": {"headline": 7.994}, "delta": 1e-5, "statement": ""}
    assert told(privacy=bought) == kind + "ε = 8, δ = 1e-05 per week)"
    assert told(privacy=bought | {"epsilon": {"headline": None}}).endswith("ε = ∞, δ = 1e-05 per week)")
    assert told(privacy=bought | {"test_only": True}).endswith("per week (a test run: no guarantee))")
    assert "12 targets (0, 1, 2, 3, 4, 5, 6, 7, …)" in told(targets=tuple(map(str, range(12))))
    assert "rows every 1 month" in told(frequency_seconds=30.4375 * 86_400)
    estimated = model.spec.scaling | {"level": [0.123456], "scale": [6.54321]}
    assert told(scaling=estimated) == repr(model)
