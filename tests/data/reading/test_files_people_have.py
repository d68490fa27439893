"""What people have on their disks: several files, odd stamps, odd tables. Compared with the same readings written plainly."""

import gzip
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tamedit.data.reader import read, read_csv
from tamedit.data.reading import large_csv, tables
from tamedit.data.reading.several import one_text, place_of
from tamedit.data.series import Series
from tamedit.errors import UserError

HOURS = pd.date_range("2024-03-01", periods=48, freq="h")
KWH = np.arange(48) / 8


def rows(values: np.ndarray = KWH, times: pd.DatetimeIndex = HOURS) -> str:
    return "".join(f"{time},{value}\n" for time, value in zip(times, values, strict=True))


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def sentence(*arguments: object, **named: object) -> str:
    with pytest.raises(UserError) as caught:
        read(*arguments, **named)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)
    return str(caught.value)


def same(found: Series, times: pd.DatetimeIndex = HOURS, values: np.ndarray = KWH) -> None:
    np.testing.assert_array_equal(found.values[:, 0], np.float32(values))
    assert found.times.tz_localize(None).equals(times.as_unit("us"))


def meters(folder: Path) -> Path:
    for number in (1, 2, 10):
        write(folder / f"home_{number}.csv", "time,kwh\n" + rows(KWH + number))
    return folder


def test_a_folder_a_pattern_and_a_list_are_one_panel(tmp_path: Path) -> None:
    folder = meters(tmp_path / "meters")
    paths = sorted(folder.iterdir())
    for source in (folder, str(folder), f"{folder}/*.csv", paths, [str(one) for one in paths]):
        series = read_csv(source)
        assert series.meters == ("home_1", "home_10", "home_2")
        np.testing.assert_array_equal(series.values[:, 0], np.float32(np.concatenate([KWH + 1, KWH + 10, KWH + 2])))
        assert series.notes.count("Each file was taken to be one meter, whose name is the file's.") == 1
        assert not any("3" in note for note in series.inferred)  # how many meters there are is private


def test_a_run_finds_several_files_again_without_their_names(tmp_path: Path) -> None:
    folder = meters(tmp_path / "meters")
    paths = sorted(map(str, folder.iterdir()))
    assert one_text(paths, private=True) == f"{folder}/*.csv"
    assert one_text([str(folder)], private=True) == str(folder)
    for source in (folder, str(folder), f"{folder}/*.csv"):  # one ledger, beside the folder
        assert place_of(source) == folder
    assert place_of(paths[0]) == Path(paths[0])
    two = one_text(paths[:2], private=False)
    assert read(two).meters == ("home_1", "home_10")
    with pytest.raises(UserError, match="who takes part"):
        one_text(paths[:2], private=True)


def test_mistakes_name_the_file_and_its_row(tmp_path: Path) -> None:
    folder = meters(tmp_path / "meters")
    write(folder / "home_3.csv", "time,kwh\n" + rows().replace("0.25", "much"))
    assert "Row 4, column 'kwh' of home_3.csv has 'much'" in sentence(folder)
    write(folder / "home_3.csv", "time,load\n" + rows())
    assert "give all files the same columns" in sentence(folder)
    assert "no file matches" in sentence(f"{folder}/*.txt").lower()
    assert "fetches no data" in sentence("https://example.org/meters.csv")


def test_files_with_a_column_of_meters_and_parts_of_one_meter(tmp_path: Path) -> None:
    halves = (
        "LCLid,time,kwh\n" + "".join(f"007,{line}\n" for line in rows().splitlines()[part])
        for part in (slice(24), slice(24, 48))
    )
    for name, text in zip("ab", halves, strict=True):
        write(tmp_path / "panel" / f"{name}.csv", text)
    series = read(tmp_path / "panel")
    assert series.meters == ("007",)
    same(series)
    for name, part in (("2023", slice(24)), ("2024", slice(24, 48))):
        write(tmp_path / "years" / f"load_{name}.csv", "time,kwh\n" + rows(KWH[part], HOURS[part]))
    assert "files='parts' or files='meters'" in sentence(tmp_path / "years")
    same(read(tmp_path / "years", files="parts"))
    assert read(tmp_path / "years", files="meters").meters == ("load_2023", "load_2024")


def test_archives_and_workbooks(tmp_path: Path) -> None:
    text = "time,kwh\n" + rows()
    with zipfile.ZipFile(tmp_path / "one.zip", "w") as archive:
        archive.writestr("folder/home.csv", text)
    same(read(tmp_path / "one.zip"))
    folder = tmp_path / "packed"
    folder.mkdir()
    (folder / "a.csv.gz").write_bytes(gzip.compress(text.encode()))
    with zipfile.ZipFile(folder / "two.zip", "w") as archive:
        archive.writestr("b.csv", text)
        archive.writestr("c.csv", text)
    assert read(folder).meters == ("a", "b", "c")
    pytest.importorskip("openpyxl")
    frame = pd.DataFrame({"time": HOURS, "kwh": KWH})
    with pd.ExcelWriter(tmp_path / "home.xlsx") as book:
        frame.to_excel(book, index=False, startrow=2)
    same(read(tmp_path / "home.xlsx"))


@pytest.mark.parametrize("columns", ["meters", "channels"])
def test_one_column_per_home_is_asked_about(tmp_path: Path, columns: str) -> None:
    wide = pd.DataFrame({f"home_{number}": KWH + number for number in range(1, 11)}, index=HOURS.rename("time"))
    wide.iloc[:5, 1] = np.nan
    path = tmp_path / "wide.csv"
    wide.to_csv(path)
    assert "columns='meters' if each is a meter" in sentence(path)
    series = read(path, columns=columns)  # type: ignore[arg-type]
    if columns == "channels":
        assert (len(series.meters), len(series.targets)) == (1, 10)
        return
    assert series.meters == tuple(wide.columns)
    assert series.targets == ("value",)
    np.testing.assert_array_equal(series.lengths, [48, 43, *[48] * 8])
    np.testing.assert_array_equal(series.values[:, 0], wide.to_numpy(dtype=np.float32).T[~wide.isna().to_numpy().T])


def joined(date: Callable[[pd.Timestamp], str], clock: Callable[[pd.Timestamp], object], name: str = "hour") -> str:
    lines = (f"{date(time)},{clock(time)},{value}\n" for time, value in zip(HOURS, KWH, strict=True))
    return f"date,{name},kwh\n" + "".join(lines)


def day(time: pd.Timestamp) -> str:
    return f"{time:%Y-%m-%d}"


@pytest.mark.parametrize(
    "text",
    [
        joined(day, lambda time: time.hour),
        joined(day, lambda time: time.hour + 1),
        joined(lambda time: f"{time:%Y%m%d}", lambda time: time.hour),
        joined(lambda time: f"{time:%d/%m/%Y}", lambda time: f"{time:%H:%M}", "time"),
        "timestamp,kwh\n" + rows().replace("-", "").replace(":00:00", "00").replace(" ", ""),
        "reading,kwh\n" + rows().replace("-", "").replace(":00:00", "00").replace(" ", ""),
        "Exported on 3 March\nfor meter 7, in kWh\n\ntime,kwh\n" + rows(),
        "Exported,\ntime,kwh,more\n" + rows().replace("\n", ",1\n"),
        "time,kwh\n" + rows()[: rows().index("2024-03-02")] + "time,kwh\n" + rows()[rows().index("2024-03-02") :],
        "time,kwh,quality\n" + rows().replace("\n", ",estimated\n"),
        "time,kwh\n" + rows() + rows()[: rows().index("2024-03-01 05")],
        "time,kwh\n" + rows().replace(",", " GMT,"),
    ],
)
def test_tables_that_say_the_same(tmp_path: Path, text: str) -> None:
    series = read(write(tmp_path / "meter.csv", text))
    same(series)
    assert len(series.meters) == 1


def test_half_hours_and_quarters_by_number(tmp_path: Path) -> None:
    for each, first in ((48, 1), (48, 0), (96, 1), (96, 0)):
        lines = [f"2024-03-0{1 + at // each},{first + at % each},{at}\n" for at in range(2 * each)]
        series = read(write(tmp_path / "meter.csv", "settlement_date,settlement_period,kwh\n" + "".join(lines)))
        same(series, pd.date_range("2024-03-01", periods=2 * each, freq=f"{1440 // each}min"), np.arange(2 * each))
    lines[7] = "2024-03-01,97,7\n"
    assert "has 97 in column 'period'" in sentence(write(tmp_path / "meter.csv", "date,period,kwh\n" + "".join(lines)))


def test_midnight_as_24_and_words_for_zones(tmp_path: Path) -> None:
    text = rows(KWH[:24], HOURS[1:25]).replace("2024-03-02 00:00:00", "2024-03-01 24:00:00")
    same(read(write(tmp_path / "meter.csv", "time,kwh\n" + text)), HOURS[1:25], KWH[:24])
    autumn = pd.date_range("2024-10-26 22:00", periods=6, freq="h", tz="UTC")
    local = autumn.tz_convert("Europe/London")
    lines = "".join(f"{time:%Y-%m-%d %H:%M} {time:%Z},{at}\n" for at, time in enumerate(local))
    assert "BST" in lines
    assert "GMT" in lines
    series = read(write(tmp_path / "words.csv", "time,kwh\n" + lines), timezone="Europe/London")
    assert series.times.equals(local.as_unit("us"))
    np.testing.assert_array_equal(series.values[:, 0], np.arange(6))


def test_rows_that_differ_are_listed_at_once(tmp_path: Path) -> None:
    path = write(tmp_path / "meter.csv", "time,kwh\n" + rows() + rows(KWH + 1)[: rows(KWH + 1).index("2024-03-01 03")])
    said = sentence(path)
    assert "3 times appear twice" in said
    for pair in ("(rows 2 and 50)", "(rows 3 and 51)", "(rows 4 and 52)"):
        assert pair in said
    empty = write(tmp_path / "empty.csv", "time,kwh\n" + rows() + f"{HOURS[3]},\n")
    series = read(empty)
    same(series)
    assert any("left out" in finding for finding in series.findings)
    assert not any("left out" in note for note in series.inferred)


def test_jitter_is_rounded_on_request(tmp_path: Path) -> None:
    shaken = HOURS + pd.to_timedelta(np.random.default_rng(0).integers(-20, 20, 48), unit="s")
    path = write(tmp_path / "meter.csv", "time,kwh\n" + rows(times=shaken))
    assert "lies a little off a regular grid" in sentence(path)
    same(read(path, round="1min"))


@pytest.mark.parametrize("how", ["sum", "mean"])
def test_another_step_is_pandas_own(tmp_path: Path, how: str) -> None:
    """pandas' resample is the oracle; a sum with a missing reading is missing, a mean with fewer than half of them."""
    times = pd.date_range("2024-03-28", periods=4 * 24 * 10, freq="15min", tz="Europe/London")
    frame = pd.DataFrame({"kwh": np.random.default_rng(1).gamma(2, 1, len(times))}, index=times.rename("time"))
    frame.iloc[5, 0] = np.nan
    frame.iloc[8:11, 0] = np.nan
    for step, offset in (("1h", "1h"), ("1D", "1D")):
        series = read(frame, resample=step, aggregate=how)  # type: ignore[arg-type]
        binned = frame["kwh"].resample(offset)
        edges = pd.date_range(binned.size().index[0], periods=len(binned.size()) + 1, freq=offset)
        counts = binned.count() / ((edges[1:] - edges[:-1]) / pd.Timedelta("15min"))
        expected = (binned.sum() if how == "sum" else binned.mean()).where(counts >= (1 if how == "sum" else 0.5))
        assert series.times.equals(pd.DatetimeIndex(expected.index).as_unit("us"))
        np.testing.assert_allclose(series.values[:, 0], expected.to_numpy(), rtol=1e-5)
    assert "belong together" in sentence(frame, resample="1h")
    assert "not longer than the step" in sentence(frame, resample="15min", aggregate="sum")


def test_codes_for_missing_are_seen_and_taken_on_request(tmp_path: Path) -> None:
    values = KWH.copy()
    values[[3, 7]] = -999
    path = write(tmp_path / "meter.csv", "time,kwh\n" + rows(values))
    series = read(path)
    assert any("2 readings of -999" in finding and "missing=-999" in finding for finding in series.findings)
    assert not any("999" in note for note in series.inferred)
    assert np.isnan(read(path, missing=-999).values[[3, 7], 0]).all()


@pytest.mark.parametrize(
    "text",
    [
        "time,kwh\n" + rows(),
        "id;time;kwh\n"
        + "".join(f"0{meter};{line.replace(',', ';')}\n" for meter in (1, 2) for line in rows().splitlines()),
        "home,time,kwh,flag\n" + "".join(f"NA,{line},ok\n" for line in rows().splitlines()),
        "time,kwh\n" + rows(np.where(np.arange(48) < 40, 0, KWH).round(3)).replace(",0.0\n", ",0\n"),
        "time,kwh\n" + rows().replace(",0.25", ",").replace(",0.5\n", ",NA\n"),
        "time,kwh\n" + rows().replace(",", "+01:00,"),
        'time,"a, b"\n' + rows(),
        "# remark\ntime,kwh\n" + rows()[:-5] + "\n\n",
        "time,kwh\n" + rows().replace("1.5\n", '"1,5"\n').replace("0.0\n", "0\n"),
    ],
)
def test_large_files_are_read_like_small_ones(tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "meter.csv", text)
    answers = []
    for small in (tables.SMALL, 0):
        monkeypatch.setattr(tables, "SMALL", small)
        monkeypatch.setattr(large_csv, "_BLOCK", 200)
        try:
            answers.append(read(path))
        except UserError as error:
            answers.append(str(error))  # type: ignore[arg-type]
    first, second = answers
    if isinstance(first, str):
        assert first == second
        return
    np.testing.assert_array_equal(first.values, second.values)
    assert first.times.equals(second.times)
    assert (first.meters, first.targets, first.notes, first.findings) == (
        second.meters,
        second.targets,
        second.notes,
        second.findings,
    )


def test_words_for_a_missing_reading(tmp_path: Path) -> None:
    for word in ("Null", "NONE", "missing", "."):
        path = write(tmp_path / "words.csv", "time,kwh\n" + rows().replace(",0.25\n", f",{word}\n"))
        assert np.isnan(read(path).values[2, 0])
    path = write(
        tmp_path / "words.csv", "time,kwh\n" + rows().replace(",0.25\n", ",Error\n").replace(",0.5\n", ",-7\n")
    )
    assert "say missing='Error' if it is missing" in sentence(path)
    for given in ("error", ["error", -7]):
        assert np.isnan(read(path, missing=given).values[2, 0])
    assert np.isnan(read(path, missing=["error", -7]).values[4, 0])
    assert read(path, missing="error").values[4, 0] == -7


def test_jitter_is_named_with_the_unit_that_mends_it(tmp_path: Path) -> None:
    times = HOURS + pd.to_timedelta(np.random.default_rng(0).integers(-20, 20, 48), unit="s")
    path = write(tmp_path / "jitter.csv", "time,kwh\n" + rows(times=times))
    assert "say round='1min'" in sentence(path)
    same(read(path, round="1min"))
    wild = HOURS + pd.to_timedelta(np.random.default_rng(0).integers(0, 1500, 48), unit="s")
    assert "round=" not in sentence(write(path, "time,kwh\n" + rows(times=wild)))


def test_columns_that_are_channels_without_a_word_are_noted() -> None:
    note = "The columns were taken as channels of one meter; if each column is a meter, say columns='meters'."
    table = pd.DataFrame({"time": HOURS, "Smith": KWH, "Miller": KWH})
    assert note in read(table).notes
    assert note not in read(table, columns="channels").notes
    assert note not in read(table, targets=["Smith", "Miller"]).notes
    assert note not in read(table[["time", "Smith"]]).notes
    assert note not in read(table.assign(id="a")).notes


@pytest.mark.parametrize("names", [[f"H{hour}" for hour in range(1, 25)], [f"{hour:02}:00" for hour in range(24)]])
@pytest.mark.parametrize("columns", [None, "meters", "channels"])
def test_hours_as_columns_are_refused_in_one_sentence(names: list[str], columns: str | None) -> None:
    days = pd.DataFrame({"date": pd.date_range("2024-01-01", periods=40)}).assign(**dict.fromkeys(names, 0.5))
    assert "one row per day and one column per hour" in sentence(days, columns=columns)
    hourly = days.assign(date=pd.date_range("2024-01-01", periods=40, freq="h"))  # homes called H1, H2, …
    assert len(read(hourly, columns="meters").meters) == 24


def test_what_is_no_table_in_a_folder_is_left_out_or_named(tmp_path: Path) -> None:
    folder = meters(tmp_path / "meters")
    write(folder / "README.txt", "These are the meters.\nAsk Ann.\n")
    write(folder / "notes.md", "nothing")
    found = read(folder)
    assert len(found.meters) == 3
    assert "1 text file without a table was left out of the folder." in found.findings
    write(folder / "home_4.txt", "time,kwh\n" + rows())
    assert len(read(folder).meters) == 4, "a table in a .txt is read"
    for content in ("time,kwh\n", ""):
        write(folder / "a_note.csv", content)
        said = sentence(folder)
        assert "a_note.csv" in said
        assert f"move it away, or name the others with a pattern, such as '{folder}/home*.csv'" in said
    write(folder / "a_note.csv", "who,what\nAnn,meters\n")
    assert "move a_note.csv away if it holds no readings" in sentence(folder)


def test_a_column_that_is_not_there_has_a_remedy() -> None:
    table = pd.DataFrame({"time": HOURS, "load": KWH})
    assert sentence(table, value="kwh").endswith("if one of them holds it, name it with targets=….")
    assert sentence(table, id="home").endswith("if one of them holds it, name it with id=….")
    assert "columns='meters' if each is a meter" in sentence(table.assign(other=KWH), value="value")
