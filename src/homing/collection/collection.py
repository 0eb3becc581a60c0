"""The collection: index, activate, search and remove photos."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from datetime import timedelta
from functools import cached_property
from typing import Any, TypeVar, overload

from torch import Tensor

from homing import codebooks, extractors
from homing._io.paths import Location, location, total_size
from homing.activation import Recipe, resolve_recipe
from homing.collection.add import add_photos
from homing.collection.checks import check_opened
from homing.collection.export import Export, export_folder, import_folder
from homing.collection.outcome import Finding, Info, Outcome, OutcomeCallback, Version, report_each
from homing.collection.references import NewPhotos, Reference, ReferenceQuery, State
from homing.collection.release import release_photos
from homing.collection.search import (
    Searcher,
    SearchOptions,
    SearchResult,
    SearchSettings,
    check_descriptors,
    describe_queries,
    search_settings,
)
from homing.collection.sources import Selection, passive_photos, remove_references, select_references, still_passive
from homing.collection.storage import Parts, Storage, create_storage, open_storage
from homing.collection.storage.layout import generation_path, other_generations, read_settings
from homing.collection.uploads import UploadStore, as_given, delete_uploads, files_of
from homing.errors import CollectionError, HomingError
from homing.extractors import Extractor, ExtractorLike
from homing.indexes import Index
from homing.photo import FoundPhoto, PhotoLike, PhotosLike, as_photos
from homing.photo.inputs import is_one_photo

ReferenceSelector = int | str | Location
Self = TypeVar("Self", bound="Collection")


class Collection:
    """The references of one user in one folder. Use it as a context manager, or call `close`.

    Everything that `add`, `activate` and `remove` report is on disk and survives a crash. An interrupted job continues
    when it is called again. Only one job at a time changes a collection in a folder: a second one raises BusyError. Any
    number may change one in Lance, where every change creates a version. Searches run concurrently and see the changes
    of other processes.
    """

    def __repr__(self) -> str:
        state = ", closed" * self._closed
        return f"<{type(self).__name__} {self.root}, codebook {self.codebook.name}{state}>"

    @classmethod
    def create(
        cls,
        path: str | Location,
        *,
        codebook: codebooks.CodebookLike = "homing-1",
        with_distractors: bool = False,
        extractor: ExtractorLike | None = None,
    ) -> Collection:
        """Create a collection in a folder that does not exist yet, for a codebook given by name, path or value.

        At an address such as s3://bucket/photos.lance, or in a folder named *.lance, the collection is stored in Lance.

        `with_distractors` adds the distractors of the bundled codebook to the index.
        """
        book = codebooks.load(codebook)
        if extractor is not None:  # before anything is made
            extractor = extractors.load(extractor)
            book.check(extractor)
        where = location(path)
        create_storage(where, Parts(book, codebooks.bundled_distractors(book) if with_distractors else None))
        return cls.open(where, extractor=extractor)

    @classmethod
    def open(
        cls,
        path: str | Location,
        *,
        extractor: ExtractorLike | None = None,
        generation: str = "current",
        version: int | None = None,
    ) -> Collection:
        """Open an existing collection. `extractor` is needed only if the codebook's extractor is a custom one.

        `generation` selects the "current", "next" or "previous" generation of a collection that migrates to another
        codebook. A collection in Lance can be opened at an earlier `version`, for searching only.
        """
        extractor = None if extractor is None else extractors.load(extractor)
        return cls(open_storage(location(path), generation, version), extractor)

    @classmethod
    def from_export(
        cls, path: str | Location, export: str | Location, *, extractor: ExtractorLike | None = None
    ) -> Collection:
        """Create a collection from a Parquet export, with identical references, releases and search results.

        In Lance, references get new ids.
        """
        import_folder(location(path), location(export))
        return cls.open(path, extractor=extractor)

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

    def add(
        self,
        photos: PhotosLike | list[FoundPhoto[Location]],
        *,
        replace: bool = False,
        on_outcome: OutcomeCallback | None = None,
    ) -> list[Outcome]:
        """Index photos and folders of photos without changing them. `on_outcome` is called with each outcome at once.

        Photos are paths, addresses, files or images in memory, arrays, tensors, or lists of these; see
        `homing.PhotoLike`; or what `homing.photo.find_photos` found. Photos in memory are stored in the collection's
        folder `uploads`, named by their key in a dict, their file name, or their hash. With `replace`, a photo replaces
        the one that was added from the same path before.
        """
        given = as_given(photos)
        with self.lock_for_writing(), files_of(given, self.uploads, self.storage) as found:
            return add_photos(self, found, on_outcome, replace=replace)

    def activate(
        self,
        photos: PhotosLike | list[FoundPhoto[Location]],
        out: str | Location,
        *,
        recipe: str | Recipe = "homing",
        psnr: float | None = None,
        format: str | None = None,
        on_outcome: OutcomeCallback | None = None,
        processes: bool = False,
        graphics: bool = False,
    ) -> list[Outcome]:
        """Index photos, activate them, and write the files to release into the folder `out`.

        `photos` accepts the same types as `add`. Released files keep their names relative to the given folders. Photos
        that are already activated are not activated again. `psnr`, in dB, replaces that of the recipe's budget:
        a higher value changes photos less.

        With `processes`, several processes read and write photos, for thousands of photos on a GPU; a script that uses
        it needs `if __name__ == "__main__"`. Graphics (logos, screenshots of text, line art) are released unchanged
        unless `graphics` is true.
        """
        chosen, given = resolve_recipe(recipe, psnr=psnr), as_given(photos)
        with self.lock_for_writing(), files_of(given, self.uploads, self.storage) as found:
            return release_photos(
                self,
                found,
                location(out),
                recipe=chosen,
                format=format,
                graphics=graphics,
                processes=processes,
                on_outcome=on_outcome,
            )

    def activate_passive(
        self,
        out: str | Location,
        *,
        recipe: str | Recipe = "homing",
        psnr: float | None = None,
        format: str | None = None,
        on_outcome: OutcomeCallback | None = None,
        processes: bool = False,
        graphics: bool = False,
    ) -> list[Outcome]:
        """Activate all passive references, from the files they were added from.

        Released files keep their names relative to the common folder of all references. References whose file is gone
        or has changed fail. The options are those of `activate`.
        """
        chosen = resolve_recipe(recipe, psnr=psnr)
        with self.lock_for_writing():
            found, expected = passive_photos(self.storage)
            outcomes: list[Outcome] = []
            if found:
                outcomes = release_photos(
                    self,
                    found,
                    location(out),
                    recipe=chosen,
                    format=format,
                    graphics=graphics,
                    processes=processes,
                    expected=expected,
                    on_outcome=on_outcome,
                )
            return outcomes + report_each(still_passive(self.storage, expected, outcomes), on_outcome)

    def select(self, what: ReferenceSelector | Iterable[ReferenceSelector]) -> Selection:
        """Select references by id, by the path they were added from, or by a folder that contains it."""
        self.storage.refresh()
        return select_references(self.storage, [what] if isinstance(what, ReferenceSelector) else what)

    def remove(self, what: ReferenceSelector | Iterable[ReferenceSelector]) -> list[Outcome]:
        """Remove the references that `select` gives.

        Selectors that match no reference fail; the others are removed regardless. Released files stay in place. Stored
        files of photos that were added from memory are deleted.
        """
        with self.lock_for_writing():
            outcomes = self.remove_selected(self.select(what))
            delete_uploads(outcomes, self.uploads)
            return outcomes

    def remove_selected(self, selection: Selection) -> list[Outcome]:
        """Remove selected references, but not the stored files of their photos. The caller holds the lock."""
        return remove_references(self.storage, selection)

    @overload
    def search(
        self,
        photos: list[Any] | tuple[Any, ...] | Generator[Any, Any, Any] | Mapping[str, PhotoLike],
        *,
        k: int = ...,
        probes: int | None = ...,
        probe_radius: float | None = ...,
        variants: bool = ...,
        rerank: int | None = ...,
        max_false_match: float | None = ...,
    ) -> list[SearchResult]: ...

    @overload
    def search(
        self,
        photos: PhotoLike,
        *,
        k: int = ...,
        probes: int | None = ...,
        probe_radius: float | None = ...,
        variants: bool = ...,
        rerank: int | None = ...,
        max_false_match: float | None = ...,
    ) -> SearchResult: ...

    def search(
        self,
        photos: PhotosLike,
        *,
        k: int = 10,
        probes: int | None = None,
        probe_radius: float | None = None,
        variants: bool = False,
        rerank: int | None = None,
        max_false_match: float | None = None,
    ) -> SearchResult | list[SearchResult]:
        """Search for one photo, or for several (returns a list). The matches least likely to be false come first.

        A photo is anything that `add` accepts except a folder; a tensor (B, 3, H, W) is several photos. `variants` also
        searches for the quarter turns and the mirror image; each reference keeps its smallest distance. The other
        options are those of `search_descriptors`.
        """
        options = SearchOptions(
            k=k,
            probes=probes,
            probe_radius=probe_radius,
            variants=variants,
            rerank=rerank,
            max_false_match=max_false_match,
        )
        results: list[SearchResult] = []
        for names, descriptors in describe_queries(as_photos(photos), self.extractor, variants=variants):
            self._refuse_if_closed()
            found = self._searcher.search(descriptors, options)
            results += [replace(result, query=name) for name, result in zip(names, found, strict=True)]
        return results[0] if is_one_photo(photos) else results

    def search_descriptors(
        self,
        descriptors: Tensor,
        *,
        k: int = 10,
        probes: int | None = None,
        probe_radius: float | None = None,
        rerank: int | None = None,
        max_false_match: float | None = None,
    ) -> list[SearchResult]:
        """Search for each of (B, D) descriptors, or of (B, T, D) for queries with T descriptors each.

        `probes` is the number of cells to search. `probe_radius` instead searches every cell whose center is at most
        this much farther away than the nearest one, in squared distance, up to 64 cells. `rerank` is the number of
        nearest codes that are re-ranked by the descriptors of originals and activated files; 0 disables it. Distractors
        keep their code distance. The defaults depend on the collection, see `search_settings`. `max_false_match` omits
        matches with a larger false-match probability.
        """
        self._refuse_if_closed()
        check_descriptors(descriptors, self.codebook.dim)
        options = SearchOptions(
            k=k,
            probes=probes,
            probe_radius=probe_radius,
            variants=descriptors.ndim == 3 and descriptors.shape[1] > 1,
            rerank=rerank,
            max_false_match=max_false_match,
        )
        return self._searcher.search(descriptors, options)

    def search_settings(
        self,
        k: int = 10,
        probes: int | None = None,
        probe_radius: float | None = None,
        rerank: int | None = None,
        *,
        variants: bool = False,
    ) -> SearchSettings:
        """The settings of a search with these options. Missing options are chosen by the size of the collection."""
        options = SearchOptions(k=k, probes=probes, probe_radius=probe_radius, rerank=rerank, variants=variants)
        return search_settings(self.index, self.codebook, options)

    def info(self) -> Info:
        """A summary of the collection's contents."""
        self.storage.refresh()
        root, codebook = self.root, self.codebook
        others = {which: read_settings(generation_path(root, which))["codebook"] for which in other_generations(root)}
        return Info(
            path=root,
            codebook=codebook.name,
            spec=codebook.spec,
            fingerprint=codebook.fingerprint,
            extractor=codebook.extractor,
            distractors=len(self.storage.parts.distractor_ids),
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

    def __exit__(self, *_: object) -> None:
        self.close()
