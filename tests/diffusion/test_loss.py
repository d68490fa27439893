"""The loss belongs to each example alone."""

import numpy as np
import torch

from tamedit.diffusion.loss import denoising_loss, draw_noise
from tamedit.diffusion.process import Process
from tamedit.streams import example_keys
from tamedit.windows.batch import Batch, Context


def make_batch(batch: int = 6, length: int = 12, channels: int = 2) -> Batch:
    hidden = (torch.rand(batch, length, channels) < 0.5).float()
    hidden[0] = 0  # an example with nothing hidden
    seen = 1 - hidden
    context = Context(
        torch.randn_like(seen) * seen, seen, torch.zeros_like(seen), torch.zeros(batch, length, 0), seen[:, 0]
    )
    return Batch(context, torch.randn_like(seen) * hidden, hidden)


def zero(noised: torch.Tensor, time: torch.Tensor, context: Context) -> torch.Tensor:
    return torch.zeros_like(noised)


def test_it_is_the_mean_over_the_examples_own_hidden_cells() -> None:
    batch, process = make_batch(), Process()
    time, epsilon = torch.arange(6) * 100, torch.randn(6, 12, 2)
    losses = denoising_loss(zero, batch, time, epsilon, process)
    _, wanted = process.diffuse(batch.residual, epsilon, time)
    assert losses.shape == (6,)
    assert losses[0] == 0
    for index in range(1, 6):
        cells = wanted[index][batch.hidden[index] > 0]
        torch.testing.assert_close(losses[index], cells.square().mean())


def test_the_network_sees_noise_at_hidden_cells_only() -> None:
    batch = make_batch()
    shown = []

    def spy(noised: torch.Tensor, time: torch.Tensor, context: Context) -> torch.Tensor:
        shown.append(noised)
        return torch.zeros_like(noised)

    denoising_loss(spy, batch, torch.zeros(6).long(), torch.randn(6, 12, 2), Process())
    assert (shown[0][batch.hidden == 0] == 0).all()


def test_noise_and_time_come_from_each_examples_own_stream() -> None:
    batch, process = make_batch(), Process()
    names = np.arange(6, dtype=np.int64)
    time, epsilon = draw_noise(example_keys(0, "diffusion", 3, names), batch, process)
    again_time, again = draw_noise(example_keys(0, "diffusion", 3, names[[4]]), batch[4:5], process)
    assert time[4] == again_time[0]
    assert torch.equal(epsilon[4], again[0])
    many = draw_noise(example_keys(0, "diffusion", 0, np.arange(5000, dtype=np.int64)), make_batch(5000, 1, 1), process)
    assert many[0].min() >= 0
    assert many[0].max() <= 999
    assert abs(many[0].float().mean() - 499.5) < 4 * 1000 / np.sqrt(12 * 5000)
