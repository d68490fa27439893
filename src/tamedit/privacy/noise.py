"""Gaussian noise on the sum of clipped gradients: N(0, s² I) with s = σ · C, one draw per step.

Three sources:

    default    a generator seeded by the operating system, fresh for every `GaussianNoise`; fast, and not cryptographic. On a CPU
               it is NumPy's SFC64: its SeedSequence keeps 128 bits of what it is given (PyTorch's takes 32 bits of its seed, few
               enough to try them all). On other devices it is PyTorch's Philox, with 64 bits
    secure     the operating system's cryptographic stream. Floating-point Gaussians leak through their low bits, so each value
               is (g₁ + g₂ + g₃ + g₄) / 2, again N(0, 1), whose inputs are too many to enumerate (Holohan & Braghin,
               arXiv 2107.10138; Opacus' secure mode does the same). It is added in double precision and the sum rounded to
               single last: single noise on a single sum S can only give S + multiples of the noise's last bit, and a number
               that is none of those rules S out
    test       PyTorch's generator with a known seed: repeatable, and therefore without a guarantee

This module never sees an example: it adds noise to whatever sum it is given.
"""

import os
from collections.abc import Iterable, Mapping

import numpy as np
import torch
from torch import Tensor

from tamedit.errors import UserError

_CHUNK = 1 << 15  # small enough to stay in the processor's cache
_SUMMANDS = 4


class GaussianNoise:
    """Noise of one standard deviation, added in place to the tensors of a sum, in their order."""

    def __init__(self, standard_deviation: float, *, secure: bool = False, test_seed: int | None = None) -> None:
        if not (np.isfinite(standard_deviation) and standard_deviation > 0.0):
            raise UserError(
                f"Noise of standard deviation {standard_deviation} gives no privacy: give a positive number."
            )
        if secure and test_seed is not None:
            raise UserError("Secure noise cannot be repeated: leave out either the test seed or `secure`.")
        self.standard_deviation = standard_deviation
        self.secure = secure
        self._test_seed = test_seed
        self._generators: dict[torch.device, torch.Generator] = {}
        self._generator_on_cpu = np.random.Generator(np.random.SFC64(int.from_bytes(os.urandom(16), "little")))

    @torch.no_grad()
    def add_(self, tensors: Mapping[str, Tensor] | Iterable[Tensor], step: int | None = None) -> None:
        """Add fresh noise in place to every coordinate of every tensor, zeros (an empty batch) included.

        `step` matters in tests only: there the noise becomes a function of (seed, step), so that a resumed test run repeats it.
        """
        if self._test_seed is not None and step is not None:
            self._generators.clear()
        for tensor in tensors.values() if isinstance(tensors, Mapping) else tensors:
            if not tensor.is_floating_point():
                raise TypeError(f"noise needs a floating-point tensor, not {tensor.dtype}")
            if self.secure:
                draw = torch.from_numpy(secure_normals(tensor.numel())).reshape(tensor.shape)
                tensor.copy_(tensor.cpu().double() + draw * self.standard_deviation)  # rounded once, after the sum
            else:
                tensor.add_(self._normals(tensor, step), alpha=self.standard_deviation)

    def _normals(self, tensor: Tensor, step: int | None) -> Tensor:
        """Standard normals of the shape, type and device of a tensor."""
        if tensor.device.type != "cpu" or self._test_seed is not None:
            return torch.empty_like(tensor).normal_(generator=self._generator(tensor.device, step))
        precision = np.float64 if tensor.dtype == torch.float64 else np.float32
        drawn = self._generator_on_cpu.standard_normal(tensor.numel(), dtype=precision)
        return torch.from_numpy(drawn).reshape(tensor.shape).to(tensor.dtype)

    def _generator(self, device: torch.device, step: int | None) -> torch.Generator:
        """One generator per device, created when first needed."""
        if device not in self._generators:
            generator = torch.Generator(device=device)
            if self._test_seed is None:
                generator.manual_seed(int.from_bytes(os.urandom(8), "little", signed=True))
            else:
                from tamedit.streams import purpose_seed

                generator.manual_seed(purpose_seed(self._test_seed, f"dp noise {step}"))
            self._generators[device] = generator
        return self._generators[device]


def secure_normals(count: int) -> np.ndarray:
    """`count` standard normals (float64) from the operating system's cryptographic stream, each the half-sum of four.

    Box and Muller: 53-bit uniforms u, v give two independent normals, r cos a and r sin a, r = √(−2 ln u), a = 2πv. Four
    such pairs give two values, Σ r_m cos a_m / 2 and Σ r_m sin a_m / 2: each depends on eight uniforms.
    """
    values = np.empty(count)
    for start in range(0, count, _CHUNK):
        size = min(_CHUNK, count - start)
        half = (size + 1) // 2
        bits = np.frombuffer(os.urandom(16 * _SUMMANDS * half), dtype=np.uint64).reshape(2, _SUMMANDS, half)
        uniform = ((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
        radius = np.sqrt(-2.0 * np.log(uniform[0]))
        angle = 2.0 * np.pi * uniform[1]
        both = np.concatenate([(radius * np.cos(angle)).sum(axis=0), (radius * np.sin(angle)).sum(axis=0)])
        values[start : start + size] = both[:size] / np.sqrt(_SUMMANDS)
    return values
