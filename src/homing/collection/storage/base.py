"""What the storage of a collection does, wherever it is: the references and releases of one generation.

A storage says what it cannot do by the error that its method raises, or by an attribute. Nobody asks which storage it
is. To add one, derive from `Storage`, and register the class with `homing.collection.storage.register_storage`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime, timedelta, timezone
from typing import TypeVar

import numpy as np

from homing._io.paths import Location, list_names
from homing.collection.outcome import Findings, Version
from homing.collection.references import (
    NewPhotos,
    Reference,
    ReferenceQuery,
    State,
    StoredReference,
    StoredRelease,
    format_time,
)
from homing.collection.storage.layout import CODEBOOK, SETTINGS, Parts, delete_earlier_generations, generation_path
from homing.errors import CollectionError, NotFoundError
from homing.indexes import Index

CHUNK = 10_000  # references or releases per batch: about 10 MB at 512 dimensions
StorageT = TypeVar("StorageT", bound="Storage")


class NoVersionsError(CollectionError):
    """A collection whose storage keeps no versions."""

    def __init__(self, root: Location) -> None:
        super().__init__(f"{root} has no versions; only collections in Lance have")


class Storage(ABC):
    """The references and releases of one generation of a collection. Safe to use from several threads."""

    files: tuple[str, ...]
    """Names of the files and folders that the storage keeps in the folder of a generation."""
    keeps_ids = True
    """Whether inserted references keep their ids. Otherwise each generation assigns its own."""
    locks_writers = True
    """Whether `lock` keeps other writers out. Otherwise conflicting changes are retried."""
    restore_hint = "restore it from a backup"
    """What to do about a damaged storage."""

    @property
    def version(self) -> int | None:
        """The version of the references, for a storage that keeps versions."""
        return None

    def __init__(self, root: Location, path: Location, parts: Parts) -> None:
        """`root` is the collection's location, `path` that of the generation, often the same."""
        self.root, self.path = root, path
        self.parts, self.codebook, self.distractors = parts, parts.codebook, parts.distractors

    # The location of a collection

    @classmethod
    @abstractmethod
    def accepts(cls, where: Location) -> bool:
        """Whether a collection at this location is stored here, or would be if it were created."""

    @classmethod
    def check_location(cls, where: Location) -> Location:
        """The location as the storage uses it. Raises an error if the storage cannot use it."""
        return where

    @classmethod
    def refuse_if_no_collection(cls, path: Location) -> None:
        """Raise an error for a folder that has no part of a generation."""
        names = list_names(path) if path.is_dir() else []
        if not {SETTINGS, CODEBOOK, *cls.files} & set(names):
            raise CollectionError(
                f"{path} is not a collection; make one with Collection.create, or: homing init {path}"
            )

    @classmethod
    @abstractmethod
    def create(cls, where: Location, parts: Parts, fill: Callable[[Storage], None] | None = None) -> None:
        """Create a generation, complete or not at all. `fill` inserts its first references and releases."""

    @classmethod
    @abstractmethod
    def open(cls: type[StorageT], root: Location, path: Location, parts: Parts, version: int | None) -> StorageT:
        """Open the references and releases in the folder of a generation, at a version or the latest."""

    @abstractmethod
    def reopen(self: StorageT) -> StorageT:
        """Open the same storage once more, so that long reads delay nobody. The caller closes it."""

    @abstractmethod
    def close(self) -> None:
        """Close the files."""

    @classmethod
    def is_damage(cls, error: CollectionError) -> bool:  # noqa: ARG003
        """Whether an error of `open` means that the storage is damaged, not just unavailable for now."""
        return True

    # Writers and readers

    @classmethod
    @abstractmethod
    def lock(cls, root: Location) -> AbstractContextManager[None]:
        """Lock a collection while it changes, or nothing if writers need no lock. BusyError if it is locked."""

    @contextmanager
    def lock_for_writing(self) -> Iterator[None]:
        """Lock the collection for a job that changes it. Only the current generation can be written to."""
        with self.lock(self.root):
            self.refresh()
            if self.path != generation_path(self.root, "current"):
                problem = "this generation is not the current one and cannot be changed"
                raise CollectionError(f"{self.root}: {problem}; open it again")
            yield

    def lock_uploads(self) -> AbstractContextManager[None]:
        """Lock the stored files of uploads. Otherwise another job could delete files that have no reference yet."""
        return nullcontext()

    @abstractmethod
    def refresh(self) -> None:
        """Load the changes of other writers, if the storage does not see them at once."""

    def read_transaction(self) -> AbstractContextManager[None]:
        """Read one consistent state inside this context, regardless of concurrent writers."""
        return nullcontext()

    @property
    @abstractmethod
    def revision(self) -> int:
        """A counter that increases with every change to the references, by any writer."""

    def delete_previous(self) -> None:
        """Delete the generations before the current one. The caller holds the lock."""
        delete_earlier_generations(self.root, self.files)

    # The index

    @abstractmethod
    def index(self) -> Index:
        """The index of all current references and of the distractors."""

    @abstractmethod
    def save_index(self) -> None:
        """Save the index for the next opening if that is worthwhile. A failure loses no data."""

    def searching(self) -> AbstractContextManager[None]:
        """Convert errors of the index's engine during a search."""
        return nullcontext()

    def drop_removed_from_index(self) -> bool:
        """Update an index that still returns removed references. Returns whether another search can succeed."""
        return False

    # Versions

    def versions(self) -> list[Version]:
        """The versions of the references, oldest first."""
        raise NoVersionsError(self.root)

    def compact(self, older_than: timedelta | None = None) -> None:  # noqa: ARG002
        """Index all references, merge small files, and delete versions older than `older_than`."""
        raise NoVersionsError(self.root)

    # References

    def find(self, sha256: str) -> int | None:
        """The id of the reference with this file hash."""
        return self.ids_of([sha256]).get(sha256)

    @abstractmethod
    def ids_of(self, hashes: Sequence[str]) -> dict[str, int]:
        """The ids of references by hash; unknown hashes are left out."""

    @abstractmethod
    def hashes_of(self, ids: Sequence[int]) -> dict[int, str]:
        """The hashes of references by id; unknown ids are left out."""

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

    def source_and_state(self, photo: int) -> tuple[str, State]:
        """The source and the state (passive, activated or unchanged) of a reference."""
        return self.sources_and_states([photo])[photo]

    @abstractmethod
    def sources_and_states(self, ids: Sequence[int]) -> dict[int, tuple[str, State]]:
        """The source and the state of each reference, by id. The ids must be distinct.

        Raises NotFoundError if one of them belongs to no reference.
        """

    @abstractmethod
    def descriptors(self, ids: np.ndarray) -> dict[int, np.ndarray]:
        """The descriptors (P, D) of distinct photos by id: the original's, then those of activated files."""

    @abstractmethod
    def counts(self) -> dict[str, int]:
        """The number of references in each state, and the total under `photos`."""

    # Releases

    def plan_releases(self, releases: Sequence[StoredRelease]) -> None:
        """Record the files that are about to be written, so that a crash leaves no unknown files behind."""
        now = format_time(datetime.now(timezone.utc))
        self.insert_releases([row._replace(written=0, changed=now) for row in releases])

    @abstractmethod
    def confirm_releases(self, releases: Sequence[StoredRelease]) -> None:
        """Mark planned files as written. Files already marked cause no write."""

    def find_release(self, photo: int, sha256: str, path: str) -> StoredRelease | None:
        """The planned or written release of a photo with this hash, the one with this path if there are several.

        The hash alone is enough: the whole output folder may have been moved.
        """
        same = [row for rows in self.releases([photo]) for row in rows if row.sha256 == sha256]
        return max(same, key=lambda row: (row.path == path, row.changed), default=None)

    @abstractmethod
    def find_released(self, sha256: str) -> int | None:
        """The id of the reference that has a released file with this hash."""

    def last_release(self, photo: int) -> StoredRelease | None:
        """The last written release of a photo, preferring an activated file."""
        written = [row for rows in self.releases([photo]) for row in rows if row.written]
        return max(written, key=lambda row: (row.state == "activated", row.changed), default=None)

    # Listing

    @abstractmethod
    def references(self, query: ReferenceQuery, *, newest_first: bool = False) -> Iterator[Reference]:
        """Iterate over the references of a query in order of id; `newest_first` in the opposite order."""

    def reference(self, number: int) -> Reference:
        """The reference with this id. Raises NotFoundError if there is none."""
        found = next(self.references(ReferenceQuery(after=number - 1, limit=1)), None)
        if found is None or found.id != number:
            raise NotFoundError(f"no reference has the id {number}")
        return found

    def count(self, name: str = "", state: State | None = None) -> int:
        """The number of references, or of those with `name` in their file names, or with a state."""
        if not name and state is None:
            return self.counts()["photos"]
        return sum(1 for _ in self.references(ReferenceQuery(state=state, name_contains=name)))

    # Everything that is stored, for checks, exports and migrations

    @abstractmethod
    def rows(self, size: int = CHUNK) -> Iterator[list[StoredReference]]:
        """Yield batches of all references as they are stored, damaged ones too."""

    def valid_rows(self, size: int = CHUNK) -> Iterator[list[StoredReference]]:
        """Yield batches of all references. Raises an error on damaged ones."""
        lengths = (self.codebook.code_size, 2 * self.codebook.dim)
        for rows in self.rows(size):
            for row in rows:
                whole = isinstance(row.code, bytes) and isinstance(row.vector, bytes)
                if not whole or (len(row.code), len(row.vector or b"")) != lengths:
                    problem = f"reference {row.id}, {row.source}, is damaged"
                    raise CollectionError(f"{problem}; repair it with: homing check COLLECTION --repair")
            yield rows

    @abstractmethod
    def hashes(self) -> Iterator[dict[int, str]]:
        """Yield batches of the hashes of all references by id."""

    @abstractmethod
    def releases(self, photos: Sequence[int] | None = None) -> Iterator[list[StoredRelease]]:
        """Yield batches of all planned and written releases, or of those of some references, each file once."""

    @abstractmethod
    def insert(self, rows: Sequence[StoredReference]) -> list[int]:
        """Record references of another generation or of an export, and return their ids."""

    @abstractmethod
    def insert_releases(self, rows: Sequence[StoredRelease]) -> None:
        """Record releases, replacing what is known of the same files except that they are written."""

    @abstractmethod
    def last_id(self) -> int:
        """The largest id ever assigned, as far as it is known."""

    def reserve_ids(self, last: int) -> None:  # noqa: ARG002
        """Reserve all ids up to this one: new references get larger ids."""
        return  # a storage that assigns its own ids reserves none

    # Checks and repairs

    @abstractmethod
    def check(self, findings: Findings) -> bool:
        """Check the storage itself. Returns whether its references and releases can be checked."""

    @abstractmethod
    def check_index(self, findings: Findings) -> None:
        """Check that the saved index has the references and the codebook of the collection."""

    @abstractmethod
    def set_code(self, photo: int, code: np.ndarray, descriptor: np.ndarray) -> None:
        """Replace the code and descriptor of a reference."""

    @abstractmethod
    def delete_released_descriptor(self, photo: int, sha256: str) -> None:
        """Delete the descriptor of a released file; copies are then compared with the original."""
