"""`tamedit reproduce curve`: the page of the ε curve, and not that of the paper."""

from pathlib import Path

import pytest

from support import Run


def test_the_page_of_the_curve(run: Run, tmp_path: Path) -> None:
    answer = run(
        "reproduce", "curve", "--tables", "--results", str(tmp_path / "results"), "--out", str(tmp_path / "page")
    )
    assert answer.code == 0, answer.err
    assert [path.name for path in (tmp_path / "page").iterdir()] == ["private-utility.md"]


@pytest.mark.parametrize("what", ["curve:fleet", "heavy"])
def test_what_is_no_curve_is_one_sentence(what: str, run: Run, tmp_path: Path) -> None:
    answer = run("reproduce", what, "--results", str(tmp_path / "results"))
    assert answer.code == 2
    assert len(answer.err.strip().splitlines()) == 1


@pytest.mark.usefixtures("data_folder")
def test_a_model_without_a_seed_is_scored_once(run: Run, tmp_path: Path) -> None:
    answer = run("reproduce", "curve", "--print-commands", "--seeds", "3", "--results", str(tmp_path / "results"))
    lines = answer.out.splitlines()
    assert len(lines) == 13 * 3 + 2
    assert sum("/untuned/" in line for line in lines) == 2
