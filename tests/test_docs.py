"""The documentation is executed, and the command line's reference is what the command line says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = (ROOT / "docs", ROOT / "paper", ROOT / "paper" / "docs")
PAGES = sorted([ROOT / "README.md", *(page for folder in FOLDERS for page in folder.glob("*.md"))])


def blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)


RUNNABLE = [(page, number) for page in PAGES for number, block in enumerate(blocks(page)) if "# not run:" not in block]


@pytest.mark.parametrize(
    ("page", "number"), RUNNABLE, ids=[f"{page.relative_to(ROOT)}-{number}" for page, number in RUNNABLE]
)
def test_python_in_the_documentation_runs(
    page: Path, number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code = blocks(page)[number]
    assert code.strip()
    exec(compile(code, f"{page.name} block {number}", "exec"), {"__name__": "documentation"})


def test_there_is_something_to_run() -> None:
    assert RUNNABLE


def test_the_command_line_reference_is_current(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "typer", "tamedit.cli.main", "utils", "docs", "--name", "tamedit"]
    subprocess.run([*command, "--output", str(tmp_path / "cli.md")], check=True, capture_output=True, timeout=60)
    fresh, kept = (tmp_path / "cli.md").read_text(), (ROOT / "docs" / "cli.md").read_text()
    assert fresh == kept, "run `make docs`"


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"
