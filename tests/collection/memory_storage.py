"""A storage added from outside: in memory, at addresses such as memory://trial, for tests that need no disk.

It is also the reference that the other storages are compared with.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from threading import Lock, RLock
from typing import Any, cast

import numpy as np

from homing._io.paths import Address, Location, list_names, write_file
from homing.collection.outcome import Findings
from homing.collection.references import (
    NewPhotos,
    Reference,
    ReferenceQuery,
    State,
    StoredReference,
    StoredRelease,
    folded,
    folded_name,
    format_time,
    parse_time,
    to_float16,
    to_release,
)
from homing.collection.storage import Storage, register_storage
from homing.collection.storage.base import CHUNK, NoVersionsError
from homing.collection.storage.layout import Parts
from homing.errors import BusyError, CollectionError, NotFoundError
from homing.indexes import FaissIndex

_MARK = "references.memory"  # an empty file: it is deleted with its generation


@dataclass
class _Tables:
    """The references of one generation by id, and their releases by photo, path and hash, the latest last."""

    photos: dict[int, StoredReference] = field(default_factory=dict)
    releases: dict[tuple[int, str, str], StoredRelease] = field(default_factory=dict)
    last_id: int = 0
    revision: int = 0
    lock: AbstractContextManager[Any] = field(default_factory=RLock)  # one thread may take it again


_generations: dict[str, _Tables] = {}
_writers: dict[str, Lock] = {}


@register_storage
class MemoryStorage(Storage):
    """The references and releases of a generation in dictionaries."""

    files = (_MARK,)

    def __init__(self, root: Location, path: Location, parts: Parts) -> None:
        super().__init__(root, path, parts)
        self._tables = _generations[str(path)]
        self._index: FaissIndex | None = None
        self._indexed = -1  # the revision that the index represents

    @classmethod
    def accepts(cls, where: Location) -> bool:
        """Whether this is an address in memory."""
        return isinstance(where, Address) and where.scheme == "memory"

    @classmethod
    def create(cls, where: Location, parts: Parts, fill: Callable[[Storage], None] | None = None) -> None:
        """Create a generation; its settings are written last."""
        if list_names(where):
            raise CollectionError(f"{where} exists and is not empty; choose another name for the collection")
        parts.write(where)
        write_file(where / _MARK, b"", new=True)
        _generations[str(where)] = _Tables()
        if fill is not None:
            fill(cls(where, where, parts))
        parts.write_settings(where)

    @classmethod
    def open(cls, root: Location, path: Location, parts: Parts, version: int | None) -> MemoryStorage:
        """Open the references of a generation, which are shared by all who open it."""
        if version is not None:
            raise NoVersionsError(root)
        if not (path / _MARK).exists() or str(path) not in _generations:
            raise CollectionError(f"{path} has no references: another process made it")
        return cls(root, path, parts)

    def reopen(self) -> MemoryStorage:
        """Open the references once more."""
        return MemoryStorage(self.root, self.path, self.parts)

    def close(self) -> None:
        """Do nothing: there are no open files."""

    @classmethod
    @contextmanager
    def lock(cls, root: Location) -> Iterator[None]:
        """Lock a collection while it changes. Raises BusyError at once if another thread changes it."""
        lock = _writers.setdefault(str(root), Lock())
        if not lock.acquire(blocking=False):
            raise BusyError(f"another thread is changing {root}; try again when it has finished")
        try:
            yield
        finally:
            lock.release()

    def refresh(self) -> None:
        """Do nothing: changes of other writers are seen at once."""

    @property
    def revision(self) -> int:
        """A counter that increases with every change to the references."""
        return self._tables.revision

    def index(self) -> FaissIndex:
        """The index of all current references, built anew after each change."""
        with self._tables.lock:
            if self._index is None or self._indexed != self.revision:
                index = self.parts.new_index()
                if rows := [self._tables.photos[number] for number in sorted(self._tables.photos)]:
                    codes = np.stack([np.frombuffer(row.code, np.uint8) for row in rows])
                    index.add(codes, np.array([row.id for row in rows]))
                self._index, self._indexed = index, self.revision
            return self._index

    def save_index(self) -> None:
        """Do nothing: the index is built from the references."""

    def _photos(self) -> list[StoredReference]:
        """All references in order of id."""
        with self._tables.lock:
            return sorted(self._tables.photos.values())

    def _releases(self, photos: Iterable[int] | None = None) -> list[StoredRelease]:
        """All releases, or those of some references, the latest last."""
        wanted = None if photos is None else set(photos)
        with self._tables.lock:
            found = [row for row in self._tables.releases.values() if wanted is None or row.photo in wanted]
        return sorted(found, key=lambda row: row.changed)

    def _states(self) -> dict[int, State]:
        """The states of the references with a release. 'activated' takes precedence: it sorts first."""
        states: dict[int, State] = {}
        for row in self._releases():
            if row.written:
                states[row.photo] = cast(State, min(row.state, states.get(row.photo, row.state)))
        return states

    def ids_of(self, hashes: Sequence[str]) -> dict[str, int]:
        """The ids of references by hash; unknown hashes are left out."""
        known = {row.sha256: row.id for row in self._photos()}
        return {sha256: known[sha256] for sha256 in hashes if sha256 in known}

    def hashes_of(self, ids: Sequence[int]) -> dict[int, str]:
        """The hashes of references by id; unknown ids are left out."""
        return {row.id: row.sha256 for row in self._some(ids)}

    def _some(self, ids: Iterable[int]) -> list[StoredReference]:
        with self._tables.lock:
            return [self._tables.photos[number] for number in sorted(set(ids)) if number in self._tables.photos]

    def add(self, photos: NewPhotos, *, replaces: Sequence[int] = ()) -> list[int | None]:
        """Record references. Returns the id of each, None for those already known."""
        ids: list[int | None] = []
        with self._tables.lock:
            self.remove(replaces)
            now = format_time(datetime.now(timezone.utc))
            known = {row.sha256 for row in self._tables.photos.values()}
            columns = zip(photos.hashes, photos.sources, photos.codes, to_float16(photos.descriptors), strict=True)
            for sha256, source, code, vector in columns:
                if sha256 in known:
                    ids.append(None)
                    continue
                known.add(sha256)
                number = self._tables.last_id + 1
                row = StoredReference(number, sha256, source, "passive", now, code.tobytes(), vector.tobytes())
                ids += self.insert([row])
        return ids

    def remove(self, ids: Sequence[int]) -> list[tuple[int, str, str | None]]:
        """Remove references and their releases."""
        with self._tables.lock:
            removed = self._some(ids)
            last = {row.photo: row.path for row in self._releases(ids) if row.written}
            gone = {row.id for row in removed}
            for number in gone:
                del self._tables.photos[number]
            for key in [key for key in self._tables.releases if key[0] in gone]:
                del self._tables.releases[key]
            self._tables.revision += bool(gone)
        return [(row.id, row.source, last.get(row.id)) for row in removed]

    def _change(self, photo: int, **values: Any) -> None:
        self._tables.photos[photo] = self._tables.photos[photo]._replace(**values)

    def update_source(self, photo: int, old: str, new: str) -> bool:
        """Change the source of a reference from `old` to `new`. Returns False if its source is not `old`."""
        with self._tables.lock:
            same = [row for row in self._some([photo]) if row.source == old]
            for row in same:
                self._change(row.id, source=new)
            return bool(same)

    def find_by_source(self, source: str) -> list[tuple[int, str]]:
        """The ids and hashes of references with this source."""
        return [(row.id, row.sha256) for row in self._photos() if row.source == source]

    def find_in_folder(self, folder: str) -> list[int]:
        """The ids of references with a source in this folder, at any depth."""
        inside = folder.rstrip(os.sep) + os.sep
        return [row.id for row in self._photos() if row.source.startswith(inside)]

    def passive(self) -> list[tuple[str, str]]:
        """The sources and hashes of references without a release."""
        released = self._states()
        return [(row.source, row.sha256) for row in self._photos() if row.id not in released]

    def first_and_last_source(self) -> tuple[str, str]:
        """The first and the last source in sort order."""
        sources = [row.source for row in self._photos()]
        return min(sources, default=""), max(sources, default="")

    def sources_and_states(self, ids: Sequence[int]) -> dict[int, tuple[str, State]]:
        """The source and the state of each reference, by id."""
        states = self._states()
        found = {row.id: (row.source, states.get(row.id, "passive")) for row in self._some(ids)}
        if missing := set(ids) - found.keys():
            raise NotFoundError(f"reference {min(missing)} is in the index but not in the collection")
        return found

    def descriptors(self, ids: np.ndarray) -> dict[int, np.ndarray]:
        """The descriptors (P, D) of distinct photos by id: the original's, then those of activated files."""
        vectors = {row.id: [row.vector or b""] for row in self._some(ids.tolist())}
        seen: set[tuple[int, str]] = set()
        for row in self._releases(vectors):
            if row.vector is not None and (row.photo, row.sha256) not in seen:
                seen.add((row.photo, row.sha256))
                vectors[row.photo].append(row.vector)
        return {
            number: np.frombuffer(b"".join(each), np.float16).reshape(len(each), -1) for number, each in vectors.items()
        }

    def counts(self) -> dict[str, int]:
        """The number of references in each state, and the total under `photos`."""
        states = list(self._states().values())
        counted = {state: states.count(cast(State, state)) for state in ("activated", "unchanged")}
        return {"photos": len(self._tables.photos), **counted}

    def confirm_releases(self, releases: Sequence[StoredRelease]) -> None:
        """Mark planned files as written."""
        with self._tables.lock:
            for row in releases:
                key = row.photo, row.path, row.sha256
                if key in self._tables.releases:
                    self._tables.releases[key] = self._tables.releases[key]._replace(written=1)

    def find_released(self, sha256: str) -> int | None:
        """The id of the reference that has a released file with this hash."""
        return next((row.photo for row in self._releases() if row.sha256 == sha256), None)

    def references(self, query: ReferenceQuery, *, newest_first: bool = False) -> Iterator[Reference]:
        """Iterate over the references of a query in order of id; `newest_first` in the opposite order."""
        states, given = self._states(), 0
        for row in reversed(self._photos()) if newest_first else self._photos():
            state = states.get(row.id, "passive")
            if query.after is not None and not (row.id < query.after if newest_first else row.id > query.after):
                continue
            if query.state not in (None, state) or folded(query.name_contains or "") not in folded_name(row.source):
                continue
            if given == query.limit:
                return
            given += 1
            written = tuple(to_release(each) for each in reversed(self._releases([row.id])) if each.written)
            yield Reference(
                id=row.id,
                photo=row.source,
                state=state,
                sha256=row.sha256,
                added=parse_time(row.added),
                releases=written,
            )

    def rows(self, size: int = CHUNK) -> Iterator[list[StoredReference]]:
        """Yield batches of all references in order of id."""
        states = self._states()
        rows = [row._replace(state=states.get(row.id, "passive")) for row in self._photos()]
        yield from (rows[start : start + size] for start in range(0, len(rows), size))

    def hashes(self) -> Iterator[dict[int, str]]:
        """Yield the hashes of all references by id."""
        yield {row.id: row.sha256 for row in self._photos()}

    def releases(self, photos: Sequence[int] | None = None) -> Iterator[list[StoredRelease]]:
        """Yield all planned and written releases, or those of some references."""
        yield self._releases(photos)

    def insert(self, rows: Sequence[StoredReference]) -> list[int]:
        """Record references with their original ids."""
        with self._tables.lock:
            self._tables.photos |= {row.id: row for row in rows}
            self._tables.last_id = max(self._tables.last_id, *(row.id for row in rows))
            self._tables.revision += 1
        return [row.id for row in rows]

    def insert_releases(self, rows: Sequence[StoredRelease]) -> None:
        """Record releases, replacing earlier ones of the same files except that they are written."""
        with self._tables.lock:
            for row in rows:
                before = self._tables.releases.pop((row.photo, row.path, row.sha256), row)
                if row.photo in self._tables.photos:
                    stored = row._replace(written=max(before.written, row.written))
                    self._tables.releases[row.photo, row.path, row.sha256] = stored

    def last_id(self) -> int:
        """The largest id ever assigned."""
        return self._tables.last_id

    def reserve_ids(self, last: int) -> None:
        """Reserve all ids up to this one."""
        self._tables.last_id = max(self._tables.last_id, last)

    def check(self, findings: Findings) -> bool:  # noqa: ARG002
        """Nothing can be damaged."""
        return True

    def check_index(self, findings: Findings) -> None:
        """No index is saved."""

    def set_code(self, photo: int, code: np.ndarray, descriptor: np.ndarray) -> None:
        """Replace the code and descriptor of a reference."""
        with self._tables.lock:
            self._change(photo, code=code.tobytes(), vector=descriptor.astype(np.float16).tobytes())
            self._tables.revision += 1

    def delete_released_descriptor(self, photo: int, sha256: str) -> None:
        """Delete the descriptor of a released file."""
        with self._tables.lock:
            for key, row in self._tables.releases.items():
                if (row.photo, row.sha256) == (photo, sha256):
                    self._tables.releases[key] = row._replace(vector=None)
