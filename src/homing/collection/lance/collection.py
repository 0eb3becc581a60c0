"""A collection in Lance: the same jobs and searches, by many machines at once, on files in a bucket."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from torch import Tensor

from homing._places import Place
from homing.collection._exporting import Export
from homing.collection._removing import Named, removed_outcomes
from homing.collection.catalogue import NewPhotos
from homing.collection.collection import Collection, What
from homing.collection.generations import beside, earlier, place_of
from homing.collection.lance.checking import check_lance
from homing.collection.lance.folder import LanceFolder, lance_at
from homing.collection.lance.live import LanceLive
from homing.collection.outcome import Finding, Info, Match, Outcome
from homing.errors import CollectionError, GoneError
from homing.indexes import LanceIndex

# Photos after which a job puts small files together: every batch of them is one, and looking through thousands of
# them for each photo takes longer than all else.
_PUT_TOGETHER = 10_000


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
    _live: LanceLive
    _recorded = 0  # since small files were last put together

    def _following(self) -> LanceLive:
        return LanceLive(self.folder)

    @property
    def index(self) -> LanceIndex:
        """The index of all references there are now, whoever added them."""
        return self._live.current()

    def changing(self) -> AbstractContextManager[None]:
        """Nobody is held up: those who change the same begin again where they must. What others did is seen."""
        catalogue, home = self.folder.catalogue, self.folder.home
        catalogue.references.refuse_if_old()
        catalogue.look_again()
        if self.folder.path != place_of(home, "current"):
            raise CollectionError(f"{home} is not changed in this generation: another one answers; open it again")
        return nullcontext()

    def record(self, photos: NewPhotos, *, instead_of: Sequence[int] = ()) -> list[int | None]:
        """Put references into the dataset; gives the id of each, None where it was known."""
        ids = super().record(photos, instead_of=instead_of)
        self._recorded += len(ids)
        if self._recorded >= _PUT_TOGETHER:
            self._recorded = 0
            self._live.compact()
        return ids

    def search_descriptors(self, descriptors: Tensor, **options: Any) -> list[list[Match]]:
        """The nearest references of each of (B, D) descriptors, or (B, T, D) where each query is described T times."""
        with self.folder.catalogue.references.telling("searched"):
            try:
                return super().search_descriptors(descriptors, **options)
            except GoneError:
                # A kill in the middle of compaction left removed references in the index.
                self._live.fold_in()
                return super().search_descriptors(descriptors, **options)

    def find(self, what: What | Iterable[What]) -> Named:
        """The references that are meant: by ids, by the paths they were added from, or by folders of these."""
        self.folder.catalogue.look_again()
        return super().find(what)

    def remove(self, what: What | Iterable[What]) -> list[Outcome]:
        """Remove the references that are meant, as `find` finds them; files that were released are left."""
        home, catalogue = self.folder.home, self.folder.catalogue
        with self.changing():
            named = self.find(what)
            hashes = list(catalogue.hashes_of(named.ids).values())
            # From here last: after a kill the same call still finds them, and goes on.
            for path in [*earlier(home), *([place_of(home, "next")] if "next" in beside(home) else [])]:
                there = lance_at(home, path).catalogue
                there.remove(list(there.ids_of(hashes).values()))
            return removed_outcomes(catalogue.remove(named.ids), named)

    def compact(self, *, older_than: timedelta | None = None) -> None:
        """Bring the index up to date, put small files together, and forget versions that are older than this."""
        self._live.compact(older_than)

    def versions(self) -> list[Version]:
        """How the references were, from the first version that is not forgotten to the last."""
        references = self.folder.catalogue.references
        with references.telling("read"):
            return [
                Version(each["version"], each["timestamp"], int(each["metadata"].get("total_rows", 0)))
                for each in references.latest().versions()
            ]

    def export(self, out: str | Place, *, format: str = "parquet") -> Export:  # noqa: ARG002
        """Lance is open to all that read Lance: there is nothing to export."""
        raise CollectionError(
            f"{self.folder.home} is open to all already: read its references.lance and releases.lance with pylance"
        )

    def info(self) -> Info:
        """What the collection holds."""
        self.folder.catalogue.look_again()
        return replace(super().info(), version=self.folder.catalogue.revision)

    def check(self, *, repair: bool = False) -> list[Finding]:
        """What is not as it should be; `repair` mends what can be mended without losing anything."""
        return check_lance(self.folder, repair=repair)
