"""Many samples of the same windows: computed together they are what they are one by one."""

import numpy as np
import pytest
import torch

from tamedit.diffusion.process import Process
from tamedit.diffusion.sample import sample
from tamedit.model import samples as shared
from tamedit.model.bounds import Bounds
from tamedit.model.dit import DiffusionTransformer
from tamedit.model.zoo import NetworkConfig
from tamedit.windows.batch import Context

LENGTH, CHANNELS, WINDOWS, SAMPLES = 40, 2, 3, 5
BOUNDS = Bounds(condition=4.0, scale=1.0, shift=1.0, gate=1.0)


def network(depth: int = 2) -> DiffusionTransformer:
    torch.manual_seed(0)
    config = NetworkConfig(
        target_channels=CHANNELS, covariate_channels=3, length=LENGTH, depth=depth, width=32, heads=4, bounds=(BOUNDS,)
    )
    made = DiffusionTransformer(config).eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return made


def context(hidden: tuple[int, ...] = (4, 1, 9)) -> Context:
    """Other numbers of hidden steps in every window; one channel hidden where the other is seen."""
    torch.manual_seed(1)
    seen = torch.ones(len(hidden), LENGTH, CHANNELS)
    for window, count in enumerate(hidden):
        seen[window, torch.randperm(LENGTH)[:count]] = 0
    seen[0, 7] = torch.tensor([0.0, 1.0])
    values = torch.randn(len(hidden), LENGTH, CHANNELS) * seen
    known = torch.randn(len(hidden), LENGTH, 3)
    return Context(values, seen, torch.randn_like(values), known, torch.ones(len(hidden), CHANNELS))


@pytest.mark.skipif(shared._ATTEND is None, reason="this PyTorch has no such attention")
@pytest.mark.parametrize("depth", [2, 3])
@torch.no_grad()
def test_samples_together_are_what_they_are_one_by_one(depth: int) -> None:
    made, seen = network(depth), context()
    wanted = (1 - seen.observed).repeat_interleave(SAMPLES, 0)
    noised = 2 * torch.randn(WINDOWS * SAMPLES, LENGTH, CHANNELS) * wanted
    prepared = made.prepare(seen).repeat(SAMPLES)
    assert prepared.samples == SAMPLES
    assert prepared.tokens.shape[0] == WINDOWS
    time = torch.full((len(noised),), 300)
    together, apart = made.denoise(noised, time, prepared), made.denoise(noised, time, prepared.written_out())
    torch.testing.assert_close(together, apart, rtol=1e-4, atol=2e-6)
    assert apart.abs().max() > 0.1
    one = made.denoise(noised[7:8], time[:1], made.prepare(seen[1:2]))  # its third sample, alone
    torch.testing.assert_close(together[7:8] * wanted[7:8], one * wanted[7:8], rtol=1e-4, atol=2e-6)


@torch.no_grad()
def test_samples_at_several_diffusion_steps_share_nothing() -> None:
    made, seen = network(), context()
    noised = torch.randn(WINDOWS * SAMPLES, LENGTH, CHANNELS) * (1 - seen.observed).repeat_interleave(SAMPLES, 0)
    time, prepared = torch.arange(len(noised)) * 60, made.prepare(seen).repeat(SAMPLES)
    found = made.denoise(noised, time, prepared)
    torch.testing.assert_close(found, made.denoise(noised, time, prepared.written_out()), rtol=0, atol=0)


def test_sharing_is_for_few_hidden_steps_without_gradients_in_single_precision() -> None:
    made = network()
    assert made.prepare(context()).repeat(SAMPLES).samples == 1  # gradients flow
    with torch.no_grad():
        most = int(shared.MOST_ASKED * LENGTH)
        assert made.prepare(context((1, 2, most - 1))).repeat(SAMPLES).samples == SAMPLES
        assert made.prepare(context((1, 2, most + 2))).repeat(SAMPLES).samples == 1
        assert network(depth=1).prepare(context()).repeat(SAMPLES).samples == 1
        whole = made.prepare(context((LENGTH, 1, 2)))  # every step is asked for
        assert whole.repeat(SAMPLES).samples == 1


def test_draws_are_those_of_samples_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    together = sample(network(), context(), Process(), 8, windows=np.array([3, 4, 9]))
    monkeypatch.setattr(shared, "MOST_ASKED", 0.0)
    torch.testing.assert_close(
        together, sample(network(), context(), Process(), 8, windows=np.array([3, 4, 9])), rtol=1e-4, atol=1e-5
    )


def test_a_block_that_somebody_listens_to_is_called_itself() -> None:
    made, heard = network(), []
    made.blocks[0].attention.register_forward_hook(lambda *given: heard.append(1))
    with torch.no_grad():
        assert made.prepare(context()).repeat(SAMPLES).samples == 1
        sample(made, context(), Process(), 4)
    assert heard


def test_gradients_through_prepared_samples_are_right() -> None:
    """Prepared without gradients, asked with them (guidance): nothing is shared then."""
    made, seen = network(), context()
    with torch.no_grad():
        prepared = made.prepare(seen).repeat(SAMPLES)
    wanted = (1 - seen.observed).repeat_interleave(SAMPLES, 0)
    noised = (torch.randn(WINDOWS * SAMPLES, LENGTH, CHANNELS) * wanted).requires_grad_()
    time = torch.full((len(noised),), 300)
    found = torch.autograd.grad(made.denoise(noised, time, prepared).square().sum(), noised)[0]
    plain = torch.autograd.grad(made.denoise(noised, time, prepared.written_out()).square().sum(), noised)[0]
    torch.testing.assert_close(found, plain, rtol=0, atol=0)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        assert made.denoise(noised, time, prepared).shape == noised.shape
