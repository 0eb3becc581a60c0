"""A collection in Lance: the same jobs and searches, by many machines at once, on files in a bucket."""

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
from homing.collection.catalog import NewPhotos
from homing.collection.collection import Collection, ReferenceSelector
from homing.collection.generations import earlier_generations, generation_path, other_generations
from homing.collection.lance.checks import check_lance
from homing.collection.lance.folder import LanceFolder, open_lance_generation
from homing.collection.lance.listing import list_references
from homing.collection.lance.synced_index import SyncedLanceIndex
from homing.collection.outcome import Finding, Info, Outcome
from homing.collection.references import Reference, ReferenceQuery
from homing.collection.results import SearchResult
from homing.collection.uploads import UploadStore, delete_uploads
from homing.errors import CollectionError, NotFoundError
from homing.indexes import LanceIndex

# Photos after which a job puts small files together: every batch of them is one, and looking through thousands of
# them for each photo takes longer than all else.
_COMPACT_EVERY = 10_000


@dataclass(frozen=True)
class Version:
    """How the references were at some time."""

    number: int
    time: datetime
    photos: int


class LanceCollection(Collection):
    """References of one user in Lance datasets. Made and opened by `Collection.create` and `Collection.open`.

    Any number of processes and machines may change it at once: what two of them add is there once. Every change is a
    version, which can be opened until it is forgotten.
    """

    folder: LanceFolder  # type: ignore[assignment]  # answers what a folder does
    _synced_index: SyncedLanceIndex
    _recorded = 0  # since small files were last put together

    def _make_synced_index(self) -> SyncedLanceIndex:
        return SyncedLanceIndex(self.folder)

    @cached_property
    def uploads(self) -> UploadStore:
        """The folder of photos that were given in memory; several processes may add to it at once."""
        return UploadStore(self.folder.root, exclusive=False)

    @property
    def index(self) -> LanceIndex:
        """The index of all references there are now, whoever added them."""
        return self._synced_index.current()

    def lock_for_writing(self) -> AbstractContextManager[None]:
        """Nobody is held up: those who change the same begin again where they must. What others did is seen."""
        catalog, root = self.folder.catalog, self.folder.root
        catalog.references.refuse_if_pinned()
        catalog.refresh()
        if self.folder.path != generation_path(root, "current"):
            raise CollectionError(f"{root} is not changed in this generation: another one answers; open it again")
        return nullcontext()

    def record(self, photos: NewPhotos, *, replaces: Sequence[int] = ()) -> list[int | None]:
        """Put references into the dataset; gives the id of each, None where it was known."""
        ids = super().record(photos, replaces=replaces)
        self._recorded += len(ids)
        if self._recorded >= _COMPACT_EVERY:
            self._recorded = 0
            self._synced_index.compact()
        return ids

    def search_descriptors(self, descriptors: Tensor, **options: Any) -> list[SearchResult]:
        """The nearest references of each of (B, D) descriptors, or (B, T, D) where each query is described T times."""
        with self.folder.catalog.references.convert_errors("searched"):
            try:
                return super().search_descriptors(descriptors, **options)
            except NotFoundError:
                # A kill in the middle of compaction left removed references in the index.
                self._synced_index.refresh_index()
                return super().search_descriptors(descriptors, **options)

    def find(self, what: ReferenceSelector | Iterable[ReferenceSelector]) -> Selection:
        """The references that are meant: by ids, by the paths they were added from, or by folders of these."""
        self.folder.catalog.refresh()
        return super().find(what)

    def remove(self, what: ReferenceSelector | Iterable[ReferenceSelector]) -> list[Outcome]:
        """Remove the references that are meant, as `find` finds them; files that were released are left."""
        root, catalog = self.folder.root, self.folder.catalog
        with self.lock_for_writing():
            selection = self.find(what)
            hashes = list(catalog.hashes_of(selection.ids).values())
            # From here last: after a kill the same call still finds them, and goes on.
            for path in [
                *earlier_generations(root),
                *([generation_path(root, "next")] if "next" in other_generations(root) else []),
            ]:
                there = open_lance_generation(root, path).catalog
                there.remove(list(there.ids_of(hashes).values()))
            outcomes = removed_outcomes(catalog.remove(selection.ids), selection)
            delete_uploads(outcomes, self.uploads)
            return outcomes

    def compact(self, *, older_than: timedelta | None = None) -> None:
        """Bring the index up to date, put small files together, and forget versions that are older than this."""
        self._synced_index.compact(older_than)

    def versions(self) -> list[Version]:
        """How the references were, from the first version that is not forgotten to the last."""
        references = self.folder.catalog.references
        with references.convert_errors("read"):
            return [
                Version(each["version"], each["timestamp"], int(each["metadata"].get("total_rows", 0)))
                for each in references.latest().versions()
            ]

    def export(self, out: str | Location, *, format: str = "parquet") -> Export:  # noqa: ARG002
        """Lance is open to all that read Lance: there is nothing to export."""
        raise CollectionError(
            f"{self.folder.root} is open to all already: read its references.lance and releases.lance with pylance"
        )

    def _list_references(self, query: ReferenceQuery) -> Iterator[Reference]:
        return list_references(self.folder.catalog, query)

    def info(self) -> Info:
        """What the collection holds."""
        self.folder.catalog.refresh()
        return replace(super().info(), version=self.folder.catalog.revision)

    def check(self, *, repair: bool = False) -> list[Finding]:
        """What is not as it should be; `repair` repairs what can be repaired without losing anything."""
        return check_lance(self.folder, repair=repair)
