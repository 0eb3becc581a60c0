"""The index of what the references of a collection in Lance are now, whoever changed them; and keeping it so."""

from __future__ import annotations

import logging
from datetime import timedelta
from threading import Lock

from homing.collection.lance.folder import LanceFolder
from homing.errors import AwayError, CollectionError
from homing.indexes.lance import LanceIndex, fold_in, is_behind, rows_outside

# What is not in the index is searched in memory. Up to so many references, or to this share of them, that is faster
# than to look for them in a bucket.
_TAIL, _SHARE = 20_000, 0.1


class LanceLive:
    """An index that follows its dataset, version by version; safe to use from several threads."""

    def __init__(self, folder: LanceFolder) -> None:
        self._folder, self._lock = folder, Lock()
        self._index: LanceIndex | None = None
        self._revision = 0

    def current(self) -> LanceIndex:
        """The index of the references as they are now."""
        with self._lock:
            revision = self._folder.catalogue.revision
            if self._index is None or revision != self._revision:
                self._index, self._revision = self._opened(), revision
            return self._index

    def _opened(self) -> LanceIndex:
        references = self._folder.catalogue.references
        with references.telling("read"):
            return LanceIndex(self._folder.codebook, references.dataset)

    def keep(self) -> None:
        """Bring the index of the dataset up to date, if this process has added so many that this pays off."""
        if not self._folder.catalogue.changed:
            return
        try:
            references = self._folder.catalogue.references
            with references.telling("read"):
                tail, count = rows_outside(references.dataset), references.dataset.count_rows()
            if tail > max(_TAIL, _SHARE * count):
                self.compact()
        except (CollectionError, AwayError) as error:
            # Nothing is lost: what is not in the index is searched in memory, and the next one may do it.
            logging.getLogger("homing").warning("%s: the index is left as it is: %s", self._folder.path, error)

    def fold_in(self) -> None:
        """Bring the index up to date: what was removed leaves it, too."""
        references = self._folder.catalogue.references
        references.refuse_if_old()
        with references.telling("indexed"):
            fold_in(references.latest(), self._folder.codebook)

    def _has_rows(self) -> bool:
        references = self._folder.catalogue.references
        with references.telling("read"):
            return bool(references.latest().count_rows())

    def compact(self, older_than: timedelta | None = None) -> None:
        """Index what is not yet, put small files together, and forget versions that are older."""
        catalogue = self._folder.catalogue
        catalogue.references.refuse_if_old()
        if self._has_rows() and is_behind(catalogue.references.dataset):
            self.fold_in()  # first: of removed rows that compaction drops it would go on to tell
        dropped = False
        for table, columns in catalogue.lookups:
            with table.telling("compacted"):
                dataset = table.latest()
                dropped |= dataset.optimize.compact_files().fragments_removed > 0
                for column in columns:
                    if f"{column}_idx" not in {each.name for each in dataset.describe_indices()}:
                        dataset.create_scalar_index(column, "BTREE")
                dataset.optimize.optimize_indices(index_names=[f"{column}_idx" for column in columns])
                if older_than is not None:
                    dataset.cleanup_old_versions(older_than=older_than)
        if dropped and self._has_rows():
            self.fold_in()  # somebody may have removed more meanwhile
        catalogue.changed = False
