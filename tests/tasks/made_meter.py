"""A made-up meter for the tests of tasks."""

import pandas as pd

import tamedit as tame


def meter(hours: int = 200, seed: int = 9) -> pd.DataFrame:
    """Readings in float32, which is what a model holds."""
    return tame.simulate(hours=hours, seed=seed).frame().ffill().bfill()
