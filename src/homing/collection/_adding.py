"""The job of indexing photos as they are."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

from torch import Tensor

from homing._parallel import map_ahead
from homing._places import Place, recorded
from homing.collection.catalogue import NewPhoto
from homing.collection.outcome import Outcome
from homing.errors import CollectionError, PhotoError, ran_out_of_memory
from homing.extractors import describe
from homing.photo import FoundAt, Photo, read_file

if TYPE_CHECKING:
    from homing.collection.collection import Collection

BATCH = 16  # no faster in larger ones on a CPU, and each photo in it takes some 30 MB


@dataclass(frozen=True)
class _Ready:
    """A new photo, small enough to wait for its batch."""

    path: Place
    sha256: str
    square: Tensor


def add_photos(
    collection: Collection, found: Sequence[FoundAt[Place]], report: Callable[[Outcome], None]
) -> list[Outcome]:
    """Index photos; each is on disk when it is reported."""
    catalogue, extractor = collection.folder.catalogue, collection.extractor
    one_at_a_time = Lock()  # photos are decoded side by side, but their views are many times larger

    def prepare(item: FoundAt[Place]) -> _Ready | Outcome:
        try:
            data = read_file(item.path)
            sha256 = hashlib.sha256(data).hexdigest()
            if catalogue.find(sha256) is not None or catalogue.find_released(sha256) is not None:
                return Outcome(photo=item.path, state="known")
            photo = Photo.decode(data, str(item.path))
            with one_at_a_time:
                return _Ready(item.path, sha256, extractor.resize(photo.view()))
        except PhotoError as error:
            return Outcome(photo=item.path, state="failed", reason=str(error))
        except (MemoryError, RuntimeError) as error:
            if not ran_out_of_memory(error):
                raise
            return Outcome(photo=item.path, state="failed", reason=f"{item.path}: too large for the memory there is")

    outcomes = []
    for outcome in _outcomes(collection, map_ahead(prepare, found)):
        report(outcome)
        outcomes.append(outcome)
    return outcomes


def _outcomes(collection: Collection, prepared: Iterator[_Ready | Outcome]) -> Iterator[Outcome]:
    batch: list[_Ready] = []
    for item in prepared:
        if isinstance(item, Outcome):
            yield item
            continue
        batch.append(item)
        if len(batch) == BATCH:
            yield from _index(collection, batch)
            batch = []
    if batch:
        yield from _index(collection, batch)


def _index(collection: Collection, batch: Sequence[_Ready]) -> list[Outcome]:
    descriptors = describe(collection.extractor, [item.square for item in batch])
    codes = collection.codebook.encode(descriptors)
    photos = [
        NewPhoto(item.sha256, recorded(item.path), code, descriptor)
        for item, code, descriptor in zip(batch, codes, descriptors.numpy(), strict=True)
    ]
    try:
        ids = collection.record(photos)
    except CollectionError as error:
        return [Outcome(photo=item.path, state="failed", reason=f"{item.path}: {error}") for item in batch]
    return [
        Outcome(photo=item.path, state="known" if number is None else "added")
        for item, number in zip(batch, ids, strict=True)
    ]
