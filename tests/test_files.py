"""Files are whole or absent."""

from pathlib import Path

import pytest

from tamedit.errors import UserError
from tamedit.files import replacing, write_text


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    place = tmp_path / "a.txt"
    write_text(place, "old")

    def fail(temporary: Path) -> None:
        temporary.write_text("half")
        raise RuntimeError("midway")

    with pytest.raises(RuntimeError, match="midway"), replacing(place) as temporary:
        fail(temporary)
    assert place.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_a_full_disk_is_one_sentence(tmp_path: Path) -> None:
    place = tmp_path / "a.txt"
    with pytest.raises(UserError, match=r"Cannot write .*a\.txt: No space left"), replacing(place):
        raise OSError(28, "No space left on device")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="choose a folder"):
        write_text(tmp_path / "file" / "a.txt", "text")


def test_files_are_readable_by_others_as_usual(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    write_text(tmp_path / "ours", "")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode
