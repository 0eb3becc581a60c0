"""Storage in SQLite: a folder on this machine, with one writer at a time and an index in memory.

holiday.homing/
  catalog.sqlite      references and releases: the source of truth
  index.faiss         a snapshot of the index; rebuilt from the catalog if missing or damaged
  writer.lock         held while the collection changes; shared by all generations, like the other locks
  snapshot.lock       held while a snapshot is saved
  uploads.lock        held while uploads are added or deleted
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from pathlib import Path

from homing._io.files import atomic_folder
from homing._io.paths import Location
from homing.collection.outcome import Findings
from homing.collection.references import folded_name
from homing.collection.storage._sqlite_database import RESTORE, SqliteDatabase, file_lock
from homing.collection.storage._sqlite_index import SyncedIndex, check_snapshot
from homing.collection.storage._sqlite_references import SqliteReferences
from homing.collection.storage.base import Storage
from homing.collection.storage.parts import Parts
from homing.errors import CollectionError, FormatError
from homing.indexes import Index

CATALOG = "catalog.sqlite"


class SqliteStorage(SqliteReferences):
    """The references of a generation in a SQLite file, and their index in memory."""

    files = (CATALOG, f"{CATALOG}-shm", f"{CATALOG}-wal", "index.faiss")
    restore_hint = RESTORE

    def __init__(self, root: Path, path: Path, parts: Parts) -> None:
        Storage.__init__(self, root, path, parts)
        self.folder = path
        SqliteReferences.__init__(self, path / CATALOG)
        # LIKE ignores case in ASCII only.
        self._database.create_function("name_of", 1, folded_name, deterministic=True)
        self.synced_index = SyncedIndex(self)

    @classmethod
    def accepts(cls, where: Location) -> bool:
        """Whether this is a folder on this machine."""
        return isinstance(where, Path)

    @classmethod
    def refuse_other_format(cls, path: Location) -> None:
        """Raise FormatError if the catalog has another format version. Ignores other problems."""
        file = _folder(path) / CATALOG
        try:
            if file.is_file():
                with closing(SqliteDatabase(file)) as database:
                    database.check_format(file)
        except FormatError:
            raise
        except CollectionError:
            return  # the check of the database reports it

    @classmethod
    def create(cls, where: Location, parts: Parts, fill: Callable[[Storage], None] | None = None) -> None:
        """Create a generation in a folder that appears complete or not at all."""
        path = Path(os.path.abspath(_folder(where)))
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise CollectionError(f"{path} exists and is not empty; choose another name for the collection")
        with atomic_folder(path) as draft:
            parts.write(draft)
            with closing(cls(draft, draft, parts)) as storage:
                storage.create_tables()
                if fill is not None:
                    fill(storage)
            parts.write_settings(draft)

    @classmethod
    def open(cls, root: Location, path: Location, parts: Parts, version: int | None) -> SqliteStorage:
        """Open the catalog. Raises an error, without changes, if it has another format version."""
        if version is not None:
            raise cls.no_versions(root)
        if not (_folder(path) / CATALOG).is_file():
            raise CollectionError(f"{path} has no catalog.sqlite; restore it from a backup")
        storage = cls(_folder(root), _folder(path), parts)
        try:
            storage.check_format(_folder(path) / CATALOG)
        except CollectionError:
            storage.close()
            raise
        return storage

    def reopen(self) -> SqliteStorage:
        """Open another connection: a query holds the lock of its own."""
        return SqliteStorage(_folder(self.root), _folder(self.path), self.parts)

    @classmethod
    def is_damage(cls, error: CollectionError) -> bool:
        """Whether an error means damage; a locked or read-only file is none."""
        return not isinstance(error.__cause__, sqlite3.OperationalError)

    @classmethod
    def lock(cls, root: Location) -> AbstractContextManager[None]:
        """Lock a collection while it changes. Raises BusyError at once if another writer holds the lock."""
        return file_lock(_folder(root), "writer.lock")

    def lock_uploads(self) -> AbstractContextManager[None]:
        """Lock the uploads while files are added or deleted. Raises BusyError if they are locked."""
        return file_lock(_folder(self.root), "uploads.lock")

    def lock_snapshot(self) -> AbstractContextManager[None]:
        """Lock the snapshots while one is saved. Readers save snapshots too, so writers use a separate lock."""
        return file_lock(_folder(self.root), "snapshot.lock")

    def delete_previous(self) -> None:
        """Delete the generations before the current one, while no snapshot of them is saved."""
        with self.lock_snapshot():
            super().delete_previous()

    def index(self) -> Index:
        """The index in memory, updated to the current catalog."""
        return self.synced_index.current()

    def save_index(self) -> None:
        """Save a snapshot of the index, unless it is up to date."""
        self.synced_index.save()

    def check_index(self, findings: Findings) -> None:
        """Check the snapshot against its hash and the catalog."""
        check_snapshot(self, findings)


def _folder(where: Location) -> Path:
    """A location that `accepts` took."""
    assert isinstance(where, Path)
    return where
