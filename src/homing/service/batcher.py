"""Batching: inputs of concurrent requests go through the network together."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future

import torch
from torch import Tensor

from homing._io.parallel import cores
from homing.extractors import Extractor, describe_images
from homing.service.problems import TooBusyError

MAX_BATCH_SIZE = 16


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
