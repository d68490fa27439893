"""Finds angles and weights of the solver for a small number of calls: `python tools/solver_weights.py --calls 6 8 12`.

Targets are mixtures of two Gaussians, Σ_k p_k N(m_k, s_k²). Their velocity E[−sin φ x_0 + cos φ ε | x] is known at every angle
(`Distributions.velocity`), and so is, by Runge–Kutta's rule with 600 steps, the end of the path from any starting noise. We look
for the angles φ_n and the weights w_n of

    x ← x + (φ_{n+1} − φ_n) (v + w_n (v − v_before))

whose ends are nearest to these: over Gaussians with deviations from 0.1 (a cell that is nearly known) to 12 (the total of many
hours that rise and fall together) and over twelve mixtures with two peaks, skew or heavy tails. Large weights would enlarge the
errors of a network, so their squares count a little. Nothing here is fitted to data or to a network. The result stands in
`tamedit/diffusion/angle.py`.
"""

import argparse

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from tamedit.diffusion.process import Process

MIXTURES = (  # (p, m, s) of both parts
    ((0.5, 0.5), (-0.8, 0.8), (0.6, 0.6)),
    ((0.5, 0.5), (-1.0, 1.0), (0.3, 0.3)),
    ((0.5, 0.5), (-1.5, 1.5), (0.5, 0.5)),
    ((0.5, 0.5), (-2.0, 2.0), (0.7, 0.7)),
    ((0.7, 0.3), (-0.5, 1.2), (0.3, 0.7)),
    ((0.3, 0.7), (0.6, -1.2), (0.3, 0.7)),
    ((0.85, 0.15), (-0.3, 2.0), (0.4, 1.0)),
    ((0.6, 0.4), (0.0, 0.0), (0.3, 1.5)),
    ((0.8, 0.2), (-0.6, 1.8), (0.15, 0.8)),
    ((0.2, 0.8), (0.9, -1.8), (0.3, 1.2)),
    ((0.9, 0.1), (0.0, 0.0), (0.6, 2.5)),
    ((0.95, 0.05), (-0.1, 1.9), (0.5, 3.0)),
)
GAUSSIANS = tuple(((1.0, 1e-300), (0.0, 0.0), (s, 1.0)) for s in np.geomspace(0.1, 12, 16).tolist())
NARROW, NARROW_COUNTS = 0.3, 0.25  # a nearly known cell's error is small in absolute terms
SPREAD_COUNTS = 2.0  # the error of the deviation, beside that of each path
LARGE_WEIGHTS_COST = 0.3
FINE = 600


class Distributions:
    """The targets, and where paths from common starting noise ξ end exactly."""

    def __init__(self, last: float) -> None:
        self.last = last
        table = torch.tensor(GAUSSIANS + MIXTURES)  # (F, 3, 2)
        self.share, self.means, self.deviations = (table[:, None, part] for part in range(3))  # (F, 1, 2)
        self.noise = torch.linspace(-3.4, 3.4, 51)
        self.density = torch.softmax(-self.noise.square() / 2, 0)
        narrow = (self.share[:, 0, 0] == 1) & (self.deviations[:, 0, 0] < NARROW)
        self.counts = torch.where(narrow, NARROW_COUNTS, 1.0)
        self.ends = self._exact()
        self.spread = self._moments(self.ends)[1]

    def velocity(self, x: Float[Tensor, "F X"], angle: Tensor) -> Float[Tensor, "F X"]:
        """E[−sin φ x_0 + cos φ ε | x]."""
        cos, sin = torch.cos(angle), torch.sin(angle)
        variance = cos**2 * self.deviations**2 + sin**2  # (F, 1, 2), of x in each part
        away = x[..., None] - cos * self.means
        part = torch.softmax(self.share.log() - variance.log() / 2 - away.square() / (2 * variance), -1)
        clean = self.means + cos * self.deviations**2 / variance * away
        noise = sin / variance * away
        return (part * (cos * noise - sin * clean)).sum(-1)

    def start(self) -> Float[Tensor, "F X"]:
        return self.noise.expand(len(self.share), -1)

    def _exact(self) -> Float[Tensor, "F X"]:
        x, move = self.start(), torch.tensor(-self.last / FINE)
        for step in range(FINE):
            angle = self.last + step * move
            one = self.velocity(x, angle)
            two = self.velocity(x + move / 2 * one, angle + move / 2)
            three = self.velocity(x + move / 2 * two, angle + move / 2)
            four = self.velocity(x + move * three, angle + move)
            x = x + move / 6 * (one + 2 * two + 2 * three + four)
        return x

    def _moments(self, x: Float[Tensor, "F X"]) -> tuple[Float[Tensor, " F"], Float[Tensor, " F"]]:
        mean = (x * self.density).sum(1)
        return mean, ((x.square() * self.density).sum(1) - mean.square()).sqrt()

    def errors(self, x: Float[Tensor, "F X"]) -> tuple[Float[Tensor, " F"], Float[Tensor, " F"]]:
        """Root mean squared distance from the exact ends, and the error of the deviation, in units of the deviation."""
        path = ((x - self.ends).square() * self.density).sum(1).sqrt() / self.spread
        return path, self._moments(x)[1] / self.spread - 1


def solve(these: Distributions, angles: Float[Tensor, " N1"], weights: Float[Tensor, " N"]) -> Float[Tensor, "F X"]:
    x, before = these.start(), None
    for number in range(len(weights)):
        now = these.velocity(x, angles[number])
        slope = now if before is None else now + weights[number] * (now - before)
        x, before = x + (angles[number + 1] - angles[number]) * slope, now
    return x


def find(these: Distributions, calls: int) -> tuple[Float[Tensor, " N1"], Float[Tensor, " N"]]:
    begin = 1 - np.cos(np.pi * (1 - np.arange(calls + 1) / calls) ** 1.5)  # fine at both ends
    moves = torch.tensor(np.log(-np.diff(begin)), requires_grad=True)
    weights = torch.full((calls,), 0.5, requires_grad=True)

    def angles() -> Float[Tensor, " N1"]:
        gone = torch.cat([torch.zeros(1), torch.softmax(moves, 0).cumsum(0)])
        return these.last * (1 - gone)

    def cost() -> Tensor:
        path, spread = these.errors(solve(these, angles(), weights))
        error = (these.counts**2 * (path.square() + SPREAD_COUNTS * spread.square())).mean()
        return error.log() + LARGE_WEIGHTS_COST * weights[1:].square().sum()

    optimiser = torch.optim.LBFGS(
        [moves, weights], max_iter=2000, history_size=30, line_search_fn="strong_wolfe", tolerance_change=1e-13
    )

    def closure() -> float:
        optimiser.zero_grad()
        found = cost()
        found.backward()
        return float(found.detach())

    for _ in range(3):
        optimiser.step(closure)
    return angles().detach(), weights.detach()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, nargs="+", default=[8])
    arguments = parser.parse_args()
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    process = Process()
    these = Distributions(float(torch.atan2(process.noise[-1].double(), process.signal[-1].double())))
    for calls in arguments.calls:
        angles, weights = find(these, calls)
        path, spread = these.errors(solve(these, angles, weights))
        print(f"{calls} calls")
        print("  share of the last angle:", ", ".join(f"{one:.4f}" for one in (angles[:-1] / these.last).tolist()))
        print("  weights:", ", ".join(f"{one:.3f}" for one in [0.0, *weights[1:].tolist()]))
        worst = [float((these.counts * error).abs().max()) for error in (spread, path)]
        print(f"  largest error of a deviation {worst[0]:.2%}, of a path {worst[1]:.2%} (narrow ones at a quarter)")
