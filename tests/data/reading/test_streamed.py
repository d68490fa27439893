"""A large Parquet file that is read in pieces gives the examples that the reader of tables gives, to the bit."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tamedit.data import calendar
from tamedit.data.calendar import network_covariates
from tamedit.data.loading import load_split
from tamedit.data.reader import read_fleet
from tamedit.data.reading import streamed
from tamedit.data.study import Study
from tamedit.data.tiled import Tiled, TiledStamps
from tamedit.privacy.settings import Privacy
from tamedit.runs.layout import private_layout
from tamedit.windows import cut


def table(seed: int = 0, meters: int = 5) -> pd.DataFrame:
    """Meters in no order, staggered, with absent rows and empty cells."""
    generator = np.random.default_rng(seed)
    frames = []
    for meter in generator.permutation(meters):
        hours = pd.date_range("2023-01-03", "2023-03-20", freq="h")[
            generator.integers(0, 90) : -generator.integers(1, 90)
        ]
        load = generator.gamma(2.0, 1.0, len(hours))
        load[generator.random(len(hours)) < 0.1] = np.nan
        rows = pd.DataFrame({"id": f"m{meter}", "time": hours, "load": load})
        frames.append(rows[generator.random(len(rows)) > 0.05])
    return pd.concat(frames, ignore_index=True)


@pytest.fixture
def in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """What happens to 88 million rows, at a thousandth of the size."""
    monkeypatch.setattr(streamed, "LARGE", 1)
    monkeypatch.setattr(streamed, "PIECE", 1700)
    monkeypatch.setattr(calendar, "LARGE", 1)
    monkeypatch.setattr(cut, "TOGETHER", 1000)


@pytest.mark.parametrize("extent", [None, ("2023-01-01", "2023-04-01"), ("2023-01-20", "2023-03-01")])
@pytest.mark.parametrize("unit", ["week", "day", "series"])
@pytest.mark.parametrize("shuffled", [False, True])
def test_same_examples_to_the_bit(
    tmp_path: Path,
    extent: tuple[str, str] | None,
    unit: str,
    shuffled: bool,
    in_pieces: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows, path = table(), tmp_path / "fleet.parquet"
    (rows.sample(frac=1, random_state=1) if shuffled else rows).to_parquet(path, row_group_size=900)
    assert read_fleet(path) is not None
    found = {}
    for way in ("pieces", "table"):
        if way == "table":
            monkeypatch.undo()
        _, split = load_split(path, private=True, study=Study.stating(extent))
        assert isinstance(split.train.values, np.memmap) == (way == "pieces")
        layout = private_layout(split.train, 48, 24, Privacy(epsilon=8, unit=unit))  # type: ignore[arg-type]
        windows = layout.windows
        seen = network_covariates(windows.series, calendar=True)
        gathered = [
            seen.values[windows.starts[:, None] + np.arange(48)],
            seen.covariates[windows.starts[:, None] + np.arange(48)],
        ]
        found[way] = (layout, split, gathered)
    (one, first, left), (other, second, right) = found["pieces"], found["table"]
    assert one.count == other.count
    assert one.definitions == other.definitions
    assert one.accounted == other.accounted
    assert np.array_equal(one.windows.starts, other.windows.starts)
    assert all(a.tobytes() == b.tobytes() for a, b in zip(left, right, strict=True))
    for part in ("train", "validation", "test"):
        mine, theirs = getattr(first, part), getattr(second, part)
        assert mine.values.tobytes() == theirs.values.tobytes()
        assert mine.times.equals(theirs.times)
        assert mine.meters == theirs.meters
        assert mine.notes == theirs.notes
        assert mine.inferred == theirs.inferred
        assert mine.step == theirs.step


def test_nothing_in_memory_has_a_row_for_every_reading(tmp_path: Path, in_pieces: None) -> None:
    """Values lie on disk; stamps and the calendar are those of one meter."""
    path, meters = tmp_path / "fleet.parquet", 20
    table(meters=meters).to_parquet(path)
    laid, split = load_split(path, private=True, study=Study.stating(("2023-01-01", "2023-04-01")))
    layout = private_layout(split.train, 48, 24, Privacy(epsilon=8, unit="week"))
    for series in (laid, split.train, split.validation, split.test, network_covariates(layout.windows.series, True)):
        assert len(series.meters) == meters
        assert isinstance(series.values, np.memmap)
        assert isinstance(series.times, TiledStamps)
        assert len(series.times.base) == len(series) / meters
        held = [one for name, one in vars(series).items() if isinstance(one, np.ndarray) and name != "values"]
        if isinstance(series.covariates, Tiled):
            held.append(series.covariates.base)
        assert max(len(one) for one in held if one.size) <= len(series) / meters


def spoiled(what: str) -> pd.DataFrame:
    rows = table(3)
    if what == "a stamp twice":
        return pd.concat([rows, rows.tail(1)])
    if what == "far apart twice":
        return pd.concat([rows, rows.head(1)])
    if what == "off the grid":
        rows.loc[len(rows) - 1, "time"] += pd.Timedelta(minutes=7)
    if what == "nameless":
        rows.loc[5000, "id"] = None
    if what == "infinite":
        rows.loc[5000, "load"] = np.inf
    if what == "a coarser meter":
        last = rows["id"] == rows["id"].iloc[-1]
        rows = rows[~last | (rows["time"].dt.hour % 2 == 0)]
    if what == "another step":
        rows = pd.concat([rows.head(1500), rows.iloc[1500:][rows["time"].iloc[1500:].dt.hour % 3 == 0]])
    if what == "a time zone":
        rows["time"] = rows["time"].dt.tz_localize("UTC")
    if what == "text":
        rows["load"] = rows["load"].astype(str)
    return rows


@pytest.mark.parametrize(
    "what",
    [
        "a stamp twice",
        "far apart twice",
        "off the grid",
        "nameless",
        "infinite",
        "a coarser meter",
        "another step",
        "a time zone",
        "text",
    ],
)
def test_what_is_not_plain_is_left_to_the_reader_of_tables(tmp_path: Path, what: str, in_pieces: None) -> None:
    path = tmp_path / "fleet.parquet"
    spoiled(what).to_parquet(path)
    assert read_fleet(path) is None


def test_a_small_file_is_read_at_once(tmp_path: Path) -> None:
    path = tmp_path / "fleet.parquet"
    table().to_parquet(path)
    assert read_fleet(path) is None
