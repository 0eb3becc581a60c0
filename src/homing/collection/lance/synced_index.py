"""The index of what the references of a collection in Lance are now, whoever changed them; and keeping it so."""

from __future__ import annotations

import logging
from datetime import timedelta
from threading import Lock

from homing.collection.lance.folder import LanceFolder
from homing.errors import CollectionError, StorageUnavailableError
from homing.indexes.lance import LanceIndex, is_outdated, refresh_index, unindexed_rows

# What is not in the index is searched in memory. Up to so many references, or to this share of them, that is faster
# than to look for them in a bucket.
_MAX_UNINDEXED, _MAX_UNINDEXED_SHARE = 20_000, 0.1


class SyncedLanceIndex:
    """An index that follows its dataset, version by version; safe to use from several threads."""

    def __init__(self, folder: LanceFolder) -> None:
        self._folder, self._lock = folder, Lock()
        self._index: LanceIndex | None = None
        self._revision = 0

    def current(self) -> LanceIndex:
        """The index of the references as they are now."""
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
        """Bring the index of the dataset up to date, if this process has added so many that this pays off."""
        if not self._folder.catalog.changed:
            return
        try:
            references = self._folder.catalog.references
            with references.convert_errors("read"):
                tail, count = unindexed_rows(references.dataset), references.dataset.count_rows()
            if tail > max(_MAX_UNINDEXED, _MAX_UNINDEXED_SHARE * count):
                self.compact()
        except (CollectionError, StorageUnavailableError) as error:
            # Nothing is lost: what is not in the index is searched in memory, and the next one may do it.
            logging.getLogger("homing").warning("%s: the index is left as it is: %s", self._folder.path, error)

    def refresh_index(self) -> None:
        """Bring the index up to date: what was removed leaves it, too."""
        references = self._folder.catalog.references
        references.refuse_if_pinned()
        with references.convert_errors("indexed"):
            refresh_index(references.latest(), self._folder.codebook)

    def _has_rows(self) -> bool:
        references = self._folder.catalog.references
        with references.convert_errors("read"):
            return bool(references.latest().count_rows())

    def compact(self, older_than: timedelta | None = None) -> None:
        """Index what is not yet, put small files together, and forget versions that are older."""
        catalog = self._folder.catalog
        catalog.references.refuse_if_pinned()
        if self._has_rows() and is_outdated(catalog.references.dataset):
            self.refresh_index()  # first: of removed rows that compaction drops it would go on to tell
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
            self.refresh_index()  # somebody may have removed more meanwhile
        catalog.changed = False
