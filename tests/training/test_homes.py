"""The model that ships with the package: nobody's data, the same for everyone, and better than what is free."""

from dataclasses import replace
from importlib.resources import as_file
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from tamedit.choices import Anchor
from tamedit.data.calendar import network_covariates
from tamedit.data.series import Series
from tamedit.data.simulate import Region, simulate
from tamedit.data.split import split_by_time
from tamedit.errors import UserError
from tamedit.model.bounds import Bounds
from tamedit.model.dit import DiffusionTransformer
from tamedit.privacy.settings import Privacy
from tamedit.runs.config import Speed
from tamedit.runs.recipe import make_config
from tamedit.runs.request import TrainRequest
from tamedit.tasks.model import load
from tamedit.training import homes
from tamedit.training.homes import DIGEST, PLACE, Fleet, homes_start, shipped, train_homes
from tamedit.training.requested import prepare
from tamedit.training.run import train
from tamedit.training.source import example_losses
from tamedit.windows.cut import cut
from tamedit.windows.examples import Examples

HOME = simulate(hours=1200, seed=3)


def losses(network: DiffusionTransformer, series: Series, window: int) -> np.ndarray:
    """Denoising losses of every window, with the same masks and noise for every network."""
    config = make_config(series, "simulated", window=window)
    windows = cut(network_covariates(series, calendar=True), window, window)
    examples = Examples(windows, config.masks, shipped().spec.scaling_of(), config.examples, seed=5)
    numbers = np.arange(len(windows))
    with torch.no_grad():
        drawn = [
            example_losses(network, examples, numbers, step, config.process, torch.device("cpu")) for step in range(3)
        ]
    return torch.stack(drawn).mean(0).numpy()


@pytest.mark.parametrize(("minutes", "window"), [(60, 168), (30, 96), (15, 192)])
def test_it_knows_homes_of_other_regions_better_than_the_free_distribution_does(minutes: int, window: int) -> None:
    """The untrained network is the free distribution, and its output is 0. The interval is over windows of many homes."""
    region = Region(standby=0.8, habits=1.4, appliances=1.2, heated=0.3, warmer=2.0, later=-0.5)
    series = simulate(meters=24, hours=3 * 168, seed=991, region=region, minutes=minutes)
    found = shipped()
    network = DiffusionTransformer(found.spec.network.model_copy(update={"length": window}))
    free = losses(network, series, window)
    network.load_state_dict(found.weights)
    gain = free - losses(network, series, window)
    assert gain.mean() > 3 * gain.std(ddof=1) / np.sqrt(len(gain))


def test_it_is_the_model_that_the_code_names() -> None:
    found = shipped()
    assert found.start.digest == DIGEST
    assert found.start.origin == "public"
    assert found.spec.examples.anchor == "free"
    assert found.spec.privacy["private"] is False


def test_other_weights_in_its_place_are_refused(monkeypatch: pytest.MonkeyPatch, smoke_run: Path) -> None:
    monkeypatch.setattr(homes, "PLACE", smoke_run)
    with pytest.raises(UserError, match="is not the one that this version of the package was made with"):
        shipped()


def several(series: Series) -> Series:
    return replace(series, values=np.repeat(series.values, 2, axis=1), targets=("a", "b"))


@pytest.mark.parametrize(
    ("series", "anchor", "sentence"),
    [
        (several(HOME), "free", "one target and no covariates"),
        (replace(HOME, frequency=pd.Timedelta(minutes=10)), "free", "every 15, 30 or 60 minutes"),
        (HOME, "none", "has the anchor 'free'"),
    ],
    ids=["targets", "step", "anchor"],
)
def test_data_that_it_does_not_fit_is_refused(series: Series, anchor: Anchor, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        homes_start(series, anchor)


def test_a_private_run_says_what_it_began_from(tmp_path: Path) -> None:
    split = split_by_time(HOME)
    initial = homes_start(split.train)
    privacy = Privacy(epsilon=8.0, unit="day", examples=30, test_only=True)
    config = make_config(HOME, "a file", window=24, steps=2, batch_size=8, privacy=privacy, start=initial.start)
    outcome = train(split, config, tmp_path, speed=Speed(threads=1), initial=initial)
    assert outcome.privacy is not None
    assert f"the model that ships with the package; weights {DIGEST}), which is public" in outcome.privacy["statement"]


def test_it_can_be_made_again_to_the_bit(tmp_path: Path) -> None:
    small = (Fleet(60, 3, 2, 48, 2), Fleet(30, 2, 2, 48, 1))
    weights = []
    for name in ("one", "other"):
        assert train_homes(tmp_path / name, fleets=small, steps=4, speed=Speed(threads=1))
        weights.append((tmp_path / name / "model.safetensors").read_bytes())
    assert weights[0] == weights[1]


def test_it_is_used_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`homes` fills gaps without any training, and is no folder; a folder of that name comes first."""
    monkeypatch.chdir(tmp_path)
    model = load("homes", "cpu")
    with as_file(PLACE) as place:
        same = load(place, "cpu")
    table = simulate(2, 24 * 9, seed=4, outage_rate=0, negative_rate=0).frame()
    table.loc[30:40, "kwh"] = np.nan
    first, second = (one.impute(table, samples=4, seed=1) for one in (model, same))
    pd.testing.assert_frame_equal(first, second)
    assert first["kwh"].notna().all()
    (tmp_path / "homes").mkdir()
    with pytest.raises(UserError, match="no trained model"):
        load("homes", "cpu")


@pytest.mark.parametrize("chosen", [{}, {"privacy": Privacy(epsilon=8.0, unit="week")}])
def test_a_start_keeps_its_own_bounds_unless_others_are_chosen(chosen: dict[str, Any], tmp_path: Path) -> None:
    """With other bounds the same weights are another network: on simulated homes its loss is above the free distribution's."""
    heard: list[str] = []
    series, own = simulate(meters=12, hours=168 * 20), shipped().spec.network
    kept = prepare(series, TrainRequest(out=tmp_path / "a", init="homes", **chosen), say=heard.append).config.network
    assert (kept.bounds, kept.operator) == (own.bounds, own.operator)
    assert not any("other bounds" in one for one in heard)
    asked = TrainRequest(out=tmp_path / "b", init="homes", bounds="off", **chosen)
    other = prepare(series, asked, say=heard.append).config.network
    assert other.bounds == (Bounds(),)
    assert any("trained with other bounds" in one and "leave out" in one for one in heard)


def test_bounds_belong_to_the_weights() -> None:
    found = shipped()
    unbounded = DiffusionTransformer(found.spec.network.model_copy(update={"bounds": (Bounds(),)}))
    free = losses(unbounded, HOME, 168)
    bounded = DiffusionTransformer(found.spec.network)
    for network in (unbounded, bounded):
        network.load_state_dict(found.weights)
    assert losses(bounded, HOME, 168).mean() < free.mean() < losses(unbounded, HOME, 168).mean()
