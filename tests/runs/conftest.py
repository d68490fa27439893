"""Runs and a release that are made once for the tests of release, verification and signature."""

import shutil
from pathlib import Path

import pytest

from released_runs import made
from tamedit.privacy.entries import read
from tamedit.privacy.ledger import Ledger
from tamedit.runs.release import release


@pytest.fixture(scope="module")
def place(remembered: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("releases")


@pytest.fixture(scope="module")
def own(place: Path) -> Path:
    return made(place / "run")


@pytest.fixture(scope="module")
def plain(place: Path) -> Path:
    return made(place / "plain", private=False)


@pytest.fixture(scope="module")
def released(own: Path, place: Path) -> Path:
    release(own, place / "out", curator="Müller & <b>Söhne</b>")
    return place / "out"


@pytest.fixture(scope="module")
def other_ledger(own: Path, place: Path) -> bytes:
    """The ledger of another run with the same plan but for a little more noise."""
    segment = read(own).segments[-1]
    plan = segment.plan.model_copy(update={"noise_multiplier": 3.1})
    with Ledger.open(place / "other", plan, segment.contributions, facts=segment.facts, data=segment.data) as ledger:
        for left in (3, 2, 1):
            ledger.take(left)
    return (place / "other" / "ledger.jsonl").read_bytes()


@pytest.fixture
def copy(released: Path, tmp_path: Path) -> Path:
    return shutil.copytree(released, tmp_path / "copy")
