"""The solver for networks that predict the velocity: one call per step, and no error at all where the network says nothing.

With signal cos φ and noise sin φ, a noised cell is x_φ = cos φ · x_0 + sin φ · ε. Solutions of the ordinary differential equation

    dx / dφ = E[−sin φ · x_0 + cos φ · ε | x_φ] = v(x_φ, φ)

carry noise (φ = π/2) to data (φ = 0), and v is the network's own answer. A network whose output is 0 leaves the starting noise as
it is, for any number of steps: before any training, the samples of the anchored form are exact draws from the free
distribution. A step looks at two velocities,

    x ← x + h (v + w (v − v_before)),        h = φ_next − φ.

For 6, 8 (the default) and 12 calls, `FITTED` has the angles, as shares of the first one, and the weights w. They are those whose
paths end nearest to the exact ones for Gaussians with deviations from 0.1 to 12 and for mixtures with two peaks, skew or heavy
tails, where v is known: `tools/solver_weights.py` finds them, and nothing of them was fitted to data or to a network. With 8
calls the deviations and means of Gaussians come out within 2 %, with 6 within 6 %.

Any other number of calls takes Adams–Bashforth's weights, w = h / (2 h_before), which need about 50 calls to be as exact. Their
angles are finer at both ends: towards the data, where well predicted cells move most, and towards the noise, where that moves
which many cells have in common,

    φ_n = φ_T (EVEN u + (1 − EVEN) (1 − cos π u) / 2),        u = (1 − n / N)^BEND.

A distilled student (`distillation`) has its own angles, w = 0 everywhere, and no others: `Process.calls` names them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from tamedit.diffusion.process import Process

FITTED = {  # by number of calls: shares of the first angle, and weights of the velocity before
    6: ((1.0, 0.9537, 0.7513, 0.5919, 0.3207, 0.0981), (0.0, 0.656, 0.737, 0.669, 0.619, 1.45)),
    8: (
        (1.0, 0.9605, 0.8174, 0.7391, 0.5686, 0.4456, 0.2344, 0.0716),
        (0.0, 0.688, 0.717, 0.728, 0.671, 0.488, 0.634, 1.254),
    ),
    12: (
        (1.0, 0.9667, 0.884, 0.826, 0.7642, 0.6976, 0.6111, 0.5252, 0.4089, 0.3035, 0.167, 0.0496),
        (0.0, 0.786, 0.388, 0.605, 0.664, 0.567, 0.494, 0.48, 0.518, 0.467, 0.605, 1.1),
    ),
}
BEND, EVEN = 1.15, 0.7


@dataclass(frozen=True, eq=False)
class AngleSteps:
    """The steps of a solver: times to ask the network at, the angles there and after the last, weights of the velocity before."""

    times: Int64[Tensor, " N"]
    angles: Float[Tensor, " N1"]
    weights: Float[Tensor, " N"]


def every_angle(process: Process) -> Float[Tensor, " T"]:
    """φ of every time step, rising with the time."""
    return torch.atan2(process.noise.double(), process.signal.double())


def straight_steps(process: Process, calls: Sequence[int]) -> AngleSteps:
    """Steps from these times that look at one velocity each."""
    times = torch.tensor(calls, dtype=torch.int64)
    every = every_angle(process)
    return AngleSteps(times, torch.cat([every[times], every.new_zeros(1)]).float(), torch.zeros(len(times)))


def angle_steps(process: Process, steps: int) -> AngleSteps:
    """N calls of the network, from the last time of the process down; each at a whole time step, with the angle of that step."""
    every = every_angle(process)
    if process.calls is not None:
        return straight_steps(process, process.calls)
    left = (1 - torch.arange(steps, dtype=torch.float64) / steps) ** BEND
    even = EVEN * left + (1 - EVEN) * (1 - torch.cos(torch.pi * left)) / 2
    shares = torch.tensor(FITTED[steps][0], dtype=torch.float64) if steps in FITTED else even
    times = torch.searchsorted((every[1:] + every[:-1]) / 2, every[-1] * shares)  # the nearest whole steps
    times = torch.unique(times).flip(0)  # a short process may not have so many
    angles = torch.cat([every[times], every.new_zeros(1)])
    moves = angles.diff()
    weights = torch.cat([moves.new_zeros(1), moves[1:] / (2 * moves[:-1])])
    if steps in FITTED and len(times) == steps:
        weights = torch.tensor(FITTED[steps][1], dtype=torch.float64)
    return AngleSteps(times, angles.float(), weights.float())


class AngleSolver:
    """Carries noise to data along the steps; remembers the velocity before."""

    def __init__(self, steps: AngleSteps) -> None:
        self.steps = steps
        self.number, self.before = 0, None  # type: int, Tensor | None

    def step(self, velocity: Float[Tensor, "B L K"], noised: Float[Tensor, "B L K"]) -> Float[Tensor, "B L K"]:
        """x at the next angle."""
        move = float(self.steps.angles[self.number + 1] - self.steps.angles[self.number])
        slope = velocity
        if self.before is not None:
            slope = torch.lerp(self.before, velocity, 1 + float(self.steps.weights[self.number]))
        self.before, self.number = velocity, self.number + 1
        return noised + move * slope
