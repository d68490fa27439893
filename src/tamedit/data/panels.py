"""Public panels of meters that people download: from the publishers' files to one table of meter, time and kWh.

Files are read and written in pieces, so that a panel of ten gigabytes needs no more memory than one of them. A time is that of
the beginning of its interval where the publisher says which end it is. An absent or null reading gives no row. Nothing is
cleaned beyond that: rows that appear twice, for one, are left to the reader.
"""

import gzip
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from tamedit.data.raw_files import Progress, raw_files
from tamedit.errors import UserError
from tamedit.files import write_with

ROWS = 1_000_000  # of a piece
_HALF_HOUR = pd.Timedelta(minutes=30)
_SCHEMA = ("meter", "time", "kwh")


@dataclass(frozen=True)
class Panel:
    """A public panel: where it comes from, and how a piece of its files becomes meter, time, kwh."""

    name: str
    origin: str
    files: re.Pattern[str]  # names of its files in a folder or archive
    tidy: Callable[[pd.DataFrame, str], pd.DataFrame]  # a piece as text, and the name of its file
    zone: str | None = None  # of its times; None: clock times without a zone
    title: int = 0  # lines above the header


def convert_panel(name: str, raw: Path, out: Path, progress: Progress | None = None) -> None:
    """Write a panel to the Parquet file `out` from what its publisher offers: a file, a zip archive or a folder.

    `progress(done, megabytes)` hears of the megabytes that were read.
    """
    panel, raw, out = PANELS[name], Path(raw), Path(out)
    if out.suffix.lower() != ".parquet":
        raise UserError(f"{out} must end in .parquet.")
    if not raw.exists():
        raise UserError(f"There is no {raw}; get {panel.origin}.")
    times = pa.timestamp("us", panel.zone)
    schema = pa.schema([("meter", pa.string()), ("time", times), ("kwh", pa.float32())])

    def write(path: Path) -> None:
        rows = 0
        with pq.ParquetWriter(path, schema) as writer:
            for piece in _pieces(panel, raw, progress):
                writer.write_table(pa.Table.from_pandas(piece[list(_SCHEMA)], schema=schema, preserve_index=False))
                rows += len(piece)
        if not rows:
            raise UserError(f"{raw} contains no readings of {name!r}; get {panel.origin}.")

    write_with(out, write)


def _pieces(panel: Panel, raw: Path, progress: Progress | None) -> Iterator[pd.DataFrame]:
    found = False
    for name, packed in raw_files(raw, panel.files, progress, whatever_name=True):
        found = True
        try:
            file = gzip.GzipFile(fileobj=packed) if name.endswith(".gz") else packed
            text = io.TextIOWrapper(file, encoding="utf-8-sig", errors="replace", newline="")
            for _ in range(panel.title):
                text.readline()
            header = text.readline()
            separator = max(",;\t", key=header.count)
            names = [one.strip().strip('"') for one in header.strip().split(separator)]
            pieces = pd.read_csv(
                text, sep=separator, names=names, dtype=str, chunksize=ROWS, index_col=False, keep_default_na=False
            )
            for piece in pieces:
                found_rows = panel.tidy(piece, name).dropna()
                yield found_rows.assign(
                    meter=f"{panel.name}_" + found_rows["meter"].astype(str)
                )  # 1002 alone is a number
        except (KeyError, ValueError, OSError, EOFError, pd.errors.ParserError) as error:
            raise UserError(
                f"{name} in {raw} does not look like a file of {panel.name!r} ({type(error).__name__}: {str(error)[:80]}); get "
                f"{panel.origin}."
            ) from error
    if not found:
        raise UserError(f"{raw} contains no file of {panel.name!r}; get {panel.origin}.")


def _column(piece: pd.DataFrame, *names: str) -> pd.Series:
    """The first column with one of these names, in any case of letters."""
    plain = {column.lower(): column for column in piece.columns}
    for name in names:
        if name.lower() in plain:
            return piece[plain[name.lower()]].str.strip()
    raise KeyError(f"no column {names[0]}")


def _number(texts: pd.Series) -> pd.Series:
    """Numbers with a decimal point or comma; Null and the like are missing."""
    return pd.to_numeric(texts.str.replace(",", ".", regex=False), errors="coerce").astype(np.float32)


def _london(piece: pd.DataFrame, name: str) -> pd.DataFrame:
    """Stamps off the half hour belong to rows without a reading."""
    time = pd.to_datetime(_column(piece, "DateTime", "tstp").str.slice(0, 19), format="%Y-%m-%d %H:%M:%S")
    energy = _number(_column(piece, "KWH/hh (per half hour)", "energy(kWh/hh)"))
    return pd.DataFrame(
        {"meter": _column(piece, "LCLid"), "time": time, "kwh": energy.where(time == time.dt.floor("30min"))}
    )


def _fluvius(piece: pd.DataFrame, name: str) -> pd.DataFrame:
    time = pd.to_datetime(_column(piece, "Datum_Startuur"), utc=True, format="ISO8601")
    return pd.DataFrame(
        {"meter": _column(piece, "EAN_ID"), "time": time, "kwh": _number(_column(piece, "Volume_Afname_kWh"))}
    )


def _goiener(piece: pd.DataFrame, name: str) -> pd.DataFrame:
    """A file per customer; readings that the publisher imputed are left out."""
    time = pd.to_datetime(_column(piece, "timestamp").str.slice(0, 19), format="ISO8601")
    energy = _number(_column(piece, "kWh"))
    if "imputed" in piece.columns:
        energy = energy.where(_number(_column(piece, "imputed")) == 0)
    return pd.DataFrame({"meter": name.partition(".")[0], "time": time, "kwh": energy})


def _heapo(piece: pd.DataFrame, name: str) -> pd.DataFrame:
    time = pd.to_datetime(_column(piece, "Timestamp"), utc=True, format="ISO8601")
    energy = _number(_column(piece, "kWh_received_Total"))
    return pd.DataFrame({"meter": _column(piece, "Household_ID"), "time": time, "kwh": energy})


def _sgsc(piece: pd.DataFrame, name: str) -> pd.DataFrame:
    """General supply and controlled load together."""
    time = pd.to_datetime(_column(piece, "READING_DATETIME"), format="ISO8601")
    energy = _number(_column(piece, "GENERAL_SUPPLY_KWH")) + _number(_column(piece, "CONTROLLED_LOAD_KWH")).fillna(0.0)
    return pd.DataFrame({"meter": _column(piece, "CUSTOMER_ID"), "time": time, "kwh": energy})


def _ausgrid(piece: pd.DataFrame, name: str) -> pd.DataFrame:
    """A row per customer, day and category, a column per half hour, named by its end. Consumption and controlled load together.

    Both rows of a day lie in one piece, since a year of the panel is smaller than a piece.
    """
    used = piece[_column(piece, "Consumption Category").isin(["GC", "CL"])]
    ends = [column for column in piece.columns if re.fullmatch(r"\d{1,2}:\d{2}", column)]
    if len(ends) != 48:
        raise ValueError(f"{len(ends)} columns of half hours")
    energy = pd.DataFrame({place: _number(used[column]) for place, column in enumerate(ends)})
    day = pd.to_datetime(_column(used, "date"), dayfirst=True, format="mixed")
    summed = energy.groupby([_column(used, "Customer"), day]).sum(min_count=1)
    long = summed.stack()
    meter, days, places = (long.index.get_level_values(level) for level in range(3))
    return pd.DataFrame({"meter": meter, "time": days + places.to_numpy() * _HALF_HOUR, "kwh": long.to_numpy()})


PANELS = {
    panel.name: panel
    for panel in (
        Panel(
            name="london",
            origin="the half-hourly files from https://data.london.gov.uk/dataset/smartmeter-energy-use-data-in-london-households",
            files=re.compile(r"^(LCL|CC_LCL|Power-Networks-LCL|block_\d+).*\.csv(\.gz)?$", re.IGNORECASE),
            tidy=_london,
        ),
        Panel(
            name="fluvius",
            origin="the quarter-hourly sample of digital electricity meters from https://opendata.fluvius.be",
            files=re.compile(r"\.csv(\.gz)?$", re.IGNORECASE),
            tidy=_fluvius,
            zone="UTC",
        ),
        Panel(
            name="goiener",
            origin="an archive of https://zenodo.org/records/7362094, unpacked (a CSV per customer)",
            files=re.compile(r"^[0-9a-f]{32,}\.csv(\.gz)?$", re.IGNORECASE),
            tidy=_goiener,
        ),
        Panel(
            name="heapo",
            origin="smart_meter_data/15min from https://zenodo.org/records/15056919",
            files=re.compile(r"^\d+\.csv$"),
            tidy=_heapo,
            zone="UTC",
        ),
        Panel(
            name="sgsc",
            origin="CD_INTERVAL_READING_ALL_NO_QUOTES.csv from https://data.gov.au (Smart-Grid Smart-City Customer Trial Data)",
            files=re.compile(r"^CD_INTERVAL_READING.*\.csv(\.gz)?$", re.IGNORECASE),
            tidy=_sgsc,
        ),
        Panel(
            name="ausgrid",
            origin="the solar home half-hour data from https://www.ausgrid.com.au (Data to share)",
            files=re.compile(r"Solar.*\.csv$", re.IGNORECASE),
            tidy=_ausgrid,
            title=1,
        ),
    )
}
