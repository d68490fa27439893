"""What the tests of both packages share: one thread, small trained models, real data where it is, the command line."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import settings
from jaxtyping import install_import_hook

from support import Answer, Run

torch.set_num_threads(1)
settings.register_profile("untimed", deadline=None)  # time is measured in benchmarks
settings.load_profile("untimed")
# Shapes in signatures are checked here and nowhere else: wrong ones fail at the border, and users pay nothing.
install_import_hook(["tamedit.windows", "tamedit.model", "tamedit.diffusion"], "beartype.beartype")

SMOKE_HOURS, SMOKE_WINDOW, SMOKE_STEPS = 1200, 48, 6


def train_smoke(folder: Path) -> None:
    """A run of a few steps on a short simulated meter, as `tamedit train` would leave it."""
    from tamedit.data.loading import load_split
    from tamedit.data.simulate import simulate
    from tamedit.runs.recipe import make_config
    from tamedit.training.run import train

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


@pytest.fixture(scope="module")
def small_pool() -> Iterator[None]:
    """Synthetic homes begin from a pool of 96 simulated homes in the place of 1,024."""
    from tamedit.runs import simulated_pool

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulated_pool, "POOL", 96)
        yield


@pytest.fixture(scope="module")
def remembered() -> Any:
    """ε of one and the same ledger is computed once, not for every manipulation of another file."""
    from tamedit.privacy import entries

    original = entries.epsilon
    patch = pytest.MonkeyPatch()

    @lru_cache
    def once(mechanisms: Any, delta: float, k: int, neighbour: Any, with_rdp: bool) -> Any:
        return original(list(mechanisms), delta, k, neighbour, with_rdp=with_rdp)

    patch.setattr(entries, "epsilon", lambda m, d, k, n, with_rdp=True: once(tuple(m), d, k, n, with_rdp))
    yield
    patch.undo()


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: object) -> Answer:
        from tamedit.cli.main import main

        monkeypatch.setattr(sys, "argv", ["tamedit", *(str(argument) for argument in arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return Answer(int(ended.value.code or 0), out, err)

    return call


@pytest.fixture
def mistake(run: Run) -> Callable[..., str]:
    """Run a command that must fail in the right way; its sentence."""

    def call(*arguments: object) -> str:
        code, _, err = run(*arguments)
        assert code == 2, err
        lines = err.strip().splitlines()
        assert len(lines) == 1, err
        assert lines[0].startswith("tamedit: ")
        assert lines[0].endswith(".")
        return lines[0].removeprefix("tamedit: ")

    return call


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `plain`, `vanilla` and `aware`, trained on `meter.csv`."""
    from tamedit.data.loading import load_split
    from tamedit.data.simulate import simulate
    from tamedit.privacy.settings import Privacy
    from tamedit.runs.config import Speed
    from tamedit.runs.recipe import make_config
    from tamedit.training.run import train

    place = tmp_path_factory.mktemp("runs")
    meter = place / "meter.csv"
    simulate(hours=900, seed=3).frame().to_csv(meter)
    series, split = load_split(str(meter))
    papers = Privacy(noise_multiplier=0.1, unit="window", layout="overlapping", test_only=True)
    for name, privacy, bounds in (("plain", None, "off"), ("vanilla", papers, "off"), ("aware", papers, "medium")):
        config = make_config(
            series,
            str(meter),
            scale="smoke",
            steps=10,
            window=24,
            size="tiny",
            privacy=privacy,
            bounds=bounds,
            batch_size=16,
        )
        train(split, config, place / name, speed=Speed(threads=1, log_every=2, diagnose_every=1))
    return place
