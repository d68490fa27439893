"""A fleet spread over a local cluster of two workers: what one machine makes."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tamedit.data.loading import load_split
from tamedit.data.simulate import simulate
from tamedit.errors import UserError
from tamedit.evaluation import cluster
from tamedit.evaluation.evaluate import evaluate
from tamedit.tasks.model import Model

distributed = pytest.importorskip("distributed", reason="the optional extra `cluster` is not installed")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Two workers of one thread each, on the loopback alone."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None, memory_limit=0
        ) as workers,
        distributed.Client(workers) as found,
    ):
        yield found


@pytest.fixture(scope="module")
def folder(smoke_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The smoke model with public facts, so that it can generate homes."""
    model = Model.load(smoke_run, "cpu")
    facts = {"level": [1.0], "scale": [0.7], "origin": "public"}
    model.spec = model.spec.model_copy(update={"non_negative": True, "scaling": model.spec.scaling | facts})
    place = tmp_path_factory.mktemp("cluster") / "model"
    model.save(place)
    return place


def test_the_same_tables_and_scores_as_on_one_machine(client: Any, folder: Path, tmp_path: Path) -> None:
    model = Model.load(folder, "cpu")
    fleet = simulate(meters=4, hours=96, seed=5, outage_rate=0)
    values = fleet.values.copy()
    values[np.random.default_rng(0).random(values.shape) < 0.1] = np.nan
    fleet = replace(fleet, values=values)
    both = [
        (
            cluster.impute(client, folder, fleet, meters=2, samples=3, seed=1),
            model.impute(fleet, samples=3, seed=1),
        ),
        (
            cluster.generate(client, folder, homes=70, days=1, start="2024-03-01", seed=2),
            model.generate(homes=70, days=1, start="2024-03-01", seed=2),
        ),
    ]
    for spread, alone in both:
        pd.testing.assert_frame_equal(spread, alone, rtol=1e-4, atol=1e-5)
    one = tmp_path / "meter.csv"
    simulate(hours=1200, seed=3).frame().to_csv(one)
    _, split = load_split(str(one))
    asked = {"tasks": ("imputation", "forecast"), "windows": 4, "samples": 4, "resamples": 0}
    here, there = evaluate(model, split, **asked), cluster.evaluate(client, folder, split, **asked)  # type: ignore[arg-type]
    assert there.tasks == here.tasks
    assert there.words == here.words
    assert [row.method for row in there.rows] == [row.method for row in here.rows]
    for mine, theirs in zip(there.rows, here.rows, strict=True):
        assert mine.z["CRPS"] == pytest.approx(theirs.z["CRPS"], rel=1e-4)


def test_every_way_to_read_a_table_reaches_the_reader(client: Any, folder: Path) -> None:
    """Stamps with jitter, and −999 for what is missing: the options belong to reading, not to the parts."""
    rows = simulate(meters=2, hours=96, seed=5, outage_rate=0).frame().reset_index()
    rows["time"] += pd.to_timedelta(np.arange(len(rows)) % 20, unit="s")
    target = Model.load(folder, "cpu").spec.targets[0]
    rows.loc[rows.index[::9], target] = -999.0
    choices: dict[str, Any] = {"samples": 2, "seed": 1, "missing": -999, "round": "1min"}
    spread = cluster.impute(client, folder, rows, meters=1, **choices)
    assert (spread[f"{target}_filled"] == 1).sum() == len(rows.index[::9])
    alone = Model.load(folder, "cpu").impute(rows, **choices)
    pd.testing.assert_frame_equal(spread, alone, rtol=1e-4, atol=1e-5)


def test_the_options_of_reading_are_those_of_read() -> None:
    assert {"aggregate", "columns", "files", "missing", "resample", "round", "time", "id"} <= set(cluster.READING)
    assert "source" not in cluster.READING


def test_what_is_no_client_is_refused(folder: Path) -> None:
    with pytest.raises(UserError, match="no Dask client"):
        cluster.generate("tcp://127.0.0.1:1", folder, homes=3)
