"""GluonTS' own evaluators run on a model, and give the scores that ours give on the same samples."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("gluonts", reason="GluonTS is not installed; `make test-adapters` installs it")

from gluonts.dataset.common import ListDataset
from gluonts.dataset.split import split
from gluonts.ev.metrics import MAE, MeanWeightedSumQuantileLoss
from gluonts.evaluation import Evaluator, make_evaluation_predictions
from gluonts.model.evaluation import evaluate_forecasts, evaluate_model
from gluonts.model.predictor import Predictor
from small_meter import load

from tamedit.adapters.gluonts import TamePredictor
from tamedit.diffusion.sample import SamplerConfig
from tamedit.errors import UserError
from tamedit.evaluation.scores import score
from tamedit.tasks.model import Model

FAST, LEVELS, HORIZON = SamplerConfig(steps=2), [level / 20 for level in range(1, 20)], 12


@pytest.fixture(scope="module")
def model(smoke_run: Path) -> Model:
    return Model.load(smoke_run, "cpu")


@pytest.fixture(scope="module")
def dataset() -> ListDataset:
    """Three homes of different lengths and starts, one of them with a gap."""
    entries = []
    for seed, hours in ((1, 200), (2, 150), (3, 30)):
        home = load(hours, seed)
        target = home.to_numpy(np.float32).copy()
        target[5:9] = np.nan if seed == 1 else target[5:9]
        entries.append({"start": home.index[0], "target": target, "item_id": f"home {seed}"})
    return ListDataset(entries, freq="h")


@pytest.fixture(scope="module")
def predictor(model: Model) -> TamePredictor:
    return TamePredictor(model, HORIZON, samples=21, sampler=FAST)


@pytest.fixture(scope="module")
def instances(dataset: ListDataset) -> Any:
    return split(dataset, offset=-HORIZON)[1].generate_instances(HORIZON)


def test_the_weighted_quantile_loss_is_our_crps(predictor: TamePredictor, instances: Any) -> None:
    """Theirs, by the new and the old evaluator, and ours, on the same samples."""
    forecasts = list(predictor.predict(instances.input))
    samples = np.stack([one.samples for one in forecasts])[..., None]  # (B, S, H, 1)
    truth = np.stack([label["target"] for label in instances.label])[..., None]
    ours = score(samples, truth, np.isfinite(truth), np.ones(1))[1]["CRPS_CSDI"]
    assert ours is not None
    assert 0.01 < ours < 10
    new = evaluate_forecasts(forecasts, test_data=instances, metrics=[MeanWeightedSumQuantileLoss(LEVELS)])
    assert float(new.iloc[0, 0]) == pytest.approx(ours, rel=1e-6)
    whole = [pd.Series(np.r_[past["target"], label["target"]]) for past, label in instances]
    for series, past in zip(whole, instances.input, strict=True):
        series.index = pd.period_range(past["start"], periods=len(series))
    totals, _ = Evaluator(quantiles=LEVELS, num_workers=None)(iter(whole), iter(forecasts))
    assert totals["mean_wQuantileLoss"] == pytest.approx(ours, rel=1e-6)


def test_harnesses_run(predictor: TamePredictor, dataset: ListDataset, instances: Any) -> None:
    table = evaluate_model(predictor, test_data=instances, metrics=[MAE()])
    assert 0 < float(table.iloc[0, 0]) < 100
    forecasts, truths = make_evaluation_predictions(dataset, predictor, num_samples=7)
    for forecast, truth in zip(forecasts, truths, strict=True):
        assert forecast.samples.shape == (7, HORIZON)
        assert forecast.start_date == truth.index[-HORIZON]


def test_a_forecast_is_that_of_the_model(model: Model, predictor: TamePredictor) -> None:
    """Against `model.forecast` on a table: the same stamps and, for the same stream (the meter "0"), the same samples."""
    home = load(100)
    entry = {"start": pd.Period(home.index[0], "h"), "target": home.to_numpy(), "item_id": "home"}
    (found,) = predictor.predict([entry])
    frame = home.reset_index(name="kwh").assign(home="0")
    wanted = model.forecast(
        frame, HORIZON, samples=21, all_samples=True, sampler=FAST, id="home", time=frame.columns[0], value="kwh"
    )
    np.testing.assert_allclose(found.samples, wanted["kwh"].to_numpy().reshape(21, HORIZON), rtol=1e-6)
    assert found.item_id == "home"
    assert found.start_date.start_time == wanted.iloc[0][frame.columns[0]]


def test_a_predictor_is_written_and_read(predictor: TamePredictor, instances: Any, tmp_path: Path) -> None:
    predictor.serialize(tmp_path)
    again = Predictor.deserialize(tmp_path, sampler=FAST)
    pair = zip(predictor.predict(instances.input), again.predict(instances.input), strict=True)
    assert all((one.samples == other.samples).all() for one, other in pair)


def test_another_rhythm_or_shape_is_refused(predictor: TamePredictor) -> None:
    with pytest.raises(UserError, match="series 0 are not 1 hour apart"):
        list(predictor.predict([{"start": pd.Period("2024-01-01", "D"), "target": np.ones(60)}]))
    with pytest.raises(UserError, match="Series 0 has 2 target channels and the model was trained on 1"):
        list(predictor.predict([{"start": pd.Period("2024-01-01", "h"), "target": np.ones((2, 60))}]))
