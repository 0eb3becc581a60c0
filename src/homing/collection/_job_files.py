"""The files of jobs: the sources of references, which may move, and the targets of released files."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TypeVar

from homing._io.files import is_case_insensitive
from homing._io.paths import Address, Location, is_inside, location, prepare_output_location, stored_path
from homing.collection.outcome import Outcome
from homing.collection.storage import Storage
from homing.collection.storage.layout import UPLOADS
from homing.errors import HomingError
from homing.photo import SUFFIXES, FoundPhoto, MemoryPhoto

PhotoT = TypeVar("PhotoT", Location, Location | MemoryPhoto)

SOURCE_CHANGED = "the file has changed since it was added; add it again with replace"


@dataclass(frozen=True)
class Task:
    """A photo's file, and the path of its released file."""

    path: Location
    target: Location
    moved_from: Location | None = None
    """The previously recorded path of a known photo whose file moved here."""


def tasks_for(found: Sequence[FoundPhoto[Location]], out: Location, format: str | None, root: Location) -> list[Task]:
    """Assign a target file to each photo, and create the output folder. `root` is that of the collection."""
    if not found:
        raise HomingError("no photos were given")
    if is_inside(out, root) and not is_inside(out, root / UPLOADS):
        raise HomingError(f"the out folder {out} lies inside the collection; choose another")
    tasks = [Task(path, target) for target, path in targets(found, out, format).items()]
    prepare_output_location(out)
    if isinstance(out, Path) and is_case_insensitive(out):
        refuse_name_clashes(tasks)
    return tasks


def refuse_name_clashes(tasks: Sequence[Task]) -> None:
    """Raise an error if target names differ only in case: on a case-insensitive disk one would overwrite the other."""
    seen: dict[str, Location] = {}
    for task in tasks:
        key = unicodedata.normalize("NFC", str(task.target)).casefold()
        if key in seen:
            raise HomingError(
                f"{seen[key]} and {task.path} would both be written to {task.target}, because the disk "
                "ignores case; activate them into different folders"
            )
        seen[key] = task.path


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


def update_moved_source(storage: Storage, photo: int, path: Location) -> Location | None:
    """Set the source of a reference to this path if its file moved. Returns the old path, None if it did not move."""
    source, new = storage.source_and_state(photo)[0], stored_path(path)
    if source == new or not _is_missing(location(source)) or not storage.update_source(photo, source, new):
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


def passive_photos(storage: Storage) -> tuple[list[FoundPhoto[Location]], dict[Location, set[str]]]:
    """The files of references that are still passive, and the hashes that each file may have.

    Names are relative to the common folder of all references, passive or not, so that an interrupted job gives the
    remaining files the same names.
    """
    expected: dict[Location, set[str]] = {}
    for source, sha256 in storage.passive():
        expected.setdefault(location(source), set()).add(sha256)
    if not expected:
        return [], {}
    try:
        common = os.path.commonpath([_pure_path(location(each)).parent for each in storage.first_and_last_source()])
        return [FoundPhoto(path, Path(_pure_path(path).relative_to(common))) for path in expected], expected
    except ValueError as error:
        raise HomingError("the passive photos have no common folder; pass the photos or their folders") from error


def still_passive(
    storage: Storage, expected: Mapping[Location, Container[str]], done: Iterable[Outcome]
) -> list[Outcome]:
    """Outcomes of expected references that remain passive although their path was activated: its file has changed."""
    activated = {outcome.photo for outcome in done if outcome.state != "failed"}
    return [
        Outcome(photo=source, state="failed", reason=SOURCE_CHANGED)
        for source, sha256 in storage.passive()
        if source in activated and sha256 in expected.get(location(source), ())
    ]


def _pure_path(where: Location) -> PurePath:
    return where.pure_path if isinstance(where, Address) else where
