"""Index photos without changing them, on one machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from typing import TYPE_CHECKING

from torch import Tensor

from homing._io.parallel import prefetch_map
from homing._io.paths import Location
from homing.collection.add_steps import DecodedPhoto, PhotoAdder, decode, describe_all, read
from homing.collection.outcome import Outcome
from homing.photo import FoundPhoto, Photo

if TYPE_CHECKING:
    from homing.collection.collection import Collection

BATCH = 16  # larger batches are no faster on a CPU, and each photo in a batch takes about 30 MB


def add_photos(
    collection: Collection,
    found: Sequence[FoundPhoto[Location]],
    on_outcome: Callable[[Outcome], None],
    *,
    replace: bool = False,
) -> list[Outcome]:
    """Index photos, and report each one once it is on disk.

    `replace` removes the references that were added from the same paths before.
    """
    adder, extractor = PhotoAdder(collection, replace=replace), collection.extractor
    resize_lock = Lock()  # photos are decoded in parallel, but resizing takes many times more memory

    def resize(photo: Photo) -> Tensor:
        with resize_lock:
            return extractor.resize(photo.pixels())

    def prepare(item: FoundPhoto[Location]) -> DecodedPhoto | Outcome:
        photo = read(item.path)
        if isinstance(photo, Outcome):
            return photo
        (known,) = adder.lookup_existing([(photo.path, photo.sha256)])
        return known or decode(photo, resize)

    outcomes = []
    for outcome in _outcomes(collection, adder, prefetch_map(prepare, found)):
        on_outcome(outcome)
        outcomes.append(outcome)
    return outcomes


def _outcomes(
    collection: Collection, adder: PhotoAdder, prepared: Iterator[DecodedPhoto | Outcome]
) -> Iterator[Outcome]:
    batch: list[DecodedPhoto] = []
    for item in prepared:
        if isinstance(item, Outcome):
            yield item
            continue
        batch.append(item)
        if len(batch) == BATCH:
            yield from adder.record(describe_all(batch, collection.extractor, collection.codebook))
            batch = []
    if batch:
        yield from adder.record(describe_all(batch, collection.extractor, collection.codebook))
