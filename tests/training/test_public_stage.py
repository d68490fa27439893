"""The public stage in a run's folder is a model of simulated homes, whatever else may lie there."""

import json
import shutil
from functools import partial
from pathlib import Path

import pytest

from tamedit.data.simulate import simulate
from tamedit.errors import UserError
from tamedit.model.bounds import Bounds
from tamedit.runs.config import Speed
from tamedit.training import public
from tamedit.training.public import PLACE, SOURCE, fleet, public_config, simulated_start

HOME = simulate(hours=600)
begin = partial(simulated_start, series=HOME, anchor="free", operator="tanh", speed=Speed(threads=1))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A public stage that takes a second."""
    homes = fleet(meters=30, weeks=3)
    monkeypatch.setattr(public, "fleet", lambda: homes)
    monkeypatch.setattr(public, "public_config", partial(public_config, steps=1, batch_size=2, window=24))


def test_a_model_of_other_data_in_its_place_is_refused(smoke_run: Path, tmp_path: Path, quick: None) -> None:
    """A model that was trained without privacy on a file must not pass as public because of where it lies, or by its name."""
    place = tmp_path / PLACE
    shutil.copytree(smoke_run, place)
    with pytest.raises(UserError, match="not of our simulated homes"):
        begin(tmp_path, bounds=Bounds())
    renamed = json.loads((place / "run.json").read_text()) | {"source": SOURCE}
    (place / "run.json").write_text(json.dumps(renamed))
    with pytest.raises(UserError, match="not of our simulated homes"):
        begin(tmp_path, bounds=Bounds())


def test_the_stage_is_found_again_with_the_same_settings_only(tmp_path: Path, quick: None) -> None:
    first = begin(tmp_path, bounds=Bounds())
    assert first.start.origin == "public"
    again = begin(tmp_path, bounds=Bounds())
    assert again.start == first.start
    assert first.start.digest in first.start.sentence
    with pytest.raises(UserError, match="with another network"):
        begin(tmp_path, bounds=Bounds(condition=1.0, scale=1.0, shift=1.0, gate=1.0))
