"""Frames with the columns of Chronos' `predict_df`: the same numbers as `forecast` and `impute`, in another shape."""

from inspect import Parameter, signature
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_meter import meter

from tamedit.diffusion.sample import SamplerConfig
from tamedit.errors import UserError
from tamedit.tasks.model import Model

FAST = SamplerConfig(steps=2)
NAMES = {"id_column": "home", "timestamp_column": "when", "target": "load"}


@pytest.fixture(scope="module")
def model(smoke_run: Path) -> Model:
    return Model.load(smoke_run, "cpu")


def long_frame(hours: int = 120) -> pd.DataFrame:
    """Two homes; the one with the larger number comes first."""
    parts = []
    for home in (7, 3):
        part = meter(hours, seed=home).reset_index(names="when").rename(columns={"kwh": "load"})
        parts.append(part.assign(home=home)[["home", "when", "load"]])
    return pd.concat(parts, ignore_index=True)


def test_columns_and_rows_are_those_of_chronos(model: Model) -> None:
    """The expected frame is made here as its documentation says: item, target, step; ids in the order of appearance."""
    df = long_frame()
    found = model.predict_df(df, prediction_length=5, quantile_levels=[0.1, 0.5, 0.9], samples=9, sampler=FAST, **NAMES)
    assert list(found.columns) == ["home", "when", "target_name", "predictions", "0.1", "0.5", "0.9"]
    assert found["home"].tolist() == [7] * 5 + [3] * 5
    last = df["when"].max()
    assert found["when"].tolist() == [last + pd.Timedelta(hours=step) for step in range(1, 6)] * 2
    assert set(found["target_name"]) == {"load"}
    np.testing.assert_array_equal(found["predictions"], found["0.5"])
    assert (found["0.1"] < found["0.9"]).all()
    assert {str(found[name].dtype) for name in found.columns[3:]} == {"float32"}


def test_the_arguments_are_those_of_chronos(model: Model) -> None:
    """The first seven by place and name, and their defaults, as in chronos-forecasting 2; one season if no length is given."""
    parameters = [(one.name, one.default) for one in signature(model.predict_df).parameters.values()]
    assert parameters[:7] == [
        ("df", Parameter.empty),
        ("future_df", None),
        ("id_column", "item_id"),
        ("timestamp_column", "timestamp"),
        ("target", "target"),
        ("prediction_length", None),
        ("quantile_levels", tuple(level / 10 for level in range(1, 10))),
    ]
    df = long_frame()
    levels = [0.5, 0.9, 0.1]
    found = model.predict_df(df, None, "home", "when", "load", None, levels, freq="1h", samples=9, sampler=FAST)
    assert list(found.columns)[4:] == ["0.5", "0.9", "0.1"]
    assert len(found) == 2 * 24
    in_order = model.predict_df(df, quantile_levels=sorted(levels), samples=9, sampler=FAST, **NAMES)
    pd.testing.assert_frame_equal(found, in_order[found.columns])


def test_numbers_are_those_of_forecast_and_impute(model: Model) -> None:
    df = long_frame()
    df.loc[30:40, "load"] = np.nan
    quantiles = {"samples": 9, "sampler": FAST}
    given = {"quantile_levels": (0.05, 0.25, 0.75, 0.95), **quantiles}
    columns = ["predictions", "0.05", "0.25", "0.75", "0.95"]
    reading = {"time": "when", "id": "home", "value": "load"}
    for found, expected in (
        (model.predict_df(df, prediction_length=4, **NAMES, **given), model.forecast(df, 4, **quantiles, **reading)),
        (model.impute_df(df, **NAMES, **given), model.impute(df, **quantiles, **reading).iloc[:, :-1]),
    ):
        assert len(found) == len(expected)
        np.testing.assert_allclose(found[columns], expected.iloc[:, 2:], rtol=1e-6)


def test_observed_readings_stay_and_samples_come_on_request(model: Model) -> None:
    df = long_frame()
    df.loc[30:40, "load"] = np.nan
    found = model.impute_df(df, samples=5, all_samples=True, quantile_levels=[0.5], sampler=FAST, **NAMES)
    drawn = found[[f"sample_{number}" for number in range(5)]].to_numpy()
    np.testing.assert_allclose(np.median(drawn, axis=1), found["predictions"], rtol=1e-6)
    kept = df["load"].notna().to_numpy()
    np.testing.assert_allclose(drawn[kept], np.repeat(df["load"].to_numpy()[kept, None], 5, axis=1), rtol=1e-6)
    assert (drawn[~kept].std(axis=1) > 0).all()


def test_a_wrong_call_gets_one_sentence(model: Model) -> None:
    df = long_frame(60)
    with pytest.raises(UserError, match="no column 'item_id'; name its columns with id_column"):
        model.predict_df(df)
    with pytest.raises(UserError, match="df is a str; give a pandas DataFrame"):
        model.impute_df("homes.csv", **NAMES)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="'predictions' has the name of a column of the result"):
        model.impute_df(
            df.rename(columns={"load": "predictions"}), id_column="home", timestamp_column="when", target="predictions"
        )
    for wrong in ([0.9, 0.9], [0.0, 0.5], 0.5):
        with pytest.raises(
            UserError, match=r"quantile_levels=.* is not possible; give different numbers between 0 and 1"
        ):
            model.predict_df(df, quantile_levels=wrong, **NAMES)  # type: ignore[arg-type]
