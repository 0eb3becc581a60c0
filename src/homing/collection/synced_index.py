"""The index, kept in sync with the catalog: in memory, and as a snapshot on disk."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Protocol, TypeVar

import numpy as np

from homing._io.files import write_atomically
from homing.collection._locks import snapshot_lock
from homing.collection.folder import FIRST_DISTRACTOR_ID, Folder
from homing.errors import BusyError, CollectionError, NotFoundError
from homing.indexes import FaissIndex, Index

if TYPE_CHECKING:
    from homing.collection.collection import Collection

Options = ParamSpec("Options")
Result = TypeVar("Result")


class SyncedIndex(Protocol):
    """The interface of an index that follows a collection, for every storage format."""

    def current(self) -> Index:
        """The index of all current references."""

    def save(self) -> None:
        """Save the index for the next opening if that is worthwhile. A failure loses no data."""


class SyncedFaissIndex:
    """An index that applies the changes of its catalog. Thread-safe."""

    def __init__(self, folder: Folder, *, rebuild: bool = False) -> None:
        """Starts from a valid snapshot if there is one; with `rebuild`, from an empty index."""
        self._folder, self._catalog = folder, folder.catalog
        self._snapshot = folder.path / "index.faiss"
        self._lock = Lock()
        self._index: FaissIndex | None = self._new_index() if rebuild else None
        self._revision = 0  # catalog revision that the index represents
        self._last_id = 0  # largest id in the index
        self.saved = False  # whether the snapshot on disk equals this index

    def current(self) -> FaissIndex:
        """The index, updated to the current catalog."""
        with self._lock:
            # Read the revision first: changes recorded after it may be applied twice, which is harmless.
            revision = self._catalog.revision
            index = self._load_or_build() if self._index is None else self._index
            if self._revision != revision:
                if self._revision < self._catalog.codes_revision:
                    index, self._revision, self._last_id = self._new_index(), 0, 0
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
            with snapshot_lock(self._folder.root), self._lock:
                # Skip if an update in another thread failed, or if this generation was deleted.
                if self._index is not None and (self._folder.path / "collection.toml").is_file():
                    self._write_snapshot(self._index.to_bytes())
        except BusyError:
            return
        except (OSError, CollectionError) as error:
            # For example a full or read-only disk. The next opening starts from an older snapshot or from none.
            logging.getLogger("homing").warning("%s: no snapshot of the index was saved: %s", self._folder.path, error)

    def _apply_changes(self, index: FaissIndex) -> None:
        # Add before removing, so that a concurrent search finds either a photo or its replacement. A search that finds
        # a removed photo is retried.
        last_known = self._last_id
        try:
            for ids, codes in self._catalog.codes(after=last_known):
                index.add(codes, ids)
                self._last_id = int(ids[-1])
        except (ValueError, TypeError, RuntimeError, AssertionError) as error:  # from NumPy or FAISS
            path = self._folder.root
            raise CollectionError(
                f"{path} holds codes that do not fit its codebook; repair it with: homing check {path} --repair"
            ) from error
        removed = self._catalog.removed_since(self._revision)
        if (removed <= last_known).any():
            index.remove(removed[removed <= last_known])

    def _load_or_build(self) -> FaissIndex:
        snapshot = self._load_snapshot()
        return self._new_index() if snapshot is None else snapshot

    def _load_snapshot(self) -> FaissIndex | None:
        """The snapshot, None if it is unreadable or its hash differs from the catalog's."""
        self._revision = self._last_id = 0
        snapshot = [self._catalog.get_metadata(f"snapshot_{name}") for name in ("sha256", "revision", "last")]
        if None in snapshot or not self._snapshot.is_file():
            return None
        try:
            data = self._snapshot.read_bytes()
            if hashlib.sha256(data).hexdigest() != snapshot[0]:
                return None
            index = FaissIndex(self._folder.codebook, data)
            self._revision, self._last_id, self.saved = int(snapshot[1] or 0), int(snapshot[2] or 0), True
        except (OSError, ValueError, RuntimeError):  # from FAISS: written by an incompatible version
            return None
        return index

    def _new_index(self) -> FaissIndex:
        index, distractors = FaissIndex(self._folder.codebook), self._folder.distractors
        if distractors is not None:
            index.add(distractors.codes, FIRST_DISTRACTOR_ID + np.arange(len(distractors)))
        return index

    def _write_snapshot(self, data: bytes) -> None:
        write_atomically(self._snapshot, data)
        self._catalog.set_metadata(
            snapshot_sha256=hashlib.sha256(data).hexdigest(),
            snapshot_revision=str(self._revision),
            snapshot_last=str(self._last_id),
        )
        self.saved = True


def retry_if_removed(
    search: Callable[Concatenate[Collection, Options], Result],
) -> Callable[Concatenate[Collection, Options], Result]:
    """Decorate a search to retry if a reference it found is removed before its source is looked up."""

    @wraps(search)
    def retrying(collection: Collection, /, *arguments: Options.args, **options: Options.kwargs) -> Result:
        while True:
            revision = collection.folder.catalog.revision
            try:
                return search(collection, *arguments, **options)
            except NotFoundError:
                if collection.folder.catalog.revision == revision:
                    raise

    return retrying
