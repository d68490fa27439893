"""A tiny model behind a running server, and a series to ask about."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from live_server import Live, listening

from tamedit.data.simulate import simulate
from tamedit.serve.served import Served, load_served


@pytest.fixture(scope="session")
def served(smoke_run: Path) -> Served:
    return load_served(str(smoke_run))


@pytest.fixture(scope="session")
def live(served: Served) -> Iterator[Live]:
    with listening(served, upload_bytes=2_000_000, read_seconds=2.0) as found:
        yield found


@pytest.fixture(scope="session")
def start(served: Served) -> Callable[..., Any]:
    """Starts a server with other settings."""
    return lambda **settings: listening(served, **settings)


@pytest.fixture(scope="session")
def frame() -> pd.DataFrame:
    """Ten days of hours, nothing missing."""
    series = simulate(hours=240, seed=11, outage_rate=0.0)
    return replace(series, targets=("kwh",)).frame()


@pytest.fixture(scope="session")
def points(frame: pd.DataFrame) -> dict[str, Any]:
    """The same as it is sent."""
    return {"times": [time.isoformat() for time in frame.index], "values": {"kwh": frame["kwh"].tolist()}}
