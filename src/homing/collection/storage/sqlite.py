"""Storage in SQLite: a folder on this machine, with one writer at a time and an index in memory.

holiday.homing/
  catalog.sqlite      references and releases: the source of truth
  index.faiss         a snapshot of the index; rebuilt from the catalog if missing or damaged
  writer.lock         held while the collection changes; shared by all generations, like the other locks
  snapshot.lock       held while a snapshot is saved
  uploads.lock        held while uploads are added or deleted
"""

from __future__ import annotations

import hashlib
import logging
import os
import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, suppress
from pathlib import Path
from threading import Lock

import numpy as np

from homing._io.files import atomic_folder, write_atomically
from homing._io.paths import Location
from homing.collection.outcome import Findings
from homing.collection.references import folded_name
from homing.collection.storage._sqlite_database import RESTORE, file_lock
from homing.collection.storage._sqlite_rows import SqliteRows
from homing.collection.storage.base import NoVersionsError, Storage
from homing.collection.storage.layout import SETTINGS, Parts
from homing.errors import BusyError, CollectionError
from homing.indexes import FaissIndex

CATALOG, SNAPSHOT = "catalog.sqlite", "index.faiss"
_REVISIONS = ("revision", "snapshot_revision", "snapshot_sha256")


class SqliteStorage(SqliteRows):
    """The references of a generation in a SQLite file, and their index in memory."""

    files = (CATALOG, f"{CATALOG}-shm", f"{CATALOG}-wal", SNAPSHOT)
    restore_hint = RESTORE

    def __init__(self, root: Path, path: Path, parts: Parts) -> None:
        Storage.__init__(self, root, path, parts)
        SqliteRows.__init__(self, path / CATALOG)
        # LIKE ignores case in ASCII only.
        self._database.create_function("name_of", 1, folded_name, deterministic=True)
        self.synced_index = SyncedIndex(self)

    @classmethod
    def accepts(cls, where: Location) -> bool:
        """Whether this is a folder on this machine."""
        return isinstance(where, Path)

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
        """Open the catalog."""
        if version is not None:
            raise NoVersionsError(root)
        if not (_folder(path) / CATALOG).is_file():
            raise CollectionError(f"{path} has no catalog.sqlite; restore it from a backup")
        return cls(_folder(root), _folder(path), parts)

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

    def index(self) -> FaissIndex:
        """The index in memory, updated to the current catalog."""
        return self.synced_index.current()

    def save_index(self) -> None:
        """Save a snapshot of the index, unless it is up to date."""
        self.synced_index.save()

    def check_index(self, findings: Findings) -> None:
        """Check the snapshot, and that the index loaded from it has the references of the catalog."""
        before = [self.get_metadata(name) for name in _REVISIONS]
        problem = self._snapshot_problem(before[-1])
        if problem is None or before != [self.get_metadata(name) for name in _REVISIONS]:
            return  # if the revision changed, a concurrent job wrote to the collection

        def repair() -> None:
            synced = SyncedIndex(self, rebuild=True)
            synced.current()
            synced.save()
            if not synced.saved:
                raise CollectionError("no snapshot could be written")

        text = f"{self.path / SNAPSHOT} {problem}"
        by_hand = "no data is lost; the next search builds the index from the catalog"
        findings.repair_or_report("index", text, "rebuilt from the catalog", repair, by_hand)

    def _snapshot_problem(self, sha256: str | None) -> str | None:
        file = self.path / SNAPSHOT
        if sha256 is None:
            return None  # no snapshot was saved, so none is loaded
        try:
            data = file.read_bytes()
        except OSError as error:
            return f"cannot be read: {error.strerror}"
        if hashlib.sha256(data).hexdigest() != sha256:
            return "is damaged, or a crash prevented recording its hash"
        snapshot, wanted = _sorted(SyncedIndex(self)), _sorted(SyncedIndex(self, rebuild=True))
        if not np.array_equal(snapshot[0], wanted[0]):
            return f"holds {len(snapshot[0]):,} ids, expected {len(wanted[0]):,} of the catalog and the distractors"
        different = (snapshot[1] != wanted[1]).any(axis=1).sum()
        return f"holds {different:,} codes that differ from the catalog" if different else None


class SyncedIndex:
    """An index that applies the changes of its catalog. Thread-safe."""

    def __init__(self, storage: SqliteStorage, *, rebuild: bool = False) -> None:
        """Starts from a valid snapshot if there is one; with `rebuild`, from an empty index."""
        self._storage = storage
        self._snapshot = _folder(storage.path) / SNAPSHOT
        self._lock = Lock()
        self._index: FaissIndex | None = self._storage.parts.new_index() if rebuild else None
        self._revision = 0  # catalog revision that the index represents
        self._last_id = 0  # largest id in the index
        self.saved = False  # whether the snapshot on disk equals this index

    def current(self) -> FaissIndex:
        """The index, updated to the current catalog."""
        with self._lock:
            # Read the revision first: changes recorded after it may be applied twice, which is harmless.
            revision = self._storage.revision
            index = self._load() if self._index is None else self._index
            if self._revision != revision:
                if self._revision < self._storage.codes_revision:
                    index, self._revision, self._last_id = self._storage.parts.new_index(), 0, 0
                self._index = None  # a failure discards the half-updated index
                self._apply_changes(index)
                self._revision, self.saved = revision, False
            self._index = index
            return index

    def save(self) -> None:
        """Save a snapshot for the next opening, unless it is up to date or another process is saving one."""
        if self._index is None or self.saved:
            return
        try:
            with self._storage.lock_snapshot(), self._lock:
                # Skip if an update in another thread failed, or if this generation was deleted.
                if self._index is not None and self._snapshot.with_name(SETTINGS).is_file():
                    data = self._index.to_bytes()
                    write_atomically(self._snapshot, data)
                    self._storage.set_metadata(
                        snapshot_sha256=hashlib.sha256(data).hexdigest(),
                        snapshot_revision=str(self._revision),
                        snapshot_last=str(self._last_id),
                    )
                    self.saved = True
        except BusyError:
            return
        except (OSError, CollectionError) as error:
            # For example a full or read-only disk. The next opening starts from an older snapshot or from none.
            logging.getLogger("homing").warning("%s: no snapshot of the index was saved: %s", self._storage.path, error)

    def _apply_changes(self, index: FaissIndex) -> None:
        # Add before removing, so that a concurrent search finds either a photo or its replacement. A search that finds
        # a removed photo is retried.
        last_known = self._last_id
        try:
            for ids, codes in self._storage.codes(after=last_known):
                index.add(codes, ids)
                self._last_id = int(ids[-1])
        except (ValueError, TypeError, RuntimeError, AssertionError) as error:  # from NumPy or FAISS
            path = self._storage.root
            raise CollectionError(
                f"{path} holds codes that do not fit its codebook; repair it with: homing check {path} --repair"
            ) from error
        removed = self._storage.removed_since(self._revision)
        if (removed <= last_known).any():
            index.remove(removed[removed <= last_known])

    def _load(self) -> FaissIndex:
        """The snapshot; an empty index if it is unreadable or its hash differs from the catalog's."""
        self._revision = self._last_id = 0
        sha256, revision, last = (
            self._storage.get_metadata(f"snapshot_{name}") for name in ("sha256", "revision", "last")
        )
        if sha256 and revision and last and self._snapshot.is_file():
            with suppress(OSError, ValueError, RuntimeError):  # from FAISS: written by an incompatible version
                data = self._snapshot.read_bytes()
                if hashlib.sha256(data).hexdigest() == sha256:
                    index = FaissIndex(self._storage.codebook, data)
                    self._revision, self._last_id, self.saved = int(revision), int(last), True
                    return index
        return self._storage.parts.new_index()


def _sorted(synced: SyncedIndex) -> tuple[np.ndarray, np.ndarray]:
    ids, codes = synced.current().contents()
    order = np.argsort(ids)
    return ids[order], codes[order]


def _folder(where: Location) -> Path:
    """A location that `accepts` took."""
    assert isinstance(where, Path)
    return where
