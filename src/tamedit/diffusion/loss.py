"""The loss of every example by itself: shape (B,), never a mean over the batch.

    ℓ_i = Σ_{hidden cells} (prediction − wanted)² / max(1, number of hidden cells of example i)

Division is by the example's own count, so that no example can change another one's gradient.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int64, UInt64
from torch import Tensor

from tamedit.diffusion.process import Process
from tamedit.streams import normals, uniforms
from tamedit.windows.batch import Batch, Context


def draw_noise(
    keys: UInt64[np.ndarray, " B"], batch: Batch, process: Process
) -> tuple[Int64[Tensor, " B"], Float[Tensor, "B L K"]]:
    """A time step and the noise of every example, each from the example's own stream."""
    count, length, channels = batch.residual.shape
    time = process.time(uniforms(keys, 1)[:, 0])
    epsilon = normals(keys, length * channels, offset=1).view(count, length, channels)
    return time, epsilon


def denoising_loss(
    network: Callable[[Tensor, Tensor, Context], Tensor],
    batch: Batch,
    time: Int64[Tensor, " B"],
    epsilon: Float[Tensor, "B L K"],
    process: Process,
) -> Float[Tensor, " B"]:
    """Mean squared error over the hidden target cells of each example."""
    noised, wanted = process.diffuse(batch.residual, epsilon, time)
    predicted = network(noised * batch.hidden, time, batch.context)
    error = ((predicted - wanted) * batch.hidden).square().sum((1, 2))
    return error / batch.hidden.sum((1, 2)).clamp_min(1)
