"""AdamW for noisy gradients: AdamW itself without noise, and unbiased with it."""

import copy

import torch

from tamedit.runs.config import TrainingConfig
from tamedit.training.optimizer import NoisyAdamW, make_optimizer


def test_without_noise_it_is_adamw() -> None:
    torch.manual_seed(0)
    ours = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Linear(7, 2))
    theirs = copy.deepcopy(ours)
    one = NoisyAdamW(ours.parameters(), lr=1e-2, weight_decay=0.1)
    other = torch.optim.AdamW(theirs.parameters(), lr=1e-2, weight_decay=0.1)
    for _ in range(20):
        for mine, its in zip(ours.parameters(), theirs.parameters(), strict=True):
            mine.grad = torch.randn_like(mine)
            its.grad = mine.grad.clone()
        one.step()
        other.step()
    for mine, its in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, its, rtol=1e-6, atol=1e-8)


def test_the_noise_is_taken_out_of_the_second_moment() -> None:
    """A constant gradient under noise moves as far as without: |g| / √(E(g + n)² − φ) = 1, while AdamW's step shrinks."""
    torch.manual_seed(1)
    signal, deviation, steps = 3.0, 2.0, 400
    distances = {}
    for name, known in (("corrected", deviation**2), ("not", 0.0)):
        weight = torch.nn.Parameter(torch.zeros(2000))
        optimizer = NoisyAdamW([weight], lr=1e-3, weight_decay=0.0, noise_variance=known, noise_floor=1e-3)
        for _ in range(steps):
            weight.grad = signal + deviation * torch.randn(2000)
            optimizer.step()
        distances[name] = float(-weight.detach().mean()) / (steps * 1e-3)
    assert abs(distances["corrected"] - 1) < 0.03
    expected = signal / (signal**2 + deviation**2) ** 0.5
    assert abs(distances["not"] - expected) < 0.02


def test_a_coordinate_of_noise_alone_is_not_blown_up() -> None:
    torch.manual_seed(2)
    weight = torch.nn.Parameter(torch.zeros(5000))
    optimizer = NoisyAdamW([weight], lr=1.0, weight_decay=0.0, noise_variance=4.0)
    for _ in range(30):
        before = weight.detach().clone()
        weight.grad = 2.0 * torch.randn(5000)
        optimizer.step()
    step = (weight.detach() - before).square().mean().sqrt()
    # m̂ of pure noise has variance φ (1 − β₁) / (1 + β₁) in the long run, and the divisor is at least √φ.
    assert float(step) < 1.2 * (0.1 / 1.9) ** 0.5


def test_a_configuration_chooses() -> None:
    weight = [torch.nn.Parameter(torch.zeros(3))]
    assert isinstance(make_optimizer(weight, TrainingConfig(noise_correction=True)), NoisyAdamW)
    assert type(make_optimizer(weight, TrainingConfig())) is torch.optim.AdamW
