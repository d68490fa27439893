"""Embeddings of home-weeks by fixed random convolutions, and the Fréchet distance of two sets of them.

Context-FID (Jeha et al. 2022) compares embeddings from a network that was trained on the data. Here nothing is trained: the
kernels are drawn once from a fixed seed, as in ROCKET (Dempster et al. 2020, arXiv 1910.13051). So the embedding has seen no
private reading, is the same for everybody, and prefers no generator; one that was trained on simulated homes would know the
simulator too well. Of a week x in the scale log(1 + x / s), s the mean reading of the real homes, and a kernel w with 9 weights
of mean zero, dilation d and bias b:

    y = w ∗_d x + b,     two features: the share of y above zero, and the maximum of y.

Fréchet distance of two sets with the means m, n and covariances A, B, after every feature was divided by its standard deviation
over the real home-weeks, and divided by the number of features D so that it does not grow with them:

    d² = (|m − n|² + tr A + tr B − 2 tr (A B)^{1/2}) / D
"""

import numpy as np
import torch
from jaxtyping import Float
from torch.nn.functional import conv1d

SEED, TAPS, KERNELS = 2018, 9, 32
ROWS_AT_ONCE = 512


def in_logs(values: Float[np.ndarray, "*A"], scale: float) -> Float[np.ndarray, "*A"]:
    """sign(x) log(1 + |x| / s): large readings do not outweigh all others, and a glitch below zero is allowed."""
    return np.sign(values) * np.log1p(np.abs(values) / scale)


def embed(weeks: Float[np.ndarray, "N L"], kernels: int = KERNELS) -> Float[np.ndarray, "N D"]:
    """D = 2 · kernels features of every week; the weeks are in logs already."""
    generator = np.random.default_rng([SEED, kernels])
    weights = generator.standard_normal((kernels, TAPS))
    weights -= weights.mean(axis=1, keepdims=True)
    biases = generator.uniform(-1, 1, kernels)
    most = np.log2((weeks.shape[1] - 1) / (TAPS - 1))
    dilations = np.floor(2 ** generator.uniform(0, most, kernels)).astype(int)
    made = np.empty((len(weeks), 2 * kernels))
    for first in range(0, len(weeks), ROWS_AT_ONCE):
        part = slice(first, first + ROWS_AT_ONCE)
        rows = torch.from_numpy(weeks[part].astype(np.float32))[:, None]
        for number in range(kernels):
            kernel = torch.from_numpy(weights[number].astype(np.float32)).view(1, 1, TAPS)
            out = conv1d(rows, kernel, dilation=int(dilations[number]))[:, 0] + float(biases[number])
            made[part, 2 * number] = (out > 0).float().mean(dim=1).numpy()
            made[part, 2 * number + 1] = out.amax(dim=1).numpy()
    return made


def moments(
    features: Float[np.ndarray, "N D"], weights: Float[np.ndarray, " N"]
) -> tuple[Float[np.ndarray, " D"], Float[np.ndarray, "D D"]]:
    """Weighted mean and covariance."""
    share = weights / weights.sum()
    mean = share @ features
    centred = features - mean
    return mean, (centred * share[:, None]).T @ centred


def frechet(
    first: tuple[Float[np.ndarray, " D"], Float[np.ndarray, "D D"]],
    second: tuple[Float[np.ndarray, " D"], Float[np.ndarray, "D D"]],
) -> float:
    """d² of two means and covariances. tr (A B)^{1/2} is the sum of the roots of the eigenvalues of A^{1/2} B A^{1/2}."""
    values, vectors = np.linalg.eigh(first[1])
    root = vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
    common = np.sqrt(np.maximum(np.linalg.eigvalsh(root @ second[1] @ root), 0.0)).sum()
    gap = np.square(first[0] - second[0]).sum()
    return float(max(gap + np.trace(first[1]) + np.trace(second[1]) - 2 * common, 0.0) / len(first[0]))
