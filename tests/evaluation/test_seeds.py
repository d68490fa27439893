"""Runs that differ in their seed become one result, and others are told apart."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamedit.evaluation.seeds import changed, over_runs


def test_what_differs_is_named_by_its_place() -> None:
    one = {"source": "a", "training": {"steps": 5, "rate": 0.1}, "privacy": None, "reading": {}, "same": [1, 2]}
    other = {"source": "a", "training": {"steps": 6, "rate": 0.1}, "privacy": {"clip": 1}, "reading": {"time": "t"}}
    assert changed(one, other) == ["privacy", "reading.time", "same", "training.steps"]
    assert changed(other, one) == changed(one, other)
    assert changed(one, dict(one)) == []


numbers = st.floats(-1e6, 1e6)


@given(st.tuples(numbers, numbers, numbers))
def test_three_seeds_have_the_closed_form_interval(values: tuple[float, float, float]) -> None:
    """With 2 degrees of freedom the quantile of t is (2p − 1) √(2 / (4 p (1 − p))); p = 0.975."""
    results = {
        f"run {i}": {"tasks": {"t": {"m": {"z": {"x": v, "y": None, "intervals": {}}}}}} for i, v in enumerate(values)
    }
    scores = over_runs(results, [0, 1, 2])["tasks"]["t"]["m"]["z"]
    mean = sum(values) / 3
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / 2)
    student = 0.95 * math.sqrt(2 / (4 * 0.975 * 0.025))
    half = student * deviation / math.sqrt(3)
    assert scores["x"]["mean"] == pytest.approx(mean, abs=1e-6)
    assert scores["x"]["half"] == pytest.approx(half, rel=1e-6, abs=1e-6)
    assert scores["x"]["low"] <= scores["x"]["mean"] <= scores["x"]["high"]
    assert scores["y"] is None
    assert "intervals" not in scores


def test_shared_facts_are_kept_once_and_single_results_whole() -> None:
    single = {"tasks": {}, "windows": 6, "private": False, "bootstrap": {"block": 1}}
    combined = over_runs({"a": single, "b": single}, [3, 4])
    assert (combined["windows"], combined["private"], combined["seeds"]) == (6, False, [3, 4])
    assert combined["results"] == [{"run": "a", **single}, {"run": "b", **single}]
    assert "bootstrap" not in combined
