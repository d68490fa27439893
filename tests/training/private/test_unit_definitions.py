"""Runs on one data set add up only if they mean the same by their unit: the same clock, the same meters."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tamedit.data.loading import load_split
from tamedit.data.study import Study
from tamedit.errors import UserError
from tamedit.privacy.entries import read as read_ledger
from tamedit.privacy.ledger import Ledger
from tamedit.privacy.plan import PrivacyPlan
from tamedit.privacy.settings import Privacy
from tamedit.privacy.statement import side_by_side
from tamedit.privacy.units import Contribution
from tamedit.runs.config import Speed
from tamedit.runs.layout import PrivateLayout, private_layout
from tamedit.tasks.fit import fit

DAYS = 60


def table() -> pd.DataFrame:
    """Six meters in three houses, in the summer of London, with stamps in UTC; two columns of readings."""
    times = pd.date_range("2023-06-01", periods=24 * DAYS, freq="1h", tz="UTC")
    generator = np.random.default_rng(0)
    frames = [
        pd.DataFrame({"time": times, "meter": f"m{number}", "house": f"h{number // 2}"}).assign(
            load=generator.gamma(2.0, 1.0, len(times)), gas=generator.gamma(2.0, 1.0, len(times))
        )
        for number in range(6)
    ]
    return pd.concat(frames, ignore_index=True)


def laid_out(unit: str = "day", window: int = 24, **reading) -> PrivateLayout:
    reading = {"id": "meter", "targets": ["load"], **reading}
    _, split = load_split(table(), private=True, study=Study.stating("2023-06-01/2023-08-01"), **reading)
    return private_layout(split.train, window, 6, Privacy(epsilon=8, unit=unit))  # type: ignore[arg-type]


def test_a_day_by_another_clock_lies_in_two_examples() -> None:
    """Why such runs must not be added up: each says that a day touches one example, and a day of the one has two of the other."""
    here, there = laid_out(), laid_out(timezone="Europe/London")
    assert here.contribution().k == there.contribution().k == 1
    day = here.windows.series.times[here.windows.starts[5] : here.windows.starts[5] + 24]
    stamps = there.windows.series.times[: int(there.windows.series.lengths[0])]
    spans = [stamps[start : start + 24] for start in there.windows.starts if start + 24 <= len(stamps)]
    assert sum(bool(len(span.intersection(day.tz_convert(span.tz)))) for span in spans) == 2


def test_a_definition_has_the_clock_the_meters_and_the_windows_and_not_the_columns() -> None:
    plain = laid_out().definitions
    local = laid_out(timezone="Europe/London").definitions
    assert {unit for unit in plain if plain[unit] != local[unit]} == {"window", "day", "week"}
    assert "Europe/London, from UTC+0100" in local["day"]
    other = pd.concat([table().query("meter == 'm0'"), table().query("meter == 'm2'")])
    _, split = load_split(
        other, private=True, id="house", targets=["load"], study=Study.stating("2023-06-01/2023-08-01")
    )
    houses = private_layout(split.train, 24, 6, Privacy(epsilon=8, unit="day")).definitions
    assert all(plain[unit] != houses[unit] for unit in plain)
    wide = laid_out(window=48).definitions
    assert {unit for unit in plain if plain[unit] != wide[unit]} == {"window"}
    assert laid_out(targets=["gas"]).definitions == plain


def test_runs_with_another_clock_are_refused_before_anything_is_charged(tmp_path: Path) -> None:
    path, ledger = tmp_path / "homes.csv", tmp_path / "homes.privacy-ledger.jsonl"
    table().to_csv(path, index=False)
    chosen = {"id": "meter", "targets": ["load"], "study": "2023-06-01/2023-08-01", "scale": "smoke", "steps": 2}
    chosen |= {"window": 24, "speed": Speed(threads=1), "covariates": []}

    def run(name: str, unit: str, examples: int | None = 100, **other) -> None:
        privacy = Privacy(epsilon=8.0, noise_multiplier=8.0, unit=unit, examples=examples)  # type: ignore[arg-type]
        fit(path, out=tmp_path / name, privacy=privacy, **{**chosen, **other})

    run("first", "day")
    before = ledger.read_bytes()
    for examples in (100, None):  # None: a count would be charged
        with pytest.raises(UserError, match=r"mean different things by one day \(.*Europe/London.* / .*UTC"):
            run("second", "day", examples, timezone="Europe/London")
        assert ledger.read_bytes() == before
        assert not (tmp_path / "second").exists()
    run("third", "series", timezone="Europe/London")  # a meter is a meter by any clock
    run("fourth", "day", targets=["gas"], ledger=tmp_path / "other.jsonl")
    run("fifth", "day", ledger=tmp_path / "other.jsonl")  # other columns of the same day: added up
    assert len(read_ledger(tmp_path / "other.jsonl").runs) == 2
    record = read_ledger(ledger)
    assert len(record.runs) == 2
    together = side_by_side(record, everything=record)
    assert together["series"]["epsilon"]["headline"] > 0
    assert together["day"]["epsilon"] is None
    assert "mean different things by one day" in together["day"]["reason"]


def test_two_runs_that_begin_at_once_are_told_apart_at_the_first_charge(tmp_path: Path) -> None:
    plan = PrivacyPlan(
        unit="day", examples=100, sampling_rate=0.05, clip=1.0, noise_multiplier=1.0, steps=5, delta=1e-5
    )
    units, shared = {"day": Contribution(1, "removal", "")}, tmp_path / "data.jsonl"
    opened = [
        Ledger.open(tmp_path / name, plan, units, facts={"definitions": {"day": name}}, shared=shared) for name in "ab"
    ]
    with opened[0] as first, opened[1] as second:
        first.take(1)
        with pytest.raises(UserError, match=r"one day \(a / b\)"):
            second.take(1)
    assert read_ledger(tmp_path / "b").steps == 0
    with pytest.raises(UserError, match=r"one day \(a / not stated\)"):  # a run of an earlier version
        Ledger.open(tmp_path / "c", plan, units, shared=shared)
