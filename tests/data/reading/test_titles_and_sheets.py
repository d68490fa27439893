"""Tables with a title above them, and workbooks with several sheets."""

from pathlib import Path

import pandas as pd
import pytest
from test_files_people_have import HOURS, KWH, rows, same, sentence, write

from tamedit.data.reader import read

TITLED = {
    "one padded line": ("Report,\n", "time,kwh", ""),
    "two padded lines": ("Report,\n,\n", "time,kwh", ""),
    "a customer and a blank line": ("Customer,17\n\n", "time,kwh", ""),
    "a customer and no blank line": ("Meter report,\nCustomer,17\n", "time,kwh", ""),
    "a name and a padded blank line": ("Customer,Smith\n,\n", "time,kwh", ""),
    "three columns": ("Report,,\nCustomer,17,\n", "time,kwh,flag", ",A"),
    "four columns": ("Customer,Meter,,\n17,4,,\n\n", "time,kwh,flag,unit", ",A,kWh"),
    "the same number of commas": ("Report of 2024,\nfrom,2024-01-01\nto,2024-12-31\n", "time,kwh", ""),
}


@pytest.mark.parametrize("name", TITLED)
def test_the_header_is_the_first_line_of_names_above_stamps_and_numbers(tmp_path: Path, name: str) -> None:
    above, header, more = TITLED[name]
    lines = rows().replace("\n", f"{more}\n")
    found = read(write(tmp_path / "titled.csv", f"{above}{header}\n{lines}"))
    same(found)
    assert found.targets == ("kwh",)
    assert any("above the header" in note for note in found.notes)


def test_a_row_of_units_is_no_header(tmp_path: Path) -> None:
    """The names above it stay the names, and the row is named."""
    said = sentence(
        write(tmp_path / "units.csv", "time,kwh,temperature\nUTC,kWh,celsius\n" + rows().replace("\n", ",5\n"))
    )
    assert "Row 2" in said


@pytest.mark.parametrize("above", [["Report for customer 17"], ["Report"], ["Report", "Customer"]])
def test_a_title_above_the_table_of_a_sheet(tmp_path: Path, above: list[str]) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for line in above:
        book.active.append([line])
    if len(above) > 1:
        book.active.append([])
    book.active.append(["time", "kwh"])
    for time, value in zip(HOURS, KWH, strict=True):
        book.active.append([time.to_pydatetime(), value])
    book.save(tmp_path / "titled.xlsx")
    found = read(tmp_path / "titled.xlsx")
    same(found)
    assert found.targets == ("kwh",)


def test_of_several_sheets_the_one_that_was_read_is_named(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    path, table = tmp_path / "two.xlsx", pd.DataFrame({"time": HOURS, "kwh": KWH})
    with pd.ExcelWriter(path) as book:
        table.to_excel(book, sheet_name="winter", index=False)
        table.to_excel(book, sheet_name="summer", index=False)
    found = read(path)
    same(found)
    assert "Only the first filled sheet of the workbook was read." in found.notes
    assert any("'winter' was read, and not 'summer'" in one for one in found.findings)
    assert "winter" not in " ".join(found.notes)  # names may be those of meters


def test_a_header_that_is_longer_than_a_field_may_be(tmp_path: Path) -> None:
    """Columns of 20,000 meters are one field of 140,000 letters where the separator is another."""
    names = ",".join(f"m{number:05}" for number in range(20_000))
    text = f"time,{names}\n" + "".join(f"{hour},{','.join(['1'] * 20_000)}\n" for hour in HOURS[:3])
    found = read(write(tmp_path / "wide.csv", text), columns="meters")
    assert len(found.meters) == 20_000
