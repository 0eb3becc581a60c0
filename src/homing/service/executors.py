"""Thread pools for work that would block the event loop; large photos have a pool of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from homing._io.parallel import cores
from homing.errors import PhotoError, ran_out_of_memory

Result = TypeVar("Result")

LARGE_PIXELS = 24_000_000  # larger photos are decoded one at a time: decoding takes 15 bytes per pixel


class Executors:
    """The thread pools of a service, one for each kind of work."""

    def __init__(self) -> None:
        self._decode, self._lookup, self._search = (
            _executor(each, max(2, cores())) for each in ("decode", "lookup", "search")
        )
        self._large, self._browse, self._report = (_executor(each, 1) for each in ("large", "browse", "report"))
        self._read = _executor("read", 4)

    async def decode(self, name: str, pixels: int, work: Callable[[], Result]) -> Result:
        """Run work on a photo; its number of pixels chooses the pool."""
        return await _catch_out_of_memory(name, _run_in(self._large if pixels > LARGE_PIXELS else self._decode, work))

    async def lookup(self, work: Callable[[], Result]) -> Result:
        """Run quick work, such as reading one row of the catalog."""
        return await _run_in(self._lookup, work)

    async def read(self, work: Callable[[], Result]) -> Result:
        """Read a file, possibly from remote storage."""
        return await _run_in(self._read, work)

    async def search(self, work: Callable[[], Result]) -> Result:
        """Run a search; it waits only for other searches."""
        return await _run_in(self._search, work)

    async def browse(self, work: Callable[[], Result]) -> Result:
        """Run a query over the whole catalog, which takes seconds if the catalog is large."""
        return await _run_in(self._browse, work)

    async def report(self, name: str, work: Callable[[], Result]) -> Result:
        """Run work on a photo that takes seconds, one photo at a time."""
        return await _catch_out_of_memory(name, _run_in(self._report, work))

    def close(self) -> None:
        """Finish running work; cancel waiting work."""
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
        raise PhotoError(f"{name}: too large for the available memory") from error
