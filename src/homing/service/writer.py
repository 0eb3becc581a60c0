"""The writer: one thread that makes all changes to the collection, in order."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any, TypeVar

from homing.service.problems import TooBusyError

Result = TypeVar("Result")


class Writer:
    """A thread that makes changes to the collection. Accepted changes are always made."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._waiting: deque[tuple[deque[Callable[[], Any]], Future[Any]]] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="writer")
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Number of waiting changes and jobs."""
        return len(self._waiting)

    def submit(self, change: Callable[[], Result]) -> Future[Result]:
        """Queue a change; returns a future of its result."""
        return self._accept([change])

    def submit_steps(self, steps: Iterable[Callable[[], None]]) -> Future[None]:
        """Queue a job of several steps; other waiting changes run between them."""
        return self._accept(steps)

    def _accept(self, steps: Iterable[Callable[[], Any]]) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()  # it can no longer be canceled
        with self._changed:
            if self.waiting >= self._capacity or self._closed:
                raise TooBusyError(f"the write queue is full ({self.waiting} changes wait); try again")
            self._waiting.append((deque(steps), future))
            self._changed.notify()
        return future

    def close(self) -> None:
        """Make the accepted changes, then stop."""
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
                # Any error goes to the caller; the other changes continue.
                future.set_exception(error)
                continue
            if not steps:
                future.set_result(result)
                continue
            with self._changed:
                self._waiting.append((steps, future))
