"""A made-up meter for the tests of adapters."""

import pandas as pd

import tamedit as tame


def load(hours: int, seed: int = 1) -> pd.Series:
    """Readings of one home, without gaps."""
    return tame.simulate(hours=hours, seed=seed).frame().ffill().bfill()["kwh"]
