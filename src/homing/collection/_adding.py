"""The job of indexing photos as they are, on one machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from typing import TYPE_CHECKING

from torch import Tensor

from homing._parallel import map_ahead
from homing._places import Place
from homing.collection.adding import Adding, Ready, decode, describe_all, read
from homing.collection.outcome import Outcome
from homing.photo import FoundAt, Photo

if TYPE_CHECKING:
    from homing.collection.collection import Collection

BATCH = 16  # no faster in larger ones on a CPU, and each photo in it takes some 30 MB


def add_photos(
    collection: Collection, found: Sequence[FoundAt[Place]], report: Callable[[Outcome], None], *, replace: bool = False
) -> list[Outcome]:
    """Index photos; each is on disk when it is reported. To `replace` is to remove what its path held before."""
    adding, extractor = Adding(collection, replace=replace), collection.extractor
    one_at_a_time = Lock()  # photos are decoded side by side, but their views are many times larger

    def resize(photo: Photo) -> Tensor:
        with one_at_a_time:
            return extractor.resize(photo.view())

    def prepare(item: FoundAt[Place]) -> Ready | Outcome:
        photo = read(item.path)
        if isinstance(photo, Outcome):
            return photo
        (known,) = adding.meet([(photo.path, photo.sha256)])
        return known or decode(photo, resize)

    outcomes = []
    for outcome in _outcomes(collection, adding, map_ahead(prepare, found)):
        report(outcome)
        outcomes.append(outcome)
    return outcomes


def _outcomes(collection: Collection, adding: Adding, prepared: Iterator[Ready | Outcome]) -> Iterator[Outcome]:
    batch: list[Ready] = []
    for item in prepared:
        if isinstance(item, Outcome):
            yield item
            continue
        batch.append(item)
        if len(batch) == BATCH:
            yield from adding.record(describe_all(batch, collection.extractor, collection.codebook))
            batch = []
    if batch:
        yield from adding.record(describe_all(batch, collection.extractor, collection.codebook))
