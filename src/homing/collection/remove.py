"""Select references by id, path or folder, and remove them from a collection."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass

from homing._io.paths import Address, Location, location, printable
from homing.collection.outcome import Outcome
from homing.collection.storage import Storage, open_generation
from homing.collection.storage.layout import earlier_generations, generation_path, other_generations


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
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return []  # no reference has a path like this
    if isinstance(path, Address):
        inner, chain, outer = str(path).partition("::")
        below = storage.find_in_folder(inner)
        if chain:  # other archives may contain a folder of the same name
            sources = storage.sources_and_states(below)
            below = [number for number in below if sources[number][0].endswith(chain + outer)]
        return [*_added_from(storage, str(path)), *below]
    spellings = dict.fromkeys((os.path.abspath(path), os.path.realpath(path)))
    return [number for each in spellings for number in (*_added_from(storage, each), *storage.find_in_folder(each))]


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
