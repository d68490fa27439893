"""The private gradient: what it is made of, what neighbours change, and that the noise is there."""

import os
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from tamedit.data.scaling import fit_scaling
from tamedit.data.simulate import simulate
from tamedit.diffusion.loss import denoising_loss
from tamedit.diffusion.process import Process
from tamedit.model.bounds import Bounds
from tamedit.model.dit import DiffusionTransformer
from tamedit.model.zoo import NetworkConfig
from tamedit.privacy.plan import PrivacyPlan
from tamedit.privacy.settings import Privacy
from tamedit.training.distributed import World
from tamedit.training.private.budget import Budget, stream_seed
from tamedit.training.private.gradients import PrivateGradients
from tamedit.training.source import engine_losses, noised_batch
from tamedit.windows.cut import Windows, cut_blocks
from tamedit.windows.examples import ANCHOR_FEATURES, ExampleConfig, Examples
from tamedit.windows.masks import MaskConfig

PRIVACY = Privacy(noise_multiplier=1.0, unit="window", test_only=True)


def make_network(seed: int = 0) -> DiffusionTransformer:
    torch.manual_seed(seed)
    bounds = Bounds(condition=3.0, scale=1.0, shift=1.0, gate=1.0)
    config = NetworkConfig(
        target_channels=1,
        anchor_features=ANCHOR_FEATURES["free"],
        length=24,
        depth=1,
        width=16,
        heads=2,
        bounds=(bounds,),
    )
    network = DiffusionTransformer(config)
    for parameter in network.parameters():
        parameter.data += 0.05 * torch.randn_like(parameter)
    return network


def make_examples(count: int = 40, span: int = 30) -> Examples:
    series = simulate(meters=count, hours=span, seed=2, outage_rate=0)
    windows = cut_blocks(series, 24, None)
    assert len(windows) == count
    return Examples(windows, MaskConfig(), fit_scaling("instance", series), ExampleConfig(period=24), seed=5)


def make_source(examples: Examples, network: DiffusionTransformer | None = None, **changes: object) -> PrivateGradients:
    fields = {
        "unit": "window", "examples": len(examples), "sampling_rate": 0.5, "clip": 0.7, "noise_multiplier": 1.5,
        "steps": 10, "delta": 1e-5, "draws": 2, "test_only": True, "seed": 3, **changes,
    }  # fmt: skip
    plan = PrivacyPlan(**fields)
    budget = Budget(plan, PRIVACY, None, World())
    process = Process()
    source = PrivateGradients(network or make_network(), process, engine_losses(process), budget, len(examples))
    return source.over(examples, until=10)


def gradient_of(source: PrivateGradients, step: int = 0) -> torch.Tensor:
    source(step)
    return torch.cat([parameter.grad.flatten() for parameter in source.network.parameters()]).clone()


def without_noise(source: PrivateGradients) -> PrivateGradients:
    source.noise.add_ = lambda tensors, step=None: None  # type: ignore[method-assign]
    return source


def test_it_is_the_slow_definition() -> None:
    """Σ over the sample of the clipped mean gradient of G draws, by one backward pass an example, over the divisor."""
    examples, step = make_examples(), 4
    source = without_noise(make_source(examples))
    fast = gradient_of(source, step)
    network, slow = source.network, torch.zeros_like(fast)
    for index in source.sampler.sample(step):
        batch, time, epsilon = noised_batch(examples, np.array([index]), step, source.process, draws=2)
        network.zero_grad()
        denoising_loss(network, batch, time, epsilon, source.process).mean().backward()
        one = torch.cat([parameter.grad.flatten() for parameter in network.parameters()])
        slow += one * min(1.0, 0.7 / one.norm().item())
    torch.testing.assert_close(fast, slow / (0.5 * 40), rtol=1e-4, atol=1e-6)


def test_the_noise_has_the_stated_size_and_is_there_when_the_batch_is_empty() -> None:
    source = make_source(make_examples(), sampling_rate=1e-9, divisor=20.0)
    assert len(source.sampler.sample(0)) == 0
    drawn = gradient_of(source)
    expected = 1.5 * 0.7 / 20.0
    assert drawn.std().item() == pytest.approx(expected, rel=4 / np.sqrt(2 * len(drawn)))
    assert abs(drawn.mean().item()) < 4 * expected / np.sqrt(len(drawn))


def test_noise_is_added_once_to_the_sum_whatever_the_micro_batch() -> None:
    examples = make_examples()
    whole = gradient_of(make_source(examples))
    source = make_source(examples)
    source.engine.micro_batch = 3
    torch.testing.assert_close(gradient_of(source), whole, rtol=1e-4, atol=1e-6)


def test_neighbours_move_the_sum_by_at_most_the_clip() -> None:
    """One meter's readings replaced by anything: the sum moves by at most 2 C; taken out of the sample, by at most C."""
    examples = make_examples()
    before = gradient_of(without_noise(make_source(examples, sampling_rate=1.0))) * 40
    for wild in (0.0, 1e3, 1e30, np.nan):
        series = examples.windows.series
        values = series.values.copy()
        values[series.offsets[7] : series.offsets[8]] *= wild
        changed = Windows(
            type(series)(**{**vars(series), "values": values}), examples.windows.starts, 24, examples.windows.spans
        )
        other = Examples(changed, examples.masks, examples.scaling, examples.config, examples.seed)
        after = gradient_of(without_noise(make_source(other, sampling_rate=1.0))) * 40
        assert torch.isfinite(after).all()
        assert (after - before).norm() <= 2 * 0.7 * (1 + 1e-5)

    source = without_noise(make_source(examples, sampling_rate=1.0))
    source.sampler.sample = lambda step: np.delete(np.arange(40), 7)  # type: ignore[method-assign]
    assert (gradient_of(source) * 40 - before).norm() <= 0.7 * (1 + 1e-5)


class SameDraws(Examples):
    """Examples after the removal of one, each with the draws that it had before."""

    def names(self, indices: np.ndarray, draws: int) -> np.ndarray:  # type: ignore[override]
        return Examples.names(indices + (indices >= 7), draws)


def test_a_meter_that_leaves_the_data_moves_the_sum_by_at_most_the_clip() -> None:
    """All later meters move up one position. With the draws that they had (any: they are secret and independent of the data)
    the sum moves by at most C; with those of a known seed at their new positions it would not."""
    examples = make_examples()
    before = gradient_of(without_noise(make_source(examples, sampling_rate=1.0, divisor=1.0)))
    series = examples.windows.series.select(np.delete(np.arange(40), 7))
    left = (cut_blocks(series, 24, None), examples.masks, examples.scaling, examples.config, examples.seed)
    moved = []
    for kind in (SameDraws, Examples):
        source = without_noise(make_source(kind(*left), sampling_rate=1.0, divisor=1.0))
        moved.append(float((gradient_of(source) - before).norm()))
    assert moved[0] <= 0.7 * (1 + 1e-5)
    assert moved[1] > 2 * 0.7


def test_the_draws_of_a_run_with_a_guarantee_are_secret() -> None:
    promised = Privacy(noise_multiplier=1.0, unit="window")
    seeds = {stream_seed(promised, 5, World()) for _ in range(4)}
    assert len(seeds) == 4
    assert min(seeds) > 2**40, "a small number could be guessed"
    assert stream_seed(PRIVACY, 5, World()) == 5


def test_crops_stay_inside_their_blocks_and_reach_every_place() -> None:
    series = simulate(meters=2, hours=100, seed=0)
    windows = cut_blocks(series, 24, 30)
    assert windows.starts.tolist() == [0, 30, 60, 100, 130, 160]
    uniform = np.linspace(0, 1, 1000, endpoint=False)
    shifts = windows.shifts(np.zeros(1000, dtype=np.int64), uniform)
    assert set(shifts.tolist()) == set(range(7))
    assert windows.shifts(np.array([0]), np.array([1.0])) == [6]


def test_blocks_align_with_the_calendar() -> None:
    series = simulate(meters=1, hours=24 * 40, seed=0, start="2023-01-03 05:00")
    windows = cut_blocks(series, 24, 168, align=168, phase=np.array([24 + 5]))
    first = series.times[windows.starts[0]]
    assert (first.dayofweek, first.hour) == (0, 0)
    assert np.all(np.diff(windows.starts) == 168)


PROGRAM = """
import sys, torch
torch.set_num_threads(1)
sys.path.insert(0, sys.argv[1])
import torch.distributed as dist
from test_private_gradients import gradient_of, make_examples, make_source, without_noise
from tamedit.training.distributed import join_world
source = make_source(make_examples())
source.world = join_world()
drawn = gradient_of(source, 2)
if source.world.first:
    torch.save(drawn, sys.argv[2])
source.world.wait()
dist.destroy_process_group()
"""


def test_two_processes_give_the_gradient_of_one(tmp_path: Path) -> None:
    alone = gradient_of(make_source(make_examples()), 2)
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, str(tmp_path / "program.py"), str(Path(__file__).parent), str(tmp_path / "gradient.pt")]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = {"OMP_NUM_THREADS": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    workers = [
        subprocess.Popen(command, env=os.environ | shared | {"RANK": str(rank)}, stderr=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    for worker in workers:
        _, errors = worker.communicate(timeout=120)
        assert worker.returncode == 0, errors[-2000:]
    both = torch.load(tmp_path / "gradient.pt", weights_only=True)
    torch.testing.assert_close(both, alone, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("steps", "most"), [(1, 1), (300, 4), (20_000, 21)])
def test_epsilon_is_computed_a_few_times_and_reused(steps: int, most: int) -> None:
    """Computing it at every step would cost more than the step's share; the first and the last value are always new."""
    asked: list[int] = []
    source = object.__new__(PrivateGradients)
    source.until, source.epsilon, source.recorder = steps, float("nan"), None
    source.plan = SimpleNamespace(unit="day", delta=1e-5)  # type: ignore[assignment]
    step = 0

    def epsilon(*arguments: object, **choices: object) -> SimpleNamespace:
        asked.append(step)
        return SimpleNamespace(value=float(step))

    source.ledger = SimpleNamespace(record=SimpleNamespace(epsilon=epsilon))  # type: ignore[assignment]
    losses = torch.zeros(1)
    for step in range(steps):
        said = source._numbers(step, losses, losses)["epsilon"]
        assert said == asked[-1]
        assert step - said < max(100, steps / 20)
    assert asked[0] == 0
    assert said == steps - 1
    assert len(asked) <= most
