"""A run of the engine `evolution` through the request: folder, ledger, resuming, refusals."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tamedit.data.simulate import simulate
from tamedit.errors import UserError
from tamedit.privacy.entries import read
from tamedit.privacy.settings import Privacy
from tamedit.runs.privacy_page import PRIVACY
from tamedit.runs.release import release
from tamedit.runs.request import TrainRequest
from tamedit.training.private.evolution import POPULATION, Population
from tamedit.training.requested import run_request

ARGUMENTS = {"reading": {"id": "meter"}, "engine": "evolution"}


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return simulate(12, 24 * 60, seed=2, start="2024-01-01").frame()


def request(out: Path, unit: str = "series", **more: object) -> TrainRequest:
    privacy = Privacy(epsilon=3, unit=unit, test_only=True)
    return TrainRequest(**({"out": out, "privacy": privacy} | ARGUMENTS | more))


@pytest.mark.parametrize("unit", ["series", "week"])
def test_a_run_stays_within_its_budget_and_can_be_repeated(table: pd.DataFrame, tmp_path: Path, unit: str) -> None:
    for name in ("one", "two"):
        _, outcome = run_request(table, request(tmp_path / name, unit))
        assert outcome.privacy is not None
    assert Population.load(tmp_path / "one") == Population.load(tmp_path / "two")
    record = read(tmp_path / "one")
    assert record.steps == 2
    assert 2.9 < record.epsilon(unit, 1e-5).value <= 3.0
    page = (tmp_path / "one" / PRIVACY).read_text()
    assert f"`{POPULATION}`" in page
    assert "model.safetensors" not in page, "there is no network"
    assert "| training | 2 | 1 |" in page


def test_a_finished_run_is_not_charged_again_and_a_lost_round_stays_paid(table: pd.DataFrame, tmp_path: Path) -> None:
    run_request(table, request(tmp_path))
    with pytest.raises(UserError, match="already contains a run"):
        run_request(table, request(tmp_path))
    with pytest.raises(UserError, match="no model to release; make homes with `tamedit generate`"):
        release(tmp_path, tmp_path / "out")
    before = Population.load(tmp_path)
    run_request(table, request(tmp_path, resume=True))
    assert read(tmp_path).steps == 2
    assert Population.load(tmp_path).homes == before.homes
    (tmp_path / POPULATION).unlink()
    with pytest.raises(UserError, match="spent on steps that a crash lost"):
        run_request(table, request(tmp_path, resume=True))
    assert read(tmp_path).steps == 2


def test_what_is_no_load_of_homes_is_refused_before_anything_is_charged(table: pd.DataFrame, tmp_path: Path) -> None:
    two = table.assign(other=1.0)
    with pytest.raises(UserError, match="one channel"):
        run_request(two, request(tmp_path / "run"))
    nothing = table.assign(kwh=np.nan)
    with pytest.raises(UserError):
        run_request(nothing, request(tmp_path / "run"))
    assert not (tmp_path / "run").exists()
    with pytest.raises(UserError, match="needs `privacy`"):
        TrainRequest(out=tmp_path, **ARGUMENTS)
