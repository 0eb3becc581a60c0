"""Where the references and releases of a collection are stored: chosen once, by the collection's location."""

from __future__ import annotations

from collections.abc import Callable

from homing._imports import load_entry_points
from homing._io.paths import Location
from homing.collection.storage.base import Storage, StorageT
from homing.collection.storage.lance import LanceStorage
from homing.collection.storage.layout import (
    SETTINGS,
    Parts,
    find_generation,
    generation_path,
    read_parts,
    read_settings,
)
from homing.collection.storage.sqlite import SqliteStorage
from homing.errors import CollectionError

__all__ = [
    "Parts",
    "Storage",
    "create_generation",
    "create_storage",
    "open_generation",
    "open_storage",
    "register_storage",
    "storage_at",
]

_KINDS: list[type[Storage]] = [LanceStorage, SqliteStorage]  # the first that accepts a location has its collection


def register_storage(kind: type[StorageT]) -> type[StorageT]:
    """Offer a class of storages, which is asked before those that were registered earlier. Works as a decorator."""
    _KINDS.insert(0, kind)
    return kind


def storage_at(where: Location) -> tuple[type[Storage], Location]:
    """The class of the storage at a location, and the location as that storage uses it.

    Modules of other packages with the entry point `homing.storages` are imported first, to register their classes.
    """
    load_entry_points("homing.storages")
    kind = next(kind for kind in _KINDS if kind.accepts(where))
    return kind, kind.check_location(where)


def create_storage(where: Location, parts: Parts, fill: Callable[[Storage], None] | None = None) -> None:
    """Create a collection, or the next generation of one. `fill` inserts its first references and releases."""
    kind, where = storage_at(where)
    create_generation(kind, where, parts, fill)


def create_generation(
    kind: type[Storage], where: Location, parts: Parts, fill: Callable[[Storage], None] | None = None
) -> None:
    """Create a generation in a folder without one."""
    try:
        if ((current := generation_path(where, "current")) / SETTINGS).is_file():
            about = read_settings(current)
            raise CollectionError(
                f"{where} already is a collection, with codebook '{about['codebook']}' ({about['fingerprint'][:12]}); "
                "open it with Collection.open, or choose another name"
            )
        kind.create(where, parts, fill)
    except OSError as error:
        raise CollectionError(f"cannot create a collection at {where}: {error.strerror}") from error


def open_storage(where: Location, which: str = "current", version: int | None = None) -> Storage:
    """Open one generation of a collection, with its references at a version or the latest."""
    kind, root = storage_at(where)
    try:
        return open_generation(kind, root, find_generation(root, which), version)
    except OSError as error:
        raise CollectionError(
            f"{root} cannot be read: {error.strerror}; find the problem with: homing check {root}"
        ) from error


def open_generation(kind: type[Storage], root: Location, path: Location, version: int | None = None) -> Storage:
    """Open the generation in a folder, and check its codebook against its settings."""
    kind.refuse_if_no_collection(path)
    if not (path / SETTINGS).exists():
        raise CollectionError(f"{path / SETTINGS} is missing; restore it with: homing check {root} --repair")
    return kind.open(root, path, read_parts(root, path), version)
