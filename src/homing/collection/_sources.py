"""Where the files of references lie: those that moved, those that changed, those that are still passive."""

from __future__ import annotations

import os
from pathlib import Path, PurePath

from homing._places import Address, Place, place, recorded
from homing.collection.catalogue import Catalogue
from homing.errors import HomingError
from homing.photo import FoundAt


def moved_from(catalogue: Catalogue, photo: int, path: Place) -> Place | None:
    """Where the file of a reference lay, if nothing is there any more; from now on its source is this path."""
    source, _ = catalogue.describe(photo)
    if source == recorded(path) or not _gone(place(source)) or not catalogue.move(photo, source, recorded(path)):
        return None
    return place(source)


def _gone(file: Place) -> bool:
    try:
        if isinstance(file, Address):
            return not file.exists()
        file.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, HomingError):
        return False  # it may well be there, where nobody may look
    return False


def outdated(catalogue: Catalogue, path: Place, sha256: str) -> list[int]:
    """The references that were added from this path when it held another file."""
    return [number for number, known in catalogue.at(recorded(path)) if known != sha256]


def passive_photos(catalogue: Catalogue) -> tuple[list[FoundAt[Place]], dict[Place, set[str]]]:
    """The files of references that are still passive, and the hashes that each may have.

    Their names are relative to the folder that all references have in common, whether passive or not: a job that was
    interrupted gives the same names to what is left.
    """
    expected: dict[Place, set[str]] = {}
    for source, sha256 in catalogue.passive():
        expected.setdefault(place(source), set()).add(sha256)
    if not expected:
        return [], {}
    try:
        common = os.path.commonpath([_way(place(each)).parent for each in catalogue.outermost()])
        return [FoundAt(path, Path(_way(path).relative_to(common))) for path in expected], expected
    except ValueError as error:
        raise HomingError("the passive photos have no folder in common; name them, or their folders") from error


def _way(where: Place) -> PurePath:
    return where.way if isinstance(where, Address) else where
