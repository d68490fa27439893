"""What tests share: one thread, one small trained model, real data where it is."""

import json
import os
from pathlib import Path

import pytest
import torch
from jaxtyping import install_import_hook

torch.set_num_threads(1)
# Shapes in signatures are checked here and nowhere else: wrong ones fail at the border, and users pay nothing.
install_import_hook(["tamedit.windows", "tamedit.model", "tamedit.diffusion"], "beartype.beartype")

SMOKE_HOURS, SMOKE_WINDOW, SMOKE_STEPS = 1200, 48, 6


def train_smoke(folder: Path) -> None:
    """A run of a few steps on a short simulated meter, as `tamedit train` would leave it."""
    from tamedit.data.simulate import simulate
    from tamedit.tasks.fit import load_split
    from tamedit.training.fit import train
    from tamedit.training.recipe import make_config

    folder.mkdir(parents=True, exist_ok=True)
    meter = folder / "meter.csv"
    simulate(hours=SMOKE_HOURS, seed=3).frame().to_csv(meter)
    series, split = load_split(str(meter))
    config = make_config(series, str(meter), scale="smoke", steps=SMOKE_STEPS, window=SMOKE_WINDOW)
    train(split, config, folder / "run")


@pytest.fixture(scope="session")
def smoke_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny trained model (its data is `../meter.csv`); made once, also with several test processes."""
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if os.environ.get("PYTEST_XDIST_WORKER") else own
    place, made = shared / "smoke", shared / "smoke.json"
    from filelock import FileLock

    with FileLock(str(shared / "smoke.lock")):
        if not made.exists():
            train_smoke(place)
            made.write_text(json.dumps({"run": str(place / "run")}))
    return place / "run"


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of the named data sets; tests that need it skip where it is not."""
    name = os.environ.get("TAMEDIT_DATA")
    if not name or not Path(name).is_dir():
        pytest.skip("TAMEDIT_DATA does not name a folder with the real data sets")
    return Path(name)
