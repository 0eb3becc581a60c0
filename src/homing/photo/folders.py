"""From what a user names, files and folders, to the photos that are meant."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Generic, TypeVar, overload

from homing._places import Address, Place, place
from homing.errors import HomingError

_PHOTO_SUFFIXES = {
    *(".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".tif", ".tiff", ".avif", ".bmp"),
    *(".gif", ".heic", ".heif"),  # not supported, but a user should hear that they were left out
}


Where = TypeVar("Where", bound=Place, covariant=True)


@dataclass(frozen=True)
class FoundAt(Generic[Where]):
    """A photo's file, and its name relative to what the user gave."""

    path: Where
    name: Path


Found = FoundAt[Path]
"""One on this machine."""


@overload
def gather(paths: Iterable[Path]) -> list[Found]: ...
@overload
def gather(paths: Iterable[str | Place]) -> list[FoundAt[Place]]: ...


def gather(paths: Iterable[Any]) -> list[Any]:
    """The files given and the photos in the folders given, each once, in the order given.

    Texts may be addresses: s3://bucket/photos.
    """
    found: dict[str, FoundAt[Place]] = {}
    for path in map(place, paths):
        try:
            photos = _named(path)
        except OSError as error:
            raise HomingError(f"{error.filename or path} cannot be read: {error.strerror}") from error
        for photo in photos:
            found.setdefault(_one_name(photo.path), photo)
    return list(found.values())


def _one_name(path: Place) -> str:
    """The same however a file is named; unlike Path.resolve, realpath takes links in a circle."""
    return path.full if isinstance(path, Address) else os.path.realpath(path)


def _named(path: Place) -> list[FoundAt[Place]]:
    """The photo, or the photos of the folder, that a user named."""
    if isinstance(path, Address) and path.suffix.lower() in _PHOTO_SUFFIXES:
        return [FoundAt(path, Path(path.name))]  # to ask a web server whether it is a folder is to fetch it
    if path.is_dir():
        if isinstance(path, Address):
            photos: list[FoundAt[Place]] = [FoundAt(path / name, Path(name)) for name in _far_photos(path)]
        else:
            photos = [FoundAt(file, file.relative_to(path)) for file in _photos(path)]
        if not photos:
            raise HomingError(f"no photos in folder: {path}")
        return photos
    if not path.exists():
        raise HomingError(f"no such file or folder: {path}")
    return [FoundAt(path, Path(path.name))]


def _photos(folder: Path) -> list[Path]:
    return sorted(path for path in _files(folder, set()) if path.suffix.lower() in _PHOTO_SUFFIXES)


def _far_photos(folder: Address) -> list[PurePosixPath]:
    names = (name for name in folder.files() if not any(part.startswith(".") for part in name.parts))
    return sorted(name for name in names if name.suffix.lower() in _PHOTO_SUFFIXES)


def _files(folder: Path, seen: set[Path]) -> Iterator[Path]:
    """The files under a folder that are not hidden; a folder that links back to one above it is entered once."""
    real = folder.resolve()
    if real in seen:
        return
    seen.add(real)
    with os.scandir(folder) as entries:
        names = sorted(entry.name for entry in entries if not entry.name.startswith("."))
    for path in (folder / name for name in names):
        if path.is_dir():
            yield from _files(path, seen)
        else:
            yield path
