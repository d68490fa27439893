"""Named random streams, one for each purpose and each example, all derived from one seed.

A draw is a pure function of (seed, purpose, step, example, position): the SplitMix64 finaliser of a counter. So the mask
and the noise of an example depend on nothing else in its batch, the order of a batch does not matter, splitting a
batch over processes changes nothing, and a resumed run continues without any generator state to restore.

    key(e)   = mix(mix(mix(seed ^ purpose) + step) + e)
    bits(e, i) = mix(key(e) + (i + 1) * golden)

These streams decide masks, diffusion noise and (in runs that are not private) batches. The noise that pays for privacy
never comes from here.
"""

from hashlib import blake2b

import numpy as np
import torch
from jaxtyping import Float, Int64, UInt64
from torch import Tensor

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def _mix(bits: UInt64[np.ndarray, "*shape"]) -> UInt64[np.ndarray, "*shape"]:
    """SplitMix64's finaliser: every input bit reaches every output bit."""
    bits = (bits ^ (bits >> np.uint64(30))) * _FIRST
    bits = (bits ^ (bits >> np.uint64(27))) * _SECOND
    return bits ^ (bits >> np.uint64(31))


def purpose_seed(seed: int, purpose: str) -> int:
    """A 63-bit seed for one purpose ("masks", "diffusion", "batches", …) of a run."""
    digest = blake2b(f"{seed}/{purpose}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def example_keys(seed: int, purpose: str, step: int, examples: Int64[np.ndarray, " B"]) -> UInt64[np.ndarray, " B"]:
    """One key per example: the same example at the same step has the same key in every batch."""
    with np.errstate(over="ignore"):
        start = _mix(np.array([purpose_seed(seed, purpose)], dtype=np.uint64))
        at_step = _mix(start + np.uint64(step) * GOLDEN)
        return _mix(at_step + examples.astype(np.uint64) * GOLDEN)


def uniforms(keys: UInt64[np.ndarray, " B"], count: int, offset: int = 0) -> Float[Tensor, "B count"]:
    """`count` uniforms in (0, 1) per example, positions offset … offset + count − 1 of its stream (float32)."""
    with np.errstate(over="ignore"):
        positions = (np.arange(offset, offset + count, dtype=np.uint64) + np.uint64(1)) * GOLDEN
        bits = _mix(keys[:, None] + positions[None, :])
    # 23 bits and half a unit: never 0 and never 1 in float32, so that logarithms and quantiles are finite.
    values = (bits >> np.uint64(41)).astype(np.float32)
    values += np.float32(0.5)
    values *= np.float32(2.0**-23)
    return torch.from_numpy(values)


def normals(keys: UInt64[np.ndarray, " B"], count: int, offset: int = 0) -> Float[Tensor, "B count"]:
    """`count` standard normals per example, by Box and Muller's transform of pairs of uniforms (float32)."""
    half = (count + 1) // 2
    pair = uniforms(keys, 2 * half, offset)
    radius = torch.sqrt(-2.0 * torch.log(pair[:, :half]))
    angle = (2.0 * torch.pi) * pair[:, half:]
    return torch.cat([radius * torch.cos(angle), radius * torch.sin(angle)], dim=1)[:, :count]


def step_generator(seed: int, purpose: str, step: int) -> np.random.Generator:
    """A NumPy generator for one purpose at one step, for draws that belong to the whole batch."""
    return np.random.Generator(np.random.Philox(key=purpose_seed(seed, purpose), counter=step << 64))
