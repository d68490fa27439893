"""Samplers against a closed form: for Gaussian data the exact denoiser is known.

x_0 ~ N(m, s²)  ⇒  E[x_0 | x_t] = (m (1 − ᾱ) + √ᾱ s² x_t) / (ᾱ s² + 1 − ᾱ)
"""

import numpy as np
import pytest
import torch

from tamedit.diffusion.process import Process
from tamedit.diffusion.sample import SamplerConfig, Solver, make_scheduler, sample
from tamedit.diffusion.starts import starting_noise
from tamedit.errors import UserError
from tamedit.model.dit import DiffusionTransformer
from tamedit.model.zoo import NetworkConfig
from tamedit.windows.batch import Context

LENGTH, CHANNELS = 6, 2
CONFIG = NetworkConfig(target_channels=CHANNELS, length=LENGTH, depth=1, width=8, heads=2)


class Nothing:
    """What the exact denoiser takes from a context."""

    def repeat(self, times: int) -> "Nothing":
        return self


class ExactDenoiser:
    """Knows that every cell is N(mean, deviation²), independently. No network of ours: a sampler takes any denoiser."""

    def __init__(self, process: Process, mean: float, deviation: float) -> None:
        self.process, self.mean, self.deviation = process, mean, deviation

    def prepare(self, context: Context) -> Nothing:
        return Nothing()

    def denoise(self, noised: torch.Tensor, time: torch.Tensor, prepared: Nothing) -> torch.Tensor:
        signal, noise = (table[time][:, None, None] for table in (self.process.signal, self.process.noise))
        variance = self.deviation**2
        clean = (self.mean * noise**2 + signal * variance * noised) / (signal**2 * variance + noise**2)
        epsilon = (noised - signal * clean) / noise
        return epsilon if self.process.prediction == "epsilon" else signal * epsilon - noise * clean


def context(batch: int, seen: float = 0.0, length: int = LENGTH) -> Context:
    mask = (torch.rand(batch, length, CHANNELS, generator=torch.Generator().manual_seed(0)) < seen).float()
    return Context(mask * 7, mask, torch.zeros_like(mask), torch.zeros(batch, length, 0), torch.ones(batch, CHANNELS))


@pytest.mark.parametrize("prediction", ["epsilon", "v"])
@pytest.mark.parametrize(("solver", "tolerance"), [("dpm++", 0.03), ("ddim", 0.04), ("ddpm", 0.03)])
@pytest.mark.parametrize(("mean", "deviation"), [(0.0, 1.0), (0.7, 0.4), (-1.0, 2.0), (0.5, 0.1)])
def test_sampled_moments_match_the_closed_form(
    prediction: str, solver: str, tolerance: float, mean: float, deviation: float
) -> None:
    """Every solver at as many steps as it takes by default. Few long windows: ddpm seeds a generator for every sample."""
    process = Process(prediction=prediction)  # type: ignore[arg-type]
    network = ExactDenoiser(process, mean, deviation)
    config = SamplerConfig(solver=solver, starts="independent", rows=4096)  # type: ignore[arg-type]
    drawn = sample(network, context(4, length=600), process, 10, config=config)
    count = drawn.numel()
    assert abs(drawn.mean().item() - mean) < tolerance * deviation + 4 * deviation / np.sqrt(count)
    assert drawn.std().item() == pytest.approx(deviation, rel=tolerance + 3 / np.sqrt(2 * count))


@pytest.mark.parametrize(("mean", "deviation"), [(0.0, 1.0), (0.7, 0.4), (-1.0, 2.0), (1.0, 0.7), (0.0, 3.0)])
def test_the_angle_solver_needs_eight_calls(mean: float, deviation: float) -> None:
    """For a Gaussian the solver is a straight line from noise to data: its slope and its middle are known."""
    process = Process()
    calls = []

    class Counted(ExactDenoiser):
        def denoise(self, noised: torch.Tensor, time: torch.Tensor, prepared: Nothing) -> torch.Tensor:
            calls.append(time)
            return super().denoise(noised, time, prepared)

    drawn = sample(Counted(process, mean, deviation), context(1, length=600), process, 2)
    assert len(calls) == 8
    assert drawn.mean().item() == pytest.approx(mean, abs=0.05 * deviation)  # antithetic: the mean is the line's middle
    start = starting_noise(np.arange(1), 2, (600, CHANNELS), 0, "antithetic")
    slope = (drawn - drawn.mean()).std() / start.std()
    assert slope.item() == pytest.approx(deviation, rel=0.06)


@pytest.mark.parametrize("steps", [1, 3, 8])
def test_the_untrained_network_leaves_the_noise_as_it_is(steps: int) -> None:
    """So an untrained model of the anchored form draws from the free distribution exactly, with any number of steps."""
    drawn = sample(DiffusionTransformer(CONFIG), context(3), Process(), 4, config=SamplerConfig(steps=steps))
    assert torch.equal(drawn, starting_noise(np.arange(3), 4, (LENGTH, CHANNELS), 0, "antithetic"))


def test_noise_prediction_has_no_angle() -> None:
    with pytest.raises(UserError, match="predicts the velocity"):
        sample(
            DiffusionTransformer(CONFIG),
            context(1),
            Process(prediction="epsilon"),
            2,
            config=SamplerConfig(solver="angle"),
        )


def test_the_untrained_network_samples_a_unit_gaussian() -> None:
    network = DiffusionTransformer(CONFIG)
    drawn = sample(network, context(4), Process(), 1000, config=SamplerConfig(starts="independent", rows=4096))
    assert abs(drawn.mean().item()) < 4 / np.sqrt(drawn.numel())
    assert drawn.std().item() == pytest.approx(1.0, rel=0.03)
    from scipy import stats

    assert stats.kstest((drawn / drawn.std()).numpy().ravel(), "norm").pvalue > 1e-3


def test_observed_cells_and_padding_get_no_residual() -> None:
    seen = context(5, seen=0.5)
    seen.channels[:, 1] = 0
    drawn = sample(DiffusionTransformer(CONFIG), seen, Process(), 3, config=SamplerConfig(steps=4))
    assert drawn.shape == (5, 3, LENGTH, CHANNELS)
    assert (drawn.transpose(0, 1)[:, seen.observed > 0] == 0).all()
    assert (drawn[..., 1] == 0).all()
    assert (drawn[..., 0].transpose(0, 1)[:, seen.observed[..., 0] == 0] != 0).all()


@pytest.mark.parametrize("solver", ["angle", "dpm++", "ddpm"])
def test_a_window_gets_the_same_draws_in_every_batch(solver: Solver) -> None:
    network, process = DiffusionTransformer(CONFIG), Process()
    torch.nn.init.normal_(network.output.weight)
    seen, names = context(6, seen=0.3), np.array([4, 9, 2, 30, 7, 8])
    whole = sample(network, seen, process, 4, windows=names, config=SamplerConfig(solver=solver, steps=5))
    small = sample(network, seen, process, 4, windows=names, config=SamplerConfig(solver=solver, steps=5, rows=4))
    torch.testing.assert_close(whole, small, rtol=1e-4, atol=1e-5)
    least = sample(network, seen, process, 4, windows=names, config=SamplerConfig(solver=solver, steps=5, rows=3))
    torch.testing.assert_close(whole, least, rtol=1e-4, atol=1e-5)
    other = sample(network, seen, process, 4, windows=names, seed=1, config=SamplerConfig(solver=solver, steps=5))
    assert not torch.allclose(whole, other)
    again = sample(network, seen, process, 4, windows=names[::-1].copy(), config=SamplerConfig(solver=solver, steps=5))
    assert not torch.allclose(whole, again), "another window has other draws"


def test_no_more_rows_at_once_than_asked_for() -> None:
    network, seen = DiffusionTransformer(CONFIG), []
    network.output.register_forward_hook(lambda module, inputs, output: seen.append(len(output)))
    sample(network, context(3, seen=0.3), Process(), 10, config=SamplerConfig(steps=1, rows=4))
    assert seen == [4, 4, 2] * 3


def test_antithetic_samples_are_pairs_and_sharpen_the_mean() -> None:
    noise = starting_noise(np.arange(3), 10, (LENGTH, CHANNELS), 0, "antithetic")
    assert torch.equal(noise[:, :5], -noise[:, 5:])
    process = Process()
    network = ExactDenoiser(process, 0.7, 0.4)
    errors = {}
    for starts in ("antithetic", "independent"):
        drawn = sample(
            network, context(50), process, 10, config=SamplerConfig(solver="dpm++", starts=starts, rows=1024)
        )
        errors[starts] = (drawn.mean(1) - 0.7).square().mean().sqrt().item()
        assert drawn.std().item() == pytest.approx(0.4, rel=0.05)
    assert errors["antithetic"] < 0.05 * errors["independent"]


def test_no_windows_is_no_error() -> None:
    assert sample(DiffusionTransformer(CONFIG), context(0), Process(), 3).shape == (0, 3, LENGTH, CHANNELS)


def test_steps_uniform_in_time_would_halve_a_narrow_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    """Why the default solver's steps are uniform in log-SNR."""
    from diffusers.schedulers.scheduling_dpmsolver_multistep import DPMSolverMultistepScheduler

    process = Process()
    network = ExactDenoiser(process, 0.5, 0.1)
    config = SamplerConfig(solver="dpm++", starts="independent", rows=4096)
    good = sample(network, context(2), process, 1000, config=config).std().item()
    settings = dict(make_scheduler(process, "dpm++").config) | {"use_lu_lambdas": False}
    monkeypatch.setattr(
        "tamedit.diffusion.sample.make_scheduler",
        lambda process, solver: DPMSolverMultistepScheduler.from_config(settings),
    )
    poor = sample(network, context(2), process, 1000, config=config).std().item()
    assert good == pytest.approx(0.1, rel=0.03)
    assert poor < 0.06
