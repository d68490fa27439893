"""The layout of a private run: made once, the same examples for the proposal, the budget and training."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tamedit.data.simulate import simulate
from tamedit.data.split import split_by_time
from tamedit.errors import UserError
from tamedit.privacy.settings import Privacy
from tamedit.runs import layout as layouts
from tamedit.runs.layout import WholeExamples, layout_of, private_layout, whole_examples
from tamedit.runs.recipe import make_config
from tamedit.training.run import train
from tamedit.windows.cut import cut, cut_blocks, trimmed, with_readings

HOMES = simulate(meters=3, hours=24 * 60, seed=2, start="2023-01-02")
WEEK = Privacy(noise_multiplier=1.0, unit="week", test_only=True)


def with_holes() -> Any:
    """The same homes; the second week of the first one has hardly a reading."""
    from dataclasses import replace

    values = HOMES.values.copy()
    values[168 + 10 : 2 * 168] = np.nan
    return replace(HOMES, values=values)


def test_examples_without_readings_are_left_out_and_still_counted() -> None:
    series = with_holes()
    whole, holed = private_layout(HOMES, 168, 24, WEEK), private_layout(series, 168, 24, WEEK)
    assert len(holed.windows) == len(whole.windows) - 1
    assert holed.accounted == whole.accounted
    overlapping = WEEK.model_copy(update={"layout": "overlapping", "unit": "window"})
    for found, expected in (
        (holed, cut_blocks(series, 168, 168, align=168, phase=np.zeros(3, np.int64))),
        (private_layout(series, 48, 6, overlapping), cut(series, 48, 6)),
    ):
        np.testing.assert_array_equal(found.windows.starts, expected.starts)
        assert (found.windows.spans is None) == (expected.spans is None)
    assert len(with_readings(holed.windows)) == len(holed.windows)


def test_a_run_cuts_its_examples_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    split = split_by_time(HOMES)
    config = make_config(HOMES, "homes", scale="smoke", steps=2, window=24, size="tiny", privacy=WEEK, batch_size=4)
    made = layout_of(split.train, config)
    cuts: list[int] = []
    real = layouts.cut_blocks
    monkeypatch.setattr(layouts, "cut_blocks", lambda *given, **named: cuts.append(1) or real(*given, **named))
    first = train(split, config, tmp_path / "given", layout=made)
    assert cuts == []
    second = train(split, config, tmp_path / "made")
    assert cuts == [1]
    assert (tmp_path / "given/model.safetensors").read_bytes() == (tmp_path / "made/model.safetensors").read_bytes()
    assert first.privacy == second.privacy
    assert first.privacy is not None
    assert first.privacy["unit"] == "week"


def test_a_layout_of_other_examples_is_refused(tmp_path: Path) -> None:
    split = split_by_time(HOMES)
    config = make_config(HOMES, "homes", scale="smoke", steps=2, window=24, size="tiny", privacy=WEEK, batch_size=4)
    days = config.model_copy(update={"privacy": WEEK.model_copy(update={"unit": "day"})})
    for other in (layout_of(split.train, days), layout_of(split.validation, config)):
        with pytest.raises(ValueError, match="another run"):
            train(split, config, tmp_path / "run", layout=other)
    assert not (tmp_path / "run").exists()


def test_there_is_none_without_privacy_and_none_of_a_short_series() -> None:
    assert layout_of(HOMES, make_config(HOMES, "homes")) is None
    with pytest.raises(UserError, match=r"The training part has 1440 rows at most and a window needs 2000"):
        private_layout(HOMES, 2000, 24, WEEK)


def test_a_unit_that_cannot_be_accounted_is_said_when_it_is_asked_for() -> None:
    alone = simulate(hours=24 * 30, seed=1)
    layout = private_layout(alone, 24, 6, WEEK.model_copy(update={"unit": "series"}))
    assert "series" in layout.refused
    with pytest.raises(UserError, match="needs several meters"):
        layout.contribution()


def test_whole_examples_piece_by_piece() -> None:
    """Gathered a few at a time, to a public length, examples are what a slow loop cuts out."""
    series = simulate(meters=4, hours=24 * 20, seed=1, outage_rate=0.01)
    windows = trimmed(cut_blocks(series, 48, None))
    pieces = WholeExamples(windows, 600)
    assert pieces.shape == (4, 600, 1)
    found = np.concatenate([pieces[0:3], pieces[3:6]])
    for place, (start, span) in enumerate(zip(windows.starts, windows.spans, strict=True)):
        expected = np.full((600, 1), np.nan)
        expected[:span] = series.values[start : start + span]
        assert np.array_equal(found[place], expected, equal_nan=True)
    assert np.array_equal(whole_examples(windows, 600), found, equal_nan=True)
