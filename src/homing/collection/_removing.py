"""References leave a collection: found by id, path or folder, and removed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from homing.collection.catalogue import Catalogue
from homing.collection.outcome import Outcome


@dataclass(frozen=True)
class Named:
    """The references that a user named, each once, and what names none."""

    ids: list[int]
    unknown: list[Outcome]


def find_named(catalogue: Catalogue, what: Iterable[int | str | Path]) -> Named:
    """References by their ids, by the paths they were added from, or by a folder that these lie in."""
    ids: dict[int, None] = {}
    unknown = []
    for each in dict.fromkeys(what):
        found = catalogue.existing([each]) if isinstance(each, int) else _at(catalogue, each)
        ids |= dict.fromkeys(found)
        if not found:
            unknown.append(Outcome(photo=Path(str(each)), state="failed", reason=_reason(each)))
    return Named(list(ids), unknown)


def remove_named(catalogue: Catalogue, named: Named) -> list[Outcome]:
    """Remove references in one transaction; files that were released of them are left where they are."""
    removed = catalogue.remove(named.ids) if named.ids else []
    return [
        Outcome(photo=Path(source), state="removed", released=None if released is None else Path(released))
        for _, source, released in removed
    ] + named.unknown


def _at(catalogue: Catalogue, path: str | Path) -> list[int]:
    if path == "":
        return []  # not the folder one is in, which a path that is empty stands for
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return []  # no reference has such a path
    spellings = dict.fromkeys((os.path.abspath(path), os.path.realpath(path)))
    return [
        number
        for spelling in spellings
        for number in (*(number for number, _ in catalogue.at(spelling)), *catalogue.below(spelling))
    ]


def _reason(what: int | str | Path) -> str:
    if isinstance(what, int):
        return f"{what}: no reference has this id"
    if what == "":
        return "'': an empty name names no reference"
    name = os.fsencode(what).decode(errors="replace")
    return f"{name}: no reference was added from this path, or from a folder of this name"
