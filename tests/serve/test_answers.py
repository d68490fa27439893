"""The API gives the numbers of Python: the same seed, the same samples; scores agree with slow loops and closed forms."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from live_server import Live
from scipy.optimize import brentq
from scipy.stats import norm

from tamedit.data.loading import load_split
from tamedit.diffusion.sample import SamplerConfig
from tamedit.errors import UserError
from tamedit.evaluation.baselines import distribution_draws, own_units
from tamedit.runs import proposal
from tamedit.runs.folder import DataFacts
from tamedit.runs.recipe import make_config
from tamedit.serve.answers import forecast, generated, sample_series
from tamedit.serve.messages import ForecastRequest, GenerateRequest
from tamedit.serve.served import load_served
from tamedit.serve.uploads import table_answer
from tamedit.training.run import train

HIDE = [100, 120]


def crps_of(samples: np.ndarray, truth: np.ndarray) -> float:
    """E|X − y| − ½ E|X − X'| over pairs of different samples, within the halves of antithetic draws; cell by cell, slowly."""
    scores = []
    for cell, value in enumerate(truth):
        for half in np.split(samples[:, cell], 2):
            apart = [abs(one - other) for i, one in enumerate(half) for j, other in enumerate(half) if i != j]
            scores.append(np.mean(np.abs(half - value)) - 0.5 * np.mean(apart))
    return float(np.mean(scores))


def check_band(band: dict[str, Any], truth: np.ndarray) -> None:
    """Quantiles and score follow from the samples, which are all among the paths."""
    paths = np.array(band["paths"], dtype=np.float64)
    assert len(paths) == 20
    assert band["crps"] == pytest.approx(crps_of(paths, truth), rel=1e-5)
    ordered = np.sort(paths, axis=0)
    place = 0.25 * 21 - 1  # between the 5th and the 6th of 20
    wanted = ordered[int(place)] + (place - int(place)) * (ordered[int(place) + 1] - ordered[int(place)])
    assert band["quantiles"]["0.25"] == pytest.approx(wanted, rel=1e-5, abs=1e-7)
    assert band["median"] == pytest.approx((ordered[9] + ordered[10]) / 2, rel=1e-5, abs=1e-7)


def test_fills_are_those_of_impute(live: Live, points: dict[str, Any], frame: pd.DataFrame) -> None:
    holed = frame.copy()
    holed.iloc[100:120] = np.nan
    holed.iloc[7] = np.nan
    given = {"times": points["times"], "values": {"kwh": list(points["values"]["kwh"])}}
    given["values"]["kwh"][7] = None
    found = live.post("/api/impute", {"series": given, "hide": [HIDE], "samples": 20, "paths": 20, "seed": 4})
    assert found["rows"] == [7, *range(100, 120)]
    assert found["times"][1] == points["times"][100]
    table = live.served.model.impute(holed, samples=20, seed=4, sampler=SamplerConfig(starts="antithetic")).iloc[
        found["rows"]
    ]
    band = found["channels"]["kwh"]["model"]
    assert band["median"] == pytest.approx(table["kwh"].to_numpy(), rel=1e-6)
    for level, column in (("0.05", "kwh_q05"), ("0.75", "kwh_q75")):
        assert band["quantiles"][level] == pytest.approx(table[column].to_numpy(), rel=1e-6)
    truth = found["channels"]["kwh"]["truth"]
    assert truth[0] is None  # missing in the data: nobody hid it
    assert truth[1:] == pytest.approx(frame["kwh"].to_numpy()[100:120], rel=1e-6)
    for who in ("model", "free"):
        own = found["channels"]["kwh"][who]
        check_band({**own, **{"paths": [path[1:] for path in own["paths"]], "median": own["median"][1:]},
                    "quantiles": {level: cut[1:] for level, cut in own["quantiles"].items()}}, np.array(truth[1:]))  # fmt: skip


def test_forecasts_are_those_of_forecast(live: Live, points: dict[str, Any], frame: pd.DataFrame) -> None:
    asked = {"series": points, "horizon": "12h", "origin": 200, "samples": 20, "paths": 20, "seed": 9}
    found = live.post("/api/forecast", asked)
    table = live.served.model.forecast(
        frame.iloc[:200], 12, samples=20, seed=9, sampler=SamplerConfig(starts="antithetic")
    )
    assert found["rows"] == list(range(200, 212))
    assert [pd.Timestamp(time) for time in found["times"]] == list(table.index)
    own = found["channels"]["kwh"]
    assert own["model"]["median"] == pytest.approx(table["kwh"].to_numpy(), rel=1e-6)
    assert own["model"]["quantiles"]["0.95"] == pytest.approx(table["kwh_q95"].to_numpy(), rel=1e-6)
    check_band(own["model"], frame["kwh"].to_numpy()[200:212])
    check_band(own["free"], frame["kwh"].to_numpy()[200:212])


def test_what_is_hidden_never_reaches_the_answer(live: Live, points: dict[str, Any]) -> None:
    """Other hidden readings, the same fills: only the truth and the scores differ."""
    other = {"times": points["times"], "values": {"kwh": list(points["values"]["kwh"])}}
    other["values"]["kwh"][100:120] = [50.0] * 20
    first, second = (
        live.post("/api/impute", {"series": one, "hide": [HIDE], "samples": 8})["channels"]["kwh"]
        for one in (points, other)
    )
    for who in ("model", "free"):
        assert first[who]["paths"] == second[who]["paths"]
        assert first[who]["median"] == second[who]["median"]
        assert first[who]["crps"] < second[who]["crps"]
    asked = {"origin": 100, "horizon": 20, "samples": 8}
    ahead = [live.post("/api/forecast", {"series": one, **asked})["channels"]["kwh"] for one in (points, other)]
    assert ahead[0]["model"]["paths"] == ahead[1]["model"]["paths"]
    assert ahead[0]["truth"] != ahead[1]["truth"]


def test_the_free_guess_is_the_free_distribution(live: Live, points: dict[str, Any], frame: pd.DataFrame) -> None:
    """Of a series of one window its quantiles are those of many draws of the baseline itself."""
    import torch

    model = live.served.model
    short = {"times": points["times"][:48], "values": {"kwh": points["values"]["kwh"][:48]}}
    asked = {"series": short, "hide": [[30, 34]], "samples": 300, "paths": 0}
    band = live.post("/api/impute", asked)["channels"]["kwh"]["free"]
    values = torch.tensor(frame["kwh"].to_numpy()[:48], dtype=torch.float32).view(1, 48, 1)
    observed = torch.ones_like(values, dtype=torch.bool)
    observed[:, 30:34] = False
    visible = torch.where(observed, values, 0.0)
    units = own_units(model.scaling).units(visible, observed)
    drawn = distribution_draws(visible, observed, units, model.spec.examples.period, 2000, 77)[0, :, 30:34, 0].numpy()
    for share, cut in ((0.5, band["median"]), *((float(level), cut) for level, cut in band["quantiles"].items())):
        below = (drawn < np.array(cut, dtype=np.float32)).mean(axis=0)
        assert np.abs(below - share).max() < 0.1, share  # four standard errors of 300 draws


def test_account_agrees_with_the_closed_form(live: Live) -> None:
    """One release with noise σ, every example in it: Φ(1/2σ − εσ) − e^ε Φ(−1/2σ − εσ) = δ."""
    sigma, delta = 2.0, 1e-5
    wanted = brentq(
        lambda e: norm.cdf(0.5 / sigma - e * sigma) - np.exp(e) * norm.cdf(-0.5 / sigma - e * sigma) - delta, 0.01, 20
    )
    found = live.post("/api/account", {"sampling_rate": 1, "noise_multiplier": sigma, "steps": 1, "delta": delta})
    assert found["epsilon"] == pytest.approx(wanted, rel=1e-3)
    assert found["protection"] == "moderate"


def test_a_plan_has_the_least_noise_and_every_unit_its_own_loss(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proposal, "FEW_STEPS", (40,))  # one choice: the search among several takes seconds
    found = live.post("/api/plan", {"homes": 30, "weeks": 2, "epsilon": 8, "unit": "week"})
    assert found["examples"] == 60
    assert found["sampling_rate"] == found["batch_size"] / 60
    units = {one["unit"]: one for one in found["units"]}
    numbers = {name: found[name] for name in ("sampling_rate", "noise_multiplier", "steps")}

    def loss(**more: Any) -> float:
        return live.post("/api/account", {**numbers, **more})["epsilon"]

    assert units["week"]["epsilon"] == loss() <= 8.0
    assert loss(noise_multiplier=0.99 * found["noise_multiplier"]) > 8.0
    assert units["day"]["epsilon"] == loss(neighbour="replacement")
    assert units["series"]["epsilon"] == loss(contributions=2) > units["week"]["epsilon"]


def test_homes_are_those_of_generate(small_pool: None) -> None:
    model = load_served("homes").model
    found = generated(model, GenerateRequest(homes=2, days=3, start="2024-05-01", seed=5), lambda: None)
    table = model.generate(homes=2, days=3, start="2024-05-01", seed=5)
    assert found.homes == list(table["home"].unique())
    assert np.ravel(found.values["kwh"]) == pytest.approx(table["kwh"].to_numpy(), rel=1e-6)
    assert [pd.Timestamp(time) for time in found.times] == list(table["time"].iloc[:72])
    points = sample_series(model, 3)
    assert points != sample_series(model, 4)
    assert points == sample_series(model, 3)
    outages = [sample_series(model, seed).values["kwh"].count(None) for seed in range(5)]
    assert max(outages) > 0


def test_a_table_is_read_as_python_reads_it(live: Live, frame: pd.DataFrame) -> None:
    rows = [
        f"{time};{name};{str(value).replace('.', ',')}"
        for name in ("007", "008")
        for time, value in frame["kwh"].iloc[:60].items()
        if time.hour != 5 or name == "008"
    ]
    text, kind = "\n".join(["time;meter;load", *rows]), {"Content-Type": "text/csv"}
    status, found, _ = live.ask("POST", "/api/read?name=two.csv&meter=007", text.encode(), kind)
    assert status == 200, found
    assert (found["meters"], found["meter"], found["columns"]) == (["007", "008"], "007", ["load"])
    values = found["series"]["values"]["load"]
    assert values[5] is None
    assert values[6] == pytest.approx(frame["kwh"].iloc[6], rel=1e-6)
    assert found["series"]["times"][-1] == frame.index[59].isoformat()
    assert any("load was read as kwh" in note for note in found["notes"])
    filled = live.post("/api/impute", {"series": found["series"], "samples": 4, "compare": False})
    assert filled["rows"] == [5, 29, 53]
    assert filled["channels"]["load"]["free"] is None


def test_several_targets_and_known_covariates(tmp_path: Path) -> None:
    """Covariates of the hidden end are known; past the end of the table they are not, and the answer says so."""
    generator, hours = np.random.default_rng(0), pd.date_range("2024-01-01", periods=300, freq="h")
    table = pd.DataFrame(generator.random((300, 3)) + 1, columns=["a", "b", "price"]).assign(time=hours)
    table.to_csv(tmp_path / "x.csv", index=False)
    series, split = load_split(str(tmp_path / "x.csv"), covariates=["price"])
    config = make_config(series, str(tmp_path / "x.csv"), scale="smoke", steps=2, window=24, size="tiny")
    train(split, config, tmp_path / "run", facts=DataFacts(reading={"covariates": ["price"]}))
    model = load_served(str(tmp_path / "run")).model
    read = table_answer(model, (tmp_path / "x.csv").read_bytes(), "x.csv", None, None)
    asked = {"series": read.series.model_dump(), "horizon": 6, "samples": 8}
    found = forecast(model, ForecastRequest.model_validate({**asked, "origin": 250}), lambda: None)
    wanted = model.forecast(
        table.iloc[:250], 6, samples=8, future=table.iloc[250:], sampler=SamplerConfig(starts="antithetic")
    )
    for name in ("a", "b"):
        assert found.channels[name].model.median == pytest.approx(wanted[name].to_numpy(), rel=1e-6)
        assert found.channels[name].truth == pytest.approx(table[name].to_numpy()[250:256], rel=1e-6)
    with pytest.raises(UserError, match="give their next 6 rows"):
        forecast(model, ForecastRequest.model_validate(asked), lambda: None)
    with pytest.raises(UserError, match="needs the covariates price"):
        generated(model, GenerateRequest(), lambda: None)
    with pytest.raises(UserError, match="drop a CSV of your own"):
        sample_series(model, 0)
