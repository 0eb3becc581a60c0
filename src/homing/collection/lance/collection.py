"""A collection in Lance: the same jobs and searches, by many machines at once, on files in a bucket."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from homing._files import bytes_in
from homing._places import Place
from homing.collection._exporting import Export
from homing.collection._removing import Named, removed_outcomes
from homing.collection.collection import Collection, What
from homing.collection.generations import beside, place_of
from homing.collection.lance.checking import check_lance
from homing.collection.lance.folder import LanceFolder
from homing.collection.lance.live import LanceLive
from homing.collection.outcome import Finding, Info, Outcome
from homing.collection.settings import read_settings
from homing.errors import CollectionError
from homing.extractors import Extractor
from homing.indexes import LanceIndex


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
        self.extractor_given = extractor is not None
        if extractor is not None:
            self.extractor = extractor

    @property
    def index(self) -> LanceIndex:
        """The index of all references there are now, whoever added them."""
        return self._live.current()

    def changing(self) -> AbstractContextManager[None]:
        """Nobody is held up: those who change the same begin again where they must. What others did is seen."""
        self.folder.catalogue.look_again()
        return nullcontext()

    def find(self, what: What | Iterable[What]) -> Named:
        """The references that are meant: by ids, by the paths they were added from, or by folders of these."""
        self.folder.catalogue.look_again()
        return super().find(what)

    def remove(self, what: What | Iterable[What]) -> list[Outcome]:
        """Remove the references that are meant, as `find` finds them; files that were released are left."""
        named = self.find(what)
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
