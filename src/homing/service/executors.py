"""Threads for work that would block the event loop: pools, and the network, which takes inputs in batches."""

from __future__ import annotations

import asyncio
import math
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Literal, TypeVar

import torch
from torch import Tensor

from homing._io.parallel import cores
from homing.errors import PhotoError, ran_out_of_memory
from homing.extractors import Extractor, describe_images
from homing.service.problems import TooBusyError
from homing.service.uploads import PhotoFile

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


class Batcher:
    """Computes descriptors in one thread: at once when idle, otherwise in batches of the waiting inputs."""

    def __init__(self, extractor: Extractor, capacity: int, on_batch: Callable[[int], None] = lambda _: None) -> None:
        """`capacity` is the maximum number of waiting inputs; `on_batch` is called with the size of each batch."""
        self._extractor, self._capacity, self._on_batch = extractor, capacity, on_batch
        self._batch_size = batch_size(extractor.device)
        self._waiting: deque[tuple[Tensor, Future[Tensor]]] = deque()
        self._queued = 0
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="network")
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Number of waiting inputs."""
        return self._queued

    def submit(self, inputs: Tensor) -> Future[Tensor]:
        """Queue (T, 3, S, S) inputs; returns a future of their descriptors (T, D)."""
        future: Future[Tensor] = Future()
        with self._changed:
            assert not self._closed, "the batcher is closed"
            if self._queued + len(inputs) > self._capacity:
                raise TooBusyError(f"the network queue is full ({self._queued} photos wait); try again")
            self._waiting.append((inputs, future))
            self._queued += len(inputs)
            self._changed.notify()
        return future

    def close(self) -> None:
        """Process the waiting inputs, then stop."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

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
        with self._changed:
            while True:
                batch: list[tuple[Tensor, Future[Tensor]]] = []
                count = 0
                while self._waiting and (not batch or count + len(self._waiting[0][0]) <= self._batch_size):
                    inputs, future = self._waiting.popleft()
                    self._queued -= len(inputs)
                    if future.set_running_or_notify_cancel():  # False if the request was canceled
                        batch.append((inputs, future))
                        count += len(inputs)
                if batch or self._closed:
                    return batch
                self._changed.wait()
