"""The sources of references: select and remove references by them, follow moved files, and find passive photos."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path, PurePath

from homing._io.paths import Address, Location, is_storable, location, printable, stored_path
from homing.collection.outcome import Outcome
from homing.collection.storage import Storage, open_generation
from homing.collection.storage.layout import earlier_generations, generation_path, other_generations
from homing.errors import HomingError
from homing.photo import FoundPhoto

SOURCE_CHANGED = "the file has changed since it was added; add it again with replace"


@dataclass(frozen=True)
class Selection:
    """The selected references, each once, and the selectors that match none."""

    ids: list[int]
    unknown: list[Outcome]


def select_references(storage: Storage, what: Iterable[int | str | Location]) -> Selection:
    """Select references by id, by the path they were added from, or by a folder that contains it."""
    ids: dict[int, None] = {}
    unknown = []
    for each in dict.fromkeys(what):
        found = list(storage.hashes_of([each])) if isinstance(each, int) else _at(storage, each)
        ids |= dict.fromkeys(found)
        if not found:
            unknown.append(_unknown(each))
    return Selection(list(ids), unknown)


def remove_references(storage: Storage, selection: Selection) -> list[Outcome]:
    """Remove references from all generations, which know them by their hashes. Their released files stay in place."""
    if not selection.ids:
        return selection.unknown
    root, hashes = storage.root, list(storage.hashes_of(selection.ids).values())
    # The current generation comes last, so that repeating an interrupted call still finds the references.
    next_one = [generation_path(root, "next")] if "next" in other_generations(root) else []
    for path in [*earlier_generations(root), *next_one]:
        with closing(open_generation(type(storage), root, path)) as other:
            other.remove(list(other.ids_of(hashes).values()))
    removed = storage.remove(selection.ids)
    return [Outcome(photo=source, state="removed", released=path) for _, source, path in removed] + selection.unknown


def _at(storage: Storage, what: str | Location) -> list[int]:
    if what == "":
        return []  # an empty path would mean the working directory
    path = location(what)
    if not is_storable(path):
        return []  # no reference has a path like this
    if isinstance(path, Address):
        inner, chain, outer = str(path).partition("::")
        below = storage.find_in_folder(inner)
        if chain:  # other archives may contain a folder of the same name
            sources = storage.sources_and_states(below)
            below = [number for number in below if sources[number][0].endswith(chain + outer)]
        return [*_added_from(storage, str(path)), *below]
    spellings = dict.fromkeys((os.path.abspath(path), os.path.realpath(path)))
    return [
        number
        for each in spellings
        if is_storable(Path(each))
        for number in (*_added_from(storage, each), *storage.find_in_folder(each))
    ]


def _added_from(storage: Storage, source: str) -> list[int]:
    return [number for number, _ in storage.find_by_source(source)]


def _unknown(what: int | str | Location) -> Outcome:
    reason = "no reference was added from this path, or from a folder of this name"
    if isinstance(what, int):
        reason = "no reference has this id"
    elif what == "":
        reason = "an empty name selects no reference"
    text = repr(what) if isinstance(what, int) or what == "" else printable(location(what))
    return Outcome(photo=text, state="failed", reason=reason)


def display_name(source: str) -> str:
    """The display name of a reference: its file name, without folders."""
    return location(source).name


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
