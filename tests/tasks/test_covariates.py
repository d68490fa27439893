"""A model with a known covariate: what it needs of the past and of the future."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tamedit as tame
from tamedit.diffusion.sample import SamplerConfig
from tamedit.errors import UserError
from tamedit.tasks.model import Model

FAST = SamplerConfig(steps=2)  # rough draws, and enough to see what matters here


@pytest.fixture(scope="module")
def covariate_model() -> Model:
    """A tiny model with a known covariate."""
    return tame.fit(with_tariff(400), scale="smoke", steps=2, window=32, covariates=["tariff"])


def with_tariff(hours: int) -> pd.DataFrame:
    frame = tame.simulate(hours=hours, seed=5).frame()
    frame["tariff"] = (np.arange(hours) % 24 > 18).astype(float)
    return frame


def test_known_covariates(covariate_model: Model, tmp_path: Path) -> None:
    model, frame = covariate_model, with_tariff(424)
    past, ahead = frame.iloc[:400], frame.iloc[400:]
    expected = model.forecast(past, 24, samples=2, future=ahead, sampler=FAST)
    assert expected.columns[0] == "kwh"
    # By stamp, whatever the order and whatever else the table holds; by order without stamps.
    shuffled = pd.concat([past, ahead]).sample(frac=1, random_state=0)
    for future in (shuffled, shuffled.reset_index(), ahead.reset_index(drop=True)):
        pd.testing.assert_frame_equal(model.forecast(past, 24, samples=2, future=future, sampler=FAST), expected)
    text = ahead.reset_index().astype({"time": str})
    pd.testing.assert_frame_equal(model.forecast(past, 24, samples=2, future=text, sampler=FAST), expected)
    series = tame.read(past, targets=["kwh"], covariates=["tariff"])
    pd.testing.assert_frame_equal(model.forecast(series, 24, samples=2, future=ahead, sampler=FAST), expected)
    for wrong, word in (
        (None, "tariff"),
        (ahead.iloc[:5], "24 steps"),
        (ahead.drop(columns="tariff"), "tariff"),
        (ahead.assign(tariff=np.nan), "complete the table"),
        (ahead.assign(tariff="high"), "where a number should be"),
        (ahead.shift(freq="30min"), "24 steps"),
        (ahead.reset_index().assign(time="soon"), "soon"),
    ):
        with pytest.raises(UserError, match=word):
            model.forecast(past, 24, samples=2, future=wrong, sampler=FAST)
    holed = past.copy()
    holed.iloc[10:14, 0] = np.nan
    assert np.isfinite(model.impute(holed, samples=2, sampler=FAST).to_numpy()).all()
    with pytest.raises(UserError, match="needs the covariates tariff"):
        model.generate(2)
    with pytest.raises(UserError, match="covariates none and the model was trained with tariff"):
        model.impute(np.ones((60, 1)))
    reloaded = Model.load(model.save(tmp_path / "saved")[0].parent, "cpu")
    pd.testing.assert_frame_equal(reloaded.forecast(past, 24, samples=2, future=ahead, sampler=FAST), expected)


def test_future_covariates_of_several_meters(covariate_model: Model) -> None:
    frames = []
    for number, name in enumerate("ab"):
        part = with_tariff(90).reset_index()
        part["time"] += pd.Timedelta(hours=7 * number)
        part.insert(0, "meter", name)
        frames.append(part)
    past = pd.concat([part.iloc[:80] for part in frames])
    future = pd.concat([part.iloc[80:] for part in frames])
    ahead = covariate_model.forecast(past, 10, samples=2, future=future, sampler=FAST)
    assert list(ahead["time"]) == list(future["time"])
    with pytest.raises(UserError, match="of meter 'b'"):
        covariate_model.forecast(past, 10, samples=2, future=future[future["meter"] == "a"], sampler=FAST)
    with pytest.raises(UserError, match=r"several rows at .* of meter 'a'.* in the column 'meter'"):
        covariate_model.forecast(past, 10, samples=2, future=future.rename(columns={"meter": "home"}), sampler=FAST)
    zoned = future.assign(time=future["time"].dt.tz_localize("UTC"))
    with pytest.raises(UserError, match="have an offset from UTC and those of the series have none"):
        covariate_model.forecast(past, 10, samples=2, future=zoned, sampler=FAST)


def test_future_stamps_under_another_name(covariate_model: Model, tmp_path: Path) -> None:
    """Rows are matched by stamp, never by order, wherever the stamps are and whatever they are called."""
    frame = with_tariff(424)
    past, ahead = frame.iloc[:400], frame.iloc[400:]
    expected = covariate_model.forecast(past, 24, samples=2, future=ahead, sampler=FAST)
    wrong_order = frame[["tariff"]].sample(frac=1, random_state=0)
    renamed = wrong_order.rename_axis("valid_from")
    day, hour = frame.index.strftime("%Y-%m-%d"), frame.index.strftime("%H:%M")
    several = (
        renamed,
        renamed.rename_axis(None),
        renamed.reset_index(),
        renamed.reset_index().astype({"valid_from": str}),
        wrong_order.set_axis(wrong_order.index.astype(str)).rename_axis(None),
        renamed.set_axis(renamed.index.to_period("h")),
        wrong_order.reset_index().set_index("time", drop=False),
        frame[["tariff"]]
        .reset_index(drop=True)
        .assign(date=day, clock=hour)
        .rename(columns={"clock": "Time"})
        .iloc[::-1],
        wrong_order.assign(timestamp=(wrong_order.index - pd.Timestamp(0)) // pd.Timedelta("1s")).reset_index(
            drop=True
        ),
    )
    for future in several:
        answer = covariate_model.forecast(past, 24, samples=2, future=future, sampler=FAST)
        pd.testing.assert_frame_equal(answer, expected)
    renamed.to_csv(tmp_path / "future.csv")
    renamed.to_parquet(tmp_path / "future.parquet")
    for path in (tmp_path / "future.csv", str(tmp_path / "future.parquet")):
        pd.testing.assert_frame_equal(
            covariate_model.forecast(past, 24, samples=2, future=path, sampler=FAST), expected
        )


def test_future_without_stamps_holds_the_steps_alone(covariate_model: Model) -> None:
    frame = with_tariff(424)
    with pytest.raises(UserError, match=r"The future table has no time stamps, and 424 rows where 24 steps .* 'time'"):
        covariate_model.forecast(frame.iloc[:400], 24, future=frame.reset_index(drop=True), sampler=FAST)
    meters = frame.iloc[:200].reset_index().assign(meter=np.repeat(["a", "b"], 100))
    future = pd.DataFrame({"meter": ["a"] * 5 + ["b"] * 4, "tariff": 0.0})
    with pytest.raises(UserError, match=r"and 4 rows of meter 'b' where 5 steps"):
        covariate_model.forecast(meters, 5, future=future, sampler=FAST)


def test_future_of_meters_with_leading_zeros(covariate_model: Model, tmp_path: Path) -> None:
    meters = pd.concat([with_tariff(120).reset_index().assign(meter=name) for name in ("001", "002")])
    number = meters.groupby("meter").cumcount()
    meters[number < 115].to_csv(tmp_path / "past.csv", index=False)
    meters.loc[number >= 115, ["meter", "time", "tariff"]].to_csv(tmp_path / "future.csv", index=False)
    ahead = covariate_model.forecast(tmp_path / "past.csv", 5, samples=2, future=tmp_path / "future.csv", sampler=FAST)
    assert list(ahead["meter"]) == ["001"] * 5 + ["002"] * 5
