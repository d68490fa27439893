"""A student of a tiny network comes closer to its teacher than the teacher itself does with as few calls."""

from pathlib import Path
from typing import Any

import pytest
import torch

from tamedit.data.calendar import network_covariates
from tamedit.data.scaling import Scaling
from tamedit.data.simulate import simulate
from tamedit.diffusion.process import Process
from tamedit.model.dit import DiffusionTransformer
from tamedit.model.zoo import NetworkConfig
from tamedit.runs.recipe import MASKS
from tamedit.training import student
from tamedit.training.loop import Outcome, Trainer
from tamedit.training.student import EndGradients, Stopped, learn, student_process
from tamedit.windows.cut import cut
from tamedit.windows.examples import ExampleConfig, Examples

SHAPE = NetworkConfig(target_channels=1, covariate_channels=6, anchor_features=4, length=24, depth=1, width=16, heads=2)
UNITS = Scaling("instance", (0.4,), (0.4,), (0.12,), (0.1,), "public")


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"FRESH": 32, "BATCH": 16, "HELD_OUT": 32, "AVERAGE": 0.9, "RATE": 5e-3}.items():
        monkeypatch.setattr(student, name, value)


@pytest.fixture
def teacher() -> DiffusionTransformer:
    """A network with something to say: its velocity changes with what it sees and when it is asked."""
    torch.manual_seed(0)
    network = DiffusionTransformer(SHAPE)
    for parameter in network.parameters():
        parameter.data += 0.15 * torch.randn_like(parameter)
    return network.eval()


@pytest.fixture
def examples() -> Examples:
    series = network_covariates(simulate(meters=3, hours=600, seed=4), True)
    return Examples(cut(series, 24, 1), MASKS, UNITS, ExampleConfig(), seed=0)


@pytest.mark.parametrize("calls", [1, 2])
def test_it_comes_closer(calls: int, teacher: DiffusionTransformer, examples: Examples) -> None:
    before = {name: value.clone() for name, value in teacher.named_parameters()}
    weights, apart, untrained = learn(teacher, examples, student_process(Process(), calls), 80)
    assert apart < 0.6 * untrained
    assert all(torch.equal(before[name], value) for name, value in teacher.named_parameters())
    assert set(weights) == set(before)
    assert not any(torch.equal(before[name], weights[name]) for name in ("output.weight", "output.bias"))


def test_it_is_a_function_of_the_seed(teacher: DiffusionTransformer, examples: Examples) -> None:
    process = student_process(Process(), 2)
    heard: list[tuple[int, int]] = []
    first = learn(teacher, examples, process, 3, lambda step, steps, numbers: heard.append((step, steps)))
    again = learn(teacher, examples, process, 3)
    assert heard == [(1, 3), (2, 3), (3, 3)]
    assert all(torch.equal(value, again[0][name]) for name, value in first[0].items())
    assert first[1:] == again[1:]


def test_paths_are_seen_a_few_times_and_then_come_fresh_ones(teacher: DiffusionTransformer, examples: Examples) -> None:
    source = EndGradients(teacher, teacher, examples, student_process(Process(), 1))
    seen = [source.batch(step).noise for step in range(4 * 2 + 1)]
    usual = {row.sum().item() for row in torch.cat(seen[:2])}
    assert len(usual) == 32  # two steps see every path once
    assert {row.sum().item() for row in torch.cat(seen[6:8])} == usual
    assert not usual & {row.sum().item() for row in seen[8]}


def test_someone_who_stops_it_gets_nothing(
    teacher: DiffusionTransformer, examples: Examples, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupted(trainer: Trainer, *given: Any) -> Outcome:
        return Outcome(1, False, 0.0)

    monkeypatch.setattr(Trainer, "run", interrupted)
    with pytest.raises(Stopped):
        learn(teacher, examples, student_process(Process(), 1), 3)
