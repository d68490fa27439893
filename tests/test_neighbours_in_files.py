"""Neighbours where the table is a folder of files or has a column per meter, with rows that appear twice, and another step.

As `test_neighbours`: one unit is taken out of the files, everything is read again, and what moves must be what the unit's
contribution says. What a run would say of how it read the files must not change.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tamedit.data.loading import load_split
from tamedit.data.reading.several import one_text
from tamedit.data.study import Study
from tamedit.privacy.settings import Privacy
from tamedit.runs.layout import PrivateLayout, private_layout
from tamedit.runs.recipe import make_config
from test_neighbours import CLIP, clipped_sum, contents

HOURS = pd.date_range("2023-03-06", "2023-05-01", freq="3h", inclusive="left")
STUDY = Study.stating(("2023-03-06", "2023-05-01"))


def homes(count: int) -> dict[str, pd.Series]:
    """Loads every three hours with holes; a tenth of the readings appear twice."""
    generator = np.random.default_rng(count)
    found = {}
    for number in range(count):
        load = pd.Series(generator.gamma(2, 1, len(HOURS)).round(3), HOURS.rename("time"))
        load = load[generator.random(len(load)) > 0.05]
        found[f"home{number}"] = pd.concat([load, load[generator.random(len(load)) < 0.1]])
    return found


def folder(path: Path, loads: dict[str, pd.Series]) -> tuple[Path, dict[str, str]]:
    path.mkdir()
    for name, load in loads.items():
        load.rename("kwh").to_csv(path / f"{name}.csv")
    return path, {}


def wide(path: Path, loads: dict[str, pd.Series]) -> tuple[Path, dict[str, str]]:
    path = path.with_suffix(".csv")
    pd.DataFrame({name: load[~load.index.duplicated()] for name, load in loads.items()}, HOURS.rename("time")).to_csv(
        path
    )
    return path, {"columns": "meters"}


def replay(path: Path, reading: dict[str, str], unit: str) -> tuple[PrivateLayout, tuple[str, ...]]:
    privacy = Privacy(epsilon=8, unit=unit)  # type: ignore[arg-type]
    step = {"frequency": "3h", "resample": "6h", "aggregate": "sum"}
    _, split = load_split(str(path), private=True, study=STUDY, **reading, **step)
    config = make_config(split.train, str(path), scale="smoke", privacy=privacy, window=28)
    return private_layout(split.train, config.window, config.stride, privacy), split.train.inferred


@pytest.mark.parametrize("write", [folder, wide])
@pytest.mark.parametrize("unit", ["record", "day", "week", "series"])
def test_one_unit_of_the_files_moves_what_its_contribution_says(tmp_path: Path, write: object, unit: str) -> None:
    loads = homes(9)
    layout, said = replay(*write(tmp_path / "a", loads), unit)  # type: ignore[operator]
    touched = layout.contribution()
    here = contents(layout)
    for number, place in ((0, "2023-03-06"), (4, "2023-03-20")):
        name = f"home{number}"
        load, begin = loads[name], pd.Timestamp(place)
        span = pd.Timedelta({"record": "3h", "day": "1D", "week": "7D", "series": "0D"}[unit])
        inside = (load.index >= begin) & (load.index < begin + span)
        other = {one: each for one, each in loads.items() if one != name or unit != "series"}
        if unit != "series":
            other[name] = load[~inside]
        changed, said_then = replay(*write(tmp_path / f"{unit}{number}", other), unit)  # type: ignore[operator]
        assert said_then == said
        assert changed.contribution() == touched
        there = contents(changed)
        assert (here - there).total() <= touched.k
        assert (there - here).total() <= (0 if touched.neighbour == "removal" else touched.k)
        moved = float((clipped_sum(layout) - clipped_sum(changed)).norm())
        assert moved > 0 or unit == "record"  # whose bin may be incomplete before
        assert moved <= touched.k * CLIP * (1 if touched.neighbour == "removal" else 2) + 1e-5


def test_the_name_of_the_data_does_not_tell_who_takes_part(tmp_path: Path) -> None:
    loads = homes(3)
    paths, _ = folder(tmp_path / "meters", loads)
    before = one_text(sorted(map(str, paths.iterdir())), private=True)
    (paths / "home1.csv").unlink()
    assert one_text(sorted(map(str, paths.iterdir())), private=True) == before
