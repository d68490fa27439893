"""Schedules, averages, metrics and checkpoints, each against its definition."""

import json
import math
from pathlib import Path

import pytest
import torch
from torch import nn

from tamedit.errors import UserError
from tamedit.runs.config import TrainingConfig
from tamedit.training.checkpoint import State, load_state, optimizer_tensors, restore_optimizer, save_state
from tamedit.training.ema import MovingAverage
from tamedit.training.metrics_log import MetricsLog


def test_the_defaults_are_the_papers() -> None:
    config = TrainingConfig()
    chosen = (config.steps, config.batch_size, config.learning_rate, config.weight_decay, config.warmup, config.ema)
    assert chosen == (20_000, 96, 7e-4, 2e-5, 1000, 0.999)


def test_warm_up_is_linear_and_the_cosine_ends_low() -> None:
    config = TrainingConfig(steps=100, warmup=10, learning_rate=1.0, decay="cosine")
    plain = TrainingConfig(steps=100, warmup=10, learning_rate=1.0)
    assert [plain.rate(step) for step in (0, 4, 9, 50, 99)] == pytest.approx([0.1, 0.5, 1, 1, 1])
    assert config.rate(50) == pytest.approx(0.02 + 0.98 * 0.5)
    assert config.rate(99) == pytest.approx(0.02 + 0.49 * (1 + math.cos(math.pi * 0.99)))
    assert TrainingConfig(warmup=0).rate(0) == 7e-4


def test_unknown_settings_are_errors() -> None:
    with pytest.raises(ValueError, match="noise"):
        TrainingConfig(noise_mutliplier=1.0)  # type: ignore[call-arg]


def test_the_average_is_its_definition() -> None:
    network, decay = nn.Linear(3, 2).double(), 0.7
    average = MovingAverage(network, decay)
    expected = network.weight.detach().clone()
    for step in range(1, 20):
        network.weight.data += torch.randn_like(network.weight)
        average.update(network, step)
        used = min(decay, (1 + step) / (10 + step))
        expected = used * expected + (1 - used) * network.weight.detach()
    torch.testing.assert_close(average.weights["weight"], expected)


def test_metrics_rewind_and_torn_lines(tmp_path: Path) -> None:
    log = MetricsLog(tmp_path / "metrics.jsonl")
    for step in range(5):
        log.write({"step": step, "loss": 0.5})
    with open(log.path, "a") as file:
        file.write('{"step": 5, "lo')
    assert [row["step"] for row in log.read()] == [0, 1, 2, 3, 4]
    log.rewind(2)
    assert [json.loads(line)["step"] for line in log.path.read_text().splitlines()] == [0, 1, 2]


def test_checkpoints_keep_every_bit(tmp_path: Path) -> None:
    network = nn.Linear(4, 3)
    names = [name for name, _ in network.named_parameters()]
    optimizer = torch.optim.AdamW(network.parameters())
    network(torch.randn(2, 4)).sum().backward()
    optimizer.step()
    tensors = {f"network/{name}": value for name, value in network.named_parameters()} | optimizer_tensors(
        optimizer, names
    )
    save_state(tmp_path / "a.safetensors", State(7, 1.5, 0.25, tensors))
    state = load_state(tmp_path / "a.safetensors")
    assert (state.step, state.seconds, state.best_loss) == (7, 1.5, 0.25)
    fresh = torch.optim.AdamW(network.parameters())
    restore_optimizer(fresh, names, state.group("optimizer"))
    before, after = optimizer.state_dict()["state"], fresh.state_dict()["state"]
    for index in before:
        for key in before[index]:
            assert torch.equal(torch.as_tensor(before[index][key]), torch.as_tensor(after[index][key]))


@pytest.mark.parametrize("content", [b"", b"not a checkpoint", b"\x08\x00\x00\x00\x00\x00\x00\x00{}      "])
def test_a_damaged_checkpoint_is_one_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.safetensors").write_bytes(content)
    with pytest.raises(UserError, match="not a checkpoint that can be resumed"):
        load_state(tmp_path / "a.safetensors")
