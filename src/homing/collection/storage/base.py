"""What the storage of a collection does, wherever it is: the references and releases of one generation.

A storage says what it cannot do by the error that its method raises. Nobody asks which storage it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from homing.collection.references import NewPhotos, ReleaseEntry, ReleaseRow, State


class Storage(ABC):
    """The references and releases of one generation of a collection. Safe to use from several threads."""

    @property
    @abstractmethod
    def revision(self) -> int:
        """A counter that increases with every change to the references, by any writer."""

    @abstractmethod
    def close(self) -> None:
        """Close the files."""

    @abstractmethod
    def refresh(self) -> None:
        """Load the changes of other writers, if the storage does not see them at once."""

    @abstractmethod
    def find(self, sha256: str) -> int | None:
        """The id of the reference with this file hash."""

    @abstractmethod
    def ids_of(self, hashes: Sequence[str]) -> dict[str, int]:
        """The ids of references by hash; unknown hashes are left out."""

    @abstractmethod
    def hashes_of(self, ids: Sequence[int]) -> dict[int, str]:
        """The hashes of references by id; unknown ids are left out."""

    @abstractmethod
    def find_released(self, sha256: str) -> int | None:
        """The id of the reference that has a released file with this hash."""

    @abstractmethod
    def add(self, photos: NewPhotos, *, replaces: Sequence[int] = ()) -> list[int | None]:
        """Record references, and remove those in `replaces`. Returns the id of each, None for those already known.

        They are on disk when this returns.
        """

    @abstractmethod
    def remove(self, ids: Sequence[int]) -> list[tuple[int, str, str | None]]:
        """Remove references and their releases.

        Returns the id, source and last released file of each reference that existed.
        """

    @abstractmethod
    def update_source(self, photo: int, old: str, new: str) -> bool:
        """Change the source of a reference from `old` to `new`. Returns False if its source is not `old`."""

    @abstractmethod
    def existing_ids(self, ids: Sequence[int]) -> list[int]:
        """Filter ids: those that belong to references."""

    @abstractmethod
    def find_by_source(self, source: str) -> list[tuple[int, str]]:
        """The ids and hashes of references with this source."""

    @abstractmethod
    def find_in_folder(self, folder: str) -> list[int]:
        """The ids of references with a source in this folder, at any depth."""

    @abstractmethod
    def passive(self) -> list[tuple[str, str]]:
        """The sources and hashes of references without a release."""

    @abstractmethod
    def first_and_last_source(self) -> tuple[str, str]:
        """The first and the last source in sort order."""

    @abstractmethod
    def plan_releases(self, releases: Sequence[ReleaseEntry], descriptors: Sequence[np.ndarray | None]) -> None:
        """Record the files that are about to be written, so that a crash leaves no unknown files behind.

        `descriptors` are those of the released files; None where it is that of the original.
        """

    @abstractmethod
    def confirm_releases(self, releases: Sequence[ReleaseEntry]) -> None:
        """Mark planned files as written. Files already marked cause no write."""

    @abstractmethod
    def find_release(self, photo: int, path: str | None, sha256: str) -> ReleaseRow | None:
        """The planned or written release of a photo with this path and hash. Without a path, the last one."""

    @abstractmethod
    def last_release(self, photo: int) -> ReleaseRow | None:
        """The last written release of a photo, preferring an activated file."""

    def source_and_state(self, photo: int) -> tuple[str, State]:
        """The source and the state (passive, activated or unchanged) of a reference."""
        return self.sources_and_states([photo])[photo]

    @abstractmethod
    def sources_and_states(self, ids: Sequence[int]) -> dict[int, tuple[str, State]]:
        """The source and the state of each reference, by id. The ids must be distinct."""

    @abstractmethod
    def descriptors(self, ids: np.ndarray) -> dict[int, np.ndarray]:
        """The descriptors (P, D) of distinct photos by id: the original's, then those of activated files."""

    @abstractmethod
    def counts(self) -> dict[str, int]:
        """The number of references in each state, and the total under `photos`."""
