"""Source files of references: update moved ones, and list those that are still passive."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Mapping
from pathlib import Path, PurePath

from homing._io.paths import Address, Location, location, stored_path
from homing.collection.outcome import Outcome
from homing.collection.storage import Storage
from homing.errors import HomingError
from homing.photo import FoundPhoto

SOURCE_CHANGED = "the file has changed since it was added; add it again with replace"


def update_moved_source(catalog: Storage, photo: int, path: Location) -> Location | None:
    """Set the source of a reference to this path if its file moved. Returns the old path, None if it did not move."""
    source, _ = catalog.source_and_state(photo)
    if (
        source == stored_path(path)
        or not _is_missing(location(source))
        or not catalog.update_source(photo, source, stored_path(path))
    ):
        return None
    return location(source)


def _is_missing(file: Location) -> bool:
    try:
        if isinstance(file, Address):
            return not file.exists()
        file.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, HomingError):
        return False  # it may exist in a folder that cannot be read
    return False


def passive_photos(catalog: Storage) -> tuple[list[FoundPhoto[Location]], dict[Location, set[str]]]:
    """The files of references that are still passive, and the hashes that each file may have.

    Names are relative to the common folder of all references, passive or not, so that an interrupted job gives the
    remaining files the same names.
    """
    expected: dict[Location, set[str]] = {}
    for source, sha256 in catalog.passive():
        expected.setdefault(location(source), set()).add(sha256)
    if not expected:
        return [], {}
    try:
        common = os.path.commonpath([_pure_path(location(each)).parent for each in catalog.first_and_last_source()])
        return [FoundPhoto(path, Path(_pure_path(path).relative_to(common))) for path in expected], expected
    except ValueError as error:
        raise HomingError("the passive photos have no common folder; pass the photos or their folders") from error


def still_passive(
    catalog: Storage, expected: Mapping[Location, Container[str]], done: Iterable[Outcome]
) -> list[Outcome]:
    """Outcomes of expected references that remain passive although their path was activated: its file has changed."""
    activated = {outcome.photo for outcome in done if outcome.state != "failed"}
    return [
        Outcome(photo=source, state="failed", reason=SOURCE_CHANGED)
        for source, sha256 in catalog.passive()
        if source in activated and sha256 in expected.get(location(source), ())
    ]


def _pure_path(where: Location) -> PurePath:
    return where.pure_path if isinstance(where, Address) else where
