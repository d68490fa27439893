"""Several processes, one guarantee: `tamedit train` under torchrun.

The batch is drawn once, by the first process, and its rows are split over all. Each process clips and sums its share; the
shares are added up; noise is drawn once, by the first process, and added to the whole sum. So the mechanism is the same as in
one process, and only the first process writes files.

If a process dies, the others hear of it when they meet next: each stops with one sentence, the first one after it has saved
the state before the step. The ledger has paid for that step, though nothing was released: it may say a step more than was taken,
never one less.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
import torch
import torch.distributed as dist

from tamedit.errors import Resumable

PATIENCE = timedelta(minutes=10)  # for one that does not come to a meeting; what one does alone takes less
GONE = (
    "Another process of this run ended or cannot be reached, so this one stops; start all of them again with resume=True to "
    "continue from the last checkpoint."
)


@contextmanager
def _together() -> Iterator[None]:
    """A moment at which all processes meet: one that is missing makes one sentence."""
    try:
        yield
    except RuntimeError as error:
        raise Resumable(GONE) from error


@dataclass(frozen=True)
class World:
    """The processes of a run: this one's number, and how many there are."""

    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        return self.rank == 0

    def same_indices(self, indices: np.ndarray) -> np.ndarray:
        """The first process's draw, sent to all."""
        if self.size == 1:
            return indices
        held: list[np.ndarray | None] = [indices if self.first else None]
        with _together():
            dist.broadcast_object_list(held, src=0)
        assert held[0] is not None
        return held[0]

    def share(self, indices: np.ndarray) -> np.ndarray:
        """The part of a batch that this process works on."""
        return indices[self.rank :: self.size]

    def add_up(self, tensors: list[torch.Tensor]) -> None:
        """Every tensor becomes its sum over all processes."""
        if self.size > 1:
            with _together():
                for tensor in tensors:
                    dist.all_reduce(tensor)

    def same_tensors(self, tensors: list[torch.Tensor]) -> None:
        """Every tensor becomes the first process's."""
        if self.size > 1:
            with _together():
                for tensor in tensors:
                    dist.broadcast(tensor, src=0)

    def any(self, mine: bool) -> bool:
        """Whether any process says yes; all processes get the same answer."""
        if self.size == 1:
            return mine
        votes = torch.tensor([float(mine)])
        with _together():
            dist.all_reduce(votes)
        return bool(votes.item() > 0)

    def same_number(self, number: int) -> int:
        """The first process's number, sent to all."""
        return int(self.same_indices(np.array([number]))[0])

    def wait(self) -> None:
        if self.size > 1:
            with _together():
                dist.barrier()


def join_world() -> World:
    """The processes that torchrun set up, or a single process."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        return World()
    if not dist.is_initialized():
        if torch.cuda.is_available():
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
            dist.init_process_group("cpu:gloo,cuda:nccl", timeout=PATIENCE)
        else:
            dist.init_process_group("gloo", timeout=PATIENCE)
    return World(dist.get_rank(), dist.get_world_size())
