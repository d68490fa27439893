"""Peers' protocols: their masks, their metrics, their numbers beside ours."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import tamedit as tame
from tamedit.data.loading import load_split
from tamedit.data.split import Split, split_by_time
from tamedit.diffusion.sample import SamplerConfig
from tamedit.errors import UserError
from tamedit.evaluation.trial import Trial
from tamedit.tasks.model import Model
from tamedit_paper.peers.protocols import PROTOCOLS, cell_masks, evaluate_protocol
from tamedit_paper.peers.published import PUBLISHED, published

FAST = SamplerConfig(steps=2)


@pytest.mark.parametrize("share", [0.125, 0.25, 0.375, 0.5, 0.9])
def test_every_cell_is_hidden_on_its_own(share: float) -> None:
    mask = cell_masks((200, 96, 3), share, "tslib", 0)
    hidden = (~mask).double()
    assert hidden.mean().item() == pytest.approx(share, abs=0.006)
    across = torch.corrcoef(hidden.permute(2, 0, 1).flatten(1))  # channels do not know of each other
    along = torch.corrcoef(torch.stack([hidden[:, 1:].flatten(), hidden[:, :-1].flatten()]))
    assert (across - torch.eye(3)).abs().max() < 0.03
    assert along[0, 1].abs() < 0.03
    assert torch.equal(mask[:5], cell_masks((5, 96, 3), share, "tslib", 0))  # a window's mask is its own
    assert not torch.equal(mask, cell_masks((200, 96, 3), share, "tslib", 1))


@pytest.fixture(scope="module")
def two_channels() -> tuple[Model, Split]:
    rng = np.random.default_rng(0)
    hours = np.arange(1500)[:, None]
    series = tame.read(5 + np.sin(2 * np.pi * hours / 24) * [1, 20] + 0.1 * rng.normal(size=(1500, 2)))
    return tame.fit(series, scale="smoke", steps=1, window=96), split_by_time(series)


def test_z_units_follow_the_names_of_the_channels(two_channels: tuple[Model, Split]) -> None:
    model, split = two_channels
    swapped = Split(
        *(
            tame.read(pd.DataFrame(part.values[:, ::-1], index=part.times, columns=part.targets[::-1]))
            for part in (split.train, split.validation, split.test)
        )
    )
    np.testing.assert_allclose(Trial(model, split, 8).deviation, Trial(model, swapped, 8).deviation, rtol=1e-9)
    np.testing.assert_array_equal(Trial(model, split, 8).truth, Trial(model, swapped, 8).truth)


def test_tslib_is_mse_and_mae_over_all_masked_cells(two_channels: tuple[Model, Split]) -> None:
    model, split = two_channels
    result = evaluate_protocol(model, split, "tslib", samples=4, windows=6, sampler=FAST, resamples=20)
    assert list(dict.fromkeys(row.task for row in result.rows)) == ["12.5 %", "25 %", "37.5 %", "50 %"]
    trial = Trial(model, split, 6)
    mask = cell_masks(trial.truth.shape, 0.25, "tslib", 0)
    for method, drawn, _ in trial.guesses(mask, 4, 0, FAST):
        error = ((drawn.mean(axis=1) - trial.truth) / split.train.values.std(axis=0))[~mask.numpy()]
        expected = {"MSE": np.square(error).mean(), "MAE": np.abs(error).mean()}
        row = result.of("25 %", method)
        assert row.values == pytest.approx(expected, rel=1e-4)
        assert row.intervals["MSE"] is None, "six windows that overlap are too few for an interval"
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert plain["published"] == []
    assert plain["tasks"]["50 %"]["model"]["MSE"] > 0


def test_csdi_is_the_quantile_form_over_all_masked_cells(two_channels: tuple[Model, Split]) -> None:
    model, split = two_channels
    result = evaluate_protocol(
        model, split, "csdi", samples=4, windows=5, horizon=12, sampler=FAST, resamples=0, source="etth1"
    )
    assert {row.task for row in result.rows} == {"10 %", "50 %", "90 %", "forecast 12"}
    trial = Trial(model, split, 5)
    hidden = np.broadcast_to((np.arange(96) >= 84)[None, :, None], trial.truth.shape)
    mask = torch.from_numpy(~hidden)
    _, drawn, _ = next(iter(trial.guesses(mask, 4, 0, FAST)))
    loss = 0.0
    for level in np.arange(0.05, 1.0, 0.05):
        error = trial.truth - np.quantile(drawn, level, axis=1)
        loss += 2 * np.maximum(level * error, (level - 1) * error)[hidden].sum() / 19
    row = result.of("forecast 12", "model")
    assert row.values["CRPS_CSDI"] == pytest.approx(loss / np.abs(trial.truth[hidden]).sum(), rel=1e-4)
    assert row.intervals["CRPS_CSDI"] is None
    assert {one["method"] for one in result.to_dict()["published"]} == {"iTransformer", "PatchTST", "CSDI", "TimeGrad"}


def test_mistakes(smoke_run: Path) -> None:
    model, split = Model.load(smoke_run, "cpu"), load_split(str(smoke_run.parent / "meter.csv"))[1]
    with pytest.raises(
        UserError, match="windows of 96, but the model was trained on windows of 48; train it with window=96"
    ):
        evaluate_protocol(model, split, "tslib")
    with pytest.raises(UserError, match="'tsib' is not known; choose one of tslib, csdi"):
        evaluate_protocol(model, split, "tsib")
    with pytest.raises(UserError, match="samples=2"):
        evaluate_protocol(model, split, "csdi", samples=2)


def test_published_numbers_are_in_the_documentation_with_their_sources() -> None:
    page = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text(encoding="utf-8")
    numbers = set(re.findall(r"\d*\.\d+", page))
    for one in PUBLISHED:
        assert one.source in page, one.source
        for value in one.metrics.values():
            assert f"{value:.3f}" in numbers or f"{value:.3f}".removeprefix("0") in numbers, one
    assert {one.protocol for one in PUBLISHED} == {*PROTOCOLS, "ltsf"}
    assert len(published("ETTh1", "tslib")) == 12
    assert published("mine.csv") == []
