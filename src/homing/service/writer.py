"""The one writer: whatever changes the collection is done by one thread, in the order it was asked for."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any, TypeVar

from homing.service.problems import TooBusyError

Result = TypeVar("Result")


class Writer:
    """One thread that changes the collection; so many changes may wait. What it accepted it does."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._waiting: deque[tuple[deque[Callable[[], Any]], Future[Any]]] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="writer")
        self._thread.start()

    @property
    def waiting(self) -> int:
        """How many changes and jobs wait."""
        return len(self._waiting)

    def submit(self, change: Callable[[], Result]) -> Future[Result]:
        """What comes of a change, when its turn has come."""
        return self._accept([change])

    def submit_steps(self, steps: Iterable[Callable[[], None]]) -> Future[None]:
        """A job of many steps: after each of them all who wait have their turn."""
        return self._accept(steps)

    def _accept(self, steps: Iterable[Callable[[], Any]]) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()  # nobody can take it back
        with self._changed:
            if self.waiting >= self._capacity or self._closed:
                raise TooBusyError(f"{self.waiting} changes wait to be written, the most that may; try again")
            self._waiting.append((deque(steps), future))
            self._changed.notify()
        return future

    def close(self) -> None:
        """Do what was accepted, and stop."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if not self._waiting:
                    return
                steps, future = self._waiting.popleft()
            try:
                result = steps.popleft()()
            except Exception as error:  # noqa: BLE001
                # Whatever it is, who asked hears of it, and the others go on.
                future.set_exception(error)
                continue
            if not steps:
                future.set_result(result)
                continue
            with self._changed:
                self._waiting.append((steps, future))
