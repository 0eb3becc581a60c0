"""Threads for what would hold up the event loop: large photos have an executor of their own, and hold up nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from homing._io.parallel import cores
from homing.errors import PhotoError, ran_out_of_memory

Result = TypeVar("Result")

LARGE_PIXELS = 24_000_000  # pixels, from which on photos are decoded one after the other: each takes 15 bytes a pixel


class Executors:
    """Where work is done: decoding by the size of the photo, looking things up beside it, reports one by one."""

    def __init__(self) -> None:
        self._decode, self._lookup, self._search = (
            _executor(each, max(2, cores())) for each in ("decode", "lookup", "search")
        )
        self._large, self._browse, self._report = (_executor(each, 1) for each in ("large", "browse", "report"))
        self._read = _executor("read", 4)

    async def decode(self, name: str, pixels: int, work: Callable[[], Result]) -> Result:
        """Work on the photo of this name, of so many pixels."""
        return await _catch_out_of_memory(name, _run_in(self._large if pixels > LARGE_PIXELS else self._decode, work))

    async def lookup(self, work: Callable[[], Result]) -> Result:
        """Quick work: a row of the catalog, what came already."""
        return await _run_in(self._lookup, work)

    async def read(self, work: Callable[[], Result]) -> Result:
        """A file, which may be far away."""
        return await _run_in(self._read, work)

    async def search(self, work: Callable[[], Result]) -> Result:
        """A search, which waits for other searches alone: all that came before it is done."""
        return await _run_in(self._search, work)

    async def browse(self, work: Callable[[], Result]) -> Result:
        """A look through the whole catalog, which takes seconds where it is large."""
        return await _run_in(self._browse, work)

    async def report(self, name: str, work: Callable[[], Result]) -> Result:
        """Work of seconds on the photo of this name."""
        return await _catch_out_of_memory(name, _run_in(self._report, work))

    def close(self) -> None:
        """Finish what was begun."""
        for pool in vars(self).values():
            pool.shutdown(wait=True, cancel_futures=True)


def _executor(name: str, threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix=name)


async def _run_in(pool: ThreadPoolExecutor, work: Callable[[], Result]) -> Result:
    return await asyncio.get_running_loop().run_in_executor(pool, work)


async def _catch_out_of_memory(name: str, work: Awaitable[Result]) -> Result:
    try:
        return await work
    except (MemoryError, RuntimeError) as error:
        if not ran_out_of_memory(error):
            raise
        raise PhotoError(f"{name}: too large for the memory there is") from error
