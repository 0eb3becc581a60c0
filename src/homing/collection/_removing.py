"""References leave a collection: found by id, path or folder, and removed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from homing._places import Address, Place, place
from homing.collection.catalogue import Catalogue
from homing.collection.folder import Folder
from homing.collection.generations import beside, earlier, place_of
from homing.collection.outcome import Outcome
from homing.collection.settings import open_catalogue


@dataclass(frozen=True)
class Named:
    """The references that a user named, each once, and what names none."""

    ids: list[int]
    unknown: list[Outcome]


def find_named(catalogue: Catalogue, what: Iterable[int | str | Place]) -> Named:
    """References by their ids, by the paths they were added from, or by a folder that these lie in."""
    ids: dict[int, None] = {}
    unknown = []
    for each in dict.fromkeys(what):
        found = catalogue.existing([each]) if isinstance(each, int) else _at(catalogue, each)
        ids |= dict.fromkeys(found)
        if not found:
            unknown.append(Outcome(photo=place(str(each)), state="failed", reason=_reason(each)))
    return Named(list(ids), unknown)


def remove_named(folder: Folder, named: Named) -> list[Outcome]:
    """Remove references in one transaction; files that were released of them are left where they are.

    They leave the generations beside this one, too: they have the same ids in all of them.
    """
    # In this order nothing stays behind after a kill: the same call goes on, or the next run of the migration.
    for before in earlier(folder.home) if named.ids else []:
        _remove_beside(before, named.ids)
    removed = folder.catalogue.remove(named.ids) if named.ids else []
    if named.ids and "next" in beside(folder.home):
        _remove_beside(place_of(folder.home, "next"), named.ids)
    return removed_outcomes(removed, named)


def removed_outcomes(removed: Iterable[tuple[int, str, str | None]], named: Named) -> list[Outcome]:
    """What is told of references that were removed, as catalogues give them, and of what names none."""
    return [
        Outcome(photo=place(source), state="removed", released=None if released is None else place(released))
        for _, source, released in removed
    ] + named.unknown


def _remove_beside(generation: Path, ids: list[int]) -> None:
    with closing(open_catalogue(generation)) as catalogue:
        catalogue.remove(ids)


def _at(catalogue: Catalogue, what: str | Place) -> list[int]:
    if what == "":
        return []  # not the folder one is in, which a path that is empty stands for
    path = place(what)
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return []  # no reference has such a path
    if isinstance(path, Address):
        inner, chain, outer = str(path).partition("::")
        below = catalogue.below(inner)
        if chain:  # other archives may have a folder of the same name
            sources = catalogue.describe_all(below)
            below = [number for number in below if sources[number][0].endswith(chain + outer)]
        return [*(number for number, _ in catalogue.at(str(path))), *below]
    spellings = dict.fromkeys((os.path.abspath(path), os.path.realpath(path)))
    return [
        number
        for spelling in spellings
        for number in (*(number for number, _ in catalogue.at(spelling)), *catalogue.below(spelling))
    ]


def _reason(what: int | str | Place) -> str:
    if isinstance(what, int):
        return f"{what}: no reference has this id"
    if what == "":
        return "'': an empty name names no reference"
    name = os.fsencode(str(place(what))).decode(errors="replace")
    return f"{name}: no reference was added from this path, or from a folder of this name"
