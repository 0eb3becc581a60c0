"""From what a user names, files and folders, to the photos that are meant."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from homing.errors import HomingError

_PHOTO_SUFFIXES = {
    *(".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".tif", ".tiff", ".avif", ".bmp"),
    *(".gif", ".heic", ".heif"),  # not supported, but a user should hear that they were left out
}


@dataclass(frozen=True)
class Found:
    """A photo's file, and its name relative to what the user gave."""

    path: Path
    name: Path


def gather(paths: Iterable[Path]) -> list[Found]:
    """The files given and the photos in the folders given, each once, in the order given."""
    found: dict[str, Found] = {}
    for path in paths:
        try:
            photos = _named(path)
        except OSError as error:
            raise HomingError(f"{error.filename or path} cannot be read: {error.strerror}") from error
        for photo in photos:
            found.setdefault(os.path.realpath(photo.path), photo)  # unlike Path.resolve, takes links in a circle
    return list(found.values())


def _named(path: Path) -> list[Found]:
    """The photo, or the photos of the folder, that a user named."""
    if path.is_dir():
        photos = [Found(file, file.relative_to(path)) for file in _photos(path)]
        if not photos:
            raise HomingError(f"no photos in folder: {path}")
        return photos
    if not path.exists():
        raise HomingError(f"no such file or folder: {path}")
    return [Found(path, Path(path.name))]


def _photos(folder: Path) -> list[Path]:
    return sorted(path for path in _files(folder, set()) if path.suffix.lower() in _PHOTO_SUFFIXES)


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
