"""Files of photos: their formats and names, and the photos in the files and folders that a user names."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar, overload

from homing._io.paths import Address, Location, list_files, location
from homing.errors import HomingError, UnknownNameError, check_type

SUFFIXES = {
    "JPEG": ".jpg",
    "PNG": ".png",
    "WEBP": ".webp",
    "TIFF": ".tif",
    "AVIF": ".avif",
    "HEIC": ".heic",
    "BMP": ".bmp",
}
"""The formats homing reads and writes, and the suffix each is written with."""

_OTHER_SUFFIXES = {".jpeg": "JPEG", ".jpe": "JPEG", ".jfif": "JPEG", ".tiff": "TIFF", ".heif": "HEIC", ".hif": "HEIC"}
# GIF is not supported, but listed, so that the user sees an error for it.
_PHOTO_SUFFIXES = {*SUFFIXES.values(), *_OTHER_SUFFIXES, ".gif"}
_MAX_NAME_BYTES = 200  # file systems accept 255, and temporary names are longer
_SHORT = {"JPG": "JPEG", "TIF": "TIFF", "HEIF": "HEIC", "HIF": "HEIC"}

QUALITIES = {"WEBP": (90, 98), "AVIF": (90, 98), "HEIC": (80, 95)}
"""The quality that each lossy format but JPEG is written at, of 100: as usual, and finer."""

QUICK_FORMATS = ("PNG",)
"""The formats that can be written faster, as a larger file with the same pixels."""

PhotoT = TypeVar("PhotoT", covariant=True)


def format_name(name: str) -> str:
    """The format called `name` in any case; "jpg", "tif", "heif" and "hif" are accepted too."""
    check_type("format", name, "a text")
    upper = name.upper()
    format = _SHORT.get(upper, upper)
    if format not in SUFFIXES:
        raise UnknownNameError("format", name.lower(), map(str.lower, SUFFIXES))
    return format


def display_format(format: str) -> str:
    """A format, a key of `SUFFIXES` or Pillow's name of another, as it is spelled in sentences."""
    return "WebP" if format == "WEBP" else format


def has_suffix_of(name: Path, format: str) -> bool:
    """Whether a file name ends as files of this format do."""
    suffix = name.suffix.lower()
    return SUFFIXES[format] == suffix or _OTHER_SUFFIXES.get(suffix) == format


def is_file_name(name: str) -> bool:
    """Whether a text is the plain name of a file: short, printable, without folders, not hidden."""
    try:
        plain = 0 < len(name.encode()) <= _MAX_NAME_BYTES
    except UnicodeEncodeError:
        return False
    return plain and not name.startswith(".") and name.isprintable() and not set(name) & set("/\\")


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
        # Unlike Path.resolve, realpath accepts circular links.
        identity = photo.path.url if isinstance(photo.path, Address) else os.path.realpath(photo.path)
        found.setdefault(identity, photo)
    return list(found.values())


def _photos_at(path: Location) -> list[FoundPhoto[Location]]:
    """The photo, or the photos of the folder, that a user named."""
    if isinstance(path, Address) and path.suffix.lower() in _PHOTO_SUFFIXES:
        return [FoundPhoto(path, Path(path.name))]  # asking a web server whether this is a folder would download it
    if path.is_dir():
        names = [name for name in list_files(path) if name.suffix.lower() in _PHOTO_SUFFIXES]
        if not names:
            raise HomingError(f"no photos in folder: {path}")
        return [FoundPhoto(path / name, Path(name)) for name in names]
    if not path.exists():
        raise HomingError(f"no such file or folder: {path}")
    return [FoundPhoto(path, Path(path.name))]
