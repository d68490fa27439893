"""Long work in parts, and someone who hears how much of it is done."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

PATHS_AT_ONCE = 1024  # (window, sample) pairs between two reports
T = TypeVar("T")
Progress = Callable[[int, int], None]  # how much is done, and how much there is


def parts(count: int, at_once: int, progress: Progress | None) -> Iterator[slice]:
    """`count` things, some at a time; each part is reported when the next is asked for, the last one at the end."""
    for first in range(0, count, at_once):
        last = min(first + at_once, count)
        yield slice(first, last)
        if progress is not None:
            progress(last, count)


def told(groups: Iterable[T], size: int, count: int, progress: Progress | None) -> Iterator[T]:
    """The same groups, `size` things in each and `count` in all; each is reported when the next is asked for."""
    for number, group in enumerate(groups, start=1):
        yield group
        if progress is not None:
            progress(min(number * size, count), count)
