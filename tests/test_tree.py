"""What the tree promises: no two files of one name, and nothing drawn or tabled outside of its room."""

from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "tamedit"
FILES = sorted(SOURCE.rglob("*.py"))


def test_no_file_name_occurs_twice() -> None:
    counts = Counter(path.name for path in FILES if path.name != "__init__.py")
    assert [name for name, count in counts.items() if count > 1] == []


def test_pictures_are_drawn_in_figures_and_tables_printed_by_formatting() -> None:
    for path in FILES:
        text, place = path.read_text(encoding="utf-8"), path.relative_to(SOURCE)
        assert "matplotlib" not in text or place.parts[0] == "figures", f"{place} draws"
        assert "rich.table" not in text or place.name == "formatting.py", f"{place} prints a table"
