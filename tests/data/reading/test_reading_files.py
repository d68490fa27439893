"""Files as people have them: every encoding, separator and mistake gives a series or one sentence."""

import gzip
import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tamedit.data.reader import read, read_csv
from tamedit.errors import UserError

PLAIN = "time,kwh\n2024-01-01 00:00,1.5\n2024-01-01 01:00,2.5\n2024-01-01 02:00,3.5\n"


def write(folder: Path, content: str | bytes, name: str = "meter.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def sentence(path: object, **arguments: object) -> str:
    with pytest.raises(UserError) as caught:
        read(path, **arguments)  # type: ignore[arg-type]
    text = str(caught.value)
    assert "\n" not in text
    assert text.endswith(".")
    return text


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "latin-1"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    text = PLAIN.replace("kwh", "größe")
    content = b"\xff\xfe" + text.encode(encoding) if encoding == "utf-16-le" else text.encode(encoding)
    series = read_csv(write(tmp_path, content))
    assert series.targets == ("größe",)
    np.testing.assert_array_equal(series.values[:, 0], [1.5, 2.5, 3.5])
    assert any("Latin-1" in note for note in series.notes) == (encoding == "latin-1")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_separators(tmp_path: Path, separator: str, newline: str) -> None:
    text = PLAIN.replace(",", separator).replace("\n", newline)
    series = read(write(tmp_path, text))
    np.testing.assert_array_equal(series.values[:, 0], [1.5, 2.5, 3.5])
    assert any("separated by" in note for note in series.notes) == (separator != ",")


def test_decimal_commas(tmp_path: Path) -> None:
    path = write(tmp_path, "time;a;b\n2024-01-01 00:00;1,5;1.234,5\n2024-01-01 01:00;;2,0\n2024-01-01 02:00;-3;7\n")
    series = read(path)
    np.testing.assert_array_equal(series.values, np.array([[1.5, 1234.5], [np.nan, 2], [-3, 7]], dtype=np.float32))
    assert any("decimal comma was understood in a, b" in note for note in series.notes)


def column_of(folder: Path, values: list[str], separator: str) -> Path:
    """A file with one target, hour by hour."""
    hours = pd.date_range("2024-01-01", periods=len(values), freq="h")
    rows = [f'{hour}{separator}"{value}"' for hour, value in zip(hours, values, strict=True)]
    return write(folder, "\n".join([f"time{separator}kwh", *rows]))


@pytest.mark.parametrize("separator", [",", ";"])
@pytest.mark.parametrize(
    ("values", "named"),
    [
        (["950", "1,200", "870"], "Row 3, column 'kwh' of meter.csv has '1,200'"),
        (["1,200", "1,300", "-2,100,000"], "'1,200'"),
        (["0"] * 50 + ["3.5", "12.25", "1,024.5"], "Row 54, column 'kwh' of meter.csv has '1,024.5'"),
        (["1,5"] * 60 + ["12.5"], "Row 2, column 'kwh' of meter.csv has '1,5'"),
        (["12.5"] * 60 + ["1,5"], "Row 62, column 'kwh' of meter.csv has '1,5'"),
    ],
)
def test_commas_that_may_mean_something_else(tmp_path: Path, values: list[str], named: str, separator: str) -> None:
    """A thousands separator read as a decimal comma, or both signs in one column, would change numbers in silence."""
    text = sentence(column_of(tmp_path, values, separator))
    assert named in text
    assert "where a number should be; write the whole column as 1234.5, without thousands separators" in text


@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        (["0,250", "1,200", "12,000"], [0.25, 1.2, 12]),
        (["1,200", "1200", "0,5"], [1.2, 1200, 0.5]),
        (["1234,500", "1,250", "7"], [1234.5, 1.25, 7]),
        (["0"] * 60 + ["1.234,5"], [0] * 60 + [1234.5]),
    ],
)
def test_commas_that_are_decimal(tmp_path: Path, values: list[str], numbers: list[float]) -> None:
    np.testing.assert_array_equal(read(column_of(tmp_path, values, ";")).values[:, 0], np.float32(numbers))


def test_comments_blank_lines_and_row_numbers(tmp_path: Path) -> None:
    text = "# exported\n,time,kwh\n0,2024-01-01 00:00,1\n\n1,2024-01-01 01:00,2\n2,2024-01-01 02:00,?\n\n"
    series = read(write(tmp_path, text))
    assert series.targets == ("kwh",)
    np.testing.assert_array_equal(series.values[:, 0], [1, 2, np.nan])
    broken = write(tmp_path, text.replace("00,2\n", "00,two\n"), "broken.csv")
    assert "Row 5, column 'kwh' of broken.csv has 'two'" in sentence(broken)


def test_gzip_and_parquet(tmp_path: Path) -> None:
    packed = read(write(tmp_path, gzip.compress(PLAIN.encode()), "meter.csv.gz"))
    frame = pd.DataFrame({"kwh": [1.5, 2.5, 3.5]}, index=pd.date_range("2024-01-01", periods=3, freq="h", name="time"))
    frame.to_parquet(tmp_path / "meter.parquet")
    stored = read(tmp_path / "meter.parquet")
    np.testing.assert_array_equal(packed.values, stored.values)
    assert packed.times.equals(stored.times)


def flipped() -> bytes:
    """A compressed file with one wrong byte in its middle."""
    content = bytearray(gzip.compress(PLAIN.encode()))
    content[len(content) // 2] ^= 0xFF
    return bytes(content)


def archive(*names: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        for name in names:
            file.writestr(name, PLAIN)
    return buffer.getvalue()


def parquet() -> bytes:
    buffer = io.BytesIO()
    pd.DataFrame({"a": [1]}).to_parquet(buffer)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (lambda: archive("notes.pdf"), "zip archive without a CSV"),
        (parquet, "a Parquet file; rename it to end in .parquet"),
        (lambda: b"%PDF-1.7 ...", "a PDF"),
        (lambda: b"\x89PNG\r\n\x1a\n\x00\x00", "a PNG picture"),
        (lambda: bytes(range(256)) * 20, "binary data"),
        (lambda: b"\x1f\x8b\x08broken", "damaged gzip"),
        (flipped, "damaged gzip"),
        (lambda: b"\xff\xfea", "not valid UTF-16"),
        (lambda: b"<!DOCTYPE html><html></html>", "HTML"),
        (lambda: b'{"a": 1}', "JSON"),
        (lambda: b"", "is empty"),
        (lambda: b"\n\n\n", "contains no table"),
        (lambda: b"time,kwh\n", "a header but no rows"),
        (lambda: b"time,kwh\n2024-01-01,1\n", "only one row"),
        (lambda: b"time,kwh\n2024-01-01,1\n2024-01-02,1,7,8\n", "Row 3"),
        (lambda: b"time,kwh\n2024-01-01,1,5\n2024-01-02,1,5\n", "longer than its header"),
        (lambda: b"2024-01-01,1\n2024-01-02,2\n2024-01-03,3\n", "not a header"),
        (lambda: b'time,kwh\n2024-01-01,"1\n2024-01-02,2\n', "cannot be read as a table"),
        (lambda: b"time,kwh,kwh\n2024-01-01,1,2\n2024-01-02,1,2\n", "column 'kwh' appears twice"),
        (lambda: b'"time","a","a"\n2024-01-01,1,2\n2024-01-02,1,2\n', "column 'a' appears twice"),
        (lambda: b'time;"a; b" ;"a; b"\r\n2024-01-01;1;2\r\n2024-01-02;1;2\r\n', "column 'a; b' appears twice"),
        (lambda: b'time\t"a"\ta\n2024-01-01\t1\t2\n2024-01-02\t1\t2\n', "column 'a' appears twice"),
    ],
)
def test_what_is_not_a_table(tmp_path: Path, content: Callable[[], bytes], said: str) -> None:
    path = write(tmp_path, content())
    text = sentence(path)
    assert said in text
    assert "meter.csv" in text


def test_missing_files_and_folders(tmp_path: Path) -> None:
    assert "is a folder" in sentence(tmp_path)
    assert "There is no file" in sentence(tmp_path / "absent.csv")
    assert "not a readable Parquet file" in sentence(write(tmp_path, PLAIN, "meter.parquet"))
    assert "must contain the paths of files" in sentence([1, 2])
    assert "cannot be made from builtins.dict" in sentence({})


@pytest.mark.parametrize(
    ("text", "arguments", "said"),
    [
        ("a,b\n1,2\n3,4\n", {}, "No time column was found in meter.csv among 'a', 'b'"),
        (PLAIN, {"time": "when"}, "There is no column 'when' in meter.csv; its columns are 'time', 'kwh'"),
        (PLAIN, {"targets": ["kwh", "load"]}, "There is no column 'load'"),
        (PLAIN, {"value": "load"}, "There is no column 'load'"),
        (PLAIN, {"value": "kwh", "targets": ["kwh"]}, "name the targets once"),
        (PLAIN, {"missing_covariates": "guess"}, "choose 'refuse', 'hold' or 'zero'"),
        (PLAIN, {"covariates": ["kwh"], "targets": ["kwh"]}, "'kwh' of meter.csv was named twice"),
        (PLAIN, {"covariates": ["kwh"]}, "No column of readings"),
        (PLAIN, {"time": "kwh", "targets": ["time"]}, "contains numbers that are not times (row 2: 1.5)"),
        (PLAIN, {"frequency": "often"}, "The frequency 'often' is not known"),
        (PLAIN, {"frequency": "2h"}, "The time stamp 2024-01-01 01:00:00 in meter.csv is not a whole number of steps"),
        (PLAIN, {"timezone": "Mars/North"}, "The time zone 'Mars/North' is not known"),
        (PLAIN.replace("2.5", "high"), {}, "Row 3, column 'kwh' of meter.csv has 'high' where a number should be"),
        (PLAIN.replace("2.5", "inf"), {}, "Row 3, column 'kwh' of meter.csv is infinite"),
        (PLAIN.replace("2.5", "1e39"), {}, "Row 3, column 'kwh' of meter.csv is infinite"),
        ("time,a,b\n2024-01-01,1,\n2024-01-02,2,\n", {}, "Column 'b' of meter.csv has no reading at all"),
        (PLAIN.replace("2024-01-01 01:00", ""), {}, "Row 3 of meter.csv has no time in column 'time'"),
        (PLAIN.replace("2024-01-01 01:00", "noon"), {}, "Row 3 of meter.csv has 'noon' in the time column 'time'"),
        (PLAIN.replace("01:00", "00:00"), {}, "appears twice in meter.csv (rows 2 and 3)"),
        (PLAIN.replace("01:00", "01:07"), {"frequency": "1h"}, "2024-01-01 01:07:00"),
        (PLAIN.replace("2024-01-01 02", "2324-01-01 02"), {}, "missing steps of 1 hour"),
        (
            "time,id,kwh\n2024-01-01,a,1\n2024-01-02,,2\n2024-01-03,a,2\n",
            {"id": "id"},
            "Row 3 of meter.csv has no meter",
        ),
        ("time,id,kwh\n2024-01-01,a,1\n2024-01-02,b,2\n", {}, "at least two readings"),
    ],
)
def test_mistakes_in_a_table(tmp_path: Path, text: str, arguments: dict[str, object], said: str) -> None:
    assert said in sentence(write(tmp_path, text), **arguments)


@pytest.mark.parametrize(
    ("header", "names", "arguments"),
    [
        ("meter", ("001", "002", "010"), {}),
        ("Meter ID", ("001", "1", "01"), {}),
        ("meter", ("001", "002", "NA"), {}),
        ("meter", ("A", "NA", "-"), {}),
        ("place", ("north", "NA", "null"), {}),
        ("number", ("007", "-", "1,200"), {"id": "number"}),
        ("number", ("1.50", "nan", "?"), {"id": "number"}),
        ("house", ("7", "8", "9"), {"id": "house"}),
    ],
)
def test_names_of_meters_are_kept_as_written(
    tmp_path: Path, header: str, names: tuple[str, ...], arguments: dict[str, str]
) -> None:
    rows = [f'2024-01-0{day},"{name}",{number}' for number, name in enumerate(names) for day in (1, 2, 3)]
    lines = ["# of June", f"time,{header},kwh", rows[0], "", *rows[1:]]
    series = read(write(tmp_path, "\n".join(lines)), **arguments)  # type: ignore[arg-type]
    assert series.meters == names
    np.testing.assert_array_equal(series.values[:, 0], np.repeat(np.arange(3.0), 3))
    nameless = write(tmp_path, "\n".join([*lines[:-1], "2024-01-03,,2"]))
    assert "Row 12 of meter.csv has no meter" in sentence(nameless, **arguments)


def test_targets_with_the_name_of_a_meter_stay_numbers(tmp_path: Path) -> None:
    series = read(write(tmp_path, "time,house,site\n2024-01-01,01,NA\n2024-01-02,-,5\n2024-01-03,3,6\n"))
    assert series.layout == "wide"
    np.testing.assert_array_equal(series.values, [[1, np.nan], [np.nan, 5], [3, 6]])


def test_duplicates_mention_time_zone_and_meters(tmp_path: Path) -> None:
    text = sentence(write(tmp_path, PLAIN.replace("01:00", "00:00")))
    assert "timezone=" in text
    assert "id=" in text


def test_covariates_must_be_known(tmp_path: Path) -> None:
    gap = "time,kwh,holiday\n2024-01-01 00:00,1,0\n2024-01-01 01:00,2,1\n2024-01-01 03:00,2,0\n2024-01-01 04:00,,1\n"
    path = write(tmp_path, gap)
    text = sentence(path, covariates=["holiday"])
    assert "The covariate 'holiday' has no value at 2024-01-01 02:00:00 in meter.csv" in text
    series = read(path, covariates=["holiday"], missing_covariates="hold")
    np.testing.assert_array_equal(series.covariates[:, 0], [0, 1, 1, 0, 1])
    np.testing.assert_array_equal(series.values[:, 0], [1, 2, np.nan, 2, np.nan])
    assert series.covariate_names == ("holiday",)
    assert series.targets == ("kwh",)


def test_quoted_names_of_columns(tmp_path: Path) -> None:
    text = '# of June\n"time","a, in kWh","a ""net""",a\n2024-01-01,1,2,3\n2024-01-02,4,5,6\n'
    for newline in ("\n", "\r\n"):
        series = read(write(tmp_path, text.replace("\n", newline)))
        assert series.targets == ("a, in kWh", 'a "net"', "a")


def test_trailing_separators_are_ignored(tmp_path: Path) -> None:
    assert read(write(tmp_path, PLAIN.replace("\n", ",\n"))).targets == ("kwh",)


def test_frames_with_other_kinds_of_columns() -> None:
    times = pd.date_range("2024-01-01", periods=3, freq="h")
    frame = pd.DataFrame({"time": times, "a": pd.array([1, None, 3], dtype="Int64"), "b": ["1", " ", "3"]})
    frame["c"] = pd.array([True, False, None], dtype="boolean")
    series = read(frame)
    np.testing.assert_array_equal(series.values, [[1, 1, 1], [np.nan, np.nan, 0], [3, 3, np.nan]])
    indexed = pd.DataFrame({"time": [1, 2, 3]}, index=times)
    assert read(indexed).targets == ("time",)
    assert "contains complex numbers" in sentence(pd.DataFrame({"time": times, "z": [1j, 2j, 3j]}))
    assert "contains times" in sentence(pd.DataFrame({"time": times, "x": [1, 2, 3], "received": times}))
    assert "has no rows" in sentence(frame.iloc[:0])


def test_constant_series_is_allowed_and_noted(tmp_path: Path) -> None:
    series = read(write(tmp_path, "time,kwh\n2024-01-01,2\n2024-01-02,2\n2024-01-03,2\n"))
    assert any("never changes (it is always 2)" in note for note in series.findings)
    assert series.period == 7


def test_lost_digits_are_noted(tmp_path: Path) -> None:
    """A counter far from 0 loses its steps; voltages, money and powers of two do not."""
    times = pd.date_range("2024-01-01", periods=200, freq="h", name="time")
    steps = np.random.default_rng(0).random(200).round(3).cumsum()
    frame = pd.DataFrame(
        {"counter": 54_321_000 + steps, "volt": 230 + steps % 9, "cents": (1e4 * steps).round(2)}, times
    )
    frame["exact"] = 2.0**30 + 128 * np.arange(200)
    frame["constant"] = 0.1
    frame.to_csv(tmp_path / "meter.csv")
    expected = "single precision keeps about seven digits; subtract an offset from them to keep more."
    for source in (frame, tmp_path / "meter.csv"):
        noted = [note for note in read(source).findings if "single precision" in note]
        assert noted == [f"The readings of column 'counter' were rounded: {expected}"]
    noted = [note for note in read(frame.to_numpy()).findings if "single precision" in note]
    assert noted == [f"The readings of channel 'channel_1' were rounded: {expected}"]
    assert any("'counter'" in note for note in read(frame, targets=["volt"], covariates=["counter"]).findings)


def test_arrays() -> None:
    panel = np.arange(24, dtype=np.float64).reshape(2, 4, 3)
    panel[0, 1, 2] = np.nan
    series = read(panel)
    assert series.meters == ("0", "1")
    np.testing.assert_array_equal(series.values.reshape(2, 4, 3), panel.astype(np.float32))
    assert any("hourly stamps" in note for note in series.notes)
    assert read(panel[0], targets=["a", "b", "c"]).targets == ("a", "b", "c")
    assert read(panel[0, :, 0]).values.shape == (4, 1)
    panel[1, 2, 0] = np.inf
    assert "infinite value at position (1, 2, 0)" in sentence(panel)
    assert "must have the shape" in sentence(np.zeros((2, 0)))
    assert "must contain real numbers" in sentence(np.array(["a"]))
    assert "2 targets are named" in sentence(np.zeros((3, 1)), targets=["a", "b"])


@pytest.mark.parametrize("remarks", [39, 41, 300])
def test_many_lines_of_remarks(tmp_path: Path, remarks: int) -> None:
    text = "# exported\n" * remarks + "time,kwh\n2024-01-01 00:00,1\n2024-01-01 01:00,2\n"
    assert read(write(tmp_path, text)).values[:, 0].tolist() == [1.0, 2.0]
