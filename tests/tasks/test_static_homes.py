"""A model that knows attributes of homes: homes with those that were asked for, and attributes that go on by themselves."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import tamedit as tame
from tamedit.diffusion.sample import SamplerConfig
from tamedit.errors import UserError
from tamedit.runs.request import TrainRequest
from tamedit.serve.answers import forecast as served_forecast
from tamedit.serve.messages import ForecastRequest
from tamedit.serve.uploads import points_of, series_of
from tamedit.tasks.model import Model

pytestmark = pytest.mark.usefixtures("small_pool")
FAST = SamplerConfig(steps=2)
STATIC = {"tariff": ("flat", "night"), "heating": ("gas", "pump")}


def two_groups(meters: int = 16, days: int = 42) -> pd.DataFrame:
    """Homes with a mean load of about 1 (flat) and 4 (night); every third has a heat pump, one says nothing of its tariff."""
    frame = tame.simulate(meters, 24 * days, seed=1).frame()
    number = frame["meter"].map({name: place for place, name in enumerate(frame["meter"].unique())})
    night = (number % 2 == 1).to_numpy()
    level = np.where(night, 4.0, 1.0) * np.exp(0.1 * np.sin(number))
    frame["kwh"] = frame["kwh"] / frame.groupby("meter")["kwh"].transform("mean") * level
    frame["tariff"] = np.where(night, "night", "flat")
    frame.loc[number == 0, "tariff"] = None
    frame["heating"] = np.where(number % 3 == 0, "pump", "gas")
    return frame


@pytest.fixture(scope="module")
def groups() -> pd.DataFrame:
    return two_groups()


@pytest.fixture(scope="module")
def model(groups: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Model:
    out = tmp_path_factory.mktemp("static") / "run"
    return tame.fit(groups, out=out, scale="smoke", steps=2, window=48, static=STATIC, init="homes")


def levels(homes: pd.DataFrame) -> pd.Series:
    return homes.groupby("home")["kwh"].mean()


def test_homes_have_the_attributes_that_were_asked_for_and_the_loads_of_such_homes(model: Model) -> None:
    night = model.generate(homes=24, days=28, static={"tariff": "night"}, seed=2)
    flat = model.generate(homes=24, days=28, static="tariff=flat,heating=gas", seed=2)
    assert list(night.columns) == ["home", "time", "kwh", "tariff", "heating"]
    assert (night["tariff"] == "night").all()
    assert (flat["tariff"] == "flat").all()
    assert (flat["heating"] == "gas").all()
    assert set(night["heating"]) == {"gas", "pump"}, "what was not asked for is drawn"
    assert 3.0 < levels(night).median() < 5.2
    assert 0.75 < levels(flat).median() < 1.3
    every = model.generate(homes=60, days=7, seed=3)
    words = every.groupby("home")[["tariff", "heating"]].agg(["nunique", "first"])
    assert (words[("heating", "nunique")] == 1).all(), "one word for all rows of a home"
    unknown = every.groupby("home")["tariff"].first().isna()
    assert 0 < unknown.mean() < 0.2, "a sixteenth of the homes say nothing"
    own = levels(every)
    by_word = own.groupby(every.groupby("home")["tariff"].first()).median()
    assert by_word["night"] > 2.5 * by_word["flat"]


def test_a_home_depends_on_the_seed_and_its_number_alone(model: Model) -> None:
    every = model.generate(homes=5, days=3, seed=4)
    fewer = model.generate(homes=2, days=3, seed=4)
    pd.testing.assert_frame_equal(every.iloc[: len(fewer)], fewer)
    assert not model.generate(homes=5, days=3, seed=5).equals(every)


def test_the_network_sees_the_attributes_when_it_draws_days_anew(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[torch.Tensor] = []

    def draw(values: Any, observed: Any, covariates: Any, *_: Any) -> Any:
        seen.append(covariates)
        return values.nan_to_num(0.0)[:, None]

    monkeypatch.setattr(model, "draw", draw)
    homes = model.generate(homes=3, days=4, static={"tariff": "night"}, redraw=True)
    heating = homes.groupby("home")["heating"].first().tolist()
    assert seen[0].shape[2] == model.spec.network.covariate_channels == 10
    windows = len(seen[0]) // 3
    squashed = np.arcsinh(1.0)
    for home, word in enumerate(heating):
        own = seen[0][home * windows : (home + 1) * windows, :, :4].numpy()
        wanted = np.array([0, 1, word == "gas", word == "pump"]) * squashed
        np.testing.assert_allclose(own, np.broadcast_to(wanted, own.shape), atol=1e-6)


def test_filling_and_forecasting_read_the_attributes_by_themselves(
    model: Model, groups: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[np.ndarray] = []
    own_draw = Model.draw

    def draw(self: Model, values: Any, observed: Any, covariates: Any, *rest: Any) -> Any:
        seen.append(covariates[:, :, :4].numpy())
        return own_draw(self, values, observed, covariates, *rest)

    monkeypatch.setattr(Model, "draw", draw)
    recent = groups.groupby("meter").tail(72)
    recent = recent[recent["meter"].isin(recent["meter"].unique()[:2])]
    path = tmp_path / "recent.csv"
    recent.to_csv(path, index=False)
    ahead = model.forecast(recent, 24, samples=2, sampler=FAST)
    assert len(ahead) == 2 * 24
    assert list(ahead.columns[:3]) == ["meter", "time", "kwh"]
    np.testing.assert_allclose(model.forecast(path, 24, samples=2, sampler=FAST)["kwh"], ahead["kwh"], rtol=1e-5)
    marks = {tuple(np.round(row / np.arcsinh(1.0)).astype(int)) for one in seen for row in one.reshape(-1, 4)}
    assert marks == {(0, 0, 0, 1), (0, 1, 1, 0)}, "in the rows ahead as well, and of each meter its own"
    frame = recent.rename(columns={"meter": "item_id", "time": "timestamp"})
    predicted = model.predict_df(frame, target="kwh", prediction_length=24, samples=2, sampler=FAST)
    np.testing.assert_allclose(predicted["predictions"], ahead["kwh"], rtol=1e-5)
    holed = recent.assign(kwh=recent["kwh"].mask(np.arange(len(recent)) % 9 == 0))
    assert model.impute(holed, samples=2, sampler=FAST)["kwh"].notna().all()
    assert model.impute_df(frame, target="kwh", samples=2, sampler=FAST)["predictions"].notna().all()
    short = model.forecast(recent, 3, samples=2, since=str(recent["time"].max() + pd.Timedelta(hours=5)), sampler=FAST)
    assert len(short) == 6
    reloaded = Model.load(model.save(tmp_path / "saved")[0].parent, "cpu")
    assert reloaded.spec.static == model.spec.static
    reordered = tame.read(recent, static={"tariff": ("night", "flat"), "heating": ("gas", "pump")})
    with pytest.raises(UserError, match="trained with tariff=flat, tariff=night"):
        model.forecast(reordered, 3)
    with pytest.raises(UserError, match="no column 'heating'"):
        model.forecast(recent.drop(columns="heating"), 3)
    with pytest.raises(UserError, match="has 'dual' in column 'tariff'"):
        model.impute(recent.assign(tariff="dual"))


def test_homes_of_a_table_go_on_with_their_attributes(model: Model, groups: pd.DataFrame) -> None:
    begin = groups[groups["meter"].isin(groups["meter"].unique()[:2])].groupby("meter").tail(24 * 14)
    for redraw in (True, False):
        made = model.generate(begin=begin, days=2, redraw=redraw)
        words = made.groupby("home")[["tariff", "heating"]].first()
        assert words["heating"].tolist() == ["pump", "gas"]
        assert words["tariff"].isna().tolist() == [True, False]
        assert words["tariff"].iloc[1] == "night"


def test_a_covariate_beside_an_attribute_is_still_asked_for(groups: pd.DataFrame) -> None:
    frame = groups.assign(price=np.arange(len(groups)) % 24 / 24.0)
    made = tame.fit(
        frame, scale="smoke", steps=1, window=24, targets=["kwh"], covariates=["price"], static="tariff,heating"
    )
    assert made.spec.static == (("tariff", ("flat", "night")), ("heating", ("gas", "pump")))
    assert made.spec.varying == ("price",)
    recent = frame.groupby("meter").tail(48)
    with pytest.raises(UserError, match=r"has the covariates price; give their next 3 rows"):
        made.forecast(recent, 3)
    last = recent["time"].max()
    future = pd.DataFrame({"time": pd.date_range(last, periods=4, freq="h")[1:], "price": 0.5})
    assert len(made.forecast(recent, 3, future=future, samples=2, sampler=FAST)) == 3 * 16
    with pytest.raises(UserError, match="needs the covariates price, so"):
        made.generate(homes=2)


def test_what_this_model_does_not_know_is_one_sentence(model: Model, smoke_run: Path, groups: pd.DataFrame) -> None:
    for static, sentence in (
        ({"roof": "flat"}, r"no attribute 'roof'; it has tariff \(flat, night\) and heating \(gas, pump\)"),
        ({"tariff": "dual"}, "'tariff' has no category 'dual'; this model knows flat, night"),
        ("tariff", "Ask for one category of 'tariff': tariff=flat"),
        ("tariff=flat|night", "Ask for one category"),
    ):
        with pytest.raises(UserError, match=sentence):
            model.generate(homes=2, days=2, static=static)
    with pytest.raises(UserError, match="`static` belong to `homes`"):
        model.generate(2, static="tariff=flat")
    with pytest.raises(UserError, match="single windows have none"):
        model.generate(2)
    with pytest.raises(UserError, match="give `days` alone"):
        model.generate(begin=groups, days=2, static="tariff=flat")
    with pytest.raises(UserError, match="knows no attributes"):
        Model.load(smoke_run).generate(homes=2, days=2, static="tariff=flat")
    nobody = tame.fit(groups, scale="smoke", steps=1, window=24, static={**STATIC, "tariff": ("flat", "night", "dual")})
    with pytest.raises(UserError, match="tariff=dual are too rare"):
        nobody.generate(homes=2, days=2, static="tariff=dual")
    with pytest.raises(UserError, match="knows no attributes of homes; leave out `static`"):
        TrainRequest(
            engine="evolution", privacy=tame.Privacy(epsilon=3, unit="series"), reading={"static": "tariff=flat|night"}
        )


def test_the_playground_keeps_the_attributes(model: Model, groups: pd.DataFrame) -> None:
    series = model.read(groups.groupby("meter").tail(72))
    points = points_of(series, 72, 144)
    assert series_of(model, points).marks().tolist() == [[0.0, 1.0, 1.0, 0.0]]
    request = ForecastRequest(series=points, horizon=3, origin=60, samples=4, compare=False)
    answer = served_forecast(model, request, lambda: None)
    assert len(answer.times) == 3
