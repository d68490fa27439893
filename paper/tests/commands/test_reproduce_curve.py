"""`tamedit reproduce curve`: the page of the ε curve, and not that of the paper."""

from pathlib import Path

import pytest

from support import Run


@pytest.mark.parametrize("what", ["curve", "curve:fleet", "heavy"])
def test_the_page_of_the_curve(what: str, run: Run, tmp_path: Path) -> None:
    answer = run("reproduce", what, "--tables", "--results", str(tmp_path / "results"), "--out", str(tmp_path / "page"))
    assert answer.code == 0, answer.err
    assert [path.name for path in (tmp_path / "page").iterdir()] == ["private-utility.md"]


def test_an_unknown_panel_is_one_sentence(run: Run, tmp_path: Path) -> None:
    answer = run("reproduce", "curve:moon", "--results", str(tmp_path / "results"))
    assert answer.code == 2
    assert "choose one of: curve, curve:ideal, curve:fleet, heavy" in answer.err
    assert len(answer.err.strip().splitlines()) == 1


def test_a_model_without_a_seed_is_scored_once(run: Run, tmp_path: Path) -> None:
    answer = run("reproduce", "curve", "--print-commands", "--seeds", "3", "--results", str(tmp_path / "results"))
    lines = answer.out.splitlines()
    assert len(lines) == 35 * 3 + 5
    assert sum("/untuned/" in line for line in lines) == 5
