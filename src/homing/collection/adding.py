"""The stages of adding photos, on one machine or on many: read, asked after, decoded, described, recorded."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from homing._places import Place, recorded
from homing.codebooks import Codebook
from homing.collection._replacing import Replacing
from homing.collection._sources import moved_from
from homing.collection.catalogue import NewPhotos
from homing.collection.outcome import Outcome, failed
from homing.errors import CollectionError, PhotoError, ran_out_of_memory
from homing.extractors import Extractor, describe
from homing.photo import Photo, read_file

if TYPE_CHECKING:
    from homing.collection.collection import Collection


@dataclass(frozen=True)
class Read:
    """A photo's file as it was read."""

    path: Place
    sha256: str
    data: bytes


@dataclass(frozen=True)
class Ready:
    """A new photo as the network sees it, small enough to wait for its batch."""

    path: Place
    sha256: str
    square: Tensor


@dataclass(frozen=True)
class Described:
    """A new photo as the catalogue keeps it."""

    path: Place
    sha256: str
    code: np.ndarray
    descriptor: np.ndarray


def read(path: Place) -> Read | Outcome:
    """The file of a photo, with its hash."""
    try:
        data = read_file(path)
    except PhotoError as error:
        return failed(path, error)
    return Read(path, hashlib.sha256(data).hexdigest(), data)


def decode(photo: Read, resize: Callable[[Photo], Tensor]) -> Ready | Outcome:
    """What the network sees of a photo, which `resize` makes of it."""
    try:
        return Ready(photo.path, photo.sha256, resize(Photo.decode(photo.data, str(photo.path))))
    except PhotoError as error:
        return failed(photo.path, error)
    except (MemoryError, RuntimeError) as error:
        if not ran_out_of_memory(error):
            raise
        return failed(photo.path, PhotoError("too large for the memory there is"))


def describe_all(photos: Sequence[Ready], extractor: Extractor, codebook: Codebook) -> list[Described]:
    """Descriptors and codes of a batch."""
    descriptors = describe(extractor, [photo.square for photo in photos])
    rows = zip(photos, codebook.encode(descriptors), descriptors.numpy(), strict=True)
    return [Described(photo.path, photo.sha256, code, descriptor) for photo, code, descriptor in rows]


class Adding:
    """What adding asks of a collection's catalogue, and tells it: all of a job go to the same one."""

    def __init__(self, collection: Collection, *, replace: bool = False) -> None:
        """To `replace` is to remove what a photo's path held before."""
        self._collection, self._catalogue = collection, collection.folder.catalogue
        self._replacing = Replacing(self._catalogue) if replace else None

    def meet(self, photos: Sequence[tuple[Place, str]]) -> list[Outcome | None]:
        """What there is to tell of photos that are known, by their hashes; None of those that are new."""
        return [self._meet(path, sha256) for path, sha256 in photos]

    def _meet(self, path: Place, sha256: str) -> Outcome | None:
        try:
            number = self._replacing.meet(sha256, path) if self._replacing else self._catalogue.find(sha256)
            if number is not None:
                return self._known(number, path, sha256)
            if self._catalogue.find_released(sha256) is not None:
                return Outcome(photo=path, state="known")
        except CollectionError as error:
            return failed(path, error)
        return None

    def _known(self, number: int, path: Place, sha256: str) -> Outcome:
        """A photo that is a reference already: here, or elsewhere, or where it is no more."""
        if (before := moved_from(self._catalogue, number, path)) is not None:
            return Outcome(photo=path, state="moved", moved_from=before)
        source, _ = self._catalogue.describe(number)
        if self._replacing is not None and source == recorded(path):
            with self._replacing.lock:
                others = self._replacing.outdated(path, sha256)
                if others:
                    self._catalogue.remove(others)
                    return Outcome(photo=path, state="replaced")
        return Outcome(photo=path, state="known")

    def record(self, photos: Sequence[Described]) -> list[Outcome]:
        """Put new photos into the catalogue; they are on disk by then."""
        new = NewPhotos(
            [photo.sha256 for photo in photos],
            [recorded(photo.path) for photo in photos],
            np.stack([photo.code for photo in photos]),
            np.stack([photo.descriptor for photo in photos]),
        )
        try:
            with self._replacing.lock if self._replacing else nullcontext():
                before = [
                    self._replacing.outdated(photo.path, photo.sha256) if self._replacing else [] for photo in photos
                ]
                ids = self._collection.record(new, instead_of=[number for numbers in before for number in numbers])
        except CollectionError as error:
            return [failed(photo.path, error) for photo in photos]
        return [
            Outcome(photo=photo.path, state="known" if number is None else "replaced" if numbers else "added")
            for photo, number, numbers in zip(photos, ids, before, strict=True)
        ]
