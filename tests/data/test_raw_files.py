"""How much of a publisher's files has been read is told as it is read, whatever they come in."""

import gzip
import re
import zipfile
from itertools import pairwise
from pathlib import Path

import pytest

from tamedit.data import raw_files as module
from tamedit.data.convert import convert
from tamedit.data.raw_files import raw_files
from tamedit.errors import UserError

HEADER = "LCLid,stdorToU,DateTime,KWH/hh (per half hour) ,Acorn,Acorn_grouped\n"
NAMES = ("LCL-June2015v2_0.csv", "LCL-June2015v2_1.csv")


def london(meter: int, days: int = 30) -> str:
    rows = [
        f"MAC{meter},Std,2012-10-{day + 1:02} {hour:02}:30:00.0000000, {hour / 7:.3f} ,ACORN-A,Affluent\n"
        for day in range(days)
        for hour in range(24)
    ]
    return HEADER + "".join(rows)


@pytest.fixture
def a_kilobyte_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MEGABYTE", 2**10)


def written(folder: Path, form: str) -> tuple[Path, int]:
    """Two files as a folder, an archive or a folder of compressed ones; and how many bytes there are to read."""
    folder.mkdir()
    texts = [london(meter).encode() for meter in (1, 2)]
    (folder / "readme.txt").write_bytes(b"x" * 10_000)
    if form == "zip":
        with zipfile.ZipFile(folder / "all.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in zip(NAMES, texts, strict=True):
                archive.writestr(f"London/{name}", text)
                archive.writestr(f"__MACOSX/London/{name}", text)
        return folder / "all.zip", sum(map(len, texts))
    packed = [gzip.compress(text) if form == "gz" else text for text in texts]
    for name, text in zip(NAMES, packed, strict=True):
        (folder / f"{name}{'.gz' if form == 'gz' else ''}").write_bytes(text)
    if form == "file":
        return folder / NAMES[0], len(packed[0])
    return folder, sum(map(len, packed))


@pytest.mark.parametrize("form", ["folder", "zip", "gz", "file"])
@pytest.mark.usefixtures("a_kilobyte_each")
def test_all_of_it_is_heard(tmp_path: Path, form: str) -> None:
    raw, size = written(tmp_path / "raw", form)
    silent, out, heard = tmp_path / "silent.parquet", tmp_path / "london.parquet", []
    convert("london", raw, silent)
    convert("london", raw, out, lambda done, there: heard.append((done, there)))
    assert out.read_bytes() == silent.read_bytes()
    done, there = zip(*heard, strict=True)
    assert set(there) == {-(-size // 2**10)}
    assert done[0] == 0
    assert done[-1] == there[0]
    assert len(done) > 2
    assert all(later > earlier for earlier, later in pairwise(done))


def test_it_is_heard_while_it_is_read(tmp_path: Path, a_kilobyte_each: None) -> None:
    (tmp_path / "a.csv").write_bytes(b"x" * 10_240)
    heard: list[tuple[int, int]] = []
    for name, file in raw_files(tmp_path, re.compile("csv"), lambda *told: heard.append(told)):
        assert (name, heard) == ("a.csv", [(0, 10)])
        assert file.read(3 * 2**10) == b"x" * 3 * 2**10
        assert 3 <= heard[-1][0] < 10
        file.read()
    assert heard[-1] == (10, 10)


def test_nothing_to_read_is_not_heard(tmp_path: Path) -> None:
    heard: list[tuple[int, int]] = []
    with pytest.raises(UserError, match="no file"):
        convert("london", tmp_path, tmp_path / "out.parquet", lambda *told: heard.append(told))
    assert heard == []
