"""Threads for work that would block the event loop: pools, the network, and the writer of the collection."""

from __future__ import annotations

import asyncio
import math
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, Literal, TypeVar

import torch
from torch import Tensor

from homing._io.parallel import cores
from homing.errors import PhotoError, ran_out_of_memory
from homing.extractors import Extractor, describe_images
from homing.photo import PhotoFile
from homing.service.responses import TooBusyError

Item = TypeVar("Item")
Result = TypeVar("Result")
Kind = Literal["lookup", "search", "decode", "large", "read", "browse", "report"]

LARGE_PIXELS = 24_000_000  # larger photos are decoded one at a time: decoding takes 15 bytes per pixel
MAX_BATCH_SIZE = 16


class Executors:
    """The thread pools of a service, one for each kind of work, so that it waits only for work of its kind."""

    def __init__(self) -> None:
        several = max(2, cores())
        threads: dict[Kind, int] = {
            "lookup": several,  # quick work, such as reading one row of the catalog
            "search": several,
            "decode": several,
            "large": 1,  # photos of many pixels
            "read": 4,  # files, possibly from remote storage
            "browse": 1,  # queries over the whole catalog, which take seconds if it is large
            "report": 1,  # work on a photo that takes seconds
        }
        self.pools = {kind: ThreadPoolExecutor(count, thread_name_prefix=kind) for kind, count in threads.items()}

    async def run(self, kind: Kind, work: Callable[[], Result], *, photo: str | None = None) -> Result:
        """Run work in a pool. If it is about a photo, running out of memory is an error of the photo."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self.pools[kind], work)
        except (MemoryError, RuntimeError) as error:
            if photo is None or not ran_out_of_memory(error):
                raise
            raise PhotoError(f"{photo}: too large for the available memory") from error

    async def decode(self, file: PhotoFile, work: Callable[[], Result]) -> Result:
        """Run work that decodes a photo; its number of pixels chooses the pool."""
        large = math.prod(file.size) > LARGE_PIXELS
        return await self.run("large" if large else "decode", work, photo=file.name)

    def close(self) -> None:
        """Finish running work; cancel waiting work."""
        for pool in self.pools.values():
            pool.shutdown(wait=True, cancel_futures=True)


def batch_size(device: torch.device) -> int:
    """Maximum number of inputs per batch.

    On a CPU it is the number of cores: larger batches are no faster, and their searches would all start at once.
    """
    return min(max(2, cores()), MAX_BATCH_SIZE) if device.type == "cpu" else MAX_BATCH_SIZE


class _QueueThread(Generic[Item]):
    """A thread with a bounded queue. What was accepted is done even after the thread is closed."""

    def __init__(self, name: str, capacity: int, unit: str) -> None:
        self._name, self._capacity, self._unit = name, capacity, unit
        self._queue: deque[Item] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=name)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Number of waiting inputs or changes."""
        with self._changed:
            return sum(map(self._size, self._queue))

    def close(self) -> None:
        """Finish what waits, then stop."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _accept(self, item: Item) -> None:
        with self._changed:
            if self._closed or self.waiting + self._size(item) > self._capacity:
                raise TooBusyError(f"the {self._name} queue is full ({self.waiting} {self._unit} wait); try again")
            self._queue.append(item)
            self._changed.notify()

    def _wait(self) -> bool:
        """Wait, holding the lock, until something is in the queue; False if nothing will come any more."""
        self._changed.wait_for(lambda: self._queue or self._closed)
        return bool(self._queue)

    def _size(self, _: Item) -> int:
        return 1

    def _run(self) -> None:
        raise NotImplementedError


class Batcher(_QueueThread[tuple[Tensor, Future[Tensor]]]):
    """Computes descriptors in one thread: at once when idle, otherwise in batches of the waiting inputs."""

    def __init__(self, extractor: Extractor, capacity: int, on_batch: Callable[[int], object] = lambda _: None) -> None:
        """`capacity` is the maximum number of waiting inputs; `on_batch` is called with the size of each batch."""
        self._extractor, self._on_batch = extractor, on_batch
        self._batch_size = batch_size(extractor.device)
        super().__init__("network", capacity, "photos")

    def submit(self, inputs: Tensor) -> Future[Tensor]:
        """Queue (T, 3, S, S) inputs; returns a future of their descriptors (T, D)."""
        future: Future[Tensor] = Future()
        self._accept((inputs, future))
        return future

    def _size(self, item: tuple[Tensor, Future[Tensor]]) -> int:
        return len(item[0])

    def _run(self) -> None:
        while batch := self._next():
            try:
                inputs = torch.cat([each for each, _ in batch])
                self._on_batch(len(inputs))
                descriptors = describe_images(self._extractor, list(inputs))
            except Exception as error:  # noqa: BLE001
                # Any error goes to the requests of this batch; the others continue.
                for _, future in batch:
                    future.set_exception(error)
                continue
            parts = torch.split(descriptors, [len(each) for each, _ in batch])
            for (_, future), own in zip(batch, parts, strict=True):
                future.set_result(own)

    def _next(self) -> list[tuple[Tensor, Future[Tensor]]]:
        """The next batch; empty once the batcher is closed and nothing waits."""
        batch: list[tuple[Tensor, Future[Tensor]]] = []
        with self._changed:
            while not batch and self._wait():
                while self._queue and (not batch or sum(map(self._size, [*batch, self._queue[0]])) <= self._batch_size):
                    inputs, future = self._queue.popleft()
                    if future.set_running_or_notify_cancel():  # False if the request was canceled
                        batch.append((inputs, future))
        return batch


class Writer(_QueueThread[tuple[deque[Callable[[], Any]], Future[Any]]]):
    """A thread that makes all changes to the collection, in order. Accepted changes are always made."""

    def __init__(self, capacity: int) -> None:
        """`capacity` is the maximum number of waiting changes and jobs."""
        super().__init__("write", capacity, "changes")

    def submit(self, *steps: Callable[[], Result]) -> Future[Result]:
        """Queue a change; returns a future of its result. Between several steps other waiting changes run."""
        future: Future[Result] = Future()
        future.set_running_or_notify_cancel()  # it can no longer be canceled
        self._accept((deque(steps), future))
        return future

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._wait():
                    return
                steps, future = self._queue.popleft()
            try:
                result = steps.popleft()()
            except Exception as error:  # noqa: BLE001
                # Any error goes to the caller; the other changes continue.
                future.set_exception(error)
                continue
            if steps:
                with self._changed:
                    self._queue.append((steps, future))
            else:
                future.set_result(result)
