"""Planted homes: what they change in the data, what their coins decide, and that the attacked step is the one that trains."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from tamedit.data.simulate import simulate
from tamedit.errors import UserError
from tamedit.model.dit import DiffusionTransformer
from tamedit.privacy.audit import DiracStep
from tamedit.privacy.audit.dirac import dirac_losses
from tamedit.privacy.entries import AUDITED
from tamedit.privacy.plan import PrivacyPlan
from tamedit.privacy.settings import Privacy
from tamedit.runs.release import release
from tamedit.runs.request import TrainRequest
from tamedit.training import planted
from tamedit.training.distributed import World
from tamedit.training.private import gradients
from tamedit.training.private.budget import Budget
from tamedit.training.requested import prepare


def request(out: Path, **chosen) -> TrainRequest:
    usual = {"scale": "smoke", "steps": 2, "batch_size": 8, "epsilon": 1.0, "test_only": True, "seed": 3}
    public = {"typical_level": 0.35, "typical_scale": 0.35}
    return TrainRequest.flat(out=out, **{**usual, **public, **chosen})


@pytest.fixture(scope="module")
def series():
    return simulate(meters=2, hours=20 * 168, seed=0)


def test_the_attacked_step_is_the_step_that_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    """`PrivateGradients` of training, given the canaries' gradients, releases what `DiracStep` releases, bit for bit."""
    plan = PrivacyPlan(
        unit="week",
        examples=4,
        sampling_rate=0.6,
        clip=0.7,
        noise_multiplier=1.3,
        steps=5,
        delta=1e-5,
        draws=2,
        test_only=True,
        seed=7,
    )
    axes, sizes = np.array([0, 1, 1, 3]), np.array([70.0, 0.1, -70.0, 0.7])
    attacked = DiracStep(plan, axes, sizes, 5)

    def rows(examples, indices, step, process, draws, device):
        return attacked.rows(np.repeat(indices, draws))

    monkeypatch.setattr(gradients, "noised_batch", rows)
    monkeypatch.setattr(gradients, "by_work", lambda noised, _: noised)  # these rows have no windows to sort by
    table = nn.Embedding(5, 1)
    budget = Budget(plan, Privacy(noise_multiplier=1.3, test_only=True), None, World())
    trains = gradients.PrivateGradients(table, None, dirac_losses, budget, 4).over(range(4), plan.steps)
    for step in range(plan.steps):
        trains(step)
        assert torch.equal(attacked(step)[0], table.weight.grad[:, 0])


def test_planting_leaves_the_data_as_it_is(series) -> None:
    found = planted.plant(series, 3, seed=0)
    assert found.meters == (*series.meters, "planted home 1", "planted home 2", "planted home 3")
    np.testing.assert_array_equal(found.values[: len(series)], series.values)
    made = found.values[len(series) :].reshape(3, -1)
    assert made.shape[1] == series.lengths.max()
    assert all(len(np.unique(home)) == 2 for home in made)
    assert abs(np.corrcoef(made)[0, 1]) < 0.1
    with pytest.raises(UserError, match="at least one"):
        planted.plant(series, 0)


def test_a_coin_decides_whether_a_block_is_an_example(series, tmp_path: Path) -> None:
    whole = prepare(planted.plant(series, 2, seed=0), request(tmp_path / "run"))
    reduced, canaries = planted.hidden(whole, 2, seed=0)
    before, after = whole.layout.windows, reduced.layout.windows
    lost = canaries.windows.starts[~canaries.coins]
    assert 0 < len(lost) < len(canaries.coins)
    assert set(before.starts) - set(after.starts) == set(lost)
    kept = np.isfinite(reduced.split.train.values[: whole.split.train.offsets[2]])
    np.testing.assert_array_equal(kept, np.isfinite(whole.split.train.values[: whole.split.train.offsets[2]]))


def test_a_model_that_remembers_its_data_is_caught_and_no_model_is_left(series, tmp_path: Path, monkeypatch) -> None:
    def remembers(prepared, windows):
        return {"memory": np.isfinite(prepared.split.train.values[windows.starts, 0]).astype(float)}

    monkeypatch.setattr(planted, "model_scores", remembers)
    black, white = planted.audit_request(series, request(tmp_path / "audit"), homes=5, canaries=50)
    assert black.auroc == black.true_positive_rate == 1.0
    assert black.broken
    assert black.lower > 1.5 * black.stated
    assert not white.broken
    run = tmp_path / "audit" / planted.RUN_FOLDER
    assert json.loads((run / "run.json").read_text())["source"].startswith(AUDITED)
    assert AUDITED in (run / "ledger.jsonl").read_text()
    assert not [*run.rglob("*.safetensors"), *run.glob("model.json")]
    coins = json.loads((tmp_path / "audit" / planted.COINS).read_text())["inside"]
    assert len(coins) == black.canaries
    assert [one["attack"] for one in json.loads((tmp_path / "audit" / planted.RESULT).read_text())] == [
        "black box",
        "white box",
    ]
    with pytest.raises(UserError, match="not an empty folder"):
        planted.audit_request(series, request(tmp_path / "audit"))


def test_an_output_of_zero_scores_nothing(series, tmp_path: Path, monkeypatch) -> None:
    prepared = prepare(planted.plant(series, 1, seed=0), request(tmp_path / "run"))
    _, canaries = planted.hidden(prepared, 1, seed=0)
    prepared.train()
    spec = planted.load_model(prepared.folder)[1]
    fresh = DiffusionTransformer(spec.network)  # its output begins at zero
    monkeypatch.setattr(planted, "load_model", lambda folder: (fresh, spec))
    monkeypatch.setattr(planted, "DRAWS", 2)
    scores = planted.model_scores(prepared, canaries.windows)
    assert set(scores) == {"imputation", "denoising"}
    for values in scores.values():
        np.testing.assert_array_equal(values, np.zeros(len(canaries.coins)))


def test_an_audited_run_is_not_released(series, tmp_path: Path) -> None:
    asked = request(tmp_path / "run", epsilon=8.0, test_only=False)
    prepared = prepare(planted.plant(series, 1, seed=0), asked)
    config = prepared.config.model_copy(update={"source": f"{AUDITED}homes.csv"})
    replace(prepared, config=config).train()
    with pytest.raises(UserError, match="audited with planted homes and must never be released"):
        release(tmp_path / "run", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [({"layout": "overlapping"}, "leave out `layout`"), ({"resume": True}, "leave out `layout` and `resume`")],
)
def test_what_cannot_be_audited_is_said(series, tmp_path: Path, chosen: dict, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        planted.audit_request(series, request(tmp_path / "audit", **chosen))
