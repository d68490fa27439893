"""From a publisher's files to ours: the UCI household's minutes and the IDEAL homes' seconds become hours.

Panels that need no averaging are in `panels`.
"""

import re
from pathlib import Path
from typing import IO

import numpy as np
import pandas as pd

from tamedit.data.catalogue import SOURCES, source
from tamedit.data.panels import PANELS, convert_panel
from tamedit.data.raw_files import Progress, raw_files
from tamedit.errors import UserError
from tamedit.files import write_with

_HOUSEHOLD = re.compile(r"household_power_consumption\.txt$")
_HOME = re.compile(r"home(\d+)_.*_electric-mains_electric-combined\.csv(\.gz)?$")
_CHUNK = 4_000_000
_MINUTES_NEEDED = 30


def convert(name: str, raw: Path, out: Path, progress: Progress | None = None) -> None:
    """Write the data set `name` in our form to `out`, from what its publisher offers (`raw`: a file, zip or folder).

    `progress(done, megabytes)` hears of the megabytes that were read.
    """
    if name in PANELS:
        convert_panel(name, raw, out, progress)
        return
    if name not in SOURCES:
        raise UserError(
            f"There is no data set {name!r} to convert; choose one of household, ideal, {', '.join(PANELS)}."
        )
    wanted, raw = source(name), Path(raw)
    if wanted.url is not None:
        raise UserError(f"{name!r} needs no conversion; run: tamedit data fetch {name}")
    if not raw.exists():
        raise UserError(f"There is no {raw}; get {wanted.origin}.")
    if name == "household":
        hourly = household_hours(raw, progress)
        write_with(Path(out), lambda path: hourly.to_csv(path, index=False))
    else:
        panel = ideal_hours(raw, progress)
        write_with(Path(out), lambda path: panel.to_parquet(path, index=False))


def household_hours(raw: Path, progress: Progress | None = None) -> pd.DataFrame:
    """Columns timestamp and kwh: the mean of Global_active_power (kW) over the minutes of an hour that have a reading.

    A mean power of p kW over an hour is an energy of p kWh. An hour without any reading is left empty.
    """
    columns = ["Date", "Time", "Global_active_power"]
    files = raw_files(raw, _HOUSEHOLD, progress, whatever_name=True)
    _, file = next(files, ("", None))
    if file is None:
        raise UserError(f"{raw} contains no file {_HOUSEHOLD.pattern!r}; give the file itself.")
    try:
        table = pd.read_csv(file, sep=";", usecols=columns, na_values=["?"], low_memory=False)
        stamps = pd.to_datetime(table["Date"] + " " + table["Time"], format="%d/%m/%Y %H:%M:%S")
        power = pd.Series(table["Global_active_power"].to_numpy(dtype=np.float64), index=pd.DatetimeIndex(stamps))
    except (ValueError, KeyError, UnicodeDecodeError, pd.errors.ParserError) as error:
        raise UserError(
            f"{raw} is not UCI's household_power_consumption.txt (semicolons; columns {', '.join(columns)}); get "
            f"{source('household').origin}."
        ) from error
    hourly = power.resample("h").mean().round(6)
    return hourly.rename_axis("timestamp").rename("kwh").reset_index()


def ideal_hours(raw: Path, progress: Progress | None = None) -> pd.DataFrame:
    """Columns client, timestamp and value (kVA): hourly means of every home's mains; hours without readings are absent.

    `raw` is a folder or zip with one file per home, homeNNN_…_electric-mains_electric-combined.csv (or .csv.gz): rows of
    stamp and apparent power in VA, about one per second, without a header. Seconds are averaged to minutes and minutes to
    hours; an hour counts if at least half of its minutes have a reading.
    """
    homes = []
    for name, file in raw_files(raw, _HOME, progress):
        try:
            hourly = _home_hours(file, compressed=name.endswith(".gz"))
        except (ValueError, OSError, EOFError, UnicodeDecodeError, pd.errors.ParserError) as error:
            raise UserError(
                f"{name} in {raw} does not contain rows of time stamp and power; download it again."
            ) from error
        match = _HOME.search(name)
        assert match is not None  # nothing else was asked for
        homes.append(hourly.assign(client=f"ideal_home{match[1]}"))
    if not homes:
        raise UserError(
            f"{raw} contains no homeNNN_…_electric-mains_electric-combined.csv(.gz); give the folder or zip with the "
            f"sensor readings: {source('ideal').origin}."
        )
    panel = pd.concat(homes, ignore_index=True)
    return panel.assign(client=panel["client"].astype("category"))[["client", "timestamp", "value"]]


def _home_hours(file: IO[bytes], compressed: bool) -> pd.DataFrame:
    """Hourly means of one home; read in pieces, because a home has tens of millions of seconds."""
    minutes = []
    pieces = pd.read_csv(
        file,
        header=None,
        names=["timestamp", "value"],
        dtype={"value": np.float64},
        chunksize=_CHUNK,
        compression="gzip" if compressed else None,
    )
    for piece in pieces:
        stamps = pd.to_datetime(piece["timestamp"]).dt.floor("min")
        minutes.append(piece["value"].groupby(stamps.to_numpy()).agg(["sum", "count"]))
    merged = pd.concat(minutes).groupby(level=0).sum()
    merged = merged[merged["count"] > 0]
    mean = (merged["sum"] / merged["count"]).groupby(merged.index.floor("h")).agg(["mean", "count"])
    mean = mean[mean["count"] >= _MINUTES_NEEDED]
    kilo = (mean["mean"] / 1000).round(3).astype(np.float32)
    return pd.DataFrame({"timestamp": mean.index, "value": kilo.to_numpy()})
