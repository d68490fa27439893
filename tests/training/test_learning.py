"""The loop learns what can be learned, and validation never changes it."""

from pathlib import Path

import numpy as np
import torch
from torch import nn

from tamedit.runs.config import Speed, TrainingConfig
from tamedit.training.loop import GradientSource, Trainer


class Quadratic(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.point = nn.Parameter(torch.tensor([3.0, -2.0]))


def make_trainer(folder: Path, steps: int = 300, **options: object) -> tuple[Trainer, GradientSource]:
    network = Quadratic()

    def source(step: int) -> dict[str, float]:
        loss = (network.point - torch.tensor([1.0, 1.0])).square().sum()
        network.zero_grad()
        loss.backward()
        return {"loss": float(loss.detach())}

    config = TrainingConfig(steps=steps, warmup=0, learning_rate=0.1, ema=0.9, weight_decay=0, validate_every=10)
    return Trainer(network, config, folder, speed=Speed(log_every=50), **options), source  # type: ignore[arg-type]


def test_it_finds_the_minimum(tmp_path: Path) -> None:
    trainer, source = make_trainer(tmp_path)
    assert trainer.run(source).finished
    np.testing.assert_allclose(trainer.weights()["point"], [1, 1], atol=1e-2)
    assert [row["step"] for row in trainer.metrics.read()] == [50, 100, 150, 200, 250, 300]


def test_validation_sees_the_average_and_leaves_the_weights_alone(tmp_path: Path) -> None:
    seen = []
    plain, plain_source = make_trainer(tmp_path / "plain", steps=50)
    looked, looked_source = make_trainer(
        tmp_path / "looked", steps=50, validate=lambda network: seen.append(network.point.detach().clone()) or 1.0
    )
    plain.run(plain_source)
    looked.run(looked_source)
    assert torch.equal(plain.network.point, looked.network.point)  # type: ignore[arg-type]
    assert torch.equal(seen[-1], looked.average.weights["point"])
    assert not torch.equal(seen[-1], looked.network.point)  # type: ignore[arg-type]


def test_the_best_average_is_kept(tmp_path: Path) -> None:
    losses = iter([3.0, 1.0, 2.0, 2.5, 2.6])
    trainer, source = make_trainer(tmp_path, steps=50, validate=lambda network: next(losses))
    trainer.config = trainer.config.model_copy(update={"select": "best"})
    points = {}
    trainer.progress = lambda step, steps, numbers: points.update({step: trainer.average.weights["point"].clone()})
    trainer.run(source)
    assert trainer.best_loss == 1.0
    assert torch.equal(trainer.weights()["point"], points[20])
    again, _ = make_trainer(tmp_path, steps=50)
    again.resume()
    assert again.best_loss == 1.0, "a later loss of 2 is no best one after a break either"
    assert torch.equal(again.best["point"], points[20])
