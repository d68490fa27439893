"""Measures the reference magnitudes (C₀, Γ₀, B₀, A₀) on the simulator: `python benchmarks/reference_magnitudes.py`.

Prints one line a form: p99 of ‖c‖, |γ|, |β|, |α| at the end of unbounded training on 50 simulated meters.
"""

import argparse
import json
import tempfile
from pathlib import Path

from tamedit.data.calendar import network_covariates
from tamedit.data.scaling import fit_scaling
from tamedit.data.simulate import simulate
from tamedit.data.split import split_by_time
from tamedit.diagnostics.magnitudes import reference_bounds
from tamedit.runs.artifact import load_model
from tamedit.runs.config import Speed
from tamedit.runs.recipe import make_config
from tamedit.training.run import train
from tamedit.windows.cut import cut
from tamedit.windows.examples import Examples

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=1000)
parser.add_argument("--size", default="small")
parser.add_argument("--threads", type=int, default=0)
arguments = parser.parse_args()
series = simulate(meters=50, hours=2016, seed=11)
for anchor in ("free", "none"):
    config = make_config(
        series, "simulated", anchor=anchor, bounds="off", steps=arguments.steps, size=arguments.size, window=168
    )
    with tempfile.TemporaryDirectory() as folder:
        train(split_by_time(series), config, Path(folder) / "run", speed=Speed(threads=arguments.threads))
        network, spec = load_model(Path(folder) / "run")
    scaling = fit_scaling("instance", series) if anchor == "free" else fit_scaling("nonprivate", series)
    windows = cut(network_covariates(series, config.calendar), config.window, config.stride)
    examples = Examples(windows, config.masks, scaling, config.examples, seed=1)
    bounds = reference_bounds(network, examples, spec.process)
    print(json.dumps({"anchor": anchor, "size": arguments.size, "steps": arguments.steps, **bounds.model_dump()}))
