"""The solver in the angle against solutions that are known, or that thousands of small steps give.

For a mixture Σ_k p_k N(m_k, s_k²) the velocity is E[−sin φ x_0 + cos φ ε | x] in closed form. For one Gaussian the exact path
that starts at ξ ends at m + s ξ. None of the mixtures here was used to find the solver's weights.
"""

import numpy as np
import pytest
import torch

from tamedit.diffusion.angle import FITTED, AngleSolver, AngleSteps, angle_steps
from tamedit.diffusion.process import Process

PROCESS = Process()
NOISE = torch.linspace(-3.3, 3.3, 101, dtype=torch.float64)
DENSITY = torch.softmax(-NOISE.square() / 2, 0)
MIXTURES = {  # p, m, s of both parts
    "two peaks": ((0.6, 0.4), (-0.4, 0.9), (0.4, 0.9)),
    "two narrow peaks": ((0.5, 0.5), (-1.2, 1.2), (0.4, 0.6)),
    "heavy tails": ((0.8, 0.2), (0.0, 0.0), (0.5, 2.0)),
    "a rare high load": ((0.9, 0.1), (-0.2, 1.8), (0.35, 0.9)),
}


def velocity(x: torch.Tensor, angle: float, parts: tuple[tuple[float, ...], ...]) -> torch.Tensor:
    share, mean, deviation = (torch.tensor(part, dtype=torch.float64) for part in parts)
    signal, noise = np.cos(angle), np.sin(angle)
    variance = (signal * deviation) ** 2 + noise**2
    away = x[:, None] - signal * mean
    part = torch.softmax(share.log() - variance.log() / 2 - away.square() / (2 * variance), -1)
    clean, epsilon = mean + signal * deviation**2 / variance * away, noise / variance * away
    return (part * (signal * epsilon - noise * clean)).sum(-1)


def ends(steps: AngleSteps, parts: tuple[tuple[float, ...], ...]) -> torch.Tensor:
    """Where the solver carries NOISE."""
    solver, x = AngleSolver(steps), NOISE
    for angle in steps.angles[:-1].tolist():
        x = solver.step(velocity(x, angle, parts)[:, None, None], x[:, None, None]).flatten()
    return x


def exact(parts: tuple[tuple[float, ...], ...], steps: int = 2000) -> torch.Tensor:
    """By Heun's rule, from the angle at which the process ends."""
    x, angle = NOISE, float(angle_steps(PROCESS, 1).angles[0])
    move = -angle / steps
    for _ in range(steps):
        now = velocity(x, angle, parts)
        x = x + move / 2 * (now + velocity(x + move * now, angle + move, parts))
        angle += move
    return x


def deviation(x: torch.Tensor) -> float:
    mean = (x * DENSITY).sum()
    return float((((x - mean).square()) * DENSITY).sum().sqrt())


@pytest.mark.parametrize("spread", [0.1, 0.2, 0.4, 0.7, 1.5, 3.0, 6.0, 12.0])
@pytest.mark.parametrize("calls", FITTED)
def test_few_calls_give_a_gaussian_its_deviation(calls: int, spread: float) -> None:
    """From a cell that is nearly known to a total of many hours: the path is a straight line, and its slope is the deviation."""
    for mean in (0.0, 0.8):
        end = ends(angle_steps(PROCESS, calls), ((1.0,), (mean,), (spread,)))
        slope = float((end[-1] - end[0]) / (NOISE[-1] - NOISE[0]))
        assert slope == pytest.approx(spread, rel=0.045 if calls == 6 else 0.02)
        assert end[50].item() == pytest.approx(mean, abs=0.04 * spread + (0.06 if calls == 6 else 0.02) * abs(mean))


@pytest.mark.parametrize("name", MIXTURES)
@pytest.mark.parametrize(("calls", "path", "spread"), [(6, 0.08, 0.05), (8, 0.03, 0.02), (12, 0.012, 0.01)])
def test_paths_of_other_distributions_end_where_fine_ones_do(calls: int, path: float, spread: float, name: str) -> None:
    fine, few = exact(MIXTURES[name]), ends(angle_steps(PROCESS, calls), MIXTURES[name])
    away = ((few - fine).square() * DENSITY).sum().sqrt().item()
    assert away < path * deviation(fine)
    assert deviation(few) == pytest.approx(deviation(fine), rel=spread)


@pytest.mark.parametrize("name", MIXTURES)
def test_other_numbers_of_calls_are_of_second_order(name: str) -> None:
    """Twice the calls, a quarter of the error."""
    fine = exact(MIXTURES[name])
    error = [(ends(angle_steps(PROCESS, calls), MIXTURES[name]) - fine).abs().max().item() for calls in (32, 64)]
    assert 3 < error[0] / error[1] < 5.5


@pytest.mark.parametrize("calls", [1, 2, 5, 6, 8, 12, 40])
def test_steps_go_down_from_the_last_time(calls: int) -> None:
    steps = angle_steps(PROCESS, calls)
    assert len(steps.times) == len(steps.weights) == len(steps.angles) - 1 == calls
    assert steps.times[0] == PROCESS.steps - 1
    assert (steps.times.diff() < 0).all()
    every = torch.atan2(PROCESS.noise, PROCESS.signal)
    angle = every[steps.times]
    torch.testing.assert_close(steps.angles, torch.cat([angle, torch.zeros(1)]))
    if calls in FITTED:  # whole times lie at most half a step from the wanted angles
        wanted = torch.tensor(FITTED[calls][0]) * angle[0]
        assert (angle - wanted).abs().max() < 0.51 * every.diff().max()


def test_a_process_that_is_too_short_takes_what_it_has() -> None:
    """Weights of another number of calls would be wrong there."""
    process = Process(steps=6)
    steps = angle_steps(process, 8)
    assert len(steps.times) <= 6
    moves = steps.angles.diff()
    torch.testing.assert_close(steps.weights[1:], moves[1:] / (2 * moves[:-1]))
