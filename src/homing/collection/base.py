"""Base class of an open collection: its parts, contents, consistency check, and closing."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from types import TracebackType
from typing import TypeVar

from homing import codebooks, extractors
from homing._io.paths import Location, location, total_size
from homing.collection._export import Export, export_folder
from homing.collection._locks import lock_for_writing
from homing.collection.checks import check_opened
from homing.collection.folder import Folder
from homing.collection.generations import generation_path, other_generations
from homing.collection.listing import list_references
from homing.collection.outcome import Finding, Info
from homing.collection.references import NewPhotos, Reference, ReferenceQuery, State
from homing.collection.settings import read_settings
from homing.collection.storage import Storage
from homing.collection.synced_index import SyncedFaissIndex, SyncedIndex
from homing.collection.uploads import UploadStore
from homing.errors import CollectionError, HomingError
from homing.extractors import Extractor
from homing.indexes import Index

Self = TypeVar("Self", bound="BaseCollection")


class BaseCollection:
    """An open collection without the operations on photos."""

    def __repr__(self) -> str:
        state = ", closed" * self._closed
        return f"<{type(self).__name__} {self._folder.root}, codebook {self._folder.codebook.name}{state}>"

    def __init__(self, folder: Folder, extractor: Extractor | None = None) -> None:
        if isinstance(folder, str | os.PathLike):
            name = type(self).__name__
            raise HomingError(f"open a collection with {name}.open({str(folder)!r}), or make it with {name}.create")
        self._folder, self._closed = folder, False
        self.has_custom_extractor = extractor is not None  # given by the user, may not be registered under a name
        if extractor is not None:
            try:
                self.codebook.check(extractor)
            except HomingError:
                folder.catalog.close()
                raise
            self.extractor = extractor
        self._synced_index = self._make_synced_index()

    def _make_synced_index(self) -> SyncedIndex:
        """Create the index that is kept in sync with the catalog."""
        return SyncedFaissIndex(self.folder)

    @property
    def folder(self) -> Folder:
        """The files of the collection. Raises CollectionError once it is closed."""
        self._refuse_if_closed()
        return self._folder

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise CollectionError(f"the collection {self._folder.root} is closed; open it again")

    @cached_property
    def extractor(self) -> Extractor:
        """The extractor the codebook was trained for."""
        extractor = extractors.load(self.codebook.extractor)
        self.codebook.check(extractor)
        return extractor

    @property
    def codebook(self) -> codebooks.Codebook:
        """The codebook of this collection."""
        return self._folder.codebook

    @property
    def storage(self) -> Storage:
        """Where the references and releases are stored."""
        return self.folder.catalog

    @property
    def root(self) -> Location:
        """The collection's folder or address."""
        return self._folder.root

    @property
    def path(self) -> Location:
        """The folder of this generation: the collection's own one unless it was migrated."""
        return self._folder.path

    @property
    def distractors(self) -> codebooks.Distractors | None:
        """The distractors in the index, if there are any."""
        return self._folder.distractors

    @property
    def density_ratio(self) -> float:
        """How many times as often references lie near each other as the unrelated photos that the codebook knows."""
        return self.folder.density_ratio.value(self.index)

    @cached_property
    def uploads(self) -> UploadStore:
        """The folder of photos that were added from memory."""
        return UploadStore(self.folder.root)

    @property
    def index(self) -> Index:
        """The index of all references in the catalog, including those that other processes added."""
        self._refuse_if_closed()
        return self._synced_index.current()

    def lock_for_writing(self) -> AbstractContextManager[None]:
        """Lock the collection for a job that changes it. Raises BusyError at once if it is locked."""
        return lock_for_writing(self.folder)

    def record(self, photos: NewPhotos, *, replaces: Sequence[int] = ()) -> list[int | None]:
        """Record references in the catalog, from which the index is updated. Returns their ids, None for known ones.

        The references in `replaces` are removed in the same transaction. The caller holds the lock.
        """
        return self.storage.add(photos, replaces=replaces)

    def info(self) -> Info:
        """A summary of the collection's contents."""
        counts, root = self.folder.catalog.counts(), self.folder.root
        others = {which: read_settings(generation_path(root, which))["codebook"] for which in other_generations(root)}
        return Info(
            path=root,
            codebook=self.codebook.name,
            spec=self.codebook.spec,
            fingerprint=self.codebook.fingerprint,
            extractor=self.codebook.extractor,
            distractors=len(self.folder.distractors) if self.folder.distractors is not None else 0,
            bytes_on_disk=total_size(root),
            next_codebook=others.get("next"),
            previous_codebook=others.get("previous"),
            **counts,
        )

    def references(
        self,
        *,
        state: State | None = None,
        name_contains: str | None = None,
        after: int | None = None,
        limit: int | None = None,
    ) -> Iterator[Reference]:
        """Iterate over the references in order of id: all, or those with a state or with a text in their file name.

        Starts after the id `after` and yields at most `limit` references. For the next page, pass the last id.
        """
        return self._list_references(ReferenceQuery(state=state, name_contains=name_contains, after=after, limit=limit))

    def _list_references(self, query: ReferenceQuery) -> Iterator[Reference]:
        return list_references(self.folder.path, query)

    def check(self, *, repair: bool = False) -> list[Finding]:
        """Find problems on disk. `repair` fixes those that can be fixed without losing data.

        For a collection that is too damaged to open, use `homing.collection.check`.
        """
        return check_opened(self.folder, lambda: self.extractor, repair=repair)

    def export(self, out: str | Location, *, format: str = "parquet") -> Export:
        """Write the collection into a new folder, in a format readable without homing: parquet, faiss or arrays.

        A README.md in the folder explains how to read it. `arrays` contains the quantizer only.
        """
        return export_folder(self.folder, location(out), format)

    def close(self) -> None:
        """Save a snapshot of the index for the next opening, and close the files."""
        if self._closed:
            return
        try:
            self._synced_index.save()
        finally:
            self._closed = True
            self._folder.catalog.close()

    def __enter__(self: Self) -> Self:
        self._refuse_if_closed()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
