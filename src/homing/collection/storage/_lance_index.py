"""The indexes of a Lance storage: of the descriptors, which searches use, and of the columns that rows are found by."""

from __future__ import annotations

import logging
from datetime import timedelta
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING

from homing.collection.outcome import Findings
from homing.collection.storage._lance_table import LanceTable
from homing.errors import CollectionError, StorageUnavailableError
from homing.indexes.lance import LanceIndex, cells_differ, drop_index, is_outdated, refresh_index, unindexed_rows

if TYPE_CHECKING:
    from homing.collection.storage.lance import LanceStorage

# Rows that are not indexed are searched in memory. Up to this number or share of references, that is faster than
# reading the index from a bucket.
_MAX_UNINDEXED, _MAX_UNINDEXED_SHARE = 20_000, 0.1
_AGAIN = "run homing check --repair again"


class SyncedLanceIndex:
    """An index that follows the versions of its dataset. Thread-safe."""

    def __init__(self, storage: LanceStorage) -> None:
        self._storage, self._lock = storage, Lock()
        self._index: LanceIndex | None = None
        self._revision = 0

    def current(self) -> LanceIndex:
        """The index of all current references."""
        with self._lock:
            revision = self._storage.revision
            if self._index is None or revision != self._revision:
                self._index, self._revision = self._open(), revision
            return self._index

    def _open(self) -> LanceIndex:
        references = self._storage.table
        with references.convert_errors("read"):
            return LanceIndex(self._storage.codebook, references.dataset, self._storage.parts.new_index())

    def save(self) -> None:
        """Update the index of the dataset if this process changed it and enough rows are not indexed."""
        if not self._storage.changed:
            return
        try:
            references = self._storage.table
            with references.convert_errors("read"):
                tail, count = unindexed_rows(references.dataset), references.dataset.count_rows()
            if tail > max(_MAX_UNINDEXED, _MAX_UNINDEXED_SHARE * count):
                self.compact()
        except (CollectionError, StorageUnavailableError) as error:
            # No data is lost: unindexed rows are searched in memory, and a later job can update the index.
            logging.getLogger("homing").warning("%s: the index was not updated: %s", self._storage.path, error)

    def refresh(self) -> None:
        """Update the index: add new rows and drop removed ones."""
        references = self._storage.table
        references.refuse_if_pinned()
        with references.convert_errors("indexed"):
            refresh_index(references.latest(), self._storage.codebook)

    def _has_rows(self) -> bool:
        references = self._storage.table
        with references.convert_errors("read"):
            return bool(references.latest().count_rows())

    def compact(self, older_than: timedelta | None = None) -> None:
        """Index all rows, merge small files, and delete versions older than `older_than`."""
        self._storage.table.refuse_if_pinned()
        if self._has_rows() and is_outdated(self._storage.table.dataset):
            self.refresh()  # first: otherwise the index still returns removed rows that compaction drops
        dropped = False
        for table, columns in self._storage.lookups:
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
            self.refresh()  # another writer may have removed more rows
        self._storage.changed = False

    def check(self, findings: Findings) -> None:
        """Check that the index can be read, and has the cells of the codebook."""
        references, problem = self._storage.table, None
        try:
            with references.convert_errors("read"):
                if cells_differ(references.dataset, self._storage.codebook):
                    problem = "the index has other cells than the codebook: it was trained again"
        except CollectionError as error:
            problem = f"the index is damaged: {error}"
        if problem is not None:
            findings.repair_or_report("index", problem, "rebuilt", self._rebuild, _AGAIN)

    def _rebuild(self) -> None:
        references = self._storage.table
        with references.convert_errors("indexed"):
            drop_index(references.latest())
            refresh_index(references.latest(), self._storage.codebook)


def check_lookups(storage: LanceStorage, findings: Findings) -> None:
    """Check that the scalar indexes of the lookup columns work."""
    for table, columns in storage.lookups:
        for column in columns:
            try:
                table.rows([column], f"{column} = ''")
            except CollectionError as error:
                repair = partial(_rebuild_lookup, table, column)
                findings.repair_or_report("index", str(error), "rebuilt", repair, _AGAIN)


def _rebuild_lookup(table: LanceTable, column: str) -> None:
    with table.convert_errors("indexed"):
        table.latest().create_scalar_index(column, "BTREE", replace=True)
    table.latest()
