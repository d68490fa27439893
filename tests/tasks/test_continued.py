"""Homes that go on from given readings: from when, as whom, and what the network sees of them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from support import Run
from tamedit.data.reader import read
from tamedit.data.series import Series
from tamedit.data.simulate import simulate
from tamedit.errors import UserError
from tamedit.runs.simulated_pool import simulated_pool, simulated_population
from tamedit.tasks import model as models
from tamedit.tasks.continued import _begun, continued
from tamedit.tasks.fleet import Fleet
from tamedit.tasks.model import Model

pytestmark = pytest.mark.usefixtures("small_pool")
POPULATION = simulated_population  # made with the small pool, in the tests


@pytest.fixture(scope="module")
def given() -> Series:
    return simulate(meters=3, hours=24 * 70, seed=5, start="2024-02-01", negative_rate=0.0)


def fleet(**change: Any) -> Fleet:
    asked = {"homes": 1, "start": pd.Timestamp("2000-01-01"), "days": 12, "seed": 3, "step_seconds": 3600.0}
    return Fleet(**(asked | {"length": 168, "period": 24, "calendar": True, "redraw": False} | change))


def go_on(series: Series, draw: Any = None, **change: Any) -> dict[str, pd.DataFrame]:
    return dict(continued(fleet(**change), POPULATION((0.4,), 60, 168, 24, "public"), series, draw))


def test_it_begins_after_the_last_reading(given: Series) -> None:
    values = given.values.copy()
    rows = 24 * 70
    values[rows - 30 : rows], values[2 * rows - 1] = np.nan, np.nan  # the first two end earlier than their rows do
    made = go_on(replace(given, values=values), days=3)
    last = given.times[-1]
    for name, late in zip(given.meters, (30, 1, 0), strict=True):
        times = made[name]["time"]
        assert times.iloc[0] == last - pd.Timedelta(hours=late - 1)
        assert len(times) == 72
        assert (times.diff().dropna() == pd.Timedelta(hours=1)).all()
        assert (made[name]["kwh"] >= 0).all()


def test_a_home_depends_on_its_own_readings_and_its_name(given: Series) -> None:
    every = go_on(given)
    frame = given.frame()
    for name in given.meters:
        other = frame.assign(kwh=frame["kwh"].where(frame["meter"] == name, frame["kwh"] * 3.0))
        pd.testing.assert_frame_equal(go_on(read(other, id="meter"))[name], every[name])
    pd.testing.assert_frame_equal(go_on(given)["meter_0"], every["meter_0"])
    assert not np.allclose(go_on(given, seed=4)["meter_0"]["kwh"], every["meter_0"]["kwh"])


def test_the_path_has_the_mean_the_hours_and_the_spread_of_the_readings(given: Series) -> None:
    population, pool = POPULATION((0.4,), 60, 168, 24, "public"), simulated_pool(60, 168, 24)
    for meter in range(3):
        shown = given.values[given.offsets[meter] : given.offsets[meter + 1]].astype(np.float64)
        shown[:700:3] = np.nan
        shown = np.minimum(shown, 20.0)  # nothing above the bounds of the population is made
        times = pd.date_range("2024-02-01", periods=len(shown) + 200, freq="h")
        path = _begun(fleet(), population, pool, shown, times, np.array([meter]))
        there = np.isfinite(shown[:, 0])
        assert path[: len(shown)][there].mean() == pytest.approx(shown[there].mean(), rel=1e-4)
        hours = [
            np.nanmean(np.where(there, one, np.nan).reshape(-1, 24), axis=0)
            for one in (path[: len(shown), 0], shown[:, 0])
        ]
        assert np.corrcoef(*hours)[0, 1] > 0.95
        assert path[: len(shown)][there].std() == pytest.approx(shown[there].std(), rel=0.25)


def test_the_network_sees_the_last_window_of_the_readings_and_changes_none(given: Series) -> None:
    seen: list[tuple[torch.Tensor, torch.Tensor]] = []

    def draw(values: torch.Tensor, observed: torch.Tensor, covariates: torch.Tensor, names: np.ndarray) -> torch.Tensor:
        seen.append((values, observed))
        return torch.where(observed, values, torch.linspace(0, 1, values.shape[1])[None, :, None].expand_as(values))

    made = go_on(given, draw, redraw=True)
    last = given.values[-168:, 0]
    values, observed = seen[-3]  # pass 1 of the third meter: windows at the stride before the end, and after it
    assert bool(observed[0].all()), "a window of readings alone hides nothing"
    np.testing.assert_allclose(values[0, :, 0], last, rtol=1e-6)
    values, observed = seen[-2]  # pass 2 begins a day later: six days of readings, and the first day after them
    assert bool(observed[0, : 6 * 24].all())
    np.testing.assert_allclose(values[0, : 6 * 24, 0], last[24:], rtol=1e-6)
    assert len(made["meter_2"]) == 12 * 24


def test_a_clock_that_changes_goes_on_by_the_hour() -> None:
    times = pd.date_range("2024-03-01", "2024-03-30 23:00", freq="h", tz="Europe/London")
    frame = pd.DataFrame({"time": times, "kwh": np.random.default_rng(0).gamma(2.0, 0.2, len(times))})
    made = go_on(read(frame), days=2)[""]
    assert made["time"].iloc[0] == times[-1] + pd.Timedelta(hours=1)
    assert str(made["time"].dt.tz) == "Europe/London"
    assert len(made) == 48


def test_what_cannot_go_on(given: Series, smoke_run: Path) -> None:
    with pytest.raises(UserError, match=r"Meter 'meter_1' has fewer than 48 readings of kwh"):
        go_on(replace(given, values=np.where(np.repeat([0, 1, 0], 24 * 70)[:, None] == 1, np.nan, given.values)))
    model = Model.load(smoke_run)
    for other in ({"homes": 3}, {"count": 2}, {"start": "2024-01-01"}, {"level": (1.0, 2.0)}):
        with pytest.raises(UserError, match="`begin` says which homes"):
            model.generate(begin=given, days=3, **other)
    with pytest.raises(UserError, match="days=0"):
        model.generate(begin=given, days=0)


def test_the_network_draws_only_if_asked_or_if_the_simulator_cannot(
    smoke_run: Path, given: Series, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same default as for new homes: loads of homes are the simulator's."""
    asked: list[bool] = []
    true = models.continued

    def spied(fleet: Fleet, *others: Any) -> Any:
        asked.append(fleet.redraw)
        return true(replace(fleet, redraw=False), *others)

    monkeypatch.setattr(models, "continued", spied)
    model = Model.load(smoke_run)
    for redraw in (None, True, False):
        model.generate(begin=given, days=2, redraw=redraw)
    model.spec = model.spec.model_copy(update={"frequency_seconds": 600.0})
    monkeypatch.setattr(Model, "read", lambda *_: given)
    model.generate(begin=given, days=2)
    assert asked == [False, True, False, True]


def test_from_the_command_line(run: Run, smoke_run: Path, tmp_path: Path, given: Series) -> None:
    table, out = tmp_path / "begin.csv", tmp_path / "next.csv"
    given.frame().to_csv(table, index=False)
    ask = ("generate", smoke_run, "--out", out, "--days", 3)
    answer = run(*ask, "--begin", table)
    assert answer.code == 0, answer.err
    found = pd.read_csv(out, parse_dates=["time"])
    assert found["home"].tolist() == [name for name in given.meters for _ in range(72)]
    assert found["time"].min() == given.times[-1] + pd.Timedelta(hours=1)
    wanted = Model.load(smoke_run).generate(begin=read(table), days=3)
    np.testing.assert_allclose(found["kwh"], wanted["kwh"], rtol=1e-6)
    out.unlink()
    other = tmp_path / "other.csv"
    given.frame().rename(columns={"kwh": "gas"}).assign(oil=1.0).to_csv(other, index=False)
    for more, words in (
        (("--begin", other), "no column 'kwh'"),
        (("--id", "meter"), "--begin"),
        (("--begin", table, "--homes", 3), "--begin"),
        (("--begin", tmp_path / "none.csv"), "none.csv"),
    ):
        answer = run(*ask, *more)
        assert (answer.code, len(answer.err.strip().splitlines())) == (2, 1), answer.err
        assert words in answer.err
        assert not out.exists()
