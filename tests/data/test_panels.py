"""Converters of public panels on miniatures in the publishers' formats; each is then read as a user would."""

import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tamedit.data.convert import convert
from tamedit.data.reader import read
from tamedit.data.series import Series
from tamedit.errors import UserError


def converted(name: str, raw: Path) -> Series:
    out = raw.parent / f"{name}-made.parquet"
    convert(name, raw, out)
    return read(out)


def stamps(first: str, count: int, step: str) -> pd.DatetimeIndex:
    return pd.date_range(first, periods=count, freq=step)


def test_london(tmp_path: Path) -> None:
    """Two files cut one meter; a row appears twice; a null row lies off the half hour."""
    folder = tmp_path / "LCL"
    folder.mkdir()
    header = "LCLid,stdorToU,DateTime,KWH/hh (per half hour) ,Acorn,Acorn_grouped\n"

    def row(meter: str, time: str, value: str) -> str:
        return f"{meter},Std,{time}.0000000, {value} ,ACORN-A,Affluent\n"

    first = [row("MAC000002", "2012-10-12 00:30:00", "0.064"), row("MAC000002", "2012-10-12 01:00:00", "0")]
    second = [
        row("MAC000002", "2012-10-12 01:00:00", "0"),
        row("MAC000002", "2012-10-12 01:17:41", "Null"),
        row("MAC000002", "2012-10-12 01:30:00", "0.25"),
        row("MAC000003", "2012-10-12 00:30:00", "1"),
        row("MAC000003", "2012-10-12 01:00:00", "2"),
    ]
    (folder / "LCL-June2015v2_0.csv").write_text(header + "".join(first))
    (folder / "LCL-June2015v2_1.csv").write_text(header + "".join(second))
    (folder / "readme.csv").write_text("nothing\n")
    series = converted("london", folder)
    assert series.meters == ("london_MAC000002", "london_MAC000003")
    assert series.spoken_step == "30 minutes"
    np.testing.assert_allclose(series.values[:, 0], [0.064, 0, 0.25, 1, 2])
    assert any("repeats another row" in finding for finding in series.findings)


def test_london_as_the_blocks_of_kaggle(tmp_path: Path) -> None:
    rows = "LCLid,tstp,energy(kWh/hh)\nMAC1,2012-10-12 00:30:00.0000000, 0.5 \nMAC1,2012-10-12 01:00:00.0000000,Null\n"
    with zipfile.ZipFile(tmp_path / "blocks.zip", "w") as archive:
        archive.writestr(
            "halfhourly_dataset/block_0.csv",
            rows + "MAC1,2012-10-12 01:30:00.0000000, 0.75 \n" + "MAC1,2012-10-12 02:00:00.0000000, 1 \n",
        )
    series = converted("london", tmp_path / "blocks.zip")
    np.testing.assert_array_equal(series.values[:, 0], np.float32([0.5, np.nan, 0.75, 1]))


@pytest.mark.parametrize(("separator", "comma", "kwh"), [(";", ",", "kWh"), (",", ".", "KWh")])
def test_fluvius(tmp_path: Path, separator: str, comma: str, kwh: str) -> None:
    names = (
        f"EAN_ID;Datum;Datum_Startuur;Volume_Afname_{kwh};Volume_Injectie_{kwh};Warmtepomp_Indicator;Contract_Categorie"
    )
    lines = [names.replace(";", separator)]
    for meter in (1, 2):
        for place, time in enumerate(stamps("2024-03-31T00:30", 4, "15min")):
            cells = (
                meter,
                "2024-03-31",
                f"{time.isoformat()}.000Z",
                f"0{comma}{meter}{place}",
                f"0{comma}0",
                1,
                "Residentieel",
            )
            lines.append(separator.join(map(str, cells)))
    path = tmp_path / "P6269_1_50_DMK_Sample_Elek.csv"
    path.write_text("\n".join(lines) + "\n")
    series = converted("fluvius", path)
    assert series.meters == ("fluvius_1", "fluvius_2")
    assert str(series.times.tz) == "UTC"
    np.testing.assert_allclose(series.values[:, 0], [0.10, 0.11, 0.12, 0.13, 0.20, 0.21, 0.22, 0.23], rtol=1e-6)


def test_goiener(tmp_path: Path) -> None:
    folder = tmp_path / "imp-pre"
    folder.mkdir()
    for meter in ("a" * 64, "b" * 64):
        rows = ["timestamp,kWh,imputed"]
        rows += [f"{time},{0.5 + place},{int(place == 1)}" for place, time in enumerate(stamps("2019-01-01", 4, "h"))]
        (folder / f"{meter}.csv").write_text("\n".join(rows))
    series = converted("goiener", folder)
    assert series.meters == ("goiener_" + "a" * 64, "goiener_" + "b" * 64)
    np.testing.assert_array_equal(series.values[:4, 0], np.float32([0.5, np.nan, 2.5, 3.5]))


def test_heapo(tmp_path: Path) -> None:
    folder = tmp_path / "15min"
    folder.mkdir()
    header = (
        "Household_ID;Group;AffectsTimePoint;Timestamp;kWh_received_Total;kWh_received_HeatPump;kWh_received_Other\n"
    )
    rows = [
        f"1002;control;unknown;{time}+00:00;{value};;"
        for time, value in zip(stamps("2023-02-25", 3, "15min"), (1, 2, 4), strict=True)
    ]
    (folder / "1002.csv").write_text(header + "\n".join(rows))
    series = converted("heapo", folder)
    assert series.meters == ("heapo_1002",)
    assert str(series.times[0]) == "2023-02-25 00:00:00+00:00"
    np.testing.assert_array_equal(series.values[:, 0], [1, 2, 4])


def test_sgsc(tmp_path: Path) -> None:
    header = (
        "CUSTOMER_ID, READING_DATETIME, CALENDAR_KEY, EVENT_KEY, GENERAL_SUPPLY_KWH, CONTROLLED_LOAD_KWH, "
        "GROSS_GENERATION_KWH, NET_GENERATION_KWH, OTHER_KWH\n"
    )
    rows = [
        f"8143667,{time},1,2,0.5,{0.25 * place},0,0,0"
        for place, time in enumerate(stamps("2012-10-09 00:30", 3, "30min"))
    ]
    path = tmp_path / "CD_INTERVAL_READING_ALL_NO_QUOTES.csv"
    path.write_text(header + "\n".join(rows))
    np.testing.assert_allclose(converted("sgsc", path).values[:, 0], [0.5, 0.75, 1.0])


def test_ausgrid(tmp_path: Path) -> None:
    """The column 0:30 is the half hour from midnight on; the controlled load is added, solar production is not."""
    ends = [f"{(minute // 60) % 24}:{minute % 60:02d}" for minute in range(30, 1441, 30)]
    header = ",".join(["Customer", "Generator Capacity", "Postcode", "Consumption Category", "date", *ends])
    lines = ["Solar home electricity data from July 2010" + "," * 52, header + ",Row Quality"]
    for day in ("1-Jul-10", "2/07/2010"):
        for category, start in (("CL", 100), ("GC", 0), ("GG", 1000)):
            lines.append(",".join(["1", "3.78", "2076", category, day, *(str(start + at) for at in range(48)), ""]))
    path = tmp_path / "2010-2011 Solar home electricity data.csv"
    path.write_text("\r\n".join(lines))
    series = converted("ausgrid", path)
    assert str(series.times[0]) == "2010-07-01 00:00:00"
    np.testing.assert_array_equal(series.values[:, 0], np.tile(100 + 2 * np.arange(48), 2))


def test_what_is_not_the_panel(tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n")
    with pytest.raises(UserError, match="does not look like a file of 'london'"):
        convert("london", other, tmp_path / "out.parquet")
    with pytest.raises(UserError, match="contains no file of 'heapo'"):
        convert("heapo", tmp_path, tmp_path / "out.parquet")
    with pytest.raises(UserError, match="no data set 'paris' to convert"):
        convert("paris", other, tmp_path / "out.parquet")
    assert [one.name for one in tmp_path.iterdir()] == ["other.csv"]
