"""impute, forecast, generate: what goes in, what comes out, and what must not matter."""

from datetime import date, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_meter import meter, with_gaps

import tamedit as tame
from tamedit.diffusion.sample import SamplerConfig
from tamedit.errors import UserError
from tamedit.model.dit import DiffusionTransformer
from tamedit.tasks.common_start import different_ends
from tamedit.tasks.frames import QUANTILES
from tamedit.tasks.model import Model

FAST = SamplerConfig(steps=2)  # rough draws, and enough to see what matters here
LEVELS = [f"q{round(100 * level):02d}" for level in QUANTILES]


@pytest.fixture(scope="module")
def model(smoke_run: Path) -> Model:
    return Model.load(smoke_run, "cpu")


def assert_ordered(filled: pd.DataFrame, target: str = "kwh") -> None:
    columns = [f"{target}_q05", f"{target}_q25", target, f"{target}_q75", f"{target}_q95"]
    assert (np.diff(filled[columns].to_numpy(), axis=1) >= 0).all()


def test_impute_keeps_the_time_line_and_the_observed_cells(model: Model) -> None:
    frame = with_gaps(meter())
    before = frame.copy()
    filled = model.impute(frame, samples=4, sampler=FAST)
    pd.testing.assert_frame_equal(frame, before)
    pd.testing.assert_index_equal(filled.index, frame.index, exact="equiv")
    assert list(filled.columns) == ["kwh", *(f"kwh_{level}" for level in LEVELS), "kwh_filled"]
    observed = frame["kwh"].notna().to_numpy()
    for column in filled.columns[:-1]:
        assert filled[column].to_numpy()[observed].tobytes() == frame["kwh"].to_numpy()[observed].tobytes()
    assert np.isfinite(filled.to_numpy()).all()
    assert_ordered(filled)
    assert (filled["kwh_q05"] < filled["kwh_q95"])[~observed].all()


def test_nothing_missing_changes_nothing(model: Model) -> None:
    frame = meter()
    filled = model.impute(frame, samples=2, sampler=FAST)
    np.testing.assert_array_equal(filled["kwh"], frame["kwh"])
    np.testing.assert_array_equal(filled["kwh_q95"], frame["kwh"])


def test_all_samples(model: Model) -> None:
    frame = with_gaps(meter())
    alike = SamplerConfig(steps=2, starts="antithetic")  # quantiles alone would come from other samples
    drawn = model.impute(frame, samples=6, all_samples=True, sampler=alike)
    assert drawn["sample"].value_counts().to_dict() == dict.fromkeys(range(6), len(frame))
    table = model.impute(frame, samples=6, sampler=alike)
    np.testing.assert_allclose(np.median(drawn["kwh"].to_numpy().reshape(6, -1), axis=0), table["kwh"], rtol=1e-6)
    ahead = model.forecast(frame, 5, samples=6, all_samples=True, sampler=FAST)
    assert len(ahead) == 30


def test_same_seed_same_answer(model: Model) -> None:
    frame = with_gaps(meter())
    first, again, other = (model.impute(frame, samples=4, seed=seed, sampler=FAST) for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(first, again)
    missing = frame["kwh"].isna()
    assert (first["kwh"] != other["kwh"])[missing].all()


def test_files_arrays_and_series_are_read_alike(model: Model, tmp_path: Path) -> None:
    frame = with_gaps(meter())
    expected = model.impute(frame, samples=2, sampler=FAST)
    frame.to_csv(tmp_path / "meter.csv")
    frame.reset_index().to_parquet(tmp_path / "meter.parquet")
    for data in (tmp_path / "meter.csv", str(tmp_path / "meter.parquet"), tame.read(frame), frame.reset_index()):
        np.testing.assert_allclose(model.impute(data, samples=2, sampler=FAST), expected, rtol=1e-6)
    from_array = model.impute(frame["kwh"].to_numpy(), samples=2, sampler=FAST)
    assert np.isfinite(from_array.to_numpy()).all()
    panel = np.stack([frame[["kwh"]].to_numpy()] * 3)
    assert len(model.impute(panel, samples=2, sampler=FAST)) == 3 * len(frame)


def long_frame(names: str) -> pd.DataFrame:
    parts = []
    for number, name in enumerate(names):
        part = with_gaps(meter(140 + 20 * number, seed=number)).reset_index()
        part.insert(0, "meter", name)
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def test_long_layout_and_other_meters_do_not_matter(model: Model) -> None:
    frame = long_frame("abc")
    filled = model.impute(frame, samples=4, sampler=FAST)
    assert list(filled.columns[:3]) == ["meter", "time", "kwh"]
    assert isinstance(filled.index, pd.RangeIndex)
    assert (filled["meter"].to_numpy() == frame["meter"].to_numpy()).all()
    alone = model.impute(frame[frame["meter"] == "b"], samples=4, sampler=FAST)
    np.testing.assert_allclose(filled.loc[filled["meter"] == "b", "kwh"], alone["kwh"], rtol=2e-3, atol=1e-5)
    ahead = model.forecast(frame, 7, samples=4, sampler=FAST)
    assert ahead["meter"].value_counts().to_dict() == {"a": 7, "b": 7, "c": 7}
    assert list(ahead.index) == list(range(21))
    alone = model.forecast(frame[frame["meter"] == "c"], 7, samples=4, sampler=FAST)
    np.testing.assert_allclose(ahead.loc[ahead["meter"] == "c", "kwh"], alone["kwh"], rtol=2e-3, atol=1e-5)
    drawn = model.forecast(frame, 7, samples=3, all_samples=True, sampler=FAST)
    assert list(drawn.index) == list(range(63))


def test_meters_never_mix(model: Model) -> None:
    frame = long_frame("ab")
    first = model.impute(frame, samples=2, sampler=FAST)
    frame.loc[frame["meter"] == "a", "kwh"] *= 100
    second = model.impute(frame, samples=2, sampler=FAST)
    chosen = first["meter"] == "b"
    np.testing.assert_allclose(first.loc[chosen, "kwh"], second.loc[chosen, "kwh"], rtol=1e-5)


def test_forecast_continues_the_time_line(model: Model) -> None:
    frame = meter()
    ahead = model.forecast(frame, 24, samples=4, sampler=FAST)
    pd.testing.assert_index_equal(
        ahead.index,
        pd.date_range(frame.index[-1], periods=25, freq="h", name="time")[1:],
        exact="equiv",
        check_names=True,
    )
    assert_ordered(ahead)


def test_forecast_depends_on_the_end_of_the_series_alone(model: Model) -> None:
    frame = meter(200)
    ahead = model.forecast(frame.iloc[:150], 12, samples=4, sampler=FAST)
    later = frame.copy()
    later.iloc[150:] = 1e6
    pd.testing.assert_frame_equal(ahead, model.forecast(later.iloc[:150], 12, samples=4, sampler=FAST))
    recent = model.forecast(frame.iloc[150 - 48 : 150], 12, samples=4, sampler=FAST)
    np.testing.assert_array_equal(ahead, recent)
    other = frame.copy()
    other.iloc[149] += 1
    assert not np.allclose(ahead, model.forecast(other.iloc[:150], 12, samples=4, sampler=FAST))


def test_what_stands_in_unobserved_cells_never_matters(model: Model) -> None:
    import torch

    rng = np.random.default_rng(0)
    values = torch.from_numpy(rng.random((3, 48, 1)).astype(np.float32))
    observed = torch.from_numpy(rng.random((3, 48, 1)) < 0.6)
    covariates = torch.zeros(3, 48, 6)
    names = np.arange(3)
    outcomes = []
    for rubbish in (0.0, torch.nan, 1e30, -torch.inf):
        shown = torch.where(observed, values, rubbish)
        outcomes.append(model.draw(shown, observed, covariates, names, 2, 0, FAST))
    for outcome in outcomes[1:]:
        assert torch.equal(outcome, outcomes[0])
    parts = [model.draw(values[[i]], observed[[i]], covariates[[i]], names[[i]], 2, 0, FAST) for i in range(3)]
    torch.testing.assert_close(torch.cat(parts), outcomes[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("horizon", [1, 36, 47, 48, 49, 200])
def test_horizons_of_any_length(model: Model, horizon: int) -> None:
    ahead = model.forecast(meter(), horizon, samples=3, sampler=FAST)
    assert len(ahead) == horizon
    assert np.isfinite(ahead.to_numpy()).all()
    assert (ahead["kwh"].abs() < 100).all()


@pytest.mark.parametrize("hours", [2, 10, 47])
def test_series_shorter_than_a_window(model: Model, hours: int) -> None:
    frame = meter(60).iloc[:hours].copy()
    assert len(model.forecast(frame, 5, samples=2, sampler=FAST)) == 5
    frame.iloc[0] = np.nan
    filled = model.impute(frame, samples=2, sampler=FAST)
    assert len(filled) == hours
    np.testing.assert_array_equal(filled["kwh"].iloc[1:], frame["kwh"].iloc[1:])


def test_absent_stamps_become_rows(model: Model) -> None:
    frame = meter(120)
    kept = np.ones(120, dtype=bool)
    kept[[5, 6, 7, 50, 51, 110]] = False
    filled = model.impute(frame[kept], samples=2, sampler=FAST)
    pd.testing.assert_index_equal(filled.index, frame.index, exact="equiv")
    assert np.isfinite(filled.to_numpy()).all()


def test_time_zones_and_the_hours_that_clocks_skip_and_repeat(model: Model) -> None:
    for day in ("2024-03-30", "2024-10-26"):
        times = pd.date_range(day, periods=72, freq="h", tz="Europe/London", name="time")
        frame = pd.DataFrame({"kwh": np.sin(np.arange(72, dtype=np.float32)) + 2}, index=times)
        frame.iloc[20:40] = np.nan  # across the change
        filled = model.impute(frame, samples=2, sampler=FAST)
        assert str(filled.index.tz) == "Europe/London"
        assert (filled.index == times).all()
        ahead = model.forecast(frame.iloc[:22].ffill(), 10, samples=2, sampler=FAST)
        assert (ahead.index == times[22:32]).all()


def test_a_year_of_hours_in_one_call(model: Model) -> None:
    frame = meter(8760, seed=2)
    rng = np.random.default_rng(1)
    missing = rng.random(8760) < 0.1
    for first in rng.integers(0, 8500, 12):
        missing[first : first + int(rng.integers(1, 150))] = True
    frame.loc[missing, "kwh"] = np.nan
    filled = model.impute(frame, samples=2, sampler=FAST)
    assert len(filled) == 8760
    assert np.isfinite(filled.to_numpy()).all()
    np.testing.assert_array_equal(filled["kwh"][~missing], frame["kwh"][~missing])


def test_generate(model: Model) -> None:
    fake = model.generate(3, seed=4, sampler=FAST)
    assert list(fake.columns) == ["sample", "time", "kwh"]
    assert len(fake) == 3 * 48
    assert np.isfinite(fake["kwh"]).all()
    pd.testing.assert_frame_equal(fake, model.generate(3, seed=4, sampler=FAST))
    first = model.generate(1, seed=4, start="2024-05-01 06:00", sampler=FAST)
    assert first["time"].iloc[0] == pd.Timestamp("2024-05-01 06:00")
    assert (first["time"].diff().dropna() == pd.Timedelta(hours=1)).all()
    assert not np.allclose(fake["kwh"][:48], fake["kwh"][48:96])
    for start in ("nonsense", ""):
        with pytest.raises(UserError, match="is not a time stamp"):
            model.generate(1, start=start)
    with pytest.raises(UserError, match="count=0"):
        model.generate(0)


@pytest.mark.parametrize("name", ["sample", "time"])
def test_names_that_an_answer_needs_are_refused_before_drawing(
    model: Model, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    renamed = Model(model.network, model.spec.model_copy(update={"targets": (name,)}))
    monkeypatch.setattr(renamed, "draw", lambda *_: pytest.fail("drawn in vain"))
    with pytest.raises(UserError, match=f"The target '{name}' has the name of a column of the result"):
        renamed.generate(2)
    series = tame.read(with_gaps(meter()).rename(columns={"kwh": "sample"}).rename_axis("when"))
    for task in (renamed.impute, lambda data, **more: renamed.forecast(data, 3, **more)):
        with pytest.raises(UserError, match="The column 'sample' has the name of a column of the result"):
            task(series, all_samples=True)


def test_generated_windows_have_the_level_of_the_training_data() -> None:
    """Also for a series of the user's own, far from 0."""
    frame = meter(400) * 10 + 500
    model = tame.fit(frame, scale="smoke", steps=2, window=32)
    fake = model.generate(20, sampler=FAST)["kwh"]
    assert 490 < fake.mean() < 530
    assert model.spec.scaling["origin"] == "nonprivate"


def test_draws_are_not_negative_where_readings_cannot_be() -> None:
    frame = meter(400)
    free, bound = (
        tame.fit(frame, scale="smoke", steps=2, window=32, non_negative=choice).generate(20)["kwh"]
        for choice in (False, True)
    )
    assert free.min() < 0
    assert bound.min() == 0


def test_save_and_load(model: Model, tmp_path: Path) -> None:
    paths = model.save(tmp_path / "copy")
    assert sorted(path.name for path in paths) == ["model.json", "model.safetensors"]
    assert sorted(path.name for path in (tmp_path / "copy").iterdir()) == ["model.json", "model.safetensors"]
    copy = tame.load(str(tmp_path / "copy"), "cpu")
    assert copy.spec == model.spec
    assert repr(copy) == repr(model)
    frame = with_gaps(meter())
    pd.testing.assert_frame_equal(
        copy.impute(frame, samples=2, sampler=FAST), model.impute(frame, samples=2, sampler=FAST)
    )
    again = Model.load(model.save(str(tmp_path / "copy"))[0].parent, "cpu")  # over itself
    pd.testing.assert_frame_equal(again.forecast(frame, 3, sampler=FAST), model.forecast(frame, 3, sampler=FAST))
    with pytest.raises(UserError, match="contains no trained model"):
        Model.load(tmp_path / "elsewhere")
    pd.testing.assert_frame_equal(copy.generate(2, sampler=FAST), model.generate(2, sampler=FAST))


def test_many_channels_in_any_order() -> None:
    hours = pd.date_range("2024-01-01", periods=400, freq="h", name="time")
    phase = np.arange(400) / 24 * 2 * np.pi
    frame = pd.DataFrame({"a": np.sin(phase), "b": 100 + np.cos(phase)}, index=hours).astype(np.float32)
    model = tame.fit(frame, scale="smoke", steps=2, window=32)
    holed = frame.copy()
    holed.iloc[50:60, 0] = np.nan
    holed.iloc[55:120, 1] = np.nan
    filled = model.impute(holed, samples=2, sampler=FAST)
    swapped = model.impute(tame.read(holed[["b", "a"]]), samples=2, sampler=FAST)
    pd.testing.assert_frame_equal(filled, swapped)
    observed = holed.notna()
    assert (filled[["a", "b"]].to_numpy()[observed] == frame.to_numpy()[observed]).all()
    assert (filled["b"] > 50).all()
    with pytest.raises(UserError, match="1 target channels"):
        model.impute(holed, targets=["a"])
    with pytest.raises(UserError, match="no column 'b'"):
        model.impute(holed[["a"]])
    with pytest.raises(UserError, match="channels b, c and the model was trained on a, b"):
        model.impute(tame.read(holed.rename(columns={"b": "c", "a": "b"})[["b", "c"]]), samples=2, sampler=FAST)
    renamed = model.impute(tame.read(holed.rename(columns={"a": "x", "b": "y"})), samples=2, sampler=FAST)
    np.testing.assert_array_equal(renamed["x"], filled["a"])


def test_a_network_of_more_channels_than_the_data() -> None:
    """K_max: channels of padding change no draw of the real ones in shape or place, and come out nowhere."""
    hours = pd.date_range("2024-01-01", periods=300, freq="h", name="time")
    frame = pd.DataFrame({"a": np.sin(np.arange(300) / 4), "b": np.cos(np.arange(300) / 4)}, index=hours)
    narrow = tame.fit(frame, scale="smoke", steps=1, window=32)
    network = narrow.spec.network.model_copy(update={"target_channels": 4})
    examples = narrow.spec.examples.model_copy(update={"channels": 4})
    wide = Model(
        DiffusionTransformer(network), narrow.spec.model_copy(update={"network": network, "examples": examples})
    )
    frame.iloc[50:60, 1] = np.nan
    filled = wide.impute(frame, samples=4, sampler=FAST)
    assert filled.notna().to_numpy().all()
    assert (filled["a"].to_numpy() == frame["a"].to_numpy(dtype=np.float32)).all()
    assert filled["b"].iloc[50:60].nunique() == 10


def test_mistakes(model: Model) -> None:
    frame = meter(120)
    with pytest.raises(UserError, match="horizon=0"):
        model.forecast(frame, 0)
    with pytest.raises(UserError, match="samples=0"):
        model.impute(with_gaps(frame), samples=0)
    with pytest.raises(UserError, match="row every 15 minutes"):
        model.impute(frame.set_axis(pd.date_range("2024-01-01", periods=120, freq="15min")))
    with pytest.raises(UserError, match="no column 'kwh'"):
        model.impute(frame.rename(columns={"kwh": "load"}))
    with pytest.raises(UserError, match="is already a series"):
        model.impute(tame.read(frame), time="time")
    silent = frame.copy()
    silent.iloc[-50:] = np.nan
    with pytest.raises(UserError, match="nothing to forecast from"):
        model.forecast(silent, 3)
    both = pd.concat([frame.assign(meter="a"), silent.assign(meter="b")]).reset_index()
    with pytest.raises(UserError, match="of meter 'b'"):
        model.forecast(both, 3)
    with pytest.raises(UserError, match="no reading at all"):
        model.impute(frame * np.nan)


def test_generate_begins_at_any_kind_of_stamp(model: Model) -> None:
    wanted = model.generate(1, start="2024-03-01 06:00", sampler=FAST)
    for start in (datetime(2024, 3, 1, 6), pd.Timestamp("2024-03-01 06:00"), np.datetime64("2024-03-01T06:00")):
        pd.testing.assert_frame_equal(model.generate(1, start=start, sampler=FAST), wanted)
    assert model.generate(1, start=date(2024, 3, 1), sampler=FAST)["time"].iloc[0] == pd.Timestamp("2024-03-01")


def test_monthly_and_daily_rhythms() -> None:
    for freq, rows in (("MS", 120), ("D", 200)):
        times = pd.date_range("2010-01-01", periods=rows, freq=freq, name="time")
        frame = pd.DataFrame({"x": np.sin(np.arange(rows)).astype(np.float32)}, index=times)
        model = tame.fit(frame, scale="smoke", steps=2, window=12)
        ahead = model.forecast(frame.iloc[:5], 4, samples=2, sampler=FAST)  # shorter than a window too
        assert (ahead.index == times[5:9]).all()


def test_a_beginning_beyond_the_data_names_the_latest_usable_one(smoke_run: Path) -> None:
    model = Model.load(smoke_run, "cpu")
    data = pd.read_csv(smoke_run.parent / "meter.csv")
    stamps = pd.DatetimeIndex(pd.to_datetime(data.iloc[:, 0]))
    length = model.spec.network.length
    latest = stamps[-1] + length * pd.Timedelta("1h")
    for since in ("2031-01-01", str(latest + pd.Timedelta("1h"))):
        with pytest.raises(UserError) as caught:
            model.forecast(data, 3, since=since, samples=4)
        said = str(caught.value)
        assert f"name {latest} or an earlier date." in said
        assert f"since={since!r}" in said
    assert len(model.forecast(data, 3, since=str(latest), samples=4)) == 3
    with pytest.raises(UserError, match="steps after the last row"):
        model.forecast(data, 3, since="9000-01-01" if stamps[-1].year < 8000 else "9999-01-01", samples=4)


def test_the_example_of_a_common_beginning_lies_in_the_data(smoke_run: Path) -> None:
    series = Model.load(smoke_run, "cpu").read(smoke_run.parent / "meter.csv")
    early = series.between(np.zeros(1, dtype=int), series.lengths - 30)
    two = pd.concat([one.frame().reset_index().assign(home=name) for name, one in (("a", series), ("b", early))])
    (said,) = different_ends(Model.load(smoke_run, "cpu").read(two, id="home"))
    named = pd.Timestamp(said.partition("since='")[2].partition("'")[0])
    assert series.times[0] < named <= early.times[-1]


def test_data_of_the_native_step_are_told_how_to_resample(smoke_run: Path) -> None:
    model = Model.load(smoke_run, "cpu")
    quarter = pd.DataFrame({"time": pd.date_range("2024-01-01", periods=800, freq="15min"), "kwh": 0.5})
    with pytest.raises(UserError) as caught:
        model.impute(quarter)
    assert "say resample='1h' with aggregate='sum' for energy or aggregate='mean' for power" in str(caught.value)
