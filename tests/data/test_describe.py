"""Descriptions: gaps that end with their meter, plots that fit, plain numbers."""

import json
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamedit.data.describe import describe, gaps, sparkline
from tamedit.data.reader import read
from tamedit.data.simulate import simulate


def slow_gaps(missing: list[bool], offsets: list[int]) -> list[tuple[int, int]]:
    found = []
    for start, stop in pairwise(offsets):
        length = 0
        for row in range(start, stop + 1):
            if row < stop and missing[row]:
                length += 1
            elif length:
                found.append((row - length, length))
                length = 0
    return found


@given(st.lists(st.lists(st.booleans(), min_size=1, max_size=12), min_size=1, max_size=4))
def test_gaps_against_a_loop(meters: list[list[bool]]) -> None:
    missing = [cell for meter in meters for cell in meter]
    offsets = np.cumsum([0, *(len(meter) for meter in meters)])
    first, lengths = gaps(np.array(missing), offsets)
    assert list(zip(first.tolist(), lengths.tolist(), strict=True)) == slow_gaps(missing, offsets.tolist())


def test_description_of_one_meter() -> None:
    index = pd.date_range("2024-01-01", periods=10, freq="15min", name="time")
    series = read(pd.DataFrame({"x": [0, 1, np.nan, np.nan, 4, 5, np.nan, 7, 8, 9.0]}, index=index))
    facts = json.loads(json.dumps(describe(series), allow_nan=False))
    assert facts["rows"] == 10
    assert facts["step"] == "15 minutes"
    assert facts["gaps"] == {"count": 2, "longest": 2, "longest_from": "2024-01-01 00:30:00", "longest_meter": None}
    assert facts["channels"][0]["minimum"] == 0
    assert facts["channels"][0]["median"] == 5
    assert facts["channels"][0]["missing_share"] == pytest.approx(0.3)
    assert facts["panel"] is None


def test_description_of_a_fleet() -> None:
    facts = describe(simulate(4, 300, outage_rate=0.01))
    assert facts["meters"] == 4
    assert facts["panel"]["rows"] == {"minimum": 300, "median": 300, "maximum": 300}
    assert facts["gaps"]["longest_meter"].startswith("meter_")
    json.dumps(facts, allow_nan=False)


def test_sparkline() -> None:
    assert sparkline(np.arange(8.0), 8) == "▁▂▃▄▅▆▇█"
    assert sparkline(np.array([1.0, np.nan, 1.0]), 3) == "▅ ▅"
    assert sparkline(np.full(5, np.nan), 3) == "   "
    assert len(sparkline(np.arange(1000.0), 30)) == 30
