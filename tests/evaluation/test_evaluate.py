"""The evaluation of a run: every method on the same windows, every number finite or absent."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tamedit as tame
from tamedit.data.loading import load_split
from tamedit.data.simulate import simulate
from tamedit.data.split import Split, split_by_time
from tamedit.diffusion.sample import SamplerConfig
from tamedit.errors import UserError
from tamedit.evaluation.evaluate import evaluate, pick_windows
from tamedit.evaluation.metrics import PATHS
from tamedit.evaluation.trial import Trial
from tamedit.tasks.model import Model

FAST = SamplerConfig(steps=2)
PROBABILISTIC = ("model", "free_distribution", "free_probabilistic", "seasonal_draws")
METHODS = {
    "model",
    "free_distribution",
    "free_probabilistic",
    "seasonal_draws",
    "linear_interpolation",
    "seasonal_naive",
    "seasonal_mean",
    "free_fill",
}


@pytest.fixture(scope="module")
def model(smoke_run: Path) -> Model:
    return Model.load(smoke_run, "cpu")


@pytest.fixture(scope="module")
def split(smoke_run: Path) -> Split:
    return load_split(str(smoke_run.parent / "meter.csv"))[1]


def test_every_method_at_every_task(model: Model, split: Split) -> None:
    result = evaluate(model, split, samples=6, windows=8, sampler=FAST)
    assert {(row.task, row.method) for row in result.rows} == {
        (task, method) for task in ("imputation", "forecast", "cold_start_24") for method in METHODS
    }
    assert list(result.left_out) == ["cold_start_48", "long_gap"]  # a window of 48 steps
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert plain["forecast_horizon"] == 24
    assert plain["private"] is False
    deviation = np.nanstd(split.train.values)
    for row in result.rows:
        assert row.z.rmse == pytest.approx(row.original.rmse / deviation, rel=1e-4)
        assert row.z.crps > 0
        assert (row.z.coverage50 is None) == (row.method not in PROBABILISTIC)
        assert row.z.coverage90 is None, "six samples reach no 90 %"
        for metric in PATHS:
            assert (row.z[metric.name] is None) == (row.task == "imputation")
    # The mean of antithetic draws around the fill is the fill.
    for task in ("imputation", "forecast"):
        assert result.of(task, "free_probabilistic").z.rmse == pytest.approx(
            result.of(task, "free_fill").z.rmse, rel=1e-3
        )
    assert evaluate(model, split, samples=6, windows=8, sampler=FAST) == result


def test_the_free_bar_is_the_same_for_every_floor(model: Model, split: Split) -> None:
    other = Model(model.network, model.spec)
    other.scaling = replace(model.scaling, floor=(5.0,), relative_floor=(2.0,))
    first, second = (evaluate(one, split, samples=4, windows=4, sampler=FAST) for one in (model, other))
    for task in ("imputation", "forecast"):
        for method in ("free_distribution", "free_probabilistic"):
            assert first.of(task, method) == second.of(task, method)
        assert first.of(task, "model") != second.of(task, "model")


def test_channels_without_readings_and_channels_that_never_change() -> None:
    rng = np.random.default_rng(0)
    values = rng.random((600, 3)).astype(np.float32)
    values[:, 1] = 4.0
    series = tame.read(values)
    model = tame.fit(series, scale="smoke", steps=2, window=32)
    silent = series.values.copy()
    silent[:, 2] = np.nan
    part = replace(series, values=silent)
    result = evaluate(model, Split(part, part, part), samples=4, windows=4, sampler=FAST)
    json.dumps(result.to_dict(), allow_nan=False)
    assert result.of("forecast", "linear_interpolation").z.rmse is not None


def test_windows_are_spread_over_the_test_part(split: Split) -> None:
    windows = pick_windows(split.test, 48, 5)
    assert len(windows) == 5
    assert windows.starts[0] == 0
    assert windows.starts[-1] > len(split.test) - 2 * 48
    with pytest.raises(UserError, match="test part has 180 rows at most"):
        pick_windows(split.test, 500, 5)


def test_mistakes(model: Model, split: Split) -> None:
    with pytest.raises(UserError, match="horizon=37 must lie between 1 and 36"):
        evaluate(model, split, horizon=37)
    with pytest.raises(UserError, match="samples=3"):
        evaluate(model, split, samples=3)
    with pytest.raises(UserError, match="test part has 0 rows"):
        evaluate(model, Split(split.train, split.validation, split.test.rows(0, 0)))
    wrong = tame.read(np.random.default_rng(0).random((200, 2)))
    with pytest.raises(UserError, match="2 target channels"):
        evaluate(model, Split(wrong, wrong, wrong))


def test_intervals_hold_the_numbers_and_can_be_left_out(model: Model, split: Split) -> None:
    longer = split_by_time(simulate(meters=1, hours=3200, seed=3))
    result = evaluate(model, longer, samples=4, windows=8, sampler=FAST, resamples=50)
    assert result.resamples == 50
    for row in result.rows:
        for scores in (row.z, row.original):
            for name, value in scores.values.items():
                ends = scores.intervals[name]
                assert (ends is None) == (value is None), (row.method, name)
                if ends is not None and value is not None:
                    assert ends[0] <= value <= ends[1]
    low, high = result.of("forecast", "model").z.intervals["CRPS"] or (0, 0)
    assert low < high
    bare = evaluate(model, longer, samples=4, windows=8, sampler=FAST, resamples=0)
    assert set(bare.of("forecast", "model").z.intervals.values()) == {None}
    assert bare.of("forecast", "model").z.values == pytest.approx(dict(result.of("forecast", "model").z.values))


@pytest.mark.parametrize("windows", [1, 2, 4, 100])
def test_windows_that_count_as_fewer_than_five_call_nobody_better(model: Model, split: Split, windows: int) -> None:
    """Also 23 windows of a test part that has room for three: they overlap."""
    found = evaluate(model, split, samples=4, windows=windows, sampler=FAST, tasks=["imputation", "forecast"])
    assert found.resamples == 0
    for task in found.tasks:
        assert set(found.of(task, "model").z.intervals.values()) == {None}
        gains = [one for by_metric in found.gains(task).values() for one in by_metric.values() if one is not None]
        assert gains
        assert {one.outcome for one in gains} == {"unknown"}
    outcomes = json.dumps(found.to_dict()["gains"])
    assert '"unknown"' in outcomes
    assert '"better"' not in outcomes


def test_overlapping_windows_are_resampled_together(model: Model, split: Split) -> None:
    assert Trial(model, split, 100).overlap == 8  # a window of 48 every 6 rows
    assert Trial(model, split, 3).overlap == 1
    assert evaluate(model, split, samples=4, windows=100, sampler=FAST, resamples=5).block == 8  # of 23 windows


def test_many_meters_are_resampled_whole(model: Model) -> None:
    many, few = (split_by_time(simulate(meters=meters, hours=1000, seed=3)) for meters in (12, 9))
    trial = Trial(model, many, 30)
    weights, meters = trial.weights(50), trial.windows.meter_of()
    assert trial.by_meter
    assert all((weights[:, meters == one] == weights[:, meters == one][:, :1]).all() for one in np.unique(meters))
    assert not Trial(model, few, 30).by_meter
