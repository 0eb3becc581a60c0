"""Requests meet in the network: inputs that wait are described together, by one thread."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future

import torch
from torch import Tensor

from homing._io.parallel import cores
from homing.extractors import Extractor, describe
from homing.service.problems import TooBusyError

MAX_BATCH_SIZE = 16


def batch_size(device: torch.device) -> int:
    """How many inputs go through the network at once.

    On a CPU as many as it has cores: more are no faster, and all of a batch would ask for their searches at once.
    """
    return min(max(2, cores()), MAX_BATCH_SIZE) if device.type == "cpu" else MAX_BATCH_SIZE


class Batcher:
    """Describes inputs as they come: at once when idle, else with those that wait, so many together."""

    def __init__(self, extractor: Extractor, capacity: int, on_batch: Callable[[int], None] = lambda _: None) -> None:
        """`capacity` inputs may wait; `on_batch` hears the size of every batch."""
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
        """How many inputs wait."""
        return self._queued

    def submit(self, inputs: Tensor) -> Future[Tensor]:
        """Descriptors (T, D) to come, of (T, 3, S, S) inputs."""
        future: Future[Tensor] = Future()
        with self._changed:
            assert not self._closed, "nobody is left to describe anything"
            if self._queued + len(inputs) > self._capacity:
                raise TooBusyError(f"{self._queued} pictures wait for the network, the most that may; try again")
            self._waiting.append((inputs, future))
            self._queued += len(inputs)
            self._changed.notify()
        return future

    def close(self) -> None:
        """Describe what waits, and stop."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while batch := self._next():
            try:
                inputs = torch.cat([each for each, _ in batch])
                self._on_batch(len(inputs))
                descriptors = describe(self._extractor, list(inputs))
            except Exception as error:  # noqa: BLE001
                # Whatever it is, who asked hears of it, and the others go on.
                for _, future in batch:
                    future.set_exception(error)
                continue
            parts = torch.split(descriptors, [len(each) for each, _ in batch])
            for (_, future), own in zip(batch, parts, strict=True):
                future.set_result(own)

    def _next(self) -> list[tuple[Tensor, Future[Tensor]]]:
        """Those that are described together next; none when all is done."""
        with self._changed:
            while True:
                batch: list[tuple[Tensor, Future[Tensor]]] = []
                count = 0
                while self._waiting and (not batch or count + len(self._waiting[0][0]) <= self._batch_size):
                    inputs, future = self._waiting.popleft()
                    self._queued -= len(inputs)
                    if future.set_running_or_notify_cancel():  # else nobody waits for it any more
                        batch.append((inputs, future))
                        count += len(inputs)
                if batch or self._closed:
                    return batch
                self._changed.wait()
