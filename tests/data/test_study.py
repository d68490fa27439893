"""The study: one grid for all meters, dates for the parts, and what is refused."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tamedit.data.loading import load_split
from tamedit.data.reader import read
from tamedit.data.simulate import simulate
from tamedit.data.study import Study
from tamedit.errors import UserError


def meters(*spans: tuple[str, int], step: str = "1h", tz: str | None = None) -> pd.DataFrame:
    """A long table: of each meter the first stamp and the number of rows; readings count up."""
    frames = [
        pd.DataFrame(
            {
                "meter": f"m{number}",
                "time": pd.date_range(first, periods=rows, freq=step, tz=tz),
                "load": np.arange(rows),
            }
        )
        for number, (first, rows) in enumerate(spans)
    ]
    return pd.concat(frames, ignore_index=True)


def test_every_meter_lies_on_the_same_grid_with_readings_in_their_place() -> None:
    table = meters(("2023-01-03 05:00", 40), ("2022-12-30", 200))
    laid, split = load_split(table, private=True, study=Study.stating("2023-01-01/2023-01-11"))
    assert laid.lengths.tolist() == [240, 240]
    frame = laid.frame().set_index(["meter", "time"])["load"]
    assert frame["m0", pd.Timestamp("2023-01-03 05:00")] == 0
    assert frame["m0", pd.Timestamp("2023-01-04 20:00")] == 39
    assert frame["m1", pd.Timestamp("2023-01-01")] == 48  # what came before the study is left out
    assert frame["m0"].isna().sum() == 200
    assert [part.lengths.tolist() for part in (split.train, split.validation, split.test)] == [
        [168] * 2,
        [36] * 2,
        [36] * 2,
    ]


def test_an_absent_row_and_an_empty_cell_are_the_same() -> None:
    table = meters(("2023-01-01", 500), ("2023-01-05", 300))
    gone = table["time"].between("2023-01-01", "2023-01-06 11:00")
    emptied = table.assign(load=table["load"].where(~gone))
    (one, first), (other, second) = (load_split(rows, private=True) for rows in (table[~gone], emptied))
    assert np.array_equal(one.values, other.values, equal_nan=True)
    assert np.array_equal(first.train.values, second.train.values, equal_nan=True)
    assert first.study == second.study


def test_without_a_stated_extent_it_is_the_months_around_and_said() -> None:
    _, split = load_split(meters(("2023-01-10", 24 * 30), ("2023-02-20", 24 * 9)), private=True)
    assert split.study is not None
    assert (split.study.start, split.study.end) == (
        "2023-01-01T00:00:00",
        "2023-03-01T00:00:00",
    ) or split.study.end.startswith(
        "2023-04-01"  # type: ignore[union-attr]
    )
    assert "assumed to be public" in split.study.sentence
    assert "as stated" in Study.stating("2023-01-01/2023-03-01").sentence  # type: ignore[union-attr]


def test_the_parts_begin_at_the_stated_dates() -> None:
    study = Study.stating(("2023-01-01", "2023-03-01"), "2023-02-01", "2023-02-10")
    _, split = load_split(meters(("2023-01-01", 24 * 59)), private=True, study=study)
    assert split.validation.times[0] == pd.Timestamp("2023-02-01")
    assert split.test.times[0] == pd.Timestamp("2023-02-10")


def test_days_of_a_zone_with_summer_time_and_months_are_laid_by_their_calendar() -> None:
    local = meters(("2023-03-20", 20), step="1D", tz="Europe/London")
    laid = Study.stating("2023-03-01/2023-05-01").lay(read(local))  # type: ignore[union-attr]
    assert len(laid) == 61
    assert {stamp.hour for stamp in laid.times} == {0}
    assert np.flatnonzero(np.isfinite(laid.values[:, 0])).tolist() == list(range(19, 39))
    monthly = Study.stating("2020-01-01/2022-01-01").lay(read(meters(("2020-06-01", 12), step="MS")))  # type: ignore[union-attr]
    assert np.flatnonzero(np.isfinite(monthly.values[:, 0])).tolist() == list(range(5, 17))


def test_an_array_is_its_own_extent() -> None:
    array = np.random.default_rng(0).random((3, 300, 1))
    laid, split = load_split(array, private=True)
    assert laid.lengths.tolist() == [300] * 3
    assert split.train.lengths.tolist() == [210] * 3


@pytest.mark.parametrize(
    ("extent", "more", "words"),
    [
        ("2023-01-01", {}, "is not an extent"),
        ("soon/later", {}, "'soon' is not a date"),
        ("2023-02-01/2023-01-01", {}, "must follow one another"),
        ("2023-01-01/2023-02-01", {"train_until": "2024-01-01"}, "must follow one another"),
        ("2023-01-01/2023-02-01", {"validate_until": "x"}, "validate_until='x' is not a date"),
    ],
)
def test_dates_that_cannot_be_are_one_sentence(extent: str, more: dict[str, str], words: str) -> None:
    with pytest.raises(UserError, match=words.replace("(", "[(]")):
        Study.stating(extent, **more)


def test_meters_between_the_stamps_of_others_and_endless_extents_are_refused() -> None:
    shifted = meters(("2023-01-01", 50), ("2023-01-01 00:30", 50))
    with pytest.raises(UserError, match="'m1' lies between the stamps of other meters"):
        load_split(shifted, private=True, frequency="1h")
    with pytest.raises(UserError, match="state the extent of the study"):
        load_split(meters(("1901-01-01", 3), ("2023-01-01", 50)), private=True)


def test_a_named_data_set_has_its_own_dates() -> None:
    with pytest.raises(UserError, match="dates of its own"):
        load_split("household", private=True, study=Study.stating("2023-01-01/2024-01-01"))


def test_a_simulated_series_keeps_its_readings() -> None:
    series = simulate(meters=2, hours=24 * 31, start="2023-01-01", seed=5)
    laid = Study().completed(series).lay(series)
    assert np.array_equal(laid.values, series.values, equal_nan=True)
    assert laid.times.equals(series.times)


def test_the_clock_of_stamps_with_offsets_does_not_depend_on_which_of_them_occur() -> None:
    stamps = pd.date_range("2023-03-01", "2023-04-01", freq="h", tz="Europe/Berlin", inclusive="left")
    table = pd.DataFrame({"time": [one.isoformat() for one in stamps], "load": np.arange(len(stamps))})
    winter = table[: 24 * 20]
    study = Study.stating("2023-03-01/2023-04-01")
    (whole, _), (part, _) = (load_split(rows, private=True, study=study) for rows in (table, winter))
    assert whole.times.equals(part.times)
    assert str(whole.times.tz) == "UTC"


def test_row_numbers_are_left_out_also_after_rows_were_deleted(tmp_path: Path) -> None:
    table = meters(("2023-01-01", 100), ("2023-01-01", 100)).reset_index(drop=True)
    for name, rows in (("whole", table), ("part", table.drop(index=range(20, 60)))):
        rows.to_csv(tmp_path / f"{name}.csv")
        assert read(tmp_path / f"{name}.csv").targets == ("load",)
