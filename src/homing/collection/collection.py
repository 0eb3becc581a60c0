"""The collection: index, activate, search and remove photos."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import replace
from typing import Any, overload

from torch import Tensor

from homing import codebooks, extractors
from homing._io.paths import Location, location
from homing.activation import Recipe, resolve_recipe
from homing.codebooks import CodebookLike
from homing.collection._job_files import passive_photos, still_passive
from homing.collection.add import add_photos
from homing.collection.base import BaseCollection
from homing.collection.export import import_folder
from homing.collection.outcome import Outcome, OutcomeCallback
from homing.collection.release import release_photos
from homing.collection.remove import Selection, remove_references, select_references
from homing.collection.results import SearchResult, SearchSettings
from homing.collection.search import describe_queries, search_settings
from homing.collection.storage import Parts, create_storage, open_storage
from homing.collection.uploads import as_given, delete_uploads, files_of
from homing.extractors import ExtractorLike
from homing.photo import FoundPhoto, PhotoLike, PhotosLike, as_photos
from homing.photo.inputs import is_one_photo

ReferenceSelector = int | str | Location


class Collection(BaseCollection):
    """The references of one user in one folder. Use it as a context manager, or call `close`.

    Everything that `add`, `activate` and `remove` report is on disk and survives a crash. An interrupted job continues
    when it is called again. Only one job at a time changes a collection in a folder: a second one raises BusyError. Any
    number may change one in Lance, where every change creates a version. Searches run concurrently and see the changes
    of other processes.
    """

    @classmethod
    def create(
        cls,
        path: str | Location,
        *,
        codebook: CodebookLike = "homing-1",
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
            return add_photos(self, found, on_outcome or _ignore, replace=replace)

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
                on_outcome=on_outcome or _ignore,
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
            outcomes = []
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
                    on_outcome=on_outcome or _ignore,
                )
            for outcome in still_passive(self.storage, expected, outcomes):
                (on_outcome or _ignore)(outcome)
                outcomes.append(outcome)
            return outcomes

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
        results: list[SearchResult] = []
        for queries in describe_queries(as_photos(photos), self.extractor, variants=variants):
            found = self.search_descriptors(
                queries.descriptors,
                k=k,
                probes=probes,
                probe_radius=probe_radius,
                rerank=rerank,
                max_false_match=max_false_match,
            )
            results += [replace(result, query=name) for name, result in zip(queries.names, found, strict=True)]
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
        return self._searcher.search(descriptors, k, probes, probe_radius, rerank, max_false_match)

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
        return search_settings(self.index, self.codebook, k, probes, probe_radius, rerank, variants=variants)


def _ignore(_: Outcome) -> None:
    """The default of `on_outcome`: do nothing."""
