"""How long a fleet takes, and how much memory: `python benchmarks/homes.py [--homes 500] [--days 365] [--redraw]`.

Writes homes of a stated population to a Parquet file, as `tamedit generate` does, in a process of its own, and the same homes by
the simulator alone in another. Prints seconds (of the clock and of the processor), peak memory, and the ratio of both.
`--redraw`: an untrained network of size mini draws every day anew; what it has learned does not change the time.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from tamedit.data.scaling import Scaling
from tamedit.data.simulate import INTERVALS, simulate_homes
from tamedit.data.traits import draw_homes
from tamedit.diffusion.process import Process
from tamedit.model.dit import DiffusionTransformer
from tamedit.model.zoo import SIZES, NetworkConfig
from tamedit.runs.artifact import ModelSpec
from tamedit.runs.simulated_pool import simulated_pool
from tamedit.tasks.fleet import GROUP, Fleet
from tamedit.tasks.fleet_table import asked, write_homes
from tamedit.tasks.model import Model
from tamedit.windows.examples import ANCHOR_FEATURES, ExampleConfig

parser = argparse.ArgumentParser()
parser.add_argument("--homes", type=int, default=500)
parser.add_argument("--days", type=int, default=365)
parser.add_argument("--minutes", type=int, default=60, choices=INTERVALS)
parser.add_argument("--redraw", action="store_true")
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--work", choices=("fleet", "simulator"), help="what one process does; both if not given")
arguments = parser.parse_args()
START, PERIOD = "2024-01-01", 24 * 60 // arguments.minutes


def model() -> Model:
    """An untrained network with public levels."""
    shape = {"target_channels": 1, "covariate_channels": 6, "anchor_features": ANCHOR_FEATURES["free"], "length": 168}
    config = NetworkConfig.model_validate(shape | SIZES["mini"])
    spec = ModelSpec(
        network=config,
        process=Process(prediction="v"),
        examples=ExampleConfig(period=PERIOD),
        scaling=Scaling("instance", (0.35,), (0.35,), (0.1,), (0.1,), "public").to_dict(),
        targets=("kwh",),
        frequency_seconds=60.0 * arguments.minutes,
        non_negative=True,
    )
    return Model(DiffusionTransformer(config).eval(), spec)


def simulated(skip: int) -> Iterator[np.ndarray]:
    """The same homes by the simulator alone."""
    traits = draw_homes(arguments.homes, np.random.default_rng(0))
    for first in range(skip * GROUP, arguments.homes, GROUP):
        some = np.arange(first, min(first + GROUP, arguments.homes))
        hours = 24 * arguments.days
        load = simulate_homes(traits[some], hours, "2024-01-01", minutes=arguments.minutes, numbers=some)
        yield load.values.reshape(len(some), -1, 1)


def work(what: str) -> dict[str, float]:
    torch.set_num_threads(arguments.threads)
    wall, processor, pool = time.perf_counter(), time.process_time(), 0.0
    if what == "fleet":
        simulated_pool(arguments.minutes, 168, PERIOD)
        pool, ours = time.process_time() - processor, model()
        request, population = asked(ours.spec, arguments.homes, START, arguments.days, None, arguments.redraw, 0)
        make = partial(ours.homes, request, population)
    else:
        steps = {"step_seconds": 60.0 * arguments.minutes, "length": 168, "period": PERIOD}
        given = {"homes": arguments.homes, "start": pd.Timestamp(START), "days": arguments.days, "seed": 0}
        request, make = Fleet(**given, **steps, calendar=True), None
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "homes.parquet"
        write_homes(
            request, ("kwh",), simulated if make is None else lambda skip: make(skip=skip), out, "", lambda *_: None
        )
    return {
        "rows": request.homes * request.rows,
        "seconds": time.perf_counter() - wall,
        "processor seconds": time.process_time() - processor,
        "of these for the pool": pool,
        "peak GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }


if arguments.work:
    print(json.dumps(work(arguments.work)))
else:
    found = {}
    for what in ("simulator", "fleet"):
        answer = subprocess.run(
            [sys.executable, __file__, *sys.argv[1:], "--work", what], check=True, capture_output=True, text=True
        )
        found[what] = json.loads(answer.stdout)
        print(f"{what:10}", "  ".join(f"{name} {value:,.4g}" for name, value in found[what].items()), flush=True)
    ratio = found["fleet"]["processor seconds"] / found["simulator"]["processor seconds"]
    print(f"{arguments.homes} homes of {arguments.days} days: {ratio:.2g} times the simulator's own time")
