"""Memory that is reused instead of being allocated again.

A tensor of many megabytes that is freshly mapped costs a page fault for every 4 kB on its first touch, and that is
more expensive than the arithmetic that follows. `Workspace` lends buffers that live as long as their owner. `keep_freed_memory`
tells glibc's allocator to keep what a program frees, which does the same for every other tensor of the process.
"""

import ctypes
import math
import sys
from functools import cache

import torch
from torch import Tensor

M_TRIM_THRESHOLD = -1  # glibc's malloc.h
M_MMAP_MAX = -4


class Workspace:
    """Lends one buffer per key; the next loan under the same key overwrites the last. Grows, never shrinks."""

    def __init__(self) -> None:
        self._buffers: dict[str, Tensor] = {}

    def take(self, key: str, shape: tuple[int, ...], like: Tensor) -> Tensor:
        """An uninitialised contiguous tensor of this shape, with the type and device of `like`."""
        size = math.prod(shape)
        buffer = self._buffers.get(key)
        if buffer is None or buffer.numel() < size or buffer.dtype != like.dtype or buffer.device != like.device:
            buffer = torch.empty(size, dtype=like.dtype, device=like.device)
            self._buffers[key] = buffer
        return buffer[:size].view(shape)


@cache
def keep_freed_memory() -> bool:
    """Asks glibc to serve large blocks from its heap and not to return them; True where that worked.

    Holds for the whole process from now on, takes effect once, and changes no result. Elsewhere than on Linux with
    glibc it does nothing and returns False.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(M_MMAP_MAX, 0)) and bool(mallopt(M_TRIM_THRESHOLD, 2**31 - 1))
