"""What the routes share: the collection, and those who work for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Annotated, TypeVar

from fastapi import Depends, Request

from homing.collection import Collection
from homing.collection.listing import Listing
from homing.service.batching import Batcher
from homing.service.keeping import Keeping
from homing.service.lanes import Lanes
from homing.service.limits import Gate, Held, Limits
from homing.service.thumbnails import Pictures
from homing.service.working import Writer

Result = TypeVar("Result")


class Service:
    """One collection being served."""

    batcher: Batcher
    writer: Writer
    lanes: Lanes
    listing: Listing

    def __init__(self, collection: Collection, limits: Limits) -> None:
        self.collection, self.limits = collection, limits
        self.keeping = Keeping(collection)
        self.gate = Gate(limits)
        self.pictures = Pictures()
        self.ready = False

    def start(self) -> None:
        """Load the network and the index, and start the threads."""
        self.keeping.prepare()
        self.listing = Listing(self.collection.folder.path)
        self.batcher = Batcher(self.collection.extractor, self.limits.squares)
        self.writer, self.lanes = Writer(self.limits.writes), Lanes()
        len(self.collection.index)  # brought to what the catalogue holds, which the first request would wait for
        self.ready = True

    def stop(self) -> None:
        """Do all that was accepted, then let go of everything but the collection, which is the caller's."""
        self.ready = False
        self.writer.close()
        self.batcher.close()
        self.lanes.close()
        self.listing.close()

    async def write(self, change: Callable[[], Result]) -> Result:
        """Change the collection, after those who asked before. It is done even if nobody waits for it any more."""
        return await asyncio.shield(asyncio.wrap_future(self.writer.submit(change)))


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


Here = Annotated[Service, Depends(_service)]


async def _admitted(service: Here) -> AsyncIterator[Held]:
    held = service.gate.enter()
    try:
        yield held
    finally:
        held.leave()


Room = Annotated[Held, Depends(_admitted)]
