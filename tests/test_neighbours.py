"""Neighbouring *tables*: one unit's rows are deleted, emptied or changed in the file, and everything up to the sum is replayed.

Reading, laying, splitting, cutting and one clipped sum run on both files. What is public (window, stride, contributions) must not
differ, and the sum before noise must move by at most k C, or 2 k C where the unit's examples are replaced.
`TAMEDIT_NEIGHBOURS=10000 pytest tests/test_neighbours.py` tries more cases than the usual run.
"""

import json
import os
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

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
from tamedit.runs.folder import DataFacts
from tamedit.runs.layout import PrivateLayout, private_layout, public_rows
from tamedit.runs.recipe import make_config
from tamedit.tasks.fit import fit
from tamedit.training.private.evolution import evolve
from tamedit.training.private.released_population import summed

CASES = int(os.environ.get("TAMEDIT_NEIGHBOURS", "120"))
STEP = pd.Timedelta(hours=6)  # 4 rows a day, 28 a week
ROWS = {"record": 1, "day": 4, "week": 28}
START, END = "2023-03-02", "2023-05-04"  # nine weeks from a Thursday; clocks change on 26 March
CLIP = 1.0
WORDS = ["gas", "1", "01", "oil", "NA", ""]


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
    attribute: bool = (
        False  # of whole meters, as it may stand in a file: contradictions, empty cells, what was not stated
    )


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
    attribute=st.booleans(),
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
        if knows_attributes(case):
            frame["heating"] = generator.choice(WORDS, len(rows))
        frames.append(frame[generator.random(len(rows)) > 0.08] if len(rows) > 3 else frame)
    return pd.concat(frames, ignore_index=True)


def knows_attributes(case: Case) -> bool:
    return case.attribute and case.unit == "series"


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
    if knows_attributes(case):
        other.loc[mine, "heating"] = "" if case.change == "empty" else generator.choice(WORDS, int(mine.sum()))
    return other


def replay(
    rows: pd.DataFrame, case: Case, folder: Path
) -> tuple[PrivateLayout, int, int, tuple[str, ...], dict[str, str]]:
    """From a file to the private examples, with the window, the stride, and what the run would say of reading and units."""
    path = folder / "meters.csv"
    rows.drop(columns="row").to_csv(path, index=False)
    privacy = Privacy(epsilon=8, unit=case.unit, layout=case.layout)  # type: ignore[arg-type]
    reading: dict[str, Any] = {"timezone": "Europe/London"} if case.local else {}
    reading |= {"static": {"heating": ("gas", "1")}} if knows_attributes(case) else {}
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


def homes_of(layout: PrivateLayout, case: Case) -> tuple[object, np.ndarray]:
    """What a run with `population` says of the examples without noise, and the sum that it adds noise to."""
    privacy = Privacy(epsilon=8, unit=case.unit, layout=case.layout, population=True)  # type: ignore[arg-type]
    length = layout.windows.length
    config = make_config(layout.windows.series, "table", scale="smoke", privacy=privacy, window=length)
    facts = DataFacts(lower=(0.0,) * case.channels, upper=(9.0,) * case.channels)
    within, vectors = summed(layout.examples(config), config, facts)
    return within, np.concatenate(list(vectors)).sum(axis=0)


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
@example(case=replace(hole("series", None, meters=4), attribute=True))
@example(case=replace(hole("series", None, meters=4), attribute=True, change="alter"))
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
    most = touched.k * (1 if touched.neighbour == "removal" else 2)
    assert moved <= most * CLIP + 1e-5
    (here_public, here_vectors), (there_public, there_vectors) = (homes_of(one, case) for one in (layout, other))
    assert here_public == there_public
    assert float(np.linalg.norm(here_vectors - there_vectors)) <= most + 1e-9


def hourly_table(seed: int) -> pd.DataFrame:
    """Three meters for six weeks from a Sunday; all but the first join late, and some rows are absent."""
    frame = simulate(meters=3, hours=24 * 43, start="2023-03-05", seed=seed).frame().reset_index(drop=True)
    hour = frame.groupby("meter").cumcount()
    late = frame["meter"].map({name: 200 * place for place, name in enumerate(frame["meter"].unique())})
    kept = (hour >= late) & (np.random.default_rng(seed).random(len(frame)) > 0.05)
    return frame[kept].reset_index(drop=True)


@pytest.mark.parametrize("unit", ["day", "week", "series"])
@pytest.mark.parametrize("change", ["delete", "alter"])
def test_one_unit_of_the_table_moves_its_own_votes(unit: str, change: str, tmp_path: Path) -> None:
    """Rounds of private evolution, replayed: the votes before noise, and nothing else, move with a unit."""
    rows = hourly_table(seed=len(unit))
    ago = (rows["time"] - pd.Timestamp("2023-02-27")) // pd.Timedelta(days=1)
    units = rows["meter"] + ("" if unit == "series" else " " + (ago // (7 if unit == "week" else 1)).astype(str))
    runs = []
    for gone in (None, units.iloc[0], units.iloc[-1], units[rows["meter"] != rows["meter"].iloc[0]].iloc[0]):
        there = rows.copy()
        there.loc[units == gone, "kwh"] *= 40.0
        runs.append(votes_of(there[units != gone] if change == "delete" else there, unit, tmp_path))
    (layout, here, kept), *others = runs
    touched = layout.contribution()
    most = touched.k * (1 if change == "delete" and touched.neighbour == "removal" else 2)
    for other, there, same in others:
        assert other.contribution() == touched
        assert same == kept, "who voted reaches the candidates through the histograms alone"
        assert all(float(np.linalg.norm(a - b)) <= most for a, b in zip(here, there, strict=True))
    assert any(not np.array_equal(here, there) for _, there, _ in others)


def votes_of(rows: pd.DataFrame, unit: str, folder: Path) -> tuple[PrivateLayout, list[np.ndarray], object]:
    """Two rounds on a table: the sums of votes before noise, and what is kept if the noisy ones are given numbers."""
    path, sums = folder / "meters.csv", []
    rows.to_csv(path, index=False)
    privacy = Privacy(epsilon=8, unit=unit)  # type: ignore[arg-type]
    study = Study.stating(("2023-03-05", "2023-04-17"), train_until="2023-04-10")
    _, split = load_split(path, private=True, study=study, frequency="1h")
    layout = private_layout(split.train, 24, 24, privacy)

    def release(one_hot: np.ndarray, number: int) -> np.ndarray:
        sums.append(one_hot.sum(axis=0))
        return np.random.default_rng(number).random(one_hot.shape[1])

    block = None if unit == "series" else public_rows(layout.windows, privacy)
    return layout, sums, evolve(layout.windows, release, 12, rounds=2, block=block, seed=1)


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
