"""TameDiT: differentially private diffusion transformers for time series.

    import tamedit as tame
    series = tame.read_csv("meter.csv")
    model  = tame.fit(series, privacy=tame.Privacy(epsilon=8, delta=1e-5, unit="week"))
    filled = model.impute("meter.csv", samples=100)
    ahead  = model.forecast("meter.csv", horizon=24)

Names are imported when they are first used, so that `import tamedit` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "Bounds": "tamedit.model.bounds",
    "BoundedAdaLNZero": "tamedit.model.adaln",
    "Model": "tamedit.tasks.model",
    "Privacy": "tamedit.privacy.settings",
    "Series": "tamedit.data.series",
    "UserError": "tamedit.errors",
    "fit": "tamedit.tasks.fit",
    "read": "tamedit.data.series",
    "read_csv": "tamedit.data.series",
    "simulate": "tamedit.data.simulate",
}
__all__ = [
    "BoundedAdaLNZero",
    "Bounds",
    "Model",
    "Privacy",
    "Series",
    "UserError",
    "fit",
    "read",
    "read_csv",
    "simulate",
]

if TYPE_CHECKING:
    from tamedit.data.series import Series, read, read_csv
    from tamedit.data.simulate import simulate
    from tamedit.errors import UserError
    from tamedit.model.adaln import BoundedAdaLNZero
    from tamedit.model.bounds import Bounds
    from tamedit.privacy.settings import Privacy
    from tamedit.tasks.fit import fit
    from tamedit.tasks.model import Model


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'tamedit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
