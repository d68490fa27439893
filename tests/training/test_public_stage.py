"""The public stage in a run's folder is a model of simulated homes, whatever else may lie there."""

import shutil
from pathlib import Path

import pytest

from tamedit.data.simulate import simulate
from tamedit.errors import UserError
from tamedit.model.bounds import Bounds
from tamedit.training.public import PLACE, simulated_start


def test_a_model_of_other_data_in_its_place_is_refused(smoke_run: Path, tmp_path: Path) -> None:
    """A model that was trained without privacy on a file must not pass as public because of where it lies."""
    shutil.copytree(smoke_run, tmp_path / PLACE)
    with pytest.raises(UserError, match="not of simulated homes"):
        simulated_start(tmp_path, simulate(hours=600), anchor="seasonal", bounds=Bounds(), operator="tanh")
