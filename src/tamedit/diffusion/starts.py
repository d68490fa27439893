"""The noise that samples start from. Each sample by itself starts from N(0, I), however they lie to one another.

independent   S draws
antithetic    S / 2 draws z and their mirror images −z. Errors of a pair in the mean nearly cancel. Each half is made of
              independent draws: scores that compare samples with each other (CRPS) are taken within halves
stratified    cell by cell, one draw in each of S equally likely intervals, in an order of the cell's own, and −z beside z:

                  |z| = Φ⁻¹((1 + (π(s) + u) / (S / 2)) / 2),    π a random order of 0 … S / 2 − 1,  u ~ U(0, 1),  a random sign

              A cell's quantiles are then more exact than those of as many antithetic samples: the more so, the less the cell
              depends on its neighbours (docs/performance.md#how-many-samples). No part of such samples is independent of
              another, so scores must not be made of them
"""

from typing import Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from tamedit.streams import example_keys, normals, uniforms

Starts = Literal["independent", "antithetic", "stratified"]


class OneOf(NamedTuple):
    """Rows that are a single sample each: which one, of how many samples of its window."""

    numbers: Int64[np.ndarray, " B"]
    among: int

    def of(self, rows: slice) -> "OneOf":
        return OneOf(self.numbers[rows], self.among)


def starting_noise(
    windows: Int64[np.ndarray, " B"], samples: int, shape: tuple[int, int], seed: int, starts: Starts
) -> Float[Tensor, "B S L K"]:
    """z of every sample of every window, from the window's own stream. An odd number of samples has no mirror images."""
    mirrored = starts != "independent" and samples % 2 == 0
    drawn, cells = samples // 2 if mirrored else samples, shape[0] * shape[1]
    keys = example_keys(seed, "generation", 0, windows)
    if starts == "stratified":
        order, within, side = uniforms(keys, 3 * drawn * cells).view(len(windows), 3, drawn, cells).unbind(1)
        share = (order.argsort(dim=1).argsort(dim=1) + within.double()) / drawn  # in (0, 1), one in each interval
        noise = torch.special.ndtri((1 + share) / 2 if mirrored else share).float()
        noise = torch.where(side < 0.5, -noise, noise) if mirrored else noise
    else:
        noise = normals(keys, drawn * cells)
    noise = noise.view(len(windows), drawn, *shape)
    return torch.cat([noise, -noise], dim=1) if mirrored else noise


def noise_of_one(
    windows: Int64[np.ndarray, " B"], one_of: OneOf, shape: tuple[int, int], seed: int, starts: Starts
) -> Float[Tensor, "B 1 L K"]:
    """z of one sample of each window."""
    distinct, place = np.unique(windows, return_inverse=True)
    return starting_noise(distinct, one_of.among, shape, seed, starts)[place, one_of.numbers][:, None]
