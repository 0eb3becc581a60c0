"""Base class of an open collection: its parts, contents, consistency check, and closing."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing
from datetime import timedelta
from functools import cached_property
from types import TracebackType
from typing import TypeVar

from homing import codebooks, extractors
from homing._io.paths import Location, location, total_size
from homing.collection.checks import check_opened
from homing.collection.export import Export, export_folder
from homing.collection.outcome import Finding, Info, Version
from homing.collection.references import NewPhotos, Reference, ReferenceQuery, State
from homing.collection.search import Searcher
from homing.collection.storage import Storage
from homing.collection.storage.layout import generation_path, other_generations, read_settings
from homing.collection.uploads import UploadStore
from homing.errors import CollectionError, HomingError
from homing.extractors import Extractor
from homing.indexes import Index

Self = TypeVar("Self", bound="BaseCollection")


class BaseCollection:
    """An open collection without the operations on photos."""

    def __repr__(self) -> str:
        state = ", closed" * self._closed
        return f"<{type(self).__name__} {self.root}, codebook {self.codebook.name}{state}>"

    def __init__(self, storage: Storage, extractor: Extractor | None = None) -> None:
        if isinstance(storage, str | os.PathLike):
            name = type(self).__name__
            raise HomingError(f"open a collection with {name}.open({str(storage)!r}), or make it with {name}.create")
        self._storage, self._closed = storage, False
        self.has_custom_extractor = extractor is not None  # given by the user, may not be registered under a name
        if extractor is not None:
            try:
                self.codebook.check(extractor)
            except HomingError:
                storage.close()
                raise
            self.extractor = extractor
        self._searcher = Searcher(storage)

    @property
    def storage(self) -> Storage:
        """Where the references and releases are stored. Raises CollectionError once the collection is closed."""
        self._refuse_if_closed()
        return self._storage

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise CollectionError(f"the collection {self.root} is closed; open it again")

    @cached_property
    def extractor(self) -> Extractor:
        """The extractor the codebook was trained for."""
        extractor = extractors.load(self.codebook.extractor)
        self.codebook.check(extractor)
        return extractor

    @property
    def codebook(self) -> codebooks.Codebook:
        """The codebook of this collection."""
        return self._storage.codebook

    @property
    def distractors(self) -> codebooks.Distractors | None:
        """The distractors in the index, if there are any."""
        return self._storage.distractors

    @property
    def root(self) -> Location:
        """The collection's folder or address."""
        return self._storage.root

    @property
    def path(self) -> Location:
        """The folder of this generation: the collection's own one unless it was migrated."""
        return self._storage.path

    @cached_property
    def uploads(self) -> UploadStore:
        """The folder of photos that were added from memory."""
        return UploadStore(self.root, self._storage.lock_uploads)

    @property
    def index(self) -> Index:
        """The index of all references, including those that other processes added."""
        return self.storage.index()

    @property
    def density_ratio(self) -> float:
        """How many times as often references lie near each other as the unrelated photos that the codebook knows."""
        return self._searcher.density_ratio(self.index)

    def lock_for_writing(self) -> AbstractContextManager[None]:
        """Lock the collection for a job that changes it. Raises BusyError at once if it is locked.

        A storage without locks, such as Lance, retries conflicting changes instead.
        """
        return self.storage.lock_for_writing()

    def record(self, photos: NewPhotos, *, replaces: Sequence[int] = ()) -> list[int | None]:
        """Record references, from which the index is updated. Returns their ids, None for known ones.

        The references in `replaces` are removed. The caller holds the lock.
        """
        return self.storage.add(photos, replaces=replaces)

    def info(self) -> Info:
        """A summary of the collection's contents."""
        self.storage.refresh()
        root = self.root
        others = {which: read_settings(generation_path(root, which))["codebook"] for which in other_generations(root)}
        return Info(
            path=root,
            codebook=self.codebook.name,
            spec=self.codebook.spec,
            fingerprint=self.codebook.fingerprint,
            extractor=self.codebook.extractor,
            distractors=len(self.distractors) if self.distractors is not None else 0,
            bytes_on_disk=total_size(root),
            next_codebook=others.get("next"),
            previous_codebook=others.get("previous"),
            version=self.storage.version,
            **self.storage.counts(),
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
        self._refuse_if_closed()  # here, as a generator would raise only when it is read
        query = ReferenceQuery(state=state, name_contains=name_contains, after=after, limit=limit)
        return self._references(query)

    def _references(self, query: ReferenceQuery) -> Iterator[Reference]:
        with closing(self.storage.reopen()) as reader:  # so that long reads delay no search
            yield from reader.references(query)

    def versions(self) -> list[Version]:
        """The versions of the references, oldest first, in a storage that keeps versions."""
        return self.storage.versions()

    def compact(self, *, older_than: timedelta | None = None) -> None:
        """Index all references, merge small files, and delete older versions, in a storage that keeps versions."""
        self.storage.compact(older_than)

    def check(self, *, repair: bool = False) -> list[Finding]:
        """Find problems on disk. `repair` fixes those that can be fixed without losing data.

        For a collection that is too damaged to open, use `homing.collection.check`.
        """
        return check_opened(self.storage, lambda: self.extractor, repair=repair)

    def export(self, out: str | Location, *, format: str = "parquet") -> Export:
        """Write the collection into a new folder, in a format readable without homing: parquet, faiss or arrays.

        A README.md in the folder explains how to read it. `arrays` contains the quantizer only.
        """
        return export_folder(self.storage, location(out), format)

    def close(self) -> None:
        """Save the index for the next opening, and close the files."""
        if self._closed:
            return
        try:
            self._storage.save_index()
        finally:
            self._closed = True
            self._storage.close()

    def __enter__(self: Self) -> Self:
        self._refuse_if_closed()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
