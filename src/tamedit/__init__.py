"""TameDiT: differentially private diffusion transformers for time series.

    import tamedit as tame
    series = tame.read_csv("meter.csv")
    model  = tame.fit(series, privacy=tame.Privacy(epsilon=8, delta=1e-5, unit="week"))
    filled = model.impute("meter.csv", samples=100, quantiles=(0.1, 0.5, 0.9))
    ahead  = model.forecast("meter.csv", horizon="24h")

Names are imported when they are first used, so that `import tamedit` costs nothing.
"""

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

# A thread that waits for its next piece of work spins, and then sleeps. PyTorch's threads spin for milliseconds by default, and
# take the cores from each other as soon as another program runs (docs/performance.md#threads-that-wait). OpenMP reads this once,
# when PyTorch is imported.
if "OMP_WAIT_POLICY" not in os.environ and "torch" not in sys.modules:
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")

_HOMES = {
    "BoundedAdaLNZero": "model.adaln",
    "Bounds": "model.bounds",
    "Engine": "privacy.engine",
    "Model": "tasks.model",
    "Privacy": "privacy.settings",
    "PrivacyPlan": "privacy.plan",
    "SamplerConfig": "diffusion.sample",
    "Series": "data.series",
    "Speed": "runs.config",
    "UserError": "errors",
    "fit": "tasks.fit",
    "gated": "model.adaln",
    "load": "tasks.model",
    "load_initial_run": "runs.start",
    "modulate": "model.adaln",
    "read": "data.reader",
    "read_csv": "data.reader",
    "simulate": "data.simulate",
}
__all__ = [
    "BoundedAdaLNZero",
    "Bounds",
    "Engine",
    "Model",
    "Privacy",
    "PrivacyPlan",
    "SamplerConfig",
    "Series",
    "Speed",
    "UserError",
    "fit",
    "gated",
    "load",
    "load_initial_run",
    "modulate",
    "read",
    "read_csv",
    "simulate",
]

if TYPE_CHECKING:
    from tamedit.data.reader import read, read_csv
    from tamedit.data.series import Series
    from tamedit.data.simulate import simulate
    from tamedit.diffusion.sample import SamplerConfig
    from tamedit.errors import UserError
    from tamedit.model.adaln import BoundedAdaLNZero, gated, modulate
    from tamedit.model.bounds import Bounds
    from tamedit.privacy.engine import Engine
    from tamedit.privacy.plan import PrivacyPlan
    from tamedit.privacy.settings import Privacy
    from tamedit.runs.config import Speed
    from tamedit.runs.start import load_initial_run
    from tamedit.tasks.fit import fit
    from tamedit.tasks.model import Model, load


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"tamedit.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'tamedit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
