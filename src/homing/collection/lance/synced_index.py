"""The index of a collection in Lance, kept in sync with the changes of all writers."""

from __future__ import annotations

import logging
from datetime import timedelta
from threading import Lock

from homing.collection.lance.folder import LanceFolder
from homing.errors import CollectionError, StorageUnavailableError
from homing.indexes.lance import LanceIndex, is_outdated, refresh_index, unindexed_rows

# Rows that are not indexed are searched in memory. Up to this number or share of references, that is faster than
# reading the index from a bucket.
_MAX_UNINDEXED, _MAX_UNINDEXED_SHARE = 20_000, 0.1


class SyncedLanceIndex:
    """An index that follows the versions of its dataset. Thread-safe."""

    def __init__(self, folder: LanceFolder) -> None:
        self._folder, self._lock = folder, Lock()
        self._index: LanceIndex | None = None
        self._revision = 0

    def current(self) -> LanceIndex:
        """The index of all current references."""
        with self._lock:
            revision = self._folder.catalog.revision
            if self._index is None or revision != self._revision:
                self._index, self._revision = self._open(), revision
            return self._index

    def _open(self) -> LanceIndex:
        references = self._folder.catalog.references
        with references.convert_errors("read"):
            return LanceIndex(self._folder.codebook, references.dataset)

    def save(self) -> None:
        """Update the index of the dataset if this process changed it and enough rows are not indexed."""
        if not self._folder.catalog.changed:
            return
        try:
            references = self._folder.catalog.references
            with references.convert_errors("read"):
                tail, count = unindexed_rows(references.dataset), references.dataset.count_rows()
            if tail > max(_MAX_UNINDEXED, _MAX_UNINDEXED_SHARE * count):
                self.compact()
        except (CollectionError, StorageUnavailableError) as error:
            # No data is lost: unindexed rows are searched in memory, and a later job can update the index.
            logging.getLogger("homing").warning("%s: the index was not updated: %s", self._folder.path, error)

    def refresh_index(self) -> None:
        """Update the index: add new rows and drop removed ones."""
        references = self._folder.catalog.references
        references.refuse_if_pinned()
        with references.convert_errors("indexed"):
            refresh_index(references.latest(), self._folder.codebook)

    def _has_rows(self) -> bool:
        references = self._folder.catalog.references
        with references.convert_errors("read"):
            return bool(references.latest().count_rows())

    def compact(self, older_than: timedelta | None = None) -> None:
        """Index all rows, merge small files, and delete versions older than `older_than`."""
        catalog = self._folder.catalog
        catalog.references.refuse_if_pinned()
        if self._has_rows() and is_outdated(catalog.references.dataset):
            self.refresh_index()  # first: otherwise the index still returns removed rows that compaction drops
        dropped = False
        for table, columns in catalog.lookups:
            with table.convert_errors("compacted"):
                dataset = table.latest()
                dropped |= dataset.optimize.compact_files().fragments_removed > 0
                for column in columns:
                    if f"{column}_idx" not in {each.name for each in dataset.describe_indices()}:
                        dataset.create_scalar_index(column, "BTREE")
                dataset.optimize.optimize_indices(index_names=[f"{column}_idx" for column in columns])
                if older_than is not None:
                    dataset.cleanup_old_versions(older_than=older_than)
        if dropped and self._has_rows():
            self.refresh_index()  # another writer may have removed more rows
        catalog.changed = False
