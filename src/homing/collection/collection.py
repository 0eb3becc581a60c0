"""The collection: everything a user does with their photos."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from torch import Tensor

from homing import codebooks
from homing._places import Address, Place, place
from homing.activation import Recipe, recipe_named
from homing.activation.batch import Loop
from homing.activation.engine import optimise
from homing.collection._activating import ActivationJob
from homing.collection._adding import add_photos
from homing.collection._exporting import import_folder
from homing.collection._live import settled
from homing.collection._opened import Opened
from homing.collection._removing import Named, find_named, remove_named
from homing.collection._searching import Plan, plan_search, run_search
from homing.collection._sources import left_passive, passive_photos
from homing.collection.folder import create_folder, open_folder
from homing.collection.lance.folder import belongs_in_lance, create_lance, open_lance
from homing.collection.outcome import Match, Outcome
from homing.collection.turning import turns
from homing.errors import HomingError
from homing.extractors import Extractor, describe
from homing.photo import Photo, gather

Paths = str | Place | Iterable[str | Place]
What = int | str | Place
Report = Callable[[Outcome], None]


class Collection(Opened):
    """References of one user in one folder. Use it as a context manager, or close it.

    What `add`, `activate` and `remove` report is on disk by then: it survives a crash. Interrupted jobs continue when
    called again. One job at a time changes a collection, a second one is refused; searches go on meanwhile, and see
    what others change.
    """

    @classmethod
    def create(
        cls,
        path: str | Place,
        *,
        codebook: str | Path | codebooks.Codebook = "homing-1",
        with_background: bool = False,
        extractor: Extractor | None = None,
    ) -> Collection:
        """A new collection: in a folder that does not exist yet, for a codebook's name, path or value.

        One at an address, such as s3://bucket/photos.lance, or in a folder called *.lance, is kept in Lance.

        `with_background` puts it among the codes of strangers that come with the bundled codebook.
        """
        book = codebook if isinstance(codebook, codebooks.Codebook) else codebooks.load(str(codebook))
        where = place(path)
        if belongs_in_lance(where):
            if with_background:
                raise HomingError("a collection in Lance has no background; make it without")
            create_lance(where, book)
        else:
            assert isinstance(where, Path)
            create_folder(where, book, codebooks.bundled_background(book) if with_background else None)
        return cls.open(where, extractor=extractor)

    @classmethod
    def open(
        cls,
        path: str | Place,
        *,
        extractor: Extractor | None = None,
        generation: str = "current",
        version: int | None = None,
    ) -> Collection:
        """An existing collection; `extractor` is needed only where the codebook's is one of your own.

        Of a collection that migrates to another codebook it is the `current` generation, the `next` or the `previous`.
        One in Lance may be opened as it was at an earlier `version`, to be searched.
        """
        where = place(path)
        if belongs_in_lance(where):
            return _opened_in_lance(where, extractor, generation, version)
        if version is not None:
            raise HomingError(f"{where} keeps no versions; collections in Lance do")
        assert isinstance(where, Path)
        return cls(open_folder(where, generation), extractor)

    @classmethod
    def from_export(cls, path: str | Path, export: str | Path, *, extractor: Extractor | None = None) -> Collection:
        """A new collection of what `export` wrote as Parquet: the same references, releases and answers."""
        if belongs_in_lance(place(path)):
            raise HomingError(f"{path} would be kept in Lance, which nothing is imported into; choose another name")
        import_folder(Path(path), Path(export))
        return cls.open(path, extractor=extractor)

    def add(self, photos: Paths, *, replace: bool = False, report: Report | None = None) -> list[Outcome]:
        """Index photos and folders of photos as they are; `report` is called with each outcome as it comes.

        Photos are paths, or addresses such as s3://bucket/photos, here, in `activate` and in `search`. With `replace` a
        photo takes the place of the one that was added from the same path before, and is no more.
        """
        with self.changing():
            return add_photos(self, gather(_as_paths(photos)), report or _ignore, replace=replace)

    def activate(
        self,
        photos: Paths,
        out: str | Place,
        *,
        recipe: str | Recipe = "homing",
        format: str | None = None,
        report: Report | None = None,
        loop: Loop = optimise,
        processes: bool = False,
    ) -> list[Outcome]:
        """Index photos, activate them, and write into the folder `out` what may be released.

        Released files have the names they have in the folders given. Photos activated earlier are not done again.
        `loop` is another one than the engine's, to compare with; its recipe must have a name of its own.
        With `processes` thousands of photos for a GPU are read and written by several; a script that asks for them is
        guarded by `if __name__ == "__main__"`.
        """
        chosen = recipe_named(recipe) if isinstance(recipe, str) else recipe
        job = ActivationJob(self, place(out), chosen, format, loop, processes=processes)
        with self.changing():
            return job.run(gather(_as_paths(photos)), report or _ignore)

    def activate_passive(
        self,
        out: str | Place,
        *,
        recipe: str | Recipe = "homing",
        format: str | None = None,
        report: Report | None = None,
        processes: bool = False,
    ) -> list[Outcome]:
        """Activate all references that are still passive, from the files they were added from.

        Released files have the names they have below the folder that all references have in common. Those whose file
        is gone, or is another by now, fail. The options are those of `activate`.
        """
        chosen = recipe_named(recipe) if isinstance(recipe, str) else recipe
        with self.changing():
            found, expected = passive_photos(self.folder.catalogue)
            job = ActivationJob(self, place(out), chosen, format, expected=expected, processes=processes)
            outcomes = job.run(found, report or _ignore) if found else []
            for outcome in left_passive(self.folder.catalogue, expected, outcomes):
                (report or _ignore)(outcome)
                outcomes.append(outcome)
            return outcomes

    def find(self, what: What | Iterable[What]) -> Named:
        """The references that are meant: by ids, by the paths they were added from, or by folders of these."""
        return find_named(self.folder.catalogue, [what] if isinstance(what, What) else what)

    def remove(self, what: What | Iterable[What]) -> list[Outcome]:
        """Remove the references that are meant, as `find` finds them, all at once.

        What names none fails, the others are removed all the same. Files that were released are left where they are.
        """
        with self.changing():
            return remove_named(self.folder, self.find(what))

    def search(
        self,
        photo: str | Place | Photo,
        *,
        k: int = 10,
        probes: int | None = None,
        margin: float | None = None,
        turned: bool = False,
        rerank: int | None = None,
        false_matches: float | None = None,
    ) -> list[Match]:
        """The nearest references of one photo, nearest first.

        `turned` also searches for its quarter turns and its mirror image; each reference keeps its smallest distance.
        The other options are those of `search_descriptors`.
        """
        query = photo if isinstance(photo, Photo) else Photo.load(photo)
        view = query.view()
        descriptors = describe(self.extractor, turns(self.extractor.resize(view)) if turned else [view])
        (matches,) = self.search_descriptors(
            descriptors[None], k=k, probes=probes, margin=margin, rerank=rerank, false_matches=false_matches
        )
        return matches

    @settled
    def search_descriptors(
        self,
        descriptors: Tensor,
        *,
        k: int = 10,
        probes: int | None = None,
        margin: float | None = None,
        rerank: int | None = None,
        false_matches: float | None = None,
    ) -> list[list[Match]]:
        """The nearest references of each of (B, D) descriptors, or (B, T, D) where each query is described T times.

        `probes` is how many cells are looked into. `margin`, in place of it, looks into every cell whose centre is no
        more than that farther away than the nearest, in squared distance, 64 at most. `rerank` compares so many of the
        nearest again, by the descriptors of originals and of activated files, 0 none; strangers of a background keep
        the distance of their codes. By default the collection chooses, see `plan`. `false_matches` leaves out what an
        unrelated photo would find by more than this chance.
        """
        index = self.index
        plan = plan_search(index, self.codebook, k, probes, margin, rerank)
        return run_search(self.folder, index, descriptors, k, plan, false_matches)

    def plan(
        self, k: int = 10, probes: int | None = None, margin: float | None = None, rerank: int | None = None
    ) -> Plan:
        """What a search with these options does; where neither cells nor ranking are chosen, what suits the size."""
        return plan_search(self.index, self.codebook, k, probes, margin, rerank)


def _opened_in_lance(where: Place, extractor: Extractor | None, which: str, version: int | None) -> Collection:
    from homing.collection.lance.collection import LanceCollection  # which is made of this class

    return LanceCollection(open_lance(where, which, version), extractor)  # type: ignore[arg-type]


def _as_paths(photos: Paths) -> list[str | Place]:
    return [photos] if isinstance(photos, str | Path | Address) else list(photos)


def _ignore(_: Outcome) -> None:
    """Nobody is watching."""
