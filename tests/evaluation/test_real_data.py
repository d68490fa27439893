"""Named data sets from start to end, where they are on this machine."""

import json
from pathlib import Path

import numpy as np
import pytest

import tamedit as tame
from tamedit.data.loading import load_split
from tamedit.diffusion.sample import SamplerConfig
from tamedit.evaluation.evaluate import evaluate

FAST = SamplerConfig(steps=2)


@pytest.mark.usefixtures("data_folder")
@pytest.mark.parametrize("name", ["etth1", "household"])
def test_train_evaluate_and_fill(name: str, tmp_path: Path) -> None:
    model = tame.fit(name, scale="smoke", steps=2, out=tmp_path / "run")
    series, split = load_split(name)
    result = evaluate(model, split, samples=4, windows=6, sampler=FAST)
    json.dumps(result.to_dict(), allow_nan=False)
    # What the window itself says about the free guesses: the straight line is best inside, a season ahead.
    z = {(row.task, row.method): row.z for row in result.rows}
    assert z["imputation", "free_fill"].mae < z["imputation", "seasonal_naive"].mae
    assert z["forecast", "seasonal_mean"].rmse < 2
    assert model.spec.non_negative == (name == "household")
    week = split.test.rows(0, 168)
    ahead = model.forecast(week, 24, samples=2, sampler=FAST)
    assert list(ahead.columns[: len(series.targets)]) == list(series.targets)
    assert np.isfinite(ahead.to_numpy()).all()
    if name == "household":
        assert (ahead.to_numpy() >= 0).all()
