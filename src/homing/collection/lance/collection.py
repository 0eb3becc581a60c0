"""A collection in Lance, in a local folder or a bucket. Many machines can change and search it at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from torch import Tensor

from homing._io.paths import Location
from homing.collection._export import Export
from homing.collection._remove import Selection, removed_outcomes
from homing.collection.collection import Collection, ReferenceSelector
from homing.collection.generations import earlier_generations, generation_path, other_generations
from homing.collection.lance.checks import check_lance
from homing.collection.lance.folder import LanceFolder, open_lance_generation
from homing.collection.lance.listing import list_references
from homing.collection.lance.synced_index import SyncedLanceIndex
from homing.collection.outcome import Finding, Info, Outcome
from homing.collection.references import NewPhotos, Reference, ReferenceQuery
from homing.collection.results import SearchResult
from homing.collection.uploads import UploadStore, delete_uploads
from homing.errors import CollectionError, NotFoundError
from homing.indexes import LanceIndex

# A job compacts after this many photos. Each batch writes one file, and a lookup per photo in thousands of small
# files would dominate the time.
_COMPACT_EVERY = 10_000


@dataclass(frozen=True)
class Version:
    """A version of the references."""

    number: int
    time: datetime
    photos: int


class LanceCollection(Collection):
    """The references of one user in Lance datasets. Use `Collection.create` and `Collection.open`.

    Any number of processes and machines may change the collection at once; a photo that two of them add is stored once.
    Every change creates a version, which can be opened until it is deleted.
    """

    folder: LanceFolder  # type: ignore[assignment]  # has the interface of Folder
    _synced_index: SyncedLanceIndex
    _recorded = 0  # photos recorded since the last compaction

    def _make_synced_index(self) -> SyncedLanceIndex:
        return SyncedLanceIndex(self.folder)

    @cached_property
    def uploads(self) -> UploadStore:
        """The folder of photos that were added from memory. Several processes may add to it at once."""
        return UploadStore(self.folder.root, exclusive=False)

    @property
    def index(self) -> LanceIndex:
        """The index of all current references, including those that other processes added."""
        self._refuse_if_closed()
        return self._synced_index.current()

    def lock_for_writing(self) -> AbstractContextManager[None]:
        """Take no lock, since conflicting commits are retried. Loads the changes of other writers."""
        catalog, root = self.folder.catalog, self.folder.root
        catalog.references.refuse_if_pinned()
        catalog.refresh()
        if self.folder.path != generation_path(root, "current"):
            raise CollectionError(
                f"{root}: this generation is not the current one and cannot be changed; open it again"
            )
        return nullcontext()

    def record(self, photos: NewPhotos, *, replaces: Sequence[int] = ()) -> list[int | None]:
        """Record references in the dataset. Returns the id of each, None for those already known."""
        ids = super().record(photos, replaces=replaces)
        self._recorded += len(ids)
        if self._recorded >= _COMPACT_EVERY:
            self._recorded = 0
            self._synced_index.compact()
        return ids

    def search_descriptors(self, descriptors: Tensor, **options: Any) -> list[SearchResult]:
        """Search for each of (B, D) descriptors, or of (B, T, D) for queries with T descriptors each."""
        with self.folder.catalog.references.convert_errors("searched"):
            try:
                return super().search_descriptors(descriptors, **options)
            except NotFoundError:
                # An interrupted compaction left removed references in the index.
                self._synced_index.refresh_index()
                return super().search_descriptors(descriptors, **options)

    def select(self, what: ReferenceSelector | Iterable[ReferenceSelector]) -> Selection:
        """Select references by id, by the path they were added from, or by a folder that contains it."""
        self.folder.catalog.refresh()
        return super().select(what)

    def remove(self, what: ReferenceSelector | Iterable[ReferenceSelector]) -> list[Outcome]:
        """Remove the references that `select` gives. Released files stay in place."""
        with self.lock_for_writing():
            outcomes = self.remove_selected(self.select(what))
            delete_uploads(outcomes, self.uploads)
            return outcomes

    def remove_selected(self, selection: Selection) -> list[Outcome]:
        """Remove selected references, but not the stored files of their photos."""
        root, catalog = self.folder.root, self.folder.catalog
        hashes = list(catalog.hashes_of(selection.ids).values())
        # The current generation comes last, so that repeating an interrupted call still finds the references.
        for path in [
            *earlier_generations(root),
            *([generation_path(root, "next")] if "next" in other_generations(root) else []),
        ]:
            other = open_lance_generation(root, path).catalog
            other.remove(list(other.ids_of(hashes).values()))
        return removed_outcomes(catalog.remove(selection.ids), selection)

    def compact(self, *, older_than: timedelta | None = None) -> None:
        """Update the index, merge small files, and delete versions that are older than `older_than`."""
        self._refuse_if_closed()
        self._synced_index.compact(older_than)

    def versions(self) -> list[Version]:
        """The versions of the references, oldest first."""
        references = self.folder.catalog.references
        with references.convert_errors("read"):
            return [
                Version(each["version"], each["timestamp"], int(each["metadata"].get("total_rows", 0)))
                for each in references.latest().versions()
            ]

    def export(self, out: str | Location, *, format: str = "parquet") -> Export:  # noqa: ARG002
        """Raise an error: Lance datasets are readable without homing, so there is no export."""
        raise CollectionError(
            f"{self.folder.root} needs no export: read its references.lance and releases.lance with pylance"
        )

    def _list_references(self, query: ReferenceQuery) -> Iterator[Reference]:
        return list_references(self.folder.catalog, query)

    def info(self) -> Info:
        """A summary of the collection's contents."""
        self.folder.catalog.refresh()
        return replace(super().info(), version=self.folder.catalog.revision)

    def check(self, *, repair: bool = False) -> list[Finding]:
        """Find problems. `repair` fixes those that can be fixed without losing data."""
        return check_lance(self.folder, repair=repair)
