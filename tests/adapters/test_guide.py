"""The blocks of docs/coming-from.md that need a library of the adapters. `tests/test_docs.py` runs the others."""

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "coming-from.md"
BLOCKS = {
    found[1]: block
    for block in re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), flags=re.DOTALL)
    if (found := re.match(r"# not run: needs (\w+)\n", block))
}


def test_there_are_two() -> None:
    assert set(BLOCKS) == {"gluonts", "sktime"}


@pytest.mark.parametrize("library", BLOCKS)
def test_the_guide_runs(library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(library, reason=f"{library} is not installed; `make test-adapters` installs it")
    monkeypatch.chdir(tmp_path)
    made = {"__name__": "documentation"}
    exec(compile(BLOCKS[library], f"{GUIDE.name}, {library}", "exec"), made)
    made_last = {"gluonts": "predictor", "sktime": "bands"}[library]
    assert made_last in made
