"""Long work says how much of it is done: every window once, in rising order, up to the end."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from tamedit.cli import options
from tamedit.data.simulate import simulate
from tamedit.tasks.model import Model
from tamedit.tasks.parts import PATHS_AT_ONCE, parts
from tamedit.training.homes import PLACE


def told(reports: list[tuple[int, int]]) -> None:
    done, totals = zip(*reports, strict=True)
    assert list(done) == sorted(set(done))
    assert set(totals) == {done[-1]}


@pytest.mark.parametrize(("count", "at_once"), [(10, 3), (9, 3), (1, 5), (0, 2)])
def test_parts_cover_everything_once(count: int, at_once: int) -> None:
    reports: list[tuple[int, int]] = []
    covered = [
        number for part in parts(count, at_once, lambda *both: reports.append(both)) for number in range(count)[part]
    ]
    assert covered == list(range(count))
    assert [done for done, _ in reports] == [*range(at_once, count, at_once), *([count] if count else [])]


def test_filling_tells_of_its_windows() -> None:
    model, rng = Model.load(str(PLACE), "cpu"), np.random.default_rng(0)
    stamps = pd.date_range("2024-01-01", periods=24 * 30, freq="h")
    frame = pd.DataFrame({"time": stamps, "kwh": rng.gamma(2, 0.2, len(stamps))})
    frame.loc[rng.random(len(frame)) < 0.1, "kwh"] = np.nan
    samples = PATHS_AT_ONCE // 2  # two windows a report
    reports: list[tuple[int, int]] = []

    def draw(values: torch.Tensor, observed: torch.Tensor, *rest: object) -> torch.Tensor:
        return torch.where(observed, values, 1.0)[:, None].expand(-1, samples, -1, -1)

    model.draw = draw  # type: ignore[method-assign, assignment]
    filled = model.impute(frame, samples=samples, progress=lambda *both: reports.append(both))
    assert len(reports) > 2
    told(reports)
    assert (filled["kwh"][frame["kwh"].isna().to_numpy()] == 1).all()


@pytest.mark.usefixtures("small_pool")
def test_homes_that_go_on_and_simulated_meters_are_counted(smoke_run: Path) -> None:
    reports: dict[str, list[tuple[int, int]]] = {"simulated": [], "going on": []}
    given = simulate(meters=3, hours=24 * 10, outage_rate=0, progress=lambda *both: reports["simulated"].append(both))
    model = Model.load(smoke_run, "cpu")
    model.generate(begin=given, days=1, redraw=False, progress=lambda *both: reports["going on"].append(both))
    assert reports == {name: [(1, 3), (2, 3), (3, 3)] for name in reports}


def test_threads_are_set_before_the_command_runs() -> None:
    before, seen = torch.get_num_threads(), []

    def command(*, name: str) -> None:
        seen.append((name, torch.get_num_threads()))

    try:
        options.takes_threads(command)(threads=3, name="a")
        options.takes_threads(command)(threads=0, name="b")
    finally:
        torch.set_num_threads(before)
    assert seen == [("a", 3), ("b", 3)]
