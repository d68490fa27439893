"""Fleets that cost nothing, to stand beside a candidate: the simulator's homes, and hours drawn without any order."""

from dataclasses import replace

import numpy as np
import pandas as pd

from tamedit.data.series import Series
from tamedit.data.simulate import INTERVALS, simulate
from tamedit.errors import UserError


def independent_hours(series: Series, homes: int, seed: int = 0) -> Series:
    """Homes whose readings are independent draws from all readings of a series, on the stamps of its longest meter.

    The marginal distribution is right, and nothing else: what a histogram alone could give. Without noise, so not private.
    """
    if homes < 1:
        raise UserError(f"homes={homes} must be at least 1.")
    longest = int(np.argmax(series.lengths))
    times = series.times[series.offsets[longest] : series.offsets[longest + 1]]
    known = series.values[np.isfinite(series.values).all(axis=1)]
    if not len(known):
        raise UserError("No row has a reading of every target, so there is nothing to draw from.")
    drawn = np.random.default_rng(seed).integers(len(known), size=homes * len(times))
    return replace(
        series,
        values=known[drawn],
        covariates=np.zeros((len(drawn), 0), dtype=np.float32),
        covariate_names=(),
        times=times[np.tile(np.arange(len(times)), homes)],
        meters=tuple(f"drawn_{home:0{len(str(homes))}d}" for home in range(homes)),
        offsets=np.arange(homes + 1, dtype=np.int64) * len(times),
        layout="long",
    )


def simulated_homes(like: Series, homes: int, seed: int = 0) -> Series | None:
    """Homes of the simulator over the extent of a series; None where it does not know the step, or there are several targets."""
    minutes = like.frequency / pd.Timedelta(minutes=1)
    if minutes not in INTERVALS or len(like.targets) != 1:
        return None
    clock = like.times.tz_localize(None) if like.times.tz is not None else like.times
    hours = int((clock.max() - clock.min()) / pd.Timedelta(hours=1)) + 1
    return simulate(
        max(homes, 2), hours, str(clock.min()), seed, spike_rate=0, negative_rate=0, outage_rate=0, minutes=int(minutes)
    )
