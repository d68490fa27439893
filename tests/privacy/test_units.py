"""Contribution bounds against brute force: delete a unit, look which examples notice."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamedit.errors import UserError
from tamedit.privacy.units import Contribution, Layout, contribution, contributions


def brute_force(unit: str, layout: Layout) -> Contribution:
    """Row by row: which unit owns a row, which rows it may change, which examples contain one of them."""
    offsets = np.asarray(layout.offsets)
    lengths = np.broadcast_to(layout.length, np.shape(layout.starts))
    examples = [set(range(s, s + length)) for s, length in zip(layout.starts, lengths, strict=True)]
    if layout.stride is not None:
        length = int(lengths[0])
        for a, b in pairwise(offsets):
            grid = [set(range(s, s + length)) for s in range(a, b - length + 1, layout.stride)]
            examples += [one for one in grid if one not in examples]
    owned: dict[tuple, set[int]] = {}
    for meter in range(len(offsets) - 1):
        for row in range(offsets[meter], offsets[meter + 1]):
            at = int(layout.week_phase[meter]) + row - offsets[meter]
            name = {
                "series": (meter,),
                "record": (meter, row),
                "day": (meter, at // layout.steps_per_day),
                "week": (meter, at // (7 * layout.steps_per_day)),
            }[unit]
            owned.setdefault(name, set()).add(row)
    k, removal = 1, True
    for (meter, *_), rows in owned.items():
        reached = set(rows)
        if layout.reach and unit != "series":
            reached = {
                other
                for row in rows
                for other in range(row - layout.reach, row + layout.reach + 1)
                if offsets[meter] <= other < offsets[meter + 1]
            }
            removal = False
        touched = [one for one in examples if one & reached]
        k = max(k, len(touched))
        if layout.gaps == "kept":
            removal = removal and all(one <= rows for one in touched)
    return Contribution(k, "removal" if removal else "replacement", "")


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    day = draw(st.integers(1, 4))
    length = draw(st.integers(1, 30))
    sizes = draw(st.lists(st.integers(0, 60), min_size=2, max_size=3))
    sizes[0] = max(sizes[0], length)
    sizes[1] = max(sizes[1], 1)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    kind = draw(st.sampled_from(["overlapping", "blocks"]))
    stride = draw(st.integers(1, 12)) if kind == "overlapping" else length
    starts = np.concatenate([np.arange(a, b - length + 1, stride) for a, b in pairwise(offsets)]).astype(np.int64)
    kept = draw(st.lists(st.booleans(), min_size=len(starts), max_size=len(starts)))
    chosen = starts[np.array(kept)] if any(kept) else starts
    return Layout(
        kind=kind,
        starts=chosen,
        length=length,
        offsets=offsets,
        steps_per_day=day,
        week_phase=np.array(draw(st.lists(st.integers(0, 7 * day - 1), min_size=len(sizes), max_size=len(sizes)))),
        gaps=draw(st.sampled_from(["kept", "dropped"])),
        stride=draw(st.sampled_from([None, stride])) if kind == "overlapping" else None,
        reach=draw(st.sampled_from([0, 0, 2])),
    )


@settings(max_examples=150, deadline=None)
@given(layouts(), st.sampled_from(["record", "day", "week", "series"]))
def test_agrees_with_brute_force(layout: Layout, unit: str) -> None:
    found = contribution(unit, layout)
    expected = brute_force(unit, layout)
    assert found.k == expected.k
    # "removal" must never be claimed where an example survives; the reverse (replacement) is the cautious answer
    if found.neighbour == "removal":
        assert expected.neighbour == "removal"
    if layout.reach == 0:
        assert found.neighbour == expected.neighbour


def hourly(kind: str, rows: int, stride: int, phase: int = 0, **more: object) -> Layout:
    starts = np.arange(0, rows - 168 + 1, stride)
    return Layout(kind, starts, 168, np.array([0, rows]), 24, np.array([phase]), **more)


def test_the_papers_layout() -> None:
    layout = hourly("overlapping", 16_195, 24)
    assert layout.starts.size == 668
    assert contribution("window", layout).k == 1
    record = contribution("record", layout)
    assert (record.k, record.neighbour) == (7, "replacement")
    assert contribution("day", layout).k == 7
    assert contribution("day", hourly("overlapping", 16_195, 24, phase=5)).k == 8
    assert contribution("week", layout).k == 13
    dropped = hourly("overlapping", 16_195, 24, gaps="dropped")
    assert contribution("record", dropped).neighbour == "removal"


def test_weeks_and_blocks_of_a_week() -> None:
    aligned = contribution("week", hourly("blocks", 168 * 10, 168))
    assert (aligned.k, aligned.neighbour) == (1, "removal")
    straddling = contribution("week", hourly("blocks", 168 * 10, 168, phase=24))
    assert (straddling.k, straddling.neighbour) == (2, "replacement")
    assert contribution("week", hourly("blocks", 168 * 10, 168, phase=24, gaps="dropped")).neighbour == "removal"
    day = contribution("day", hourly("blocks", 168 * 10, 168))
    assert (day.k, day.neighbour) == (1, "replacement")
    assert contribution("day", hourly("blocks", 168 * 10, 168, phase=5)).k == 2


def test_whole_series_as_examples() -> None:
    offsets = np.array([0, 300, 450, 1000])
    whole = Layout("blocks", offsets[:-1], np.diff(offsets), offsets)
    assert contribution("series", whole) == Contribution(
        1, "removal", "each series holds its 1 example whole, which vanishes with it"
    )
    blocks = Layout("blocks", np.array([0, 100, 200, 300, 450, 550]), 100, offsets)
    assert contribution("series", blocks).k == 3


def test_a_dropped_window_still_counts() -> None:
    """Which windows are missing is private: k is that of the full grid, not of the windows that happen to be there."""
    some = Layout("overlapping", np.array([0, 96]), 168, np.array([0, 600]), 24, np.array([0]), "dropped", stride=24)
    assert contribution("record", some).k == 7
    assert contribution("record", Layout("overlapping", np.array([0, 96]), 168, np.array([0, 600]))).k == 2


def test_cleaning_reaches_further() -> None:
    layout = hourly("blocks", 168 * 10, 168, reach=84)
    week = contribution("week", layout)
    assert (week.k, week.neighbour) == (3, "replacement")
    assert contribution("record", layout).k == 2


@pytest.mark.parametrize(
    ("unit", "layout", "words"),
    [
        ("year", hourly("blocks", 1680, 168), "Unknown privacy unit"),
        ("series", hourly("blocks", 1680, 168), "needs several meters"),
        ("day", Layout("blocks", np.array([0]), 10, np.array([0, 10])), "where days begin"),
        ("day", Layout("blocks", np.array([0]), 10, np.array([0, 10]), 5, np.array([0, 0])), "one calendar position"),
        ("record", Layout("blocks", np.array([0, 5]), 10, np.array([0, 20])), "Blocks overlap"),
        ("record", Layout("blocks", np.array([5]), 10, np.array([0, 10, 20])), "crosses the border"),
        ("record", Layout("blocks", np.array([], dtype=int), 10, np.array([0, 10])), "no example"),
        ("record", Layout("blocks", np.array([15]), 10, np.array([0, 10, 20])), "crosses the border"),
        ("record", Layout("overlapping", np.array([0]), 10, np.array([0, 20]), stride=0), "stride"),
    ],
)
def test_refusals_give_reason_and_remedy(unit: str, layout: Layout, words: str) -> None:
    with pytest.raises(UserError, match=words):
        contribution(unit, layout)


def test_every_unit_is_accounted_or_refused() -> None:
    accounted, refused = contributions(hourly("blocks", 1680, 168))
    assert set(accounted) == {"window", "record", "day", "week"}
    assert set(refused) == {"series"}
    for phase in (0, 3):
        for kind, stride in (("blocks", 168), ("overlapping", 24)):
            accounted, refused = contributions(hourly(kind, 1680, stride, phase=phase))
            assert set(accounted) | set(refused) == {"window", "record", "day", "week", "series"}
