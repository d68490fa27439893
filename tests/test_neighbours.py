"""Neighbouring *tables*: one unit's rows are deleted, emptied or changed in the file, and everything up to the sum is replayed.

Reading, laying, splitting, cutting and one clipped sum run on both files. What is public (window, stride, contributions) must not
differ, and the sum before noise must move by at most k C, or 2 k C where the unit's examples are replaced.
`TAMEDIT_NEIGHBOURS=10000 pytest tests/test_neighbours.py` tries more cases than the usual run.
"""

import json
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file

from tamedit.data.loading import load_split
from tamedit.data.simulate import simulate
from tamedit.data.study import Study
from tamedit.errors import UserError
from tamedit.privacy.engine import Engine
from tamedit.privacy.entries import read as read_ledger
from tamedit.privacy.settings import Privacy
from tamedit.runs.artifact import WEIGHTS
from tamedit.runs.config import Speed
from tamedit.runs.layout import PrivateLayout, private_layout
from tamedit.runs.recipe import make_config
from tamedit.tasks.fit import fit

CASES = int(os.environ.get("TAMEDIT_NEIGHBOURS", "120"))
STEP = pd.Timedelta(hours=6)  # 4 rows a day, 28 a week
ROWS = {"record": 1, "day": 4, "week": 28}
START, END = "2023-03-02", "2023-05-04"  # nine weeks from a Thursday; clocks change on 26 March
CLIP = 1.0


@dataclass(frozen=True)
class Case:
    unit: str
    layout: str
    change: str  # delete, empty, alter
    window: int | None
    channels: int
    covariate: bool
    local: bool  # stamps of London, where the clock changes
    meters: tuple[tuple[int, int], ...]  # first row and number of rows of each, on the grid of the study
    gaps: int  # seed of what is missing
    chosen: tuple[int, int]  # of which meter which unit, by its number: often at an edge


cases = st.builds(
    Case,
    unit=st.sampled_from(["record", "day", "week", "series"]),
    layout=st.sampled_from(["blocks", "overlapping"]),
    change=st.sampled_from(["delete", "delete", "empty", "alter"]),
    window=st.sampled_from([None, 8, 12, 28, 40]),
    channels=st.sampled_from([1, 2]),
    covariate=st.booleans(),
    local=st.booleans(),
    meters=st.lists(
        st.tuples(
            st.one_of(st.sampled_from([0, 4, 28]), st.integers(0, 150)), st.sampled_from([1, 3, 30, 90, 200, 252, 252])
        ),
        min_size=2,
        max_size=4,
    ).map(tuple),
    gaps=st.integers(0, 999),
    chosen=st.tuples(st.integers(0, 3), st.one_of(st.sampled_from([0, 1, -1]), st.integers(0, 999))),
)


def table(case: Case) -> pd.DataFrame:
    """The table of a case: staggered meters with gaps, absent rows and empty cells."""
    generator = np.random.default_rng(case.gaps)
    grid = pd.date_range(START, END, freq=STEP, inclusive="left", tz="Europe/London" if case.local else None)
    frames = []
    for meter, (first, count) in enumerate(case.meters):
        rows = np.arange(first, min(first + count, len(grid)))
        values = generator.gamma(2.0, 1.0, (len(rows), case.channels)).astype(np.float32)
        values[generator.random(values.shape) < 0.05] = np.nan
        frame = pd.DataFrame(values, columns=[f"load{k}" for k in range(case.channels)])
        frame.insert(0, "time", grid[rows])
        frame.insert(0, "meter", f"m{meter}")
        frame["row"] = rows
        if case.covariate:
            frame["tariff"] = generator.integers(0, 3, len(rows)).astype(float)
        frames.append(frame[generator.random(len(rows)) > 0.08] if len(rows) > 3 else frame)
    return pd.concat(frames, ignore_index=True)


def unit_of(rows: pd.DataFrame, unit: str) -> pd.Series:
    """Which unit each row of the table belongs to; weeks begin on Mondays."""
    if unit == "series":
        return rows["meter"]
    number = (rows["row"] + (3 * 4 if unit == "week" else 0)) // ROWS[unit]  # the study begins on a Thursday
    return rows["meter"] + " " + number.astype(str)


def neighbour(rows: pd.DataFrame, case: Case) -> pd.DataFrame:
    units = unit_of(rows, case.unit)
    meter = f"m{case.chosen[0] % len(case.meters)}"
    names = units[rows["meter"] == meter].unique()
    if not len(names):
        return rows
    mine = units == names[case.chosen[1] % len(names)]
    if case.change == "delete":
        return rows[~mine]
    other = rows.copy()
    channels = [name for name in rows.columns if name.startswith("load")]
    generator = np.random.default_rng(case.gaps + 1)
    drawn = 100 * generator.random((int(mine.sum()), len(channels)))
    other.loc[mine, channels] = np.nan if case.change == "empty" else drawn.astype(np.float32)
    return other


def replay(
    rows: pd.DataFrame, case: Case, folder: Path
) -> tuple[PrivateLayout, int, int, tuple[str, ...], dict[str, str]]:
    """From a file to the private examples, with the window, the stride, and what the run would say of reading and units."""
    path = folder / "meters.csv"
    rows.drop(columns="row").to_csv(path, index=False)
    privacy = Privacy(epsilon=8, unit=case.unit, layout=case.layout)  # type: ignore[arg-type]
    reading = {"timezone": "Europe/London"} if case.local else {}
    covariates = ["tariff"] if case.covariate else []
    _, split = load_split(
        path, private=True, study=Study.stating((START, END)), covariates=covariates, frequency="6h", **reading
    )
    config = make_config(split.train, str(path), scale="smoke", privacy=privacy, window=case.window)
    layout = private_layout(split.train, config.window, config.stride, privacy)
    return layout, config.window, config.stride, split.train.inferred, layout.definitions


def contents(layout: PrivateLayout) -> Counter[bytes]:
    """Every example by all of its rows."""
    windows, found = layout.windows, Counter[bytes]()
    spans = windows.spans if windows.spans is not None else np.full(len(windows), windows.length)
    for start, span in zip(windows.starts, spans, strict=True):
        rows = slice(int(start), int(start + span))
        found[windows.series.values[rows].tobytes() + windows.series.covariates[rows].tobytes()] += 1
    return found


def clipped_sum(layout: PrivateLayout) -> torch.Tensor:
    """The sum of one step that draws every example: of clipped gradients of a small network, by the real engine."""
    torch.manual_seed(0)
    values, covariates = layout.windows.gather(np.arange(len(layout.windows)))
    seen = torch.cat([values.nan_to_num(0.0), values.isnan().float(), covariates], dim=2).flatten(1)
    network = torch.nn.Sequential(torch.nn.Linear(seen.shape[1], 3), torch.nn.Tanh(), torch.nn.Linear(3, 1))
    result = Engine(network, clip=CLIP)(lambda model, batch: model(batch).square().sum(1), seen, units=len(seen))
    return torch.cat([one.flatten() for one in result.sums.values()]).double()


def hole(unit: str, window: int | None, *, meters: int = 2, place: int = 0) -> Case:
    """A hole that there was: the first unit of a meter that begins with the study, or the longest meter as a whole."""
    lengths = ((0, 252), *[(28, 190)] * (meters - 1))
    return Case(unit, "blocks", "delete", window, 1, False, False, lengths, 3, (0, place))


@given(case=cases)
@example(case=hole("record", 28))
@example(case=hole("day", 28))
@example(case=hole("week", 28, place=1))
@example(case=hole("week", 40, place=1))
@example(case=hole("series", None, meters=4))
@example(
    case=Case("record", "blocks", "delete", None, 1, False, True, ((97, 1), (97, 30), (0, 1)), 0, (2, 0))
)  # an offset
@example(
    case=Case("record", "blocks", "delete", 8, 1, True, False, ((28, 252), (0, 1)), 0, (0, 0))
)  # a gradient so small that rounding looked like mixing
@settings(
    max_examples=CASES, deadline=None, derandomize=CASES <= 120, suppress_health_check=list(HealthCheck), database=None
)
def test_one_unit_of_the_table_moves_what_its_contribution_says(
    case: Case, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("neighbours")
    rows = table(case)
    try:
        layout, *settings_here = replay(rows, case, folder)
        touched = layout.contribution()
    except UserError:
        return  # too little data for this unit: nothing is trained
    if touched.neighbour == "removal" and case.change == "alter":
        case = Case(**{**case.__dict__, "change": "delete"})
    try:
        other, *settings_there = replay(neighbour(rows, case), case, folder)
        same = other.contribution() == touched
    except UserError as error:
        sentence = str(error)
        assert "of its values" in sentence or "several meters" in sentence or "only one row" in sentence
        return
    assert settings_here == settings_there
    assert same
    here, there = contents(layout), contents(other)
    vanished, appeared = (here - there).total(), (there - here).total()
    assert vanished <= touched.k
    assert appeared <= (0 if touched.neighbour == "removal" else touched.k)
    moved = float((clipped_sum(layout) - clipped_sum(other)).norm())
    assert moved <= touched.k * CLIP * (1 if touched.neighbour == "removal" else 2) + 1e-5


def test_two_neighbours_leave_the_same_files_and_settings(tmp_path: Path) -> None:
    """Whole runs on a table and on the same without a meter's first day: what is written and public does not differ."""
    series = simulate(meters=6, hours=24 * 59, seed=3).frame()
    there = series[~((series["meter"] == series["meter"].iloc[0]) & (series["time"] < "2023-01-02"))]
    privacy = Privacy(epsilon=8, unit="day", examples=60)
    seen = []
    for name, rows in (("a", series), ("b", there)):
        path = tmp_path / f"{name}.csv"
        rows.to_csv(path, index=False)
        fit(path, out=tmp_path / name, scale="smoke", steps=2, window=48, privacy=privacy, speed=Speed(threads=1))
        files = sorted(str(one.relative_to(tmp_path / name)) for one in (tmp_path / name).rglob("*"))
        config = json.loads((tmp_path / name / "run.json").read_text()) | {"source": None}
        facts = json.loads((tmp_path / name / "reading.json").read_text()) | {"ledger": None}
        plan = read_ledger(tmp_path / name).segments[-1].plan
        seen.append((files, config, facts, plan, [len(one) for one in load_file(tmp_path / name / WEIGHTS).values()]))
    assert seen[0] == seen[1]
