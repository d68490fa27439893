"""Samplers: hidden cells are drawn, observed cells are kept exactly.

A network that predicts the velocity is solved in the angle (`angle`); the other solvers are diffusers' (DDPM ancestral, DDIM,
DPM-Solver++ of second order). What the network sees of the context is
prepared once for all solver steps and all samples of a window, and many windows and samples go through the network
together. The network may be anyone's: it only has to be a `Denoiser`.

Samples start from antithetic pairs of noise unless asked otherwise (`starts`).
"""

from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int64, UInt64
from pydantic import PositiveInt
from torch import Tensor

from tamedit.choices import Frozen
from tamedit.diffusion.angle import AngleSolver, angle_steps
from tamedit.diffusion.process import Process
from tamedit.diffusion.starts import OneOf, Starts, noise_of_one, starting_noise
from tamedit.errors import UserError
from tamedit.formatting import counted
from tamedit.streams import example_keys
from tamedit.windows.batch import Context

Solver = Literal["angle", "dpm++", "ddim", "ddpm"]
# Steps by default. With 20 of them ddim and ddpm would draw bands that are much too narrow.
ENOUGH: dict[Solver, int] = {"angle": 8, "dpm++": 20, "ddim": 500, "ddpm": 1000}


P = TypeVar("P", bound="Repeatable")


@runtime_checkable
class Repeatable(Protocol):
    """What a denoiser has prepared of some windows."""

    def repeat(self: P, times: int) -> P:
        """The same for every window `times` times, next to each other."""


@runtime_checkable
class Denoiser(Protocol[P]):
    """Predicts the noise or the velocity (as the process says) of the hidden cells of some windows."""

    def prepare(self, context: Context) -> P:
        """What stays the same at every step of a solver."""

    def denoise(self, noised: Float[Tensor, "B L K"], time: Int64[Tensor, " B"], prepared: P) -> Float[Tensor, "B L K"]:
        """The prediction for windows that were noised up to their times."""


class SamplerConfig(Frozen):
    """How to sample. `rows` bounds how many (window, sample) pairs go through the network at once."""

    solver: Solver | None = None  # angle for a network that predicts the velocity, dpm++ for one that predicts noise
    steps: PositiveInt | None = (
        None  # as many as the solver needs for the right spread (ENOUGH); angle: 6, 8, 12, or 50 and more
    )
    starts: Starts | None = None  # antithetic; stratified where a task gives quantiles alone
    rows: PositiveInt = 128  # with more, the CPU's allocator maps and unmaps the widest tensor at every step

    def resolved(self, process: Process) -> tuple[Solver, int]:
        """The solver and its steps for a process."""
        solver: Solver = self.solver or ("angle" if process.prediction == "v" else "dpm++")
        if solver == "angle" and process.prediction != "v":
            raise UserError("solver='angle' needs a network that predicts the velocity; leave out `solver`.")
        if process.calls is not None:
            if solver != "angle" or self.steps not in (None, len(process.calls)):
                raise UserError(
                    f"This model is a student that was distilled to {counted(len(process.calls), 'call')} of its network and "
                    "knows no others; leave out `steps` and `solver`, or sample from its teacher."
                )
            return solver, len(process.calls)
        return solver, self.steps or ENOUGH[solver]


def make_scheduler(process: Process, solver: Solver) -> Any:
    """diffusers' scheduler for our process; the same β, checked in the tests."""
    from diffusers.schedulers.scheduling_ddim import DDIMScheduler
    from diffusers.schedulers.scheduling_ddpm import DDPMScheduler
    from diffusers.schedulers.scheduling_dpmsolver_multistep import DPMSolverMultistepScheduler

    shared = {
        "num_train_timesteps": process.steps,
        "beta_start": process.beta_first,
        "beta_end": process.beta_last,
        "beta_schedule": "linear",
        "prediction_type": "epsilon" if process.prediction == "epsilon" else "v_prediction",
        "timestep_spacing": "trailing",
    }
    if solver == "dpm++":
        # Steps uniform in log-SNR: with steps uniform in t, 20 of them halve the spread of a narrow distribution.
        return DPMSolverMultistepScheduler(
            **shared, algorithm_type="dpmsolver++", final_sigmas_type="zero", use_lu_lambdas=True
        )
    if solver == "ddim":
        return DDIMScheduler(**shared, clip_sample=False, set_alpha_to_one=True)
    return DDPMScheduler(**shared, clip_sample=False, variance_type="fixed_small")


@torch.no_grad()
def sample(
    network: Denoiser[P],
    context: Context,
    process: Process,
    samples: int,
    *,
    seed: int = 0,
    windows: Int64[np.ndarray, " B"] | None = None,
    config: SamplerConfig | None = None,
    one_of: OneOf | None = None,
) -> Float[Tensor, "B S L K"]:
    """`samples` draws of the residual of every window, in model units, on the CPU; 0 at observed cells and in padding.

    They are computed where the context lies. `windows` names the windows' streams (0 … B − 1 by default), so that a window
    gets the same draws in every batch. `one_of` goes with `samples` = 1: the contexts are those of single samples.
    """
    config = config or SamplerConfig()
    device = context.values.device
    shape = (context.values.shape[1], context.values.shape[2])
    names = np.arange(len(context), dtype=np.int64) if windows is None else windows
    at_once = max(config.rows // samples, 1)
    config.resolved(process)
    drawn = []
    for first in range(0, len(context), at_once):
        part = slice(first, first + at_once)
        starts = config.starts or "antithetic"
        if one_of is None:
            numbers = names[part, None] * samples + np.arange(samples)  # (b, S)
            noise = starting_noise(names[part], samples, shape, seed, starts)
        else:
            numbers = names[part, None] * one_of.among + one_of.numbers[part, None]  # (b, 1)
            noise = noise_of_one(names[part], one_of.of(part), shape, seed, starts)
        keys = example_keys(seed, "ancestral", 0, numbers.ravel())
        keys = keys.reshape(-1, samples)
        pieces = []
        for begin in range(0, samples, config.rows):  # more than one if a single window has more samples than rows
            own = slice(begin, begin + config.rows)
            pieces.append(_solve(network, context[part], process, noise[:, own].to(device), keys[:, own], config).cpu())
        drawn.append(torch.cat(pieces, dim=1))
    return torch.cat(drawn) if drawn else torch.empty(0, samples, *shape)


def _solve(
    network: Denoiser[P],
    context: Context,
    process: Process,
    noise: Float[Tensor, "B S L K"],
    keys: UInt64[np.ndarray, "B S"],
    config: SamplerConfig,
) -> Float[Tensor, "B S L K"]:
    """Draws from their starting noise; `keys` name the noise of ancestral steps."""
    solver, steps = config.resolved(process)
    samples, noised = noise.shape[1], noise.flatten(0, 1)
    prepared = network.prepare(context).repeat(samples)
    wanted = ((1 - context.observed) * context.channels[:, None, :]).repeat_interleave(samples, dim=0)

    def predicted(time: Tensor) -> Tensor:
        return network.denoise(noised * wanted, time.to(noised.device).expand(len(noised)).long(), prepared)

    if solver == "angle":
        path = angle_steps(process, steps)
        by_angle = AngleSolver(path)
        for time in path.times:
            noised = by_angle.step(predicted(time), noised)
        return (noised * wanted).view_as(noise)
    scheduler = make_scheduler(process, solver)
    scheduler.set_timesteps(steps, device=noise.device)
    extra = {}
    if solver == "ddpm":
        extra["generator"] = [torch.Generator().manual_seed(int(key >> 1)) for key in keys.ravel().tolist()]
    for time in scheduler.timesteps:
        noised = scheduler.step(predicted(time), time, noised, **extra).prev_sample
    return (noised * wanted).view_as(noise)
