"""The two drop-in examples run, learn, and print what they promise."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_bounded_block_under_opacus():
    pytest.importorskip("opacus")
    before, after, epsilon = runpy.run_path(str(EXAMPLES / "opacus_drop_in.py"))["main"]()
    assert after < 0.8 * before
    assert 0 < epsilon < 20


def test_own_model_with_our_engine():
    before, after = runpy.run_path(str(EXAMPLES / "own_model_private.py"))["main"]()
    assert after < 0.5 * before


@pytest.mark.parametrize("name", ["opacus_drop_in.py", "own_model_private.py"])
def test_the_script_prints_its_result(name, capsys):
    pytest.importorskip("opacus")
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert "loss" in capsys.readouterr().out
