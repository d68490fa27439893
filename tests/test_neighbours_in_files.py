"""Neighbours where the table is a folder of files or has a column per meter, with rows that appear twice, and another step.

As `test_neighbours`: one unit is taken out of the files, everything is read again, and what moves must be what the unit's
contribution says. What a run would say of how it read the files must not change.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tamedit.data.loading import load_split
from tamedit.data.reader import read
from tamedit.data.reading.several import one_text, place_of
from tamedit.data.study import Study
from tamedit.errors import UserError
from tamedit.privacy.settings import Privacy
from tamedit.runs.layout import PrivateLayout, private_layout
from tamedit.runs.recipe import make_config
from tamedit.runs.request import TrainRequest
from tamedit.training.requested import ledger_of
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


def with_stamps(path: Path, loads: dict[str, pd.Series], reading: dict[str, str], unit: str) -> PrivateLayout:
    """A folder of files, read for a private run."""
    place, _ = folder(path, loads)
    privacy = Privacy(epsilon=8, unit=unit)  # type: ignore[arg-type]
    _, split = load_split(str(place), private=True, study=STUDY, **reading)
    config = make_config(split.train, str(place), scale="smoke", privacy=privacy, window=24)
    return private_layout(split.train, config.window, config.stride, privacy)


def test_the_step_before_resampling_is_said_and_is_that_of_all_meters(tmp_path: Path) -> None:
    """How many readings an hour should have follows from the step: meters of two steps would decide it for each other."""
    mixed = {}
    for name, step in (("a", "30min"), ("b", "15min")):
        stamps = pd.date_range("2023-03-06", "2023-05-01", freq=step, inclusive="left").rename("time")
        mixed[name] = pd.Series(np.random.default_rng(0).gamma(2, 1, len(stamps)), stamps)
    reading = {"resample": "1h", "aggregate": "sum"}
    with pytest.raises(UserError, match="come every 30 minutes, those of most meters every 15 minutes"):
        with_stamps(tmp_path / "mixed", mixed, reading, "day")
    alone = with_stamps(tmp_path / "alone", {"b": mixed["b"], "c": mixed["b"]}, reading, "day")
    assert "The step of the readings was taken to be 15 minutes, the most common one." in alone.windows.series.inferred
    stated = with_stamps(tmp_path / "stated", mixed, reading | {"frequency": "30min"}, "day")
    one_less = {name: load[load.index.date != pd.Timestamp("2023-03-20").date()] for name, load in mixed.items()}
    one_less["a"] = mixed["a"]
    changed = with_stamps(tmp_path / "less", one_less, reading | {"frequency": "30min"}, "day")
    assert (contents(stated) - contents(changed)).total() == 1
    assert (contents(changed) - contents(stated)).total() == 0


@pytest.mark.parametrize(("zone", "step", "to"), [("Asia/Kolkata", "30min", "1h"), ("Europe/Berlin", "1h", "6h")])
def test_bins_do_not_reach_over_midnight(zone: str, step: str, to: str, tmp_path: Path) -> None:
    stamps = pd.date_range("2023-03-27", "2023-05-01", freq=step, inclusive="left").rename("time")
    load = {name: pd.Series(np.random.default_rng(1).gamma(2, 1, len(stamps)), stamps) for name in "ab"}
    reading = {"resample": to, "aggregate": "mean", "timezone": zone}
    with pytest.raises(UserError, match=f"does not fit the clock of {zone}.*would reach over midnight"):
        with_stamps(tmp_path / "zone", load, reading, "day")


def test_days_of_rounded_stamps_are_those_after_rounding(tmp_path: Path) -> None:
    """A reading of 23:59:40 belongs to the next day, and the statement says by which clock days are counted."""
    random, loads = np.random.default_rng(2), {}
    for name in "abc":
        stamps = pd.date_range("2023-03-06", "2023-05-01", freq="1h", inclusive="left")
        jitter = pd.to_timedelta(np.r_[0, random.integers(-40, 40, len(stamps) - 1)], unit="s")
        loads[name] = pd.Series(random.gamma(2, 1, len(stamps)), (stamps + jitter).rename("time"))
    reading = {"round": "1h", "frequency": "1h"}
    whole = with_stamps(tmp_path / "whole", loads, reading, "day")
    assert whole.definitions["day"].endswith("by the clock of the stamps rounded to 1h")
    for number, day in enumerate(pd.to_datetime(["2023-03-20", "2023-04-02", "2023-04-11"])):
        rounded = pd.DatetimeIndex(loads["b"].index).round("1h").normalize()
        less = with_stamps(tmp_path / f"less{number}", loads | {"b": loads["b"][rounded != day]}, reading, "day")
        assert (contents(whole) - contents(less)).total() == whole.contribution().k == 1
        assert (contents(less) - contents(whole)).total() == 0


def test_another_name_of_a_file_has_the_same_ledger(tmp_path: Path) -> None:
    (tmp_path / "homes.csv").write_text("time,kwh\n")
    (tmp_path / "link.csv").symlink_to(tmp_path / "homes.csv")
    assert place_of(tmp_path / "link.csv") == tmp_path / "homes.csv" == place_of(tmp_path / "homes.csv")


def test_a_link_with_a_ledger_of_its_own_is_asked_about(tmp_path: Path) -> None:
    """Runs of earlier versions were charged beside the link: that budget must not be forgotten in silence."""
    (tmp_path / "homes.csv").write_text("time,kwh\n")
    (tmp_path / "link.csv").symlink_to(tmp_path / "homes.csv")
    request = TrainRequest(out=tmp_path / "run", privacy=Privacy(epsilon=1, unit="week"))
    assert ledger_of(str(tmp_path / "link.csv"), request) == tmp_path / "homes.privacy-ledger.jsonl"
    (tmp_path / "link.privacy-ledger.jsonl").write_text("")
    with pytest.raises(UserError, match="is a ledger, too; name the one that knows all runs"):
        ledger_of(str(tmp_path / "link.csv"), request)


def test_a_meter_that_cannot_be_read_is_no_remark(tmp_path: Path) -> None:
    place, _ = folder(tmp_path / "meters", homes(3))
    (place / "README.txt").write_text("The meters of our street, read in 2023.\n")
    (place / "home9.txt").write_text("time,kwh\n2023-03-06 00:00,1\n2023-03-06 03:00,x17\n")
    with pytest.raises(UserError, match="home9"):
        read(place)
