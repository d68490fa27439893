"""Findings of two tiny runs, made once: one without privacy, one with, and with hostile names."""

from collections import defaultdict
from pathlib import Path

import pytest
from reading import HOSTILE

from tamedit.data.loading import load_split
from tamedit.data.simulate import simulate
from tamedit.privacy.settings import Privacy
from tamedit.report import write
from tamedit.report.findings import Findings, find
from tamedit.report.write import html
from tamedit.runs.config import Speed
from tamedit.runs.recipe import make_config
from tamedit.training.run import train


def quick(run: Path, source: str | None = None) -> Findings:
    """Findings from a handful of windows."""
    return find(run, source=source, samples=20, windows=8, device="cpu")


@pytest.fixture(scope="session")
def longer(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A meter whose test part has room for windows that do not overlap: those of the smoke run's own do."""
    path = tmp_path_factory.mktemp("longer") / "meter.csv"
    simulate(meters=1, hours=3200, seed=7).frame().to_csv(path)
    return str(path)


@pytest.fixture(scope="session")
def plain(smoke_run: Path, longer: str) -> Findings:
    return quick(smoke_run, longer)


@pytest.fixture(scope="session")
def plain_page(plain: Findings) -> str:
    return html(plain)


@pytest.fixture(scope="session")
def private_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of three private steps on meters and a column whose names are markup."""
    folder = tmp_path_factory.mktemp("private")
    table = simulate(meters=2, hours=900, seed=5).frame()
    table = table.rename(columns={table.columns[-1]: HOSTILE})
    table.iloc[:, 0] = table.iloc[:, 0].map({name: f"<b>{name}</b>" for name in table.iloc[:, 0].unique()})
    meter = folder / "a&b<i>.csv"
    table.to_csv(meter, index=False)
    series, split = load_split(str(meter))
    privacy = Privacy(noise_multiplier=2.0, unit="day", delta=1e-5)
    config = make_config(series, str(meter), scale="smoke", steps=3, window=24, size="tiny", privacy=privacy)
    train(split, config, folder / "run $x$ <u>", speed=Speed(threads=1, log_every=1, diagnose_every=1))
    return folder / "run $x$ <u>"


@pytest.fixture(scope="session")
def private(private_run: Path) -> Findings:
    return quick(private_run)


@pytest.fixture(scope="session")
def private_page(private: Findings) -> str:
    return html(private)


@pytest.fixture
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of words alone: figures are left blank."""
    monkeypatch.setattr(write, "draw", lambda found: defaultdict(lambda: "data:,"))
