"""What the routes share: the collection, and those who work for it."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, closing
from functools import partial
from typing import Annotated, TypeVar

from fastapi import Depends, Request

from homing._files import bytes_in
from homing.collection import Collection
from homing.collection.listing import Listing
from homing.service.answers import Outcome
from homing.service.audit import Audit
from homing.service.batching import Batcher
from homing.service.jobs import Job, Jobs
from homing.service.keeping import Keeping
from homing.service.keys import Keys
from homing.service.lanes import Lanes
from homing.service.limits import Gate, Held, Limits, Rates
from homing.service.metrics import Metrics
from homing.service.pictures import Pictures
from homing.service.writer import Writer

Result = TypeVar("Result")
_MINUTE = 60


class Service:
    """One collection being served."""

    batcher: Batcher
    writer: Writer
    lanes: Lanes
    listing: Listing
    browsing: Listing
    _begun: ExitStack

    def __init__(self, collection: Collection, keys: Keys | None, limits: Limits) -> None:
        self.collection, self.keys, self.limits = collection, keys, limits
        self.rates, self.jobs = Rates(limits.per_minute), Jobs()
        self.audit = Audit(collection.folder.home / "audit.jsonl")
        self.metrics = Metrics()
        self.keeping = Keeping(collection)
        self.gate = Gate(limits)
        self.pictures = Pictures()
        self.ready = False
        self._bytes, self._measured = 0, -math.inf
        self.metrics.watch(
            network=lambda: self.batcher.waiting,
            writer=lambda: self.writer.waiting,
            requests=lambda: self.gate.requests,
            references=lambda: self.browsing.count(),
        )

    def start(self) -> None:
        """Load the network and the index, and start the threads; where that fails, what was begun ends."""
        with ExitStack() as begun:
            self.keeping.prepare()
            folder = self.collection.folder.path
            # Two connections: who looks up one reference does not wait for who looks through all.
            self.listing, self.browsing = (begun.enter_context(closing(Listing(folder))) for _ in range(2))
            self.lanes = begun.enter_context(closing(Lanes()))
            network = Batcher(self.collection.extractor, self.limits.squares, self.metrics.saw_batch)
            self.batcher = begun.enter_context(closing(network))
            self.writer = begun.enter_context(closing(Writer(self.limits.writes)))
            self.collection.plan()  # the index is brought to what the catalogue holds, which the first would wait for
            self._begun = begun.pop_all()
        self.ready = True

    def stop(self) -> None:
        """Do all that was accepted, then let go of everything but the collection, which is the caller's."""
        self.ready = False
        self._begun.close()  # the writer first

    def bytes_on_disk(self) -> int:
        """What the collection takes, as of a minute ago at most: its files may be very many."""
        now = time.monotonic()
        if now - self._measured > _MINUTE:
            self._bytes, self._measured = bytes_in(self.collection.folder.home), now
        return self._bytes

    async def write(self, change: Callable[[], Result]) -> Result:
        """Change the collection, after those who asked before. It is done even if nobody waits for it any more."""
        return await asyncio.shield(asyncio.wrap_future(self.writer.submit(change)))

    def start_job(self, job: Job, steps: Sequence[Callable[[], list[Outcome]]], held: Held) -> None:
        """Let the writer do a job step by step; its photos stay in memory until it is done."""
        if steps:
            doing = self.writer.submit_steps([partial(job.do, step) for step in steps])
            let_go = held.keep()  # only now: what the writer refuses goes with its request
            doing.add_done_callback(lambda _: let_go())  # first: of a job that is done nothing is in memory
            doing.add_done_callback(lambda done: job.end(done.exception()))
        else:
            job.end()
        self.jobs.add(job)


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


Here = Annotated[Service, Depends(_service)]


async def _admitted(service: Here) -> AsyncIterator[Held]:
    held = Held(service.gate)
    try:
        yield held
    finally:
        held.leave()


Room = Annotated[Held, Depends(_admitted)]
