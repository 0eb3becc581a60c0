"""The job of indexing photos as they are."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

from torch import Tensor

from homing._parallel import map_ahead
from homing._places import Place, recorded
from homing.collection._replacing import Replacing
from homing.collection._sources import moved_from
from homing.collection.catalogue import Catalogue, NewPhotos
from homing.collection.outcome import Outcome, failed
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
    collection: Collection, found: Sequence[FoundAt[Place]], report: Callable[[Outcome], None], *, replace: bool = False
) -> list[Outcome]:
    """Index photos; each is on disk when it is reported. To `replace` is to remove what its path held before."""
    catalogue, extractor = collection.folder.catalogue, collection.extractor
    replacing = Replacing(catalogue) if replace else None
    one_at_a_time = Lock()  # photos are decoded side by side, but their views are many times larger

    def prepare(item: FoundAt[Place]) -> _Ready | Outcome:
        try:
            data = read_file(item.path)
            sha256 = hashlib.sha256(data).hexdigest()
            number = replacing.meet(sha256, item.path) if replacing else catalogue.find(sha256)
            if number is not None:
                return _known(catalogue, number, item.path, sha256, replacing)
            if catalogue.find_released(sha256) is not None:
                return Outcome(photo=item.path, state="known")
            photo = Photo.decode(data, str(item.path))
            with one_at_a_time:
                return _Ready(item.path, sha256, extractor.resize(photo.view()))
        except (PhotoError, CollectionError) as error:
            return failed(item.path, error)
        except (MemoryError, RuntimeError) as error:
            if not ran_out_of_memory(error):
                raise
            return failed(item.path, PhotoError(f"{item.path}: too large for the memory there is"))

    outcomes = []
    for outcome in _outcomes(collection, map_ahead(prepare, found), replacing):
        report(outcome)
        outcomes.append(outcome)
    return outcomes


def _known(catalogue: Catalogue, number: int, path: Place, sha256: str, replacing: Replacing | None) -> Outcome:
    """A photo that is a reference already: here, or elsewhere, or where it is no more."""
    if (before := moved_from(catalogue, number, path)) is not None:
        return Outcome(photo=path, state="moved", moved_from=before)
    source, _ = catalogue.describe(number)
    if replacing is not None and source == recorded(path):
        with replacing.lock:
            others = replacing.outdated(path, sha256)
            if others:
                catalogue.remove(others)
                return Outcome(photo=path, state="replaced")
    return Outcome(photo=path, state="known")


def _outcomes(
    collection: Collection, prepared: Iterator[_Ready | Outcome], replacing: Replacing | None
) -> Iterator[Outcome]:
    batch: list[_Ready] = []
    for item in prepared:
        if isinstance(item, Outcome):
            yield item
            continue
        batch.append(item)
        if len(batch) == BATCH:
            yield from _index(collection, batch, replacing)
            batch = []
    if batch:
        yield from _index(collection, batch, replacing)


def _index(collection: Collection, batch: Sequence[_Ready], replacing: Replacing | None) -> list[Outcome]:
    descriptors = describe(collection.extractor, [item.square for item in batch])
    codes = collection.codebook.encode(descriptors)
    hashes, sources = [item.sha256 for item in batch], [recorded(item.path) for item in batch]
    photos = NewPhotos(hashes, sources, codes, descriptors.numpy())
    try:
        with replacing.lock if replacing else nullcontext():
            before = [replacing.outdated(item.path, item.sha256) if replacing else [] for item in batch]
            ids = collection.record(photos, instead_of=[number for numbers in before for number in numbers])
    except CollectionError as error:
        return [failed(item.path, error) for item in batch]
    return [
        Outcome(photo=item.path, state="known" if number is None else "replaced" if numbers else "added")
        for item, number, numbers in zip(batch, ids, before, strict=True)
    ]
