"""Target paths of released files: one output folder, with the names that the photos have in the input folders."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from homing._io.paths import Location, is_inside
from homing.errors import HomingError
from homing.photo import SUFFIXES, FoundPhoto, MemoryPhoto

PhotoT = TypeVar("PhotoT", Location, Location | MemoryPhoto)


def targets(found: Iterable[FoundPhoto[PhotoT]], out: Location, format: str | None) -> dict[Location, PhotoT]:
    """Map each target file, in `format` if given, to its photo. Photos inside `out` are skipped."""
    photos: dict[Location, PhotoT] = {}
    for item in found:
        if not isinstance(item.path, MemoryPhoto) and is_inside(item.path, out):
            continue
        target = out / (item.name.with_suffix(SUFFIXES[format]) if format else item.name)
        if target in photos:
            raise HomingError(
                f"{photos[target]} and {item.path} would both be written to {target}; "
                "activate them into different folders"
            )
        photos[target] = item.path
    if not photos:
        raise HomingError(f"all photos are in the output folder {out}; choose another output folder")
    return photos
