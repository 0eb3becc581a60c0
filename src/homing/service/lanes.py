"""Threads for what would hold up the event loop: large photos have a lane of their own, and hold up nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from homing._parallel import cores

Result = TypeVar("Result")

LARGE = 24_000_000  # pixels, from which on photos are decoded one after the other: each takes 15 bytes a pixel


class Lanes:
    """Where work is done: decoding by the size of the photo, looking things up beside it, reports one by one."""

    def __init__(self) -> None:
        self._small = ThreadPoolExecutor(max(2, cores()), thread_name_prefix="decode")
        self._large = ThreadPoolExecutor(1, thread_name_prefix="decode-large")
        self._quick = ThreadPoolExecutor(max(2, cores()), thread_name_prefix="look")
        self._search = ThreadPoolExecutor(max(2, cores()), thread_name_prefix="search")
        self._long = ThreadPoolExecutor(1, thread_name_prefix="browse")
        self._slow = ThreadPoolExecutor(1, thread_name_prefix="report")

    async def decode(self, pixels: int, work: Callable[[], Result]) -> Result:
        """Work on a photo of so many pixels."""
        return await _in(self._large if pixels > LARGE else self._small, work)

    async def look(self, work: Callable[[], Result]) -> Result:
        """Quick work: a row of the catalogue, a file."""
        return await _in(self._quick, work)

    async def search(self, work: Callable[[], Result]) -> Result:
        """A search, which waits for other searches alone: all that came before it is done."""
        return await _in(self._search, work)

    async def browse(self, work: Callable[[], Result]) -> Result:
        """A look through the whole catalogue, which takes seconds where it is large."""
        return await _in(self._long, work)

    async def report(self, work: Callable[[], Result]) -> Result:
        """Work of seconds."""
        return await _in(self._slow, work)

    def close(self) -> None:
        """Finish what was begun."""
        for pool in (self._small, self._large, self._quick, self._search, self._long, self._slow):
            pool.shutdown(wait=True, cancel_futures=True)


async def _in(pool: ThreadPoolExecutor, work: Callable[[], Result]) -> Result:
    return await asyncio.get_running_loop().run_in_executor(pool, work)
