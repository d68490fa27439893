"""A made-up meter for the tests of tasks."""

import numpy as np
import pandas as pd

import tamedit as tame


def meter(hours: int = 200, seed: int = 9) -> pd.DataFrame:
    """Readings in float32, which is what a model holds."""
    return tame.simulate(hours=hours, seed=seed).frame().ffill().bfill()


def with_gaps(frame: pd.DataFrame) -> pd.DataFrame:
    """The same with a short gap, one longer than a window, and one at the end."""
    holed = frame.copy()
    holed.iloc[20:23] = np.nan
    holed.iloc[60:130] = np.nan  # longer than the window of 48
    holed.iloc[-1] = np.nan
    return holed
