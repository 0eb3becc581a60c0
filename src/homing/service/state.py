"""State shared by the routes: the collection, thread pools, queues and caches."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Annotated, TypeVar

from fastapi import Depends, Request

from homing._io.paths import total_size
from homing.collection import Collection
from homing.collection.listing import ReferenceListing
from homing.collection.uploads import UploadStore
from homing.service.audit import AuditLog
from homing.service.batcher import Batcher
from homing.service.executors import Executors
from homing.service.image_cache import ImageCache
from homing.service.jobs import Job, Jobs
from homing.service.keys import Keys
from homing.service.limits import AdmissionControl, Limits, RateLimiter, Reservation
from homing.service.metrics import Metrics
from homing.service.schemas import PhotoOutcome
from homing.service.writer import Writer

Result = TypeVar("Result")
_MINUTE = 60


class Service:
    """A served collection."""

    batcher: Batcher
    writer: Writer
    executors: Executors
    listing: ReferenceListing
    scan_listing: ReferenceListing
    _stack: ExitStack

    def __init__(self, collection: Collection, keys: Keys | None, limits: Limits) -> None:
        self.collection, self.keys, self.limits = collection, keys, limits
        self.rate_limiter, self.jobs = RateLimiter(limits.per_minute), Jobs()
        assert isinstance(collection.root, Path)  # `create_app` refuses addresses
        self.audit = AuditLog(collection.root / "audit.jsonl")
        self.metrics = Metrics()
        self.upload_store = UploadStore(collection.root)
        self.admission = AdmissionControl(limits)
        self.image_cache = ImageCache()
        self.ready = False
        self._bytes, self._measured_at = 0, -math.inf
        self.metrics.add_gauges(
            network=lambda: self.batcher.waiting,
            writer=lambda: self.writer.waiting,
            requests=lambda: self.admission.requests,
            references=lambda: self.scan_listing.count(),
        )

    def start(self) -> None:
        """Load the network and the index, and start the threads; cleans up if any of it fails."""
        with ExitStack() as stack:
            self.upload_store.prepare()
            folder = Path(str(self.collection.path))
            # Two connections, so that lookups of one reference do not wait for scans of all.
            self.listing, self.scan_listing = (stack.enter_context(closing(ReferenceListing(folder))) for _ in range(2))
            self.executors = stack.enter_context(closing(Executors()))
            network = Batcher(self.collection.extractor, self.limits.network_queue, self.metrics.observe_batch)
            self.batcher = stack.enter_context(closing(network))
            self.writer = stack.enter_context(closing(Writer(self.limits.write_queue)))
            self.collection.search_settings()  # loads the index before the first search
            self._stack = stack.pop_all()
        self.ready = True

    def stop(self) -> None:
        """Finish accepted work and stop all threads. The collection stays open; the caller closes it."""
        self.ready = False
        self._stack.close()  # the writer first

    def bytes_on_disk(self) -> int:
        """Size of the collection, at most a minute old, since counting many files is slow."""
        now = time.monotonic()
        if now - self._measured_at > _MINUTE:
            self._bytes, self._measured_at = total_size(self.collection.root), now
        return self._bytes

    async def write(self, change: Callable[[], Result]) -> Result:
        """Make a change in the writer's thread. It is made even if the request is canceled."""
        return await asyncio.shield(asyncio.wrap_future(self.writer.submit(change)))

    def start_job(self, job: Job, steps: Sequence[Callable[[], list[PhotoOutcome]]], reservation: Reservation) -> None:
        """Queue a job with the writer; its photos stay in memory until it is finished."""
        if steps:
            future = self.writer.submit_steps([partial(job.run_step, step) for step in steps])
            free = reservation.detach()  # only now: if the writer refuses the job, the request frees the memory
            future.add_done_callback(lambda _: free())  # before finish(): a finished job holds no memory
            future.add_done_callback(lambda done: job.finish(done.exception()))
        else:
            job.finish()
        self.jobs.add(job)


def _get_service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


ServiceDep = Annotated[Service, Depends(_get_service)]


async def _reserve_slot(service: ServiceDep) -> AsyncIterator[Reservation]:
    reservation = Reservation(service.admission)
    try:
        yield reservation
    finally:
        reservation.close()


UploadSlot = Annotated[Reservation, Depends(_reserve_slot)]
