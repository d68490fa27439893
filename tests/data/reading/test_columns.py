"""Who is a meter, what is a part of the time, and what was seen apart from what was assumed."""

import numpy as np
import pandas as pd
import pytest

from tamedit.data.loading import load_split
from tamedit.data.reader import read
from tamedit.errors import UserError


def test_hours_in_a_column_of_their_own_are_part_of_the_time() -> None:
    dates = np.repeat(pd.date_range("2023-01-01", periods=3).strftime("%Y-%m-%d"), 24)
    hours = [f"{hour:02d}:00" for hour in range(24)] * 3
    series = read(pd.DataFrame({"date": dates, "hour": hours, "value": np.arange(72.0)}))
    assert series.meters == ("",)
    assert series.times[13] == pd.Timestamp("2023-01-01 13:00")


@pytest.mark.parametrize(("name", "cells"), [("weekday", ["monday", "tuesday"]), ("slot", ["06:00", "18:00"])])
def test_a_part_of_the_time_is_never_a_meter(name: str, cells: list[str]) -> None:
    stamps = np.repeat(pd.date_range("2023-01-01", periods=10), 2)
    table = pd.DataFrame({"date": stamps, name: cells * 10, "value": np.arange(20.0)})
    with pytest.raises(UserError, match=r"times? appear"):
        read(table, targets=["value"])


def test_a_private_run_does_not_guess_who_is_a_meter() -> None:
    stamps = np.tile(pd.date_range("2023-01-01", periods=200, freq="h"), 2)
    table = pd.DataFrame({"time": stamps, "zone": ["a"] * 200 + ["b"] * 200, "value": np.arange(400.0)})
    assert read(table).meters == ("a", "b")
    with pytest.raises(UserError, match="say so with id='zone'"):
        load_split(table, private=True)
    assert load_split(table, private=True, id="zone")[0].meters == ("a", "b")
    assert load_split(table.rename(columns={"zone": "home"}), private=True)[0].meters == ("a", "b")


def test_meters_with_another_step_are_refused() -> None:
    fine = pd.DataFrame({"meter": "fine", "time": pd.date_range("2023-01-01", periods=400, freq="30min"), "value": 1.0})
    coarse = pd.DataFrame(
        {"meter": "coarse", "time": pd.date_range("2023-01-01", periods=100, freq="1h"), "value": 1.0}
    )
    with pytest.raises(UserError, match=r"'coarse'.* come every 1 hour, those of other meters every 30 minutes"):
        read(pd.concat([fine, coarse]))


def test_what_was_seen_in_the_rows_is_kept_apart_from_what_was_assumed() -> None:
    table = pd.DataFrame({"time": pd.date_range("2023-01-01", periods=50, freq="h"), "value": 7.25}).drop(index=[5, 6])
    series = read(table)
    assert any("7.25" in one for one in series.findings)
    assert any("absent" in one for one in series.findings)
    assert not any("7.25" in one or "absent" in one for one in series.notes)
