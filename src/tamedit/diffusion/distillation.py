"""Distillation: a student whose few calls land where the teacher's many calls land.

From a starting noise x_{φ_T} = ξ the teacher's velocity v carries one exact path, dx/dφ = v(x, φ), to its end x_0(ξ). A step of a
student that is on this path at φ_n, and is to be on it at φ_{n+1}, needs the path's average velocity between the two,

    x_{φ_{n+1}} = x_{φ_n} + h ū,        ū = (1/h) ∫_{φ_n}^{φ_{n+1}} v dφ = (x_{φ_{n+1}} − x_{φ_n}) / h,        h = φ_{n+1} − φ_n.

So a network that answers ū in the place of v makes no error with plain steps, however few. It remembers no velocity before. It
is the teacher's network, from the teacher's weights, trained on all of its N calls together, as they are used,

    x̂_{n+1} = x̂_n + h_n u_θ(x̂_n, φ_n),        ℓ_i = Σ_{unknown cells} (x̂_N − x_0)² / max(1, number of unknown cells of window i).

A later call thus sees what earlier ones made, and mends it. Nothing is asked of the points between. The loss knows the context
and the teacher's answers: no reading that is hidden, and no clean value.
"""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from tamedit.diffusion.angle import AngleSolver, AngleSteps
from tamedit.diffusion.sample import Denoiser, P
from tamedit.windows.batch import Context


@dataclass(frozen=True, eq=False)
class Paths:
    """Windows with a starting noise each, and where the teacher carries it."""

    context: Context
    noise: Float[Tensor, "B L K"]
    end: Float[Tensor, "B L K"]

    def __len__(self) -> int:
        return len(self.noise)

    def __getitem__(self, rows: slice | Tensor) -> "Paths":
        return Paths(self.context[rows], self.noise[rows], self.end[rows])


def unknown(context: Context) -> Float[Tensor, "B L K"]:
    """1 at cells of real channels that are not observed."""
    return (1 - context.observed) * context.channels[:, None, :]


def carried(
    network: Denoiser[P], context: Context, noise: Float[Tensor, "B L K"], steps: AngleSteps
) -> Float[Tensor, "B L K"]:
    """Where these steps carry the noise; 0 at cells that are not asked for. It has gradients, where they are wanted."""
    prepared, solver, wanted = network.prepare(context), AngleSolver(steps), unknown(context)
    x = noise * wanted
    for time in steps.times:
        x = solver.step(network.denoise(x, time.to(x.device).expand(len(x)), prepared), x) * wanted
    return x


def end_loss(student: Denoiser[P], paths: Paths, steps: AngleSteps) -> Float[Tensor, " B"]:
    """The mean squared distance of the student's ends from the teacher's, over the unknown cells of each window."""
    wanted = unknown(paths.context)
    apart = (carried(student, paths.context, paths.noise, steps) - paths.end) * wanted
    return apart.square().sum((1, 2)) / wanted.sum((1, 2)).clamp_min(1)
