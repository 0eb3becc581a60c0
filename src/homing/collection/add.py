"""Add photos as references: read and look up, decode, describe and record, on one machine or a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import chain
from threading import Lock, RLock
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from homing._io.parallel import prefetch_map, thread_map
from homing._io.paths import Location, is_storable, stored_path
from homing.codebooks import Codebook
from homing.collection.outcome import Outcome, OutcomeCallback, failed, report_each
from homing.collection.references import NewPhotos
from homing.collection.sources import update_moved_source
from homing.errors import CollectionError, PhotoError, ran_out_of_memory
from homing.extractors import Extractor, describe_images
from homing.photo import FoundPhoto, Photo, PhotoFile

if TYPE_CHECKING:
    from homing.collection.collection import Collection

BATCH = 16  # larger batches are no faster on a CPU, and each photo in a batch takes about 30 MB
READ_THREADS = 16  # files of a batch that are read at once


@dataclass(frozen=True)
class DecodedPhoto:
    """A new photo at the network's input size, small enough to queue for its batch."""

    path: Location
    sha256: str
    network_input: Tensor


@dataclass(frozen=True)
class DescribedPhoto:
    """A new photo as it is recorded."""

    path: Location
    sha256: str
    code: np.ndarray
    descriptor: np.ndarray


def add_photos(
    collection: Collection,
    found: Sequence[FoundPhoto[Location]],
    on_outcome: OutcomeCallback | None,
    *,
    replace: bool = False,
) -> list[Outcome]:
    """Index photos, and report each one once it is on disk. The caller holds the lock.

    `replace` removes the references that were added from the same paths before.
    """
    records, extractor = NewReferences(collection, replace=replace), collection.extractor
    resize_lock = Lock()  # photos are decoded in parallel, but resizing takes many times more memory

    def resize(photo: Photo) -> Tensor:
        with resize_lock:
            return extractor.resize(photo.pixels())

    def prepare(item: FoundPhoto[Location]) -> DecodedPhoto | Outcome:
        (read,) = read_photos([item.path], records)
        return read if isinstance(read, Outcome) else decode_photo(*read, resize)

    def outcomes() -> Iterator[Outcome]:
        batch: list[DecodedPhoto] = []
        for each in prefetch_map(prepare, found):
            if isinstance(each, Outcome):
                yield each
                continue
            batch.append(each)
            if len(batch) == BATCH:
                yield from records.record(describe_photos(batch, extractor, collection.codebook))
                batch = []
        if batch:
            yield from records.record(describe_photos(batch, extractor, collection.codebook))

    return report_each(outcomes(), on_outcome)


def read_photos(paths: Sequence[Location], records: NewReferences) -> list[tuple[Location, PhotoFile] | Outcome]:
    """The files of photos that are not known yet; the others have their outcome."""
    read = list(zip(paths, thread_map(_read_or_fail, paths, threads=READ_THREADS), strict=True))
    known = iter(records.look_up([(path, file.sha256) for path, file in read if isinstance(file, PhotoFile)]))
    return [file if isinstance(file, Outcome) else next(known) or (path, file) for path, file in read]


def read_to_record(path: Location) -> PhotoFile:
    """The file of a photo that becomes a reference; PhotoError if its path cannot be stored."""
    file = PhotoFile.read(path)
    if not is_storable(path):
        raise PhotoError(f"{path}: the name of its folder is not valid UTF-8; rename the folder")
    return file


def _read_or_fail(path: Location) -> PhotoFile | Outcome:
    try:
        return read_to_record(path)
    except PhotoError as error:
        return failed(path, error)


def decode_photo(path: Location, file: PhotoFile, resize: Callable[[Photo], Tensor]) -> DecodedPhoto | Outcome:
    """Decode a photo and convert it to the network's input with `resize`."""
    try:
        return DecodedPhoto(path, file.sha256, resize(Photo.decode(file.data, file.name)))
    except PhotoError as error:
        return failed(path, error)
    except (MemoryError, RuntimeError) as error:
        if not ran_out_of_memory(error):
            raise
        return failed(path, PhotoError("too large for the available memory"))


def describe_photos(photos: Sequence[DecodedPhoto], extractor: Extractor, codebook: Codebook) -> list[DescribedPhoto]:
    """Compute the descriptors and codes of a batch."""
    descriptors = describe_images(extractor, [photo.network_input for photo in photos])
    rows = zip(photos, codebook.encode(descriptors), descriptors.numpy(), strict=True)
    return [DescribedPhoto(photo.path, photo.sha256, code, descriptor) for photo, code, descriptor in rows]


class NewReferences:
    """What a job looks up and records of references. One job uses one instance for all its photos."""

    def __init__(self, collection: Collection, *, replace: bool = False) -> None:
        """`replace` removes the references that were added from a photo's path before, but no photo of the job."""
        self._storage, self._replace = collection.storage, replace
        self._seen: dict[str, str] = {}  # if photos are replaced: the path of each photo of the job, by hash
        # Lookups run in threads ahead of the replacement: held from the lookup until the removal.
        self._lock: AbstractContextManager[object] = RLock() if replace else nullcontext()

    def look_up(self, photos: Sequence[tuple[Location, str]]) -> list[Outcome | None]:
        """The outcome of each photo that is already known by its hash; None for new photos."""
        return [self._look_up(path, sha256) for path, sha256 in photos]

    def _look_up(self, path: Location, sha256: str) -> Outcome | None:
        try:
            with self._lock:
                if self._replace:
                    self._seen.setdefault(sha256, stored_path(path))
                number = self._storage.find(sha256)
            if number is not None:
                return self._known(number, path, sha256)
            if self._storage.find_released(sha256) is not None:
                return Outcome(photo=str(path), state="known")
        except CollectionError as error:
            return failed(path, error)
        return None

    def _known(self, number: int, path: Location, sha256: str) -> Outcome:
        """Outcome of a photo that is already a reference: added from this path, another path, or one that is gone."""
        if (before := update_moved_source(self._storage, number, path)) is not None:
            return Outcome(photo=str(path), state="moved", moved_from=str(before))
        if self._replace and self._storage.source_and_state(number)[0] == stored_path(path):
            with self._lock:
                if outdated := self._outdated(path, sha256):
                    self._storage.remove(outdated)
                    return Outcome(photo=str(path), state="replaced")
        return Outcome(photo=str(path), state="known")

    def _outdated(self, path: Location, sha256: str) -> list[int]:
        """The references to replace: added from this path with another hash. The sources of moved photos are updated.

        A photo of the job is never replaced, even under a new name.
        """
        source, outdated = stored_path(path), []
        for number, known in self._storage.find_by_source(source) if self._replace else ():
            if known in self._seen:
                if self._seen[known] != source:
                    self._storage.update_source(number, source, self._seen[known])
            elif known != sha256:
                outdated.append(number)
        return outdated

    def record(self, photos: Sequence[DescribedPhoto]) -> list[Outcome]:
        """Record new photos. They are on disk when this returns."""
        new = NewPhotos(
            [photo.sha256 for photo in photos],
            [stored_path(photo.path) for photo in photos],
            np.stack([photo.code for photo in photos]),
            np.stack([photo.descriptor for photo in photos]),
        )
        try:
            with self._lock:
                before = [self._outdated(photo.path, photo.sha256) for photo in photos]
                ids = self._storage.add(new, replaces=list(chain(*before)))
        except CollectionError as error:
            return [failed(photo.path, error) for photo in photos]
        return [
            Outcome(photo=str(photo.path), state="known" if number is None else "replaced" if outdated else "added")
            for photo, number, outdated in zip(photos, ids, before, strict=True)
        ]
