"""An opened collection: its parts, what it holds, whether it is sound, and how it is closed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from types import TracebackType
from typing import TypeVar

from homing import codebooks, extractors
from homing._io.paths import Location, location, total_size
from homing.collection._export import Export, export_folder
from homing.collection._locks import lock_for_writing
from homing.collection.catalog import NewPhotos, State
from homing.collection.checks import check_opened
from homing.collection.folder import Folder
from homing.collection.generations import generation_path, other_generations
from homing.collection.listing import list_references
from homing.collection.outcome import Finding, Info
from homing.collection.references import Reference, ReferenceQuery
from homing.collection.settings import read_settings
from homing.collection.synced_index import SyncedFaissIndex, SyncedIndex
from homing.collection.uploads import UploadStore
from homing.errors import HomingError
from homing.extractors import Extractor
from homing.indexes import Index

Self = TypeVar("Self", bound="BaseCollection")


class BaseCollection:
    """What every collection has that is open, whatever is done with its photos."""

    def __init__(self, folder: Folder, extractor: Extractor | None = None) -> None:
        self.folder = folder
        self.has_custom_extractor = extractor is not None  # by the user, and perhaps known under no name
        if extractor is not None:
            try:
                self.codebook.check(extractor)
            except HomingError:
                folder.catalog.close()
                raise
            self.extractor = extractor
        self._synced_index = self._make_synced_index()

    def _make_synced_index(self) -> SyncedIndex:
        """The index that follows the catalog."""
        return SyncedFaissIndex(self.folder)

    @cached_property
    def extractor(self) -> Extractor:
        """The network the codebook was trained for."""
        extractor = extractors.load(self.codebook.extractor)
        self.codebook.check(extractor)
        return extractor

    @property
    def codebook(self) -> codebooks.Codebook:
        """The codebook this collection is tied to."""
        return self.folder.codebook

    @cached_property
    def uploads(self) -> UploadStore:
        """The folder of photos that were given in memory."""
        return UploadStore(self.folder.root)

    @property
    def index(self) -> Index:
        """The index of all references the catalog holds now, whoever added them."""
        return self._synced_index.current()

    def lock_for_writing(self) -> AbstractContextManager[None]:
        """Hold the collection for a job that changes it; who comes second is refused at once: BusyError."""
        return lock_for_writing(self.folder)

    def record(self, photos: NewPhotos, *, replaces: Sequence[int] = ()) -> list[int | None]:
        """Put references into the catalog, which the index follows; gives the id of each, None where it was known.

        What they come `replaces` is removed at once. The job that records them holds the lock, or is the only one.
        """
        return self.folder.catalog.add(photos, replaces=replaces)

    def info(self) -> Info:
        """What the collection holds."""
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
        """The references in the order of their ids: all, or those of a state, or with a text in their file's name.

        They begin after the id `after`; `limit` is their number. The id of the last one leads to the next page.
        """
        return self._list_references(ReferenceQuery(state=state, name_contains=name_contains, after=after, limit=limit))

    def _list_references(self, query: ReferenceQuery) -> Iterator[Reference]:
        return list_references(self.folder.path, query)

    def check(self, *, repair: bool = False) -> list[Finding]:
        """What is not as it should be on disk; `repair` repairs what can be repaired without losing anything.

        A collection too damaged to be opened is checked by `homing.collection.check`.
        """
        return check_opened(self.folder, lambda: self.extractor, repair=repair)

    def export(self, out: str | Location, *, format: str = "parquet") -> Export:
        """Write the collection into a new folder, in a format that needs nothing of homing: parquet, faiss or arrays.

        A README.md there says how to read it. `arrays` is the quantizer alone.
        """
        return export_folder(self.folder, location(out), format)

    def close(self) -> None:
        """Keep a snapshot of the index for the next opening, and let go of the files."""
        try:
            self._synced_index.save()
        finally:
            self.folder.catalog.close()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
