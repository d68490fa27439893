"""What the tree promises: no two files of one name, one pass through the rooms, nothing drawn or tabled outside its room."""

import ast
import re
import runpy
from collections import Counter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "tamedit"
MOST_CHANGES = 20  # of room, by the first touch of each file
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
FILES = sorted(SOURCE.rglob("*.py"))


def test_no_file_name_occurs_twice() -> None:
    counts = Counter(path.name for path in FILES if path.name != "__init__.py")
    assert [name for name, count in counts.items() if count > 1] == []


def test_a_private_run_goes_through_the_rooms_in_one_pass(capsys: pytest.CaptureFixture[str]) -> None:
    """`python benchmarks/rooms.py` prints the order, for whoever makes this fail."""
    rooms = runpy.run_path(str(SOURCE.parents[1] / "benchmarks" / "rooms.py"))
    found = [room for room, _ in rooms["found_stays"]()]
    assert found[0] == "cli"
    assert set(found) == {"cli", "runs", "privacy", "training", "data", "model", "windows", "diffusion"}
    assert len(found) - 1 <= MOST_CHANGES


def flags_in(text: str) -> list[str]:
    """The flags (--word) in the string constants of a module, docstrings among them."""
    constants = (node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant))
    return [flag for one in constants if isinstance(one, str) for flag in FLAG.findall(one)]


def test_no_flag_stands_outside_of_the_command_line() -> None:
    planted = 'def fit():\n    """See --epsilon."""\n    raise ValueError(f"give --out-dir {1}, not ---- or a--b")\n'
    assert flags_in(planted) == ["--epsilon", "--out-dir"]
    for path in FILES:
        place = path.relative_to(SOURCE)
        if place.parts[0] != "cli":
            assert flags_in(path.read_text(encoding="utf-8")) == [], f"{place} speaks of flags"


def test_pictures_are_drawn_in_figures_and_tables_printed_by_formatting() -> None:
    for path in FILES:
        text, place = path.read_text(encoding="utf-8"), path.relative_to(SOURCE)
        assert "matplotlib" not in text or place.parts[0] == "figures", f"{place} draws"
        assert "rich.table" not in text or place.name == "formatting.py", f"{place} prints a table"
