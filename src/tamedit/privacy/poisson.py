"""Poisson sampling: every example joins every batch with probability q, independently of all others and of all other steps.

The accounting in accountant.py holds for exactly this and for nothing else: shuffled epochs or batches of a fixed size are
other mechanisms with other (larger) ε. Batches vary in size, Binomial(N, q), and may be empty; an empty batch is a step too.
"""

import os

import numpy as np
from numpy.typing import NDArray

from tamedit.errors import UserError

_WORDS = 2.0**-53


class PoissonSampler:
    """Draws the examples of one step after the other.

    Randomness comes from the operating system: a generator seeded with 128 fresh bits for each sampler, or (`secure`) every
    bit from the system's cryptographic stream. With `test_seed` the sample is a function of (seed, step) instead.
    """

    def __init__(
        self, examples: int, sampling_rate: float, *, secure: bool = False, test_seed: int | None = None
    ) -> None:
        if examples < 1:
            raise UserError(f"Cannot sample from {examples} examples: give at least one.")
        if not 0.0 < sampling_rate <= 1.0:
            raise UserError(f"A sampling rate of {sampling_rate} is not possible: give a number above 0 and at most 1.")
        if secure and test_seed is not None:
            raise UserError("Secure sampling cannot be repeated: leave out either the test seed or `secure`.")
        self.examples = examples
        self.sampling_rate = sampling_rate
        self._secure = secure
        self._test_seed = test_seed
        self._generator = np.random.default_rng(int.from_bytes(os.urandom(16), "little"))

    def sample(self, step: int) -> NDArray[np.int64]:
        """The indices of this step's examples, in increasing order; may be empty."""
        return np.flatnonzero(self._uniforms(step) < self.sampling_rate)

    def _uniforms(self, step: int) -> NDArray[np.float64]:
        if self._test_seed is not None:
            from tamedit.streams import step_generator

            return step_generator(self._test_seed, "sampling", step).random(self.examples)
        if self._secure:
            bits = np.frombuffer(os.urandom(8 * self.examples), dtype=np.uint64)
            return (bits >> np.uint64(11)).astype(np.float64) * _WORDS
        return self._generator.random(self.examples)
