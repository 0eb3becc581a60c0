"""The one writer: whatever changes the collection is done by one thread, in the order it was asked for."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from homing.service.problems import TooBusyError

Result = TypeVar("Result")


class Writer:
    """One thread that changes the collection; so many changes may wait."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="writer")

    @property
    def waiting(self) -> int:
        """How many changes wait."""
        return self._thread._work_queue.qsize()

    def submit(self, change: Callable[[], Result]) -> Future[Result]:
        """What comes of a change, when its turn has come. Once accepted it is done, whoever stops listening."""
        if self.waiting >= self._most:
            raise TooBusyError(f"{self.waiting} changes wait to be written, the most that may; try again")
        return self._thread.submit(change)

    def close(self) -> None:
        """Do what was accepted, and stop."""
        self._thread.shutdown(wait=True)
