"""What `generate` needs for single windows: when they begin, and what is known at every step."""

from datetime import date

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from torch import Tensor

from tamedit.data.calendar import calendar
from tamedit.errors import UserError
from tamedit.runs.artifact import ModelSpec
from tamedit.tasks import frames


def asked_windows(
    spec: ModelSpec, origin: str, count: int, start: str | date | np.datetime64 | None, seed: int
) -> tuple[np.ndarray, Float[Tensor, "N L V"]]:
    """Stamps (N, L) and covariates of `count` windows; one sentence if this model cannot make them."""
    whole("count", count)
    if count < 1:
        raise UserError(f"count={count} must be at least 1; give the number of windows to generate.")
    frames.check_window_names(spec.targets)
    if origin == "none":
        raise UserError(
            "This model has no level and scale to generate in; train it with `typical_level` and `typical_scale` "
            "(public facts), or with `lower` and `upper` (a private estimate)."
        )
    if spec.static:
        raise UserError("Homes have attributes and single windows have none; give the number of `homes`.")
    if spec.covariates:
        raise UserError(
            f"This model needs the covariates {', '.join(spec.covariates)}, so it cannot generate a window; "
            "use forecast or impute with a table that has them."
        )
    first = pd.Timestamp(start) if isinstance(start, date | np.datetime64) else start
    times = frames.window_times(  # (N, L)
        count, spec.network.length, spec.frequency_seconds, first, seed, spec.phase_seconds
    )
    known = calendar(pd.DatetimeIndex(times.ravel())) if spec.calendar else np.zeros((times.size, 0), np.float32)
    covariates = torch.from_numpy(known).view(count, spec.network.length, -1)
    return times, covariates


def whole(name: str, number: object) -> None:
    """Refuse what is no whole number."""
    if not isinstance(number, int | np.integer):
        raise UserError(f"{name}={number!r} must be a whole number.")
