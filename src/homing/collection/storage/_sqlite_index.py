"""The index of a SQLite storage, kept in sync with the catalog: in memory, and as a snapshot on disk."""

from __future__ import annotations

import hashlib
import logging
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from homing._io.files import write_atomically
from homing.collection.outcome import Findings
from homing.collection.storage.parts import SETTINGS
from homing.errors import BusyError, CollectionError
from homing.indexes import FaissIndex

if TYPE_CHECKING:
    from homing.collection.storage.sqlite import SqliteStorage

_METADATA = ("revision", "snapshot_revision", "snapshot_sha256")


class SyncedIndex:
    """An index that applies the changes of its catalog. Thread-safe."""

    def __init__(self, storage: SqliteStorage, *, rebuild: bool = False) -> None:
        """Starts from a valid snapshot if there is one; with `rebuild`, from an empty index."""
        self._storage = storage
        self._snapshot = storage.folder / "index.faiss"
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
            index = self._load_or_build() if self._index is None else self._index
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
                    self._write_snapshot(self._index.to_bytes())
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

    def _load_or_build(self) -> FaissIndex:
        snapshot = self._load_snapshot()
        return self._storage.parts.new_index() if snapshot is None else snapshot

    def _load_snapshot(self) -> FaissIndex | None:
        """The snapshot, None if it is unreadable or its hash differs from the catalog's."""
        self._revision = self._last_id = 0
        snapshot = [self._storage.get_metadata(f"snapshot_{name}") for name in ("sha256", "revision", "last")]
        if None in snapshot or not self._snapshot.is_file():
            return None
        try:
            data = self._snapshot.read_bytes()
            if hashlib.sha256(data).hexdigest() != snapshot[0]:
                return None
            index = FaissIndex(self._storage.codebook, data)
            self._revision, self._last_id, self.saved = int(snapshot[1] or 0), int(snapshot[2] or 0), True
        except (OSError, ValueError, RuntimeError):  # from FAISS: written by an incompatible version
            return None
        return index

    def _write_snapshot(self, data: bytes) -> None:
        write_atomically(self._snapshot, data)
        self._storage.set_metadata(
            snapshot_sha256=hashlib.sha256(data).hexdigest(),
            snapshot_revision=str(self._revision),
            snapshot_last=str(self._last_id),
        )
        self.saved = True


def check_snapshot(storage: SqliteStorage, findings: Findings) -> None:
    """Check the snapshot, and that the index loaded from it has the references of the catalog."""
    before = [storage.get_metadata(name) for name in _METADATA]
    problem = _problem(storage, before[-1])
    if problem is None or before != [storage.get_metadata(name) for name in _METADATA]:
        return  # if the revision changed, a concurrent job wrote to the collection

    def repair() -> None:
        synced = SyncedIndex(storage, rebuild=True)
        synced.current()
        synced.save()
        if not synced.saved:
            raise CollectionError("no snapshot could be written")

    by_hand = "no data is lost; the next search builds the index from the catalog"
    findings.repair_or_report(
        "index", f"{storage.path / 'index.faiss'} {problem}", "rebuilt from the catalog", repair, by_hand
    )


def _problem(storage: SqliteStorage, sha256: str | None) -> str | None:
    file = storage.path / "index.faiss"
    if sha256 is None:
        return None  # no snapshot was saved, so none is loaded
    try:
        data = file.read_bytes()
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if hashlib.sha256(data).hexdigest() != sha256:
        return "is damaged, or a crash prevented recording its hash"
    snapshot, wanted = _sorted(SyncedIndex(storage)), _sorted(SyncedIndex(storage, rebuild=True))
    if not np.array_equal(snapshot[0], wanted[0]):
        return f"holds {len(snapshot[0]):,} ids, expected {len(wanted[0]):,} of the catalog and the distractors"
    different = (snapshot[1] != wanted[1]).any(axis=1).sum()
    return f"holds {different:,} codes that differ from the catalog" if different else None


def _sorted(synced: SyncedIndex) -> tuple[np.ndarray, np.ndarray]:
    ids, codes = synced.current().contents()
    order = np.argsort(ids)
    return ids[order], codes[order]
