"""Select references by id, path or folder, and remove them from a collection."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from homing._io.paths import Address, Location, location, printable
from homing.collection.folder import Folder
from homing.collection.generations import earlier_generations, generation_path, other_generations
from homing.collection.outcome import Outcome
from homing.collection.settings import open_catalog
from homing.collection.storage import Storage


@dataclass(frozen=True)
class Selection:
    """The selected references, each once, and the selectors that match none."""

    ids: list[int]
    unknown: list[Outcome]


def select_references(catalog: Storage, what: Iterable[int | str | Location]) -> Selection:
    """Select references by id, by the path they were added from, or by a folder that contains it."""
    ids: dict[int, None] = {}
    unknown = []
    for each in dict.fromkeys(what):
        found = catalog.existing_ids([each]) if isinstance(each, int) else _at(catalog, each)
        ids |= dict.fromkeys(found)
        if not found:
            unknown.append(Outcome(photo=_selector_text(each), state="failed", reason=_reason(each)))
    return Selection(list(ids), unknown)


def remove_references(folder: Folder, selection: Selection) -> list[Outcome]:
    """Remove references in one transaction. Their released files stay in place.

    The references are removed from the other generations too, where they have the same ids.
    """
    # With this order nothing remains after a crash: repeating the call, or the migration, completes the removal.
    for before in earlier_generations(folder.root) if selection.ids else []:
        _remove_from_generation(before, selection.ids)
    removed = folder.catalog.remove(selection.ids) if selection.ids else []
    if selection.ids and "next" in other_generations(folder.root):
        _remove_from_generation(generation_path(folder.root, "next"), selection.ids)
    return removed_outcomes(removed, selection)


def removed_outcomes(removed: Iterable[tuple[int, str, str | None]], selection: Selection) -> list[Outcome]:
    """Outcomes of the references that a catalog removed, and of the selectors that match none."""
    return [
        Outcome(photo=source, state="removed", released=released) for _, source, released in removed
    ] + selection.unknown


def _remove_from_generation(generation: Path, ids: list[int]) -> None:
    with closing(open_catalog(generation)) as catalog:
        catalog.remove(ids)


def _at(catalog: Storage, what: str | Location) -> list[int]:
    if what == "":
        return []  # an empty path would mean the working directory
    path = location(what)
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return []  # no reference has a path like this
    if isinstance(path, Address):
        inner, chain, outer = str(path).partition("::")
        below = catalog.find_in_folder(inner)
        if chain:  # other archives may contain a folder of the same name
            sources = catalog.sources_and_states(below)
            below = [number for number in below if sources[number][0].endswith(chain + outer)]
        return [*(number for number, _ in catalog.find_by_source(str(path))), *below]
    spellings = dict.fromkeys((os.path.abspath(path), os.path.realpath(path)))
    return [
        number
        for spelling in spellings
        for number in (*(number for number, _ in catalog.find_by_source(spelling)), *catalog.find_in_folder(spelling))
    ]


def _reason(what: int | str | Location) -> str:
    if isinstance(what, int):
        return "no reference has this id"
    if what == "":
        return "an empty name selects no reference"
    return "no reference was added from this path, or from a folder of this name"


def _selector_text(what: int | str | Location) -> str:
    """A selector as text."""
    return repr(what) if isinstance(what, int) or what == "" else printable(location(what))
