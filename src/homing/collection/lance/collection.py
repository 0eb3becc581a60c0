"""A collection in Lance: the same jobs and searches, by many machines at once, on files in a bucket."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from torch import Tensor

from homing._files import bytes_in
from homing._places import Place
from homing.codebooks import Codebook
from homing.collection._exporting import Export
from homing.collection._removing import Named, removed_outcomes
from homing.collection.catalogue import NewPhotos
from homing.collection.collection import Collection, What
from homing.collection.generations import beside, earlier, place_of
from homing.collection.lance.catalogue import LanceCatalogue
from homing.collection.lance.checking import check_lance
from homing.collection.lance.folder import LanceFolder
from homing.collection.lance.live import LanceLive
from homing.collection.outcome import Finding, Info, Match, Outcome
from homing.collection.settings import read_settings
from homing.errors import CollectionError, GoneError
from homing.extractors import Extractor
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

    def __init__(self, folder: LanceFolder, extractor: Extractor | None = None) -> None:
        self.folder = folder
        self._live: LanceLive = LanceLive(folder)  # type: ignore[assignment]
        self._recorded = 0  # since small files were last put together
        self.extractor_given = extractor is not None
        if extractor is not None:
            self.extractor = extractor

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
        with self.changing():
            named = self.find(what)
        home, hashes = self.folder.home, list(self.folder.catalogue.hashes_of(named.ids).values())
        for which in [*earlier(home), *([place_of(home, "next")] if "next" in beside(home) else [])]:
            there = LanceCatalogue(which, Codebook.from_bytes((which / "codebook").read_bytes(), str(which)))
            there.remove(list(there.ids_of(hashes).values()))
        return removed_outcomes(self.folder.catalogue.remove(named.ids), named)

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
        home, counts = self.folder.home, self.folder.catalogue.counts()
        others = {which: read_settings(place_of(home, which))["codebook"] for which in beside(home)}
        return Info(
            path=home,
            codebook=self.codebook.name,
            spec=self.codebook.spec,
            fingerprint=self.codebook.fingerprint,
            extractor=self.codebook.extractor,
            background=0,
            bytes_on_disk=bytes_in(home) if isinstance(home, Path) else home.size(),
            next_codebook=others.get("next"),
            previous_codebook=others.get("previous"),
            version=self.folder.catalogue.revision,
            photos=counts["photos"],
            activated=counts["activated"],
            unchanged=counts["unchanged"],
        )

    def check(self, *, repair: bool = False) -> list[Finding]:
        """What is not as it should be; `repair` mends what can be mended without losing anything."""
        return check_lance(self.folder, repair=repair)
