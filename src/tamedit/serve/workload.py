"""Computations: at most a few at once, a short queue, and none that nobody waits for.

A request takes a place or is refused at once (503). Its work runs in a thread and calls `check` between two calls of the network;
when the client has gone, the next `check` raises `Cancelled`, and the place is free again. A request that waits leaves the queue
in the same way.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any, TypeVar

from tamedit.serve.refusals import Refused

T = TypeVar("T")
Check = Callable[[], None]
Message = MutableMapping[str, Any]


class Cancelled(Exception):
    """The client has gone."""


class Workload:
    """The places of a server."""

    def __init__(self, computations: int, queue: int) -> None:
        self.most = computations + queue
        self.present = 0  # waiting or computing
        self.computing = 0
        self.finished = 0
        self.cancelled = 0
        self._free = asyncio.Semaphore(computations)
        self._threads = ThreadPoolExecutor(computations, thread_name_prefix="computation")

    async def run(self, receive: Callable[[], Awaitable[Message]], work: Callable[[Check], T]) -> T:
        """What `work` returns; `receive` is the request's, and tells when its client has gone."""
        if self.present >= self.most:
            raise Refused(503, "busy", "The server is computing for others; try again in a few seconds.")
        self.present += 1
        gone = asyncio.ensure_future(_left(receive))
        try:
            await self._place(gone)
            try:
                return await self._computed(gone, work)
            finally:
                self.computing -= 1
                self._free.release()
        except Cancelled:
            self.cancelled += 1
            raise
        finally:
            gone.cancel()
            self.present -= 1

    async def _place(self, gone: "asyncio.Future[None]") -> None:
        """Wait for a place; leave the queue with the client."""
        turn = asyncio.ensure_future(self._free.acquire())
        either: set[asyncio.Future[Any]] = {turn, gone}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not turn.done():
            turn.cancel()
            await asyncio.gather(turn, return_exceptions=True)
        if gone.done():
            if not turn.cancelled():
                self._free.release()
            raise Cancelled
        self.computing += 1

    async def _computed(self, gone: "asyncio.Future[None]", work: Callable[[Check], T]) -> T:
        stop = Event()

        def check() -> None:
            if stop.is_set():
                raise Cancelled

        done = asyncio.get_running_loop().run_in_executor(self._threads, work, check)
        try:
            either: set[asyncio.Future[Any]] = {done, gone}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.set()  # has no effect on work that is done; the place is free only when the thread is
            await asyncio.wait({done})
        result = done.result()
        self.finished += 1
        return result

    def close(self) -> None:
        """Let no thread keep the program alive."""
        self._threads.shutdown(wait=False, cancel_futures=True)


async def _left(receive: Callable[[], Awaitable[Message]]) -> None:
    """Ends when the client has gone. The body was read before."""
    while (await receive())["type"] != "http.disconnect":
        pass
