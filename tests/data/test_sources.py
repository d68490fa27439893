"""Named data sets: found, checked, converted; and the real files where they are."""

import gzip
import os
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tamedit.data import sources
from tamedit.data.clean import replace_negatives
from tamedit.errors import UserError

REAL = os.environ.get("TAMEDIT_DATA", "")


def needs(name: str) -> pytest.MarkDecorator:
    """Skip where the real file is not."""
    path = Path(REAL) / sources.SOURCES[name].file
    return pytest.mark.skipif(not (REAL and path.is_file()), reason=f"{path.name} is not under TAMEDIT_DATA")


@pytest.fixture
def empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No data anywhere: neither TAMEDIT_DATA nor the cache."""
    monkeypatch.setenv("TAMEDIT_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(sources, "cache_folder", lambda: tmp_path / "cache")
    return tmp_path


def test_catalogue_is_consistent() -> None:
    for name, source in sources.SOURCES.items():
        assert source.name == name
        assert len(source.sha256) == 64
        assert len(source.typical_level) == len(source.typical_scale)
        assert min(source.typical_scale) > 0
        assert source.window % 24 == 0


def test_unknown_name() -> None:
    with pytest.raises(UserError, match="no data set 'etth9'; choose one of etth1, ettm1, household, ideal"):
        sources.load("etth9")


@pytest.mark.parametrize("name", ["household", "ideal"])
def test_absent_files_that_are_fetched_by_hand(empty_home: Path, name: str) -> None:
    for call in (sources.find, sources.fetch, sources.load):
        with pytest.raises(UserError, match=f"not on this machine; get .*https://.*tamedit data convert {name}"):
            call(name)


def test_absent_ett_without_a_download(empty_home: Path) -> None:
    with pytest.raises(UserError, match="run: tamedit data fetch etth1"):
        sources.find("etth1")


def test_download_that_fails(empty_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pooch

    def offline(*_: object, **__: object) -> None:
        raise ConnectionError("no route to host")

    monkeypatch.setattr(pooch, "retrieve", offline)
    with pytest.raises(UserError, match=r"ETTh1.csv could not be downloaded .* check the network"):
        sources.fetch("etth1")

    def altered(*_: object, **__: object) -> None:
        raise ValueError("hash does not match")

    monkeypatch.setattr(pooch, "retrieve", altered)
    with pytest.raises(UserError, match="SHA-256 differs"):
        sources.fetch("etth1")


def test_download_that_works(empty_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pooch

    def retrieve(url: str, known_hash: str, fname: str, path: Path) -> str:
        assert url.endswith("ETT-small/ETTh1.csv")
        assert known_hash == "sha256:" + sources.SOURCES["etth1"].sha256
        Path(path).mkdir(parents=True)
        (Path(path) / fname).write_text("here")
        return str(path)

    monkeypatch.setattr(pooch, "retrieve", retrieve)
    assert sources.fetch("etth1") == empty_home / "data" / "ETTh1.csv"


def test_damaged_file(empty_home: Path) -> None:
    (empty_home / "cache").mkdir()
    (empty_home / "cache" / "ETTh1.csv").write_text("date,OT\n")
    with pytest.raises(UserError, match=r"is not the published ETTh1\.csv"):
        sources.load("etth1")


def test_convert_household(empty_home: Path) -> None:
    minutes = pd.date_range("2006-12-16 17:24", periods=60 * 5, freq="min")
    power = np.arange(len(minutes)) / 100
    lines = [
        f"{stamp:%d/%m/%Y;%H:%M:%S};{'?' if 36 <= i < 96 else f'{power[i]:.3f}'};0.1;240;18;0;0;0"
        for i, stamp in enumerate(minutes)
    ]
    header = "Date;Time;Global_active_power;Global_reactive_power;Voltage;Global_intensity;Sub_metering_1;a;b"
    raw = empty_home / "household_power_consumption.txt"
    raw.write_text("\n".join([header, *lines]))
    with zipfile.ZipFile(empty_home / "raw.zip", "w") as archive:
        archive.write(raw, raw.name)
    for given in (raw, empty_home / "raw.zip", empty_home):
        sources.convert("household", given, sources.place("household"))
        series = sources.load("household")
        assert series.times[0] == pd.Timestamp("2006-12-16 17:00")
        assert series.targets == ("kwh",)
        expected = [power[:36].mean(), np.nan, power[96:156].mean(), power[156:216].mean(), power[216:276].mean()]
        np.testing.assert_allclose(series.values[:5, 0], expected, rtol=1e-5)
    assert any("differs from our own conversion" in note for note in series.notes)


def test_convert_ideal(empty_home: Path) -> None:
    folder = empty_home / "sensors"
    folder.mkdir()
    seconds = pd.date_range("2017-01-01 10:00", periods=3 * 3600, freq="s")
    watts = np.repeat([100.0, 200.0, 300.0], 3600)
    kept = np.r_[0:3600, 3600:4200, 7200:10800]  # ten minutes are not enough for the second hour
    lines = "\n".join(f"{seconds[i]},{watts[i]:.0f}" for i in kept)
    (folder / "home047_hall1_sensor2_electric-mains_electric-combined.csv.gz").write_bytes(
        gzip.compress(lines.encode())
    )
    (folder / "home106_hall7_sensor9_electric-mains_electric-combined.csv").write_text(lines)
    (folder / "home106_hall7_sensor9_room_temperature.csv").write_text("not,electric\n")
    sources.convert("ideal", folder, sources.place("ideal"))
    series = sources.load("ideal")
    assert series.meters == ("ideal_home047", "ideal_home106")
    np.testing.assert_allclose(series.values[:, 0], [0.1, np.nan, 0.3] * 2)


def test_convert_mistakes(empty_home: Path) -> None:
    raw = empty_home / "other.txt"
    raw.write_text("a;b\n1;2\n")
    out = empty_home / "out.csv"
    with pytest.raises(UserError, match=r"is not UCI's household_power_consumption\.txt"):
        sources.convert("household", raw, out)
    with pytest.raises(UserError, match="needs no conversion"):
        sources.convert("etth1", raw, out)
    with pytest.raises(UserError, match="There is no"):
        sources.convert("ideal", empty_home / "nowhere", out)
    with pytest.raises(UserError, match="contains no homeNNN"):
        sources.convert("ideal", raw, out)
    bad = empty_home / "home001_x_electric-mains_electric-combined.csv"
    bad.write_text("when,what\n")
    with pytest.raises(UserError, match="download it again"):
        sources.convert("ideal", bad, out)
    assert not out.exists()


@needs("etth1")
def test_real_etth1() -> None:
    series = sources.load("etth1")
    split = sources.split("etth1", series)
    assert series.targets == ("HUFL", "HULL", "MUFL", "MULL", "LUFL", "LULL", "OT")
    assert [len(part) for part in (split.train, split.validation, split.test)] == [8640, 2880, 2880]
    assert not np.isnan(series.values).any()


@needs("ettm1")
def test_real_ettm1() -> None:
    split = sources.split("ettm1", sources.load("ettm1"))
    assert [len(part) for part in (split.train, split.validation, split.test)] == [34_560, 11_520, 11_520]
    assert split.train.period == 96


@needs("household")
def test_real_household() -> None:
    series = sources.load("household")
    assert len(series) == 34_589
    assert np.isnan(series.values).sum() == 421
    np.testing.assert_array_equal(replace_negatives(series).values, series.values)
    private = sources.load("household", private=True)
    np.testing.assert_array_equal(private.values, series.values)
    assert private.reach == 0
    assert series.reach == len(series), "where a reading is negative, others far away may stand for it"
    split = sources.split("household", series)
    assert len(split.train) + len(split.validation) + len(split.test) == len(series)


@needs("ideal")
def test_real_ideal() -> None:
    series = sources.load("ideal")
    assert len(series.meters) == 254
    assert (~np.isnan(series.values)).sum() == 1_529_350
    lengths = np.add.reduceat((~np.isnan(series.values[:, 0])).astype(int), series.offsets[:-1])
    assert (lengths.min(), lengths.max()) == (401, 15_497)
    split = sources.split("ideal", series)
    assert (len(split.train.meters), len(split.test.meters)) == (200, 54)
    assert not set(split.train.meters) & set(split.test.meters)


@pytest.mark.parametrize("name", [pytest.param(name, marks=needs(name)) for name in sources.SOURCES])
def test_public_facts_are_of_the_right_size(name: str) -> None:
    """ETT's are those of its public training rows; a home's are national averages, right within a factor of three."""
    values = sources.split(name, sources.load(name)).train.values
    source = sources.SOURCES[name]
    level, scale = np.nanmean(values, axis=0), np.nanstd(values, axis=0)
    if name.startswith("ett"):
        assert (np.abs(level - source.typical_level) < 0.1 * scale).all()
        assert (np.abs(np.log(scale / source.typical_scale)) < 0.1).all()
    else:
        assert (np.abs(np.log(level / source.typical_level)) < np.log(3)).all()
        assert (np.abs(np.log(scale / source.typical_scale)) < np.log(3)).all()
