"""An opened collection: its parts, what it holds, whether it is sound, and how it is closed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from types import TracebackType
from typing import TypeVar

from homing import codebooks, extractors
from homing._places import Place, bytes_at, place
from homing.collection._exporting import Export, export_folder
from homing.collection._live import Live, LiveIndex
from homing.collection._writing import changing
from homing.collection.catalogue import NewPhotos
from homing.collection.checking import check_opened
from homing.collection.folder import Folder
from homing.collection.generations import beside, place_of
from homing.collection.outcome import Finding, Info
from homing.collection.settings import read_settings
from homing.errors import HomingError
from homing.extractors import Extractor
from homing.indexes import Index

Self = TypeVar("Self", bound="Opened")


class Opened:
    """What every collection has that is open, whatever is done with its photos."""

    def __init__(self, folder: Folder, extractor: Extractor | None = None) -> None:
        self.folder = folder
        self.extractor_given = extractor is not None  # by the user, and perhaps known under no name
        if extractor is not None:
            try:
                self.codebook.check(extractor)
            except HomingError:
                folder.catalogue.close()
                raise
            self.extractor = extractor
        self._live = self._following()

    def _following(self) -> Live:
        """The index that follows the catalogue."""
        return LiveIndex(self.folder)

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

    @property
    def index(self) -> Index:
        """The index of all references the catalogue holds now, whoever added them."""
        return self._live.current()

    def changing(self) -> AbstractContextManager[None]:
        """Hold the collection for a job that changes it; who comes second is refused at once: BusyError."""
        return changing(self.folder)

    def record(self, photos: NewPhotos, *, instead_of: Sequence[int] = ()) -> list[int | None]:
        """Put references into the catalogue, which the index follows; gives the id of each, None where it was known.

        What they come `instead_of` is removed at once. The job that records them holds the lock, or is the only one.
        """
        return self.folder.catalogue.add(photos, instead_of=instead_of)

    def info(self) -> Info:
        """What the collection holds."""
        counts, home = self.folder.catalogue.counts(), self.folder.home
        others = {which: read_settings(place_of(home, which))["codebook"] for which in beside(home)}
        return Info(
            path=home,
            codebook=self.codebook.name,
            spec=self.codebook.spec,
            fingerprint=self.codebook.fingerprint,
            extractor=self.codebook.extractor,
            background=len(self.folder.background) if self.folder.background is not None else 0,
            bytes_on_disk=bytes_at(home),
            next_codebook=others.get("next"),
            previous_codebook=others.get("previous"),
            **counts,
        )

    def check(self, *, repair: bool = False) -> list[Finding]:
        """What is not as it should be on disk; `repair` mends what can be mended without losing anything.

        A collection too damaged to be opened is checked by `homing.collection.check`.
        """
        return check_opened(self.folder, lambda: self.extractor, repair=repair)

    def export(self, out: str | Place, *, format: str = "parquet") -> Export:
        """Write the collection into a new folder, in a format that needs nothing of homing: parquet, faiss or arrays.

        A README.md there says how to read it. `arrays` is the quantiser alone.
        """
        return export_folder(self.folder, place(out), format)

    def close(self) -> None:
        """Keep a snapshot of the index for the next opening, and let go of the files."""
        try:
            self._live.keep()
        finally:
            self.folder.catalogue.close()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
