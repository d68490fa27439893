"""The student's end against a path that is known: for N(m, s²) the noise ξ is carried along

    x_φ = cos φ · m + √(cos² φ · s² + sin² φ) · ξ

to m + s ξ, so the average velocity between two angles is known, too.
"""

import pytest
import torch

from tamedit.diffusion.angle import AngleSteps, angle_steps, every_angle
from tamedit.diffusion.distillation import Paths, carried, end_loss, unknown
from tamedit.diffusion.process import Process
from tamedit.windows.batch import Context

MEAN, DEVIATION, LENGTH = 0.7, 0.4, 5


class Nothing:
    def repeat(self, times: int) -> "Nothing":
        return self


class Line:
    """Answers a x + b at each of its times. No network of ours: a student may be any denoiser."""

    def __init__(self, slopes: dict[int, tuple[float, float]]) -> None:
        names = sorted(slopes)
        self.places = {time: place for place, time in enumerate(names)}
        self.table = torch.tensor([slopes[time] for time in names]).requires_grad_(True)

    def prepare(self, context: Context) -> Nothing:
        return Nothing()

    def denoise(self, noised: torch.Tensor, time: torch.Tensor, prepared: Nothing) -> torch.Tensor:
        slope, level = self.table[self.places[int(time[0])]]
        return slope * noised + level


def average(steps: AngleSteps) -> dict[int, tuple[float, float]]:
    """The average velocity of the exact path, as a line in x, for every step."""
    found = {}
    angles = steps.angles.double()
    spread = (angles.cos().square() * DEVIATION**2 + angles.sin().square()).sqrt()
    for number, time in enumerate(steps.times.tolist()):
        move = angles[number + 1] - angles[number]
        grows = spread[number + 1] / spread[number]
        slope = (grows - 1) / move
        level = MEAN * (angles[number + 1].cos() - grows * angles[number].cos()) / move
        found[time] = (float(slope), float(level))
    return found


def context(batch: int = 3) -> Context:
    observed = torch.zeros(batch, LENGTH, 2)
    observed[:, 0, 0] = 1
    channels = torch.ones(batch, 2)
    channels[1, 1] = 0  # padding
    empty = torch.zeros(batch, LENGTH, 0)
    return Context(observed * 9, observed, torch.zeros(batch, LENGTH, 2), empty, channels)


def student_of(calls: int) -> Process:
    return Process(calls=tuple(angle_steps(Process(), calls).times.tolist()))


def paths(process: Process) -> Paths:
    """Noise, and where the exact path of N(m, s²) ends that is there at the process's last time."""
    noise, last = torch.randn(3, LENGTH, 2, generator=torch.Generator().manual_seed(0)), every_angle(process)[-1]
    spread = (last.cos().square() * DEVIATION**2 + last.sin().square()).sqrt()
    seen = context()
    end = MEAN + DEVIATION * (noise.double() - last.cos() * MEAN) / spread
    return Paths(seen, noise, end.float() * unknown(seen))


@pytest.mark.parametrize("calls", [1, 2, 4])
def test_the_average_velocity_lands_on_the_exact_end(calls: int) -> None:
    process = student_of(calls)
    steps = angle_steps(process, calls)
    assert len(steps.times) == calls
    assert steps.weights.tolist() == [0.0] * calls
    exact, wanted = Line(average(steps)), paths(process)
    assert end_loss(exact, wanted, steps).max() < 1e-9
    other = average(steps)
    first = int(steps.times[0])
    other[first] = (other[first][0], other[first][1] + 0.1)
    assert end_loss(Line(other), wanted, steps).min() > 1e-4


def test_learning_by_gradients_finds_it() -> None:
    """From slopes of zero, by the gradient through both calls."""
    process = student_of(2)
    steps, wanted = angle_steps(process, 2), paths(process)
    student = Line(dict.fromkeys(steps.times.tolist(), (0.0, 0.0)))
    optimizer = torch.optim.Adam([student.table], lr=0.05)
    for _ in range(150):
        optimizer.zero_grad()
        end_loss(student, wanted, steps).mean().backward()
        assert student.table.grad is not None
        assert (student.table.grad != 0).all() or float(student.table.grad.abs().max()) < 1e-4
        optimizer.step()
    assert end_loss(student, wanted, steps).max() < 1e-4


def test_observed_cells_and_padding_do_not_count() -> None:
    process = student_of(1)
    steps, wanted = angle_steps(process, 1), paths(process)
    student = Line(average(steps))
    ends = carried(student, wanted.context, wanted.noise, steps)
    assert (ends[:, 0, 0] == 0).all()
    assert (ends[1, :, 1] == 0).all()
    wrong = wanted.end + 5 * (1 - unknown(wanted.context))
    apart = end_loss(student, Paths(wanted.context, wanted.noise, wrong), steps)
    torch.testing.assert_close(apart, end_loss(student, wanted, steps))
    nothing = Context(*(torch.ones(2, LENGTH, 1) for _ in range(4)), torch.ones(2, 1))  # every cell is observed
    assert end_loss(student, Paths(nothing, torch.ones(2, LENGTH, 1), torch.zeros(2, LENGTH, 1)), steps).sum() == 0
    assert len(wanted[1:]) == 2
