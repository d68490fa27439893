"""Windows that are alike go through the network together, by oneDNN's kernel, and no gradient notices."""

import numpy as np
import pytest
import torch

from tamedit import kernels
from tamedit.data.scaling import fit_scaling
from tamedit.data.simulate import simulate
from tamedit.diffusion.loss import denoising_loss
from tamedit.diffusion.process import Process
from tamedit.model.dit import DiffusionTransformer
from tamedit.model.zoo import NetworkConfig
from tamedit.training import source
from tamedit.training.source import PlainGradients, by_work, noised_batch
from tamedit.windows.cut import cut
from tamedit.windows.examples import ANCHOR_FEATURES, ExampleConfig, Examples
from tamedit.windows.masks import MaskConfig

BATCH = 30


def examples() -> Examples:
    homes = simulate(meters=4, hours=24 * 8)
    return Examples(
        cut(homes, 48, 12), MaskConfig(horizon=(6, 12)), fit_scaling("instance", homes), ExampleConfig(), seed=3
    )


def network() -> DiffusionTransformer:
    torch.manual_seed(0)
    made = DiffusionTransformer(
        NetworkConfig(target_channels=1, anchor_features=ANCHOR_FEATURES["free"], length=48, depth=2, width=16, heads=2)
    )
    for parameter in made.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    return made


@pytest.mark.parametrize("draws", [1, 3])
def test_few_unknown_steps_come_first_and_draws_stay_together(draws: int) -> None:
    noised = noised_batch(examples(), np.arange(BATCH), 0, Process(), draws)
    ordered = by_work(noised, draws)

    def most(one: source.Noised) -> torch.Tensor:
        return (one[0].context.observed == 0).any(-1).sum(1).view(BATCH, draws).amax(1)

    assert most(ordered).equal(most(noised).sort().values)

    def units(one: source.Noised) -> set[tuple[float, ...]]:
        return {tuple(row) for row in torch.stack([one[1].float(), one[2].sum((1, 2))], 1).view(BATCH, -1).tolist()}

    assert units(ordered) == units(noised)


def test_the_gradient_of_parts_is_that_of_the_whole_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "PART", 7)
    made, data = network(), examples()
    gradients = PlainGradients(made, data, Process(), BATCH)
    numbers = gradients(5)
    found = [parameter.grad.clone() for parameter in made.parameters() if parameter.grad is not None]
    batch, time, epsilon = noised_batch(data, gradients.indices(5), 5, Process())
    whole = denoising_loss(made, batch, time, epsilon, Process()).mean()
    for one, other in zip(found, torch.autograd.grad(whole, list(made.parameters())), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)
    assert numbers["loss"] == pytest.approx(whole.item(), rel=1e-5)


@pytest.mark.skipif(kernels._KERNEL is None, reason="this PyTorch has no oneDNN")
def test_twenty_steps_with_and_without_the_kernel_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Losses to 1e-5 and gradients to 1e-5 of their norm at every step, from the same weights. The kernel must really be used."""
    monkeypatch.setattr(kernels, "_SMALL", 1)
    made, data, calls = network(), examples(), []
    optimizer = torch.optim.AdamW(made.parameters(), lr=1e-3)
    gradients = PlainGradients(made, data, Process(), BATCH)
    kernel = kernels._KERNEL

    def counted(*arguments: object) -> torch.Tensor:
        calls.append(1)
        result: torch.Tensor = kernel(*arguments)
        return result

    def step(number: int, with_it: bool) -> tuple[float, torch.Tensor]:
        monkeypatch.setattr(kernels, "_KERNEL", counted if with_it else None)
        loss = gradients(number)["loss"]
        return loss, torch.cat([p.grad.flatten() for p in made.parameters() if p.grad is not None])

    for number in range(20):
        before = len(calls)
        (loss, gradient), (expected, plain) = step(number, True), step(number, False)
        assert len(calls) - before >= 2 * 4 * 3  # two blocks of four layers: forward, and both gradients
        assert loss == pytest.approx(expected, rel=1e-5)
        assert float((gradient - plain).norm() / plain.norm()) < 1e-5
        optimizer.step()


def test_the_plain_step_keeps_freed_memory_too(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []
    monkeypatch.setattr(source, "keep_freed_memory", lambda: asked.append(True))
    PlainGradients(network(), examples(), Process(), BATCH)
    assert asked == [True]
