"""Find the photos in the files and folders that a user names."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Generic, TypeVar, overload

from homing._io.paths import Address, Location, location
from homing.errors import HomingError

_PHOTO_SUFFIXES = {
    *(".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".tif", ".tiff", ".avif", ".bmp"),
    *(".heic", ".heif", ".hif"),
    ".gif",  # not supported, but listed, so that the user sees an error for it
}


PhotoT = TypeVar("PhotoT", covariant=True)


@dataclass(frozen=True)
class FoundPhoto(Generic[PhotoT]):
    """A photo's file, or a photo in memory, and its name relative to what the user gave."""

    path: PhotoT
    name: Path


LocalPhoto = FoundPhoto[Path]
"""A photo's file on this machine."""


@overload
def find_photos(paths: Iterable[Path]) -> list[LocalPhoto]: ...
@overload
def find_photos(paths: Iterable[str | Location]) -> list[FoundPhoto[Location]]: ...


def find_photos(paths: Iterable[Any]) -> list[Any]:
    """The files given and the photos in the folders given, each once, in the order given.

    A string may be an address such as s3://bucket/photos.
    """
    found: list[FoundPhoto[Location]] = []
    for path in map(location, paths):
        try:
            found += _photos_at(path)
        except OSError as error:
            raise HomingError(f"{error.filename or path} cannot be read: {error.strerror}") from error
    return each_once(found)


def each_once(photos: Iterable[FoundPhoto[Location]]) -> list[FoundPhoto[Location]]:
    """Drop photos whose file is also that of an earlier photo."""
    found: dict[str, FoundPhoto[Location]] = {}
    for photo in photos:
        found.setdefault(_identity(photo.path), photo)
    return list(found.values())


def _identity(path: Location) -> str:
    """A key that is equal for all names of a file. Unlike Path.resolve, realpath accepts circular links."""
    return path.url if isinstance(path, Address) else os.path.realpath(path)


def _photos_at(path: Location) -> list[FoundPhoto[Location]]:
    """The photo, or the photos of the folder, that a user named."""
    if isinstance(path, Address) and path.suffix.lower() in _PHOTO_SUFFIXES:
        return [FoundPhoto(path, Path(path.name))]  # asking a web server whether this is a folder would download it
    if path.is_dir():
        if isinstance(path, Address):
            photos: list[FoundPhoto[Location]] = [FoundPhoto(path / name, Path(name)) for name in _remote_photos(path)]
        else:
            photos = [FoundPhoto(file, file.relative_to(path)) for file in _photos(path)]
        if not photos:
            raise HomingError(f"no photos in folder: {path}")
        return photos
    if not path.exists():
        raise HomingError(f"no such file or folder: {path}")
    return [FoundPhoto(path, Path(path.name))]


def _photos(folder: Path) -> list[Path]:
    return sorted(path for path in _files(folder, set()) if path.suffix.lower() in _PHOTO_SUFFIXES)


def _remote_photos(folder: Address) -> list[PurePosixPath]:
    names = (name for name in folder.files() if not any(part.startswith(".") for part in name.parts))
    return sorted(name for name in names if name.suffix.lower() in _PHOTO_SUFFIXES)


def _files(folder: Path, seen: set[Path]) -> Iterator[Path]:
    """The files under a folder that are not hidden; a folder that links to a parent folder is entered once."""
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
