"""The steps of adding photos, on one machine or a cluster: read, look up, decode, describe, record."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from homing._io.paths import Location, stored_path
from homing.codebooks import Codebook
from homing.collection._replace import ReplaceTracker
from homing.collection._sources import update_moved_source
from homing.collection.outcome import Outcome, failed
from homing.collection.references import NewPhotos
from homing.errors import CollectionError, PhotoError, ran_out_of_memory
from homing.extractors import Extractor, describe_images
from homing.photo import Photo, read_file

if TYPE_CHECKING:
    from homing.collection.collection import Collection


@dataclass(frozen=True)
class FileToAdd:
    """A photo's file: its bytes and hash."""

    path: Location
    sha256: str
    data: bytes


@dataclass(frozen=True)
class DecodedPhoto:
    """A new photo at the network's input size, small enough to queue for its batch."""

    path: Location
    sha256: str
    network_input: Tensor


@dataclass(frozen=True)
class DescribedPhoto:
    """A new photo as the catalog stores it."""

    path: Location
    sha256: str
    code: np.ndarray
    descriptor: np.ndarray


def read(path: Location) -> FileToAdd | Outcome:
    """Read and hash the file of a photo."""
    try:
        data = read_file(path)
    except PhotoError as error:
        return failed(path, error)
    return FileToAdd(path, hashlib.sha256(data).hexdigest(), data)


def decode(photo: FileToAdd, resize: Callable[[Photo], Tensor]) -> DecodedPhoto | Outcome:
    """Decode a photo and convert it to the network's input with `resize`."""
    try:
        return DecodedPhoto(photo.path, photo.sha256, resize(Photo.decode(photo.data, str(photo.path))))
    except PhotoError as error:
        return failed(photo.path, error)
    except (MemoryError, RuntimeError) as error:
        if not ran_out_of_memory(error):
            raise
        return failed(photo.path, PhotoError("too large for the available memory"))


def describe_all(photos: Sequence[DecodedPhoto], extractor: Extractor, codebook: Codebook) -> list[DescribedPhoto]:
    """Compute the descriptors and codes of a batch."""
    descriptors = describe_images(extractor, [photo.network_input for photo in photos])
    rows = zip(photos, codebook.encode(descriptors), descriptors.numpy(), strict=True)
    return [DescribedPhoto(photo.path, photo.sha256, code, descriptor) for photo, code, descriptor in rows]


class PhotoAdder:
    """The catalog operations of adding photos. One job uses one instance for all its photos."""

    def __init__(self, collection: Collection, *, replace: bool = False) -> None:
        """`replace` removes the references that were added from a photo's path before."""
        self._collection, self._catalog = collection, collection.storage
        self._replace_tracker = ReplaceTracker(self._catalog) if replace else None

    def lookup_existing(self, photos: Sequence[tuple[Location, str]]) -> list[Outcome | None]:
        """The outcome of each photo that is already known by its hash; None for new photos."""
        return [self._lookup_existing(path, sha256) for path, sha256 in photos]

    def _lookup_existing(self, path: Location, sha256: str) -> Outcome | None:
        try:
            number = (
                self._replace_tracker.lookup_existing(sha256, path)
                if self._replace_tracker
                else self._catalog.find(sha256)
            )
            if number is not None:
                return self._known(number, path, sha256)
            if self._catalog.find_released(sha256) is not None:
                return Outcome(photo=str(path), state="known")
        except CollectionError as error:
            return failed(path, error)
        return None

    def _known(self, number: int, path: Location, sha256: str) -> Outcome:
        """Outcome of a photo that is already a reference: added from this path, another path, or one that is gone."""
        if (before := update_moved_source(self._catalog, number, path)) is not None:
            return Outcome(photo=str(path), state="moved", moved_from=str(before))
        source, _ = self._catalog.source_and_state(number)
        if self._replace_tracker is not None and source == stored_path(path):
            with self._replace_tracker.lock:
                others = self._replace_tracker.outdated(path, sha256)
                if others:
                    self._catalog.remove(others)
                    return Outcome(photo=str(path), state="replaced")
        return Outcome(photo=str(path), state="known")

    def record(self, photos: Sequence[DescribedPhoto]) -> list[Outcome]:
        """Record new photos in the catalog. They are on disk when this returns."""
        new = NewPhotos(
            [photo.sha256 for photo in photos],
            [stored_path(photo.path) for photo in photos],
            np.stack([photo.code for photo in photos]),
            np.stack([photo.descriptor for photo in photos]),
        )
        try:
            with self._replace_tracker.lock if self._replace_tracker else nullcontext():
                before = [
                    self._replace_tracker.outdated(photo.path, photo.sha256) if self._replace_tracker else []
                    for photo in photos
                ]
                ids = self._collection.record(new, replaces=[number for numbers in before for number in numbers])
        except CollectionError as error:
            return [failed(photo.path, error) for photo in photos]
        return [
            Outcome(photo=str(photo.path), state="known" if number is None else "replaced" if numbers else "added")
            for photo, number, numbers in zip(photos, ids, before, strict=True)
        ]
