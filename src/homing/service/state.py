"""State shared by the routes: the collection, its threads and queues, caches, jobs and metrics."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import ExitStack, closing
from functools import partial
from http import HTTPStatus
from typing import Annotated, Literal, TypeVar

from fastapi import Depends, Request, Response
from torch import Tensor

from homing._io.paths import total_size
from homing.collection import Collection, Outcome, Reference
from homing.collection.storage import Storage
from homing.errors import HomingError, NotFoundError, PhotoError
from homing.photo import PhotoFile, read_file
from homing.service.auth import Keys
from homing.service.executors import Batcher, Executors, Writer
from homing.service.limits import AdmissionControl, Limits, RateLimiter, Reservation
from homing.service.records import AuditLog, Job, Jobs, Metrics
from homing.service.responses import ImageCache, to_problem
from homing.service.schemas import JobStarted, PhotoOutcome
from homing.service.uploads import check_upload

Result = TypeVar("Result")
_MINUTE = 60


class Service:
    """A served collection."""

    batcher: Batcher
    writer: Writer
    executors: Executors
    listing: Storage
    scan_listing: Storage
    _stack: ExitStack

    def __init__(self, collection: Collection, keys: Keys | None, limits: Limits) -> None:
        self.collection, self.keys, self.limits = collection, keys, limits
        self.rate_limiter, self.jobs = RateLimiter(limits.per_minute), Jobs()
        self.audit = AuditLog(collection.root / "audit.jsonl")
        self.metrics = Metrics()
        self.upload_store = collection.uploads
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
            # Two connections, so that lookups of one reference do not wait for scans of all.
            self.listing, self.scan_listing = (
                stack.enter_context(closing(self.collection.storage.reopen())) for _ in range(2)
            )
            self.executors = stack.enter_context(closing(Executors()))
            network = Batcher(self.collection.extractor, self.limits.network_queue, self.metrics.batch_sizes.observe)
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

    async def reference(self, number: int) -> Reference:
        """The reference with this id. Raises NotFoundError if there is none."""
        return await self.executors.run("lookup", partial(self.listing.reference, number))

    async def read_recorded(self, source: str, sha256: str) -> PhotoFile:
        """The file of a reference or of a release, if it is the recorded one; else NotFoundError."""
        path = self.upload_store.resolve_source(source)

        def read() -> PhotoFile:
            try:
                file = PhotoFile(path.name, read_file(path))
                _ = file.size  # of a photo
            except PhotoError as error:
                raise NotFoundError(str(error).replace(str(path), path.name)) from error
            if file.sha256 != sha256:
                raise NotFoundError(f"{file.name}: the file has changed since it was recorded")
            return file

        return await self.executors.run("read", read)

    async def check(self, upload: PhotoFile) -> None:
        """Check an upload by its header."""
        await self.executors.run("lookup", partial(check_upload, upload, self.limits))

    async def describe(self, inputs: Tensor) -> Tensor:
        """Descriptors (T, D) of network inputs (T, 3, S, S), in batches with those of other requests."""
        return await asyncio.wrap_future(self.batcher.submit(inputs))

    async def write(self, change: Callable[[], Result]) -> Result:
        """Make a change in the writer's thread. It is made even if the request is canceled."""
        return await asyncio.shield(asyncio.wrap_future(self.writer.submit(change)))

    async def check_uploads(
        self, uploads: Sequence[PhotoFile]
    ) -> tuple[list[PhotoFile], dict[PhotoFile, PhotoOutcome]]:
        """Valid uploads, and the outcomes of invalid ones."""
        good, bad = [], {}
        for upload in uploads:
            try:
                await self.check(upload)
                good.append(upload)
            except PhotoError as error:
                bad[upload] = self.failed_outcome(upload, error)
        return good, bad

    async def start_job(
        self,
        kind: Literal["add", "activate"],
        uploads: Sequence[PhotoFile],
        step: Callable[[list[PhotoFile]], Iterable[PhotoOutcome]],
        reservation: Reservation,
        response: Response,
        *,
        batch_size: int = 1,
    ) -> JobStarted:
        """Queue a job that processes uploads in batches, and answer with its address. Invalid uploads fail at once.

        The photos stay in memory until it is finished.
        """
        good, bad = await self.check_uploads(uploads)
        job = Job(kind, len(uploads), list(bad.values()))
        batches = [good[start : start + batch_size] for start in range(0, len(good), batch_size)]

        def run(batch: list[PhotoFile]) -> Iterable[PhotoOutcome]:
            try:
                return step(batch)
            except HomingError as error:
                return [self.failed_outcome(upload, error) for upload in batch]

        if batches:
            future = self.writer.submit(*[partial(job.run_step, partial(run, batch)) for batch in batches])
            free = reservation.detach()  # only now: if the writer refuses the job, the request frees the memory
            future.add_done_callback(lambda _: free())  # before finish(): a finished job holds no memory
            future.add_done_callback(lambda done: job.finish(done.exception()))
        else:
            job.finish()
        self.jobs.add(job)
        response.status_code, response.headers["Location"] = HTTPStatus.ACCEPTED, job.address
        return JobStarted(job=job.address)

    def failed_outcome(self, upload: PhotoFile, error: HomingError) -> PhotoOutcome:
        """The outcome of a photo that failed with an error."""
        line = self.upload_store.redact_paths(to_problem(error).detail).removeprefix(f"{upload.name}: ")
        return PhotoOutcome(photo=upload.name, id=None, state="failed", problem=f"{upload.name}: {line}")

    def photo_outcome(self, upload: PhotoFile, outcome: Outcome) -> PhotoOutcome:
        """Convert an outcome of the library, under the name of the upload."""
        storage = self.collection.storage
        return PhotoOutcome.of(
            outcome,
            photo=upload.name,
            id=storage.find(upload.sha256) or storage.find_released(upload.sha256),
            state="known" if outcome.state == "moved" else outcome.state,
            problem=self.upload_store.redact_paths(f"{upload.name}: {outcome.reason}") if outcome.reason else None,
        )


def _get_service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


ServiceDep = Annotated[Service, Depends(_get_service)]


async def _reserve_slot(service: ServiceDep) -> AsyncIterator[Reservation]:
    with closing(Reservation(service.admission)) as reservation:
        yield reservation


UploadSlot = Annotated[Reservation, Depends(_reserve_slot)]
