"""The work of a fleet over several machines, by Dask (optional: `pip install tamedit[cluster]`).

    from distributed import Client
    client = Client("tcp://scheduler:8786")           # or Client(n_workers=2, threads_per_worker=1) on one machine
    filled = cluster.impute(client, "runs/model", "meters.parquet", samples=20)
    homes = cluster.generate(client, "runs/model", homes=10_000, days=7)
    scores = cluster.evaluate(client, "runs/model", split)

The work falls into parts that know nothing of each other: some meters (a random stream belongs to the name of a meter and a place
in it), a group of homes (their own numbers), a task of the evaluation (its own name). So the parts together are what one machine
makes, up to the rounding of products of large and small matrices.

The folder of the model must have the same path on every machine. Nothing here trains: what a private run may see stays in it.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from inspect import signature
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tamedit.data.loading import Data
from tamedit.data.reader import read
from tamedit.data.series import Series
from tamedit.data.split import Split
from tamedit.errors import UserError
from tamedit.evaluation.evaluate import Evaluation
from tamedit.evaluation.evaluate import evaluate as evaluate_here
from tamedit.evaluation.task_table import NAMES
from tamedit.statics import Given
from tamedit.tasks.fleet import GROUP, Fleet
from tamedit.tasks.fleet_table import asked, homes_table
from tamedit.tasks.model import Model

METERS = 10  # of a part
READING = [
    one.name for one in signature(read).parameters.values() if one.kind is one.KEYWORD_ONLY
]  # how to read a table


def impute(client: Any, folder: str | Path, data: Data, *, meters: int = METERS, **choices: Any) -> pd.DataFrame:
    """`Model.impute` of a fleet, so many `meters` in a part; `choices` are its arguments."""
    _check(client)
    reading = {name: choices.pop(name) for name in READING if name in choices}
    series = _model(str(folder)).read(data, **reading)
    numbers = range(len(series.meters))
    parts = [series.select(numbers[first : first + meters]) for first in range(0, len(numbers), meters)]
    tables = client.gather(client.map(_impute, parts, folder=str(folder), choices=choices, pure=False))
    return tables[0] if len(tables) == 1 else pd.concat(tables, ignore_index=tables[0].index.name is None)


def generate(
    client: Any,
    folder: str | Path,
    *,
    homes: int,
    start: str | None = None,
    days: int | None = None,
    level: tuple[float, float] | None = None,
    redraw: bool | None = None,
    static: Given | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """`Model.generate` of homes, a group of them in a part."""
    _check(client)
    spec = _model(str(folder)).spec
    fleet, population = asked(spec, homes, start, days, level, redraw, seed, static)
    groups = client.map(
        _generate, range(fleet.groups), fleet=fleet, population=population, folder=str(folder), pure=False
    )
    return homes_table(fleet, client.gather(groups), spec.targets, population=population)


def evaluate(
    client: Any, folder: str | Path, split: Split, *, tasks: Iterable[str] = NAMES, **choices: Any
) -> Evaluation:
    """`evaluate` of a model, a task in a part."""
    _check(client)
    there = client.scatter(split, broadcast=True)
    asked_for = [(name,) for name in tasks]
    found: list[Evaluation] = client.gather(
        client.map(_evaluate, asked_for, folder=str(folder), split=there, choices=choices, pure=False)
    )
    return replace(
        found[0],
        rows=tuple(chain.from_iterable(one.rows for one in found)),
        words=dict(chain.from_iterable(one.words.items() for one in found)),
        left_out=dict(chain.from_iterable(one.left_out.items() for one in found)),
    )


def _check(client: Any) -> None:
    try:
        from distributed import Client
    except ImportError as error:
        raise UserError("Work is spread by Dask, which is not installed: pip install 'tamedit[cluster]'.") from error
    if not isinstance(client, Client):
        raise UserError(f"client={client!r} is no Dask client; make one with distributed.Client(address).")


@lru_cache(maxsize=1)
def _model(folder: str) -> Model:
    """A worker loads the model once."""
    return Model.load(folder)


def _impute(part: Series, folder: str, choices: dict[str, Any]) -> pd.DataFrame:
    return _model(folder).impute(part, **choices)


def _generate(group: int, fleet: Fleet, population: Any, folder: str) -> np.ndarray:
    until = replace(fleet, homes=min((group + 1) * GROUP, fleet.homes))
    return next(iter(_model(folder).homes(until, population, skip=group)))


def _evaluate(tasks: tuple[str, ...], folder: str, split: Split, choices: dict[str, Any]) -> Evaluation:
    return evaluate_here(_model(folder), split, tasks=tasks, **choices)
