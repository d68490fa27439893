"""Samples of which only quantiles are given: fewer, stratified, and with quantiles where their intervals have their middles."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from made_meter import meter, with_gaps

from tamedit.diffusion.sample import SamplerConfig
from tamedit.errors import UserError
from tamedit.evaluation.trial import Trial
from tamedit.tasks.enough import enough_samples, quantiles
from tamedit.tasks.model import Model


@pytest.fixture(scope="module")
def model(smoke_run: Path) -> Model:
    return Model.load(smoke_run, "cpu")


def test_samples_that_nobody_sees_are_fewer_and_stratified(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, str]] = []
    draw = model.draw

    def listen(*given: Any) -> torch.Tensor:
        samples, config = given[4], given[6]
        asked.append((samples, config.starts))
        return draw(*given)

    monkeypatch.setattr(model, "draw", listen)
    frame = meter()
    frame.iloc[50:53] = np.nan  # within one window: its samples share one context

    def of(call: Any, *given: Any, **options: Any) -> set[tuple[int, str]]:
        asked.clear()
        call(*given, **options)
        return set(asked)

    assert of(model.impute, frame) == {(40, "stratified")}
    assert of(model.impute, frame, quantiles=(0.01, 0.5)) == {(100, "stratified")}
    assert of(model.forecast, frame, 3, all_samples=True) == {(100, None)}
    assert of(model.forecast, frame, 3, samples=7) == {(7, "stratified")}
    assert of(model.forecast, frame, 3, sampler=SamplerConfig(steps=3)) == {(40, "stratified")}
    assert of(model.forecast, frame, 3, sampler=SamplerConfig(starts="antithetic")) == {(100, "antithetic")}


def test_every_quantile_lies_among_the_samples() -> None:
    assert enough_samples((0.05, 0.95)) == 40
    assert enough_samples((0.004, 0.5)) == 250
    assert enough_samples((0.5, 0.9999)) == 1000


@pytest.mark.parametrize("stratified", [True, False])
def test_bands_of_few_samples_cover_what_they_say(stratified: bool) -> None:
    """Of a uniform cell: independent samples at p (S + 1), stratified ones at p S + 1/2."""
    random = np.random.default_rng(0)
    drawn = random.random((20, 20_000))
    if stratified:
        drawn = (np.arange(20)[:, None] + drawn) / 20
    low, high = quantiles(drawn, (0.1, 0.9), stratified)
    assert (high - low).mean() == pytest.approx(0.8, abs=0.002)


def test_the_samples_of_a_table_are_the_models(model: Model) -> None:
    """The same seed and starts: the quantiles are those of the samples that `all_samples` gives."""
    frame, options = with_gaps(meter()), {"samples": 20, "seed": 3, "sampler": SamplerConfig(starts="stratified")}
    drawn = model.impute(frame, all_samples=True, **options)["kwh"].to_numpy().reshape(20, -1)
    table = model.impute(frame, **options)
    np.testing.assert_allclose(table["kwh_q95"], quantiles(drawn, (0.95,), True)[0], rtol=1e-6)


def test_scores_refuse_stratified_samples(model: Model) -> None:
    trial = Trial.__new__(Trial)  # nothing of it is looked at
    with pytest.raises(UserError, match="Scores compare samples with each other"):
        trial._model_draws(torch.zeros(1), torch.ones(1) > 0, 4, 0, SamplerConfig(starts="stratified"), None)
