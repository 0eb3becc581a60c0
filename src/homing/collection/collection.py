"""The collection: everything a user does with their photos."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, overload

from torch import Tensor

from homing import codebooks, extractors
from homing._io.paths import Location, location
from homing.activation import Recipe, resolve_recipe
from homing.activation.batch import Loop
from homing.activation.optimize import optimize
from homing.collection._add_job import add_photos
from homing.collection._export import import_folder
from homing.collection._release_job import ActivationJob
from homing.collection._remove import Selection, remove_references, select_references
from homing.collection._search import plan_search, run_search
from homing.collection._sources import passive_photos, still_passive
from homing.collection.base import BaseCollection
from homing.collection.folder import create_folder, open_folder
from homing.collection.lance.folder import create_lance, is_lance, open_lance
from homing.collection.outcome import Outcome
from homing.collection.query_variants import describe_queries
from homing.collection.results import SearchPlan, SearchResult
from homing.collection.synced_index import retry_if_removed
from homing.collection.uploads import delete_uploads, files_of
from homing.errors import HomingError
from homing.extractors import Extractor
from homing.photo import PhotoLike, PhotosLike, as_photos
from homing.photo.inputs import is_one_photo

ReferenceSelector = int | str | Location
OutcomeCallback = Callable[[Outcome], None]


class Collection(BaseCollection):
    """References of one user in one folder. Use it as a context manager, or close it.

    What `add`, `activate` and `remove` report is on disk by then: it survives a crash. Interrupted jobs continue when
    called again. One job at a time changes a collection, a second one is refused; searches go on meanwhile, and see
    what others change.
    """

    @classmethod
    def create(
        cls,
        path: str | Location,
        *,
        codebook: str | os.PathLike[str] | codebooks.Codebook = "homing-1",
        with_distractors: bool = False,
        extractor: str | Extractor | None = None,
    ) -> Collection:
        """A new collection: in a folder that does not exist yet, for a codebook's name, path or value.

        One at an address, such as s3://bucket/photos.lance, or in a folder called *.lance, is kept in Lance.

        `with_distractors` puts it among the distractors that come with the bundled codebook.
        """
        book = codebooks.load(codebook)
        where = location(path)
        if is_lance(where):
            if with_distractors:
                raise HomingError("a collection in Lance has no distractors; make it without")
            create_lance(where, book)
        else:
            assert isinstance(where, Path)
            create_folder(where, book, codebooks.bundled_distractors(book) if with_distractors else None)
        return cls.open(where, extractor=extractor)

    @classmethod
    def open(
        cls,
        path: str | Location,
        *,
        extractor: str | Extractor | None = None,
        generation: str = "current",
        version: int | None = None,
    ) -> Collection:
        """An existing collection; `extractor` is needed only where the codebook's is one of your own.

        Of a collection that migrates to another codebook it is the `current` generation, the `next` or the `previous`.
        One in Lance may be opened as it was at an earlier `version`, to be searched.
        """
        where, extractor = location(path), None if extractor is None else extractors.load(extractor)
        if is_lance(where):
            return _open_lance_collection(where, extractor, generation, version)
        if version is not None:
            raise HomingError(f"{where} keeps no versions; collections in Lance do")
        assert isinstance(where, Path)
        return cls(open_folder(where, generation), extractor)

    @classmethod
    def from_export(
        cls, path: str | Path, export: str | Path, *, extractor: str | Extractor | None = None
    ) -> Collection:
        """A new collection of what `export` wrote as Parquet: the same references, releases and answers."""
        if is_lance(location(path)):
            raise HomingError(f"{path} would be kept in Lance, which nothing is imported into; choose another name")
        import_folder(Path(path), Path(export))
        return cls.open(path, extractor=extractor)

    def add(self, photos: PhotosLike, *, replace: bool = False, report: OutcomeCallback | None = None) -> list[Outcome]:
        """Index photos and folders of photos as they are; `report` is called with each outcome as it comes.

        Photos are paths, addresses, files or images in memory, arrays, tensors, or lists of these; see
        `homing.PhotoLike`. Those in memory are kept in the collection's folder `uploads`, under the name that a dict
        gives them, that of their file, or one made of their hash. With `replace` a photo takes the place of the one
        that was added from the same path before.
        """
        given = as_photos(photos)
        with self.lock_for_writing(), files_of(given, self.uploads, self.folder.catalog) as found:
            return add_photos(self, found, report or _ignore, replace=replace)

    def activate(
        self,
        photos: PhotosLike,
        out: str | Location,
        *,
        recipe: str | Recipe = "homing",
        format: str | None = None,
        report: OutcomeCallback | None = None,
        loop: Loop = optimize,
        processes: bool = False,
        graphics: bool = False,
    ) -> list[Outcome]:
        """Index photos, activate them, and write into the folder `out` what may be released.

        `photos` are those of `add`. Released files have the names they have in the folders given. Photos that were
        activated earlier are not activated again.
        `loop` is another one than the engine's, to compare with; its recipe must have a name of its own.
        With `processes` thousands of photos for a GPU are read and written by several; a script that asks for them is
        guarded by `if __name__ == "__main__"`. Graphics of few colors (logos, screenshots of text, line art) are
        released unchanged unless `graphics` is true.
        """
        chosen, given = resolve_recipe(recipe), as_photos(photos)
        job = ActivationJob(self, location(out), chosen, format, loop, processes=processes, graphics=graphics)
        with self.lock_for_writing(), files_of(given, self.uploads, self.folder.catalog) as found:
            return job.run(found, report or _ignore)

    def activate_passive(
        self,
        out: str | Location,
        *,
        recipe: str | Recipe = "homing",
        format: str | None = None,
        report: OutcomeCallback | None = None,
        processes: bool = False,
        graphics: bool = False,
    ) -> list[Outcome]:
        """Activate all references that are still passive, from the files they were added from.

        Released files have the names they have below the folder that all references have in common. Those whose file
        is gone, or is another by now, fail. The options are those of `activate`.
        """
        chosen = resolve_recipe(recipe)
        with self.lock_for_writing():
            found, expected = passive_photos(self.folder.catalog)
            job = ActivationJob(
                self, location(out), chosen, format, expected=expected, processes=processes, graphics=graphics
            )
            outcomes = job.run(found, report or _ignore) if found else []
            for outcome in still_passive(self.folder.catalog, expected, outcomes):
                (report or _ignore)(outcome)
                outcomes.append(outcome)
            return outcomes

    def find(self, what: ReferenceSelector | Iterable[ReferenceSelector]) -> Selection:
        """The references that are meant: by ids, by the paths they were added from, or by folders of these."""
        return select_references(self.folder.catalog, [what] if isinstance(what, ReferenceSelector) else what)

    def remove(self, what: ReferenceSelector | Iterable[ReferenceSelector]) -> list[Outcome]:
        """Remove the references that are meant, as `find` finds them, all at once.

        What names none fails, the others are removed all the same. Files that were released are left where they are;
        those of photos that were given in memory are removed.
        """
        with self.lock_for_writing():
            outcomes = remove_references(self.folder, self.find(what))
            delete_uploads(outcomes, self.uploads)
            return outcomes

    @overload
    def search(
        self,
        photos: list[Any] | tuple[Any, ...] | Mapping[str, PhotoLike],
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
        """The nearest references of one photo, the least likely to be false first, and the verdict; of several, a list.

        A photo is anything `add` takes but a folder; a tensor (B, 3, H, W) is several. `variants` also searches for the
        quarter turns and the mirror image; each reference keeps its smallest distance. The other options are those of
        `search_descriptors`.
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

    @retry_if_removed
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
        """The nearest references of each of (B, D) descriptors, or of (B, T, D) for queries described T times each.

        `probes` is the number of cells searched. `probe_radius` searches instead every cell whose center is at most
        that much farther away than the nearest, in squared distance, 64 at most. `rerank` compares that many of the
        nearest again, by the descriptors of originals and of activated files; 0 compares none. Distractors keep the
        distance of their codes. By default the collection chooses, see `plan_search`. `max_false_match` omits matches
        with a larger false-match probability.
        """
        index = self.index
        variants = descriptors.ndim == 3 and descriptors.shape[1] > 1
        plan = plan_search(index, self.codebook, k, probes, probe_radius, rerank, variants=variants)
        return run_search(self.folder, index, descriptors, k, plan, max_false_match)

    def plan_search(
        self,
        k: int = 10,
        probes: int | None = None,
        probe_radius: float | None = None,
        rerank: int | None = None,
        *,
        variants: bool = False,
    ) -> SearchPlan:
        """What a search with these options does; what is not given is chosen by the size of the collection."""
        return plan_search(self.index, self.codebook, k, probes, probe_radius, rerank, variants=variants)


def _open_lance_collection(where: Location, extractor: Extractor | None, which: str, version: int | None) -> Collection:
    from homing.collection.lance.collection import LanceCollection  # which is made of this class

    return LanceCollection(open_lance(where, which, version), extractor)  # type: ignore[arg-type]


def _ignore(_: Outcome) -> None:
    """Nobody is watching."""
