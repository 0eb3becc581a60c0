"""The references and releases of a generation in two Lance datasets; `Storage` says what the methods do."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from typing import Any, TypeVar

import numpy as np
import torch

from homing._imports import load_extra
from homing._io.paths import Location
from homing.collection.references import (
    NewPhotos,
    Reference,
    ReferenceQuery,
    Release,
    State,
    StoredReference,
    StoredRelease,
    folded,
    folded_name,
    folder_range,
    format_time,
    parse_time,
    to_release,
)
from homing.collection.storage._lance_table import (
    CREATED,
    REFERENCES,
    RELEASES,
    LanceTable,
    ReleaseLog,
    column_in,
    quoted,
    row_ids_in,
)
from homing.collection.storage.base import CHUNK, Storage
from homing.collection.storage.layout import Parts
from homing.errors import CollectionError, NotFoundError, StorageUnavailableError
from homing.indexes.lance import CODE, VECTOR, codes_of, ids_of, to_list_column, to_matrix

T = TypeVar("T", int, str)
MAX_IDS = 5_000  # maximum number of references in one filter
_PAGE = 1_000  # references per query of a listing
# A job compacts after this many photos. Each batch writes one file, and a lookup per photo in thousands of small
# files would dominate the time.
_COMPACT_EVERY = 10_000


class LanceRows(Storage):
    """The two datasets of a generation, at the versions last loaded."""

    def __init__(self, root: Location, path: Location, parts: Parts, version: int | None = None) -> None:
        super().__init__(root, path, parts)
        self.table, self.log = LanceTable(path / REFERENCES, version), ReleaseLog(path / RELEASES)
        # Both datasets, each with the columns that rows are looked up by.
        self.lookups = ((self.table, ("sha256", "source")), (self.log, ("photo", "sha256")))
        self.changed = False  # whether this instance has changed the references or releases
        self._recorded = 0

    def refresh(self) -> None:
        self.table.latest()
        self.log.latest()

    @property
    def revision(self) -> int:
        return int(self.table.latest().version)

    def ids_of(self, hashes: Sequence[str]) -> dict[str, int]:
        return {sha256: ids[0][0] for sha256, ids in self._all_ids_of(hashes).items()}

    def _all_ids_of(self, hashes: Sequence[str]) -> dict[str, list[tuple[int, int]]]:
        """The ids of each photo, with the versions that added them: one, unless two writers have just added it."""
        found: dict[str, list[tuple[int, int]]] = {}
        for wanted in _chunks(hashes):
            for row in self.table.records(["sha256", CREATED], column_in("sha256", wanted)):
                found.setdefault(row["sha256"], []).append((row["id"], row[CREATED]))
        return found

    def hashes_of(self, ids: Sequence[int]) -> dict[int, str]:
        return {row["id"]: row["sha256"] for rows in self._look_up(ids, "sha256") for row in rows}

    def _look_up(self, ids: Sequence[int], *columns: str) -> Iterator[list[dict[str, Any]]]:
        """Batches of the references with these ids, those that exist, with their ids and these columns."""
        return (self.table.records(columns, row_ids_in(wanted)) for wanted in _chunks(ids))

    def add(self, photos: NewPhotos, *, replaces: Sequence[int] = ()) -> list[int | None]:
        known = self.ids_of(photos.hashes)
        first_positions: dict[str, int] = {}
        for position, sha256 in enumerate(photos.hashes):
            if sha256 not in known:
                first_positions.setdefault(sha256, position)
        version = None
        if first_positions:
            positions, now = list(first_positions.values()), datetime.now(timezone.utc)
            texts = [(photos.hashes[position], photos.sources[position], now) for position in positions]
            codes, descriptors = np.asarray(photos.codes)[positions], np.asarray(photos.descriptors)[positions]
            version = self.table.insert_new(self._to_table(texts, codes, descriptors), "sha256")
            self.changed = True
        inserted = self._all_ids_of(list(first_positions))
        # The second of two concurrent writers sees both rows and deletes its own; after a crash, a repair does.
        if duplicates := [number for ids in inserted.values() for number, _ in ids[1:]]:
            self.table.delete(row_ids_in(duplicates))
        if replaces:
            self.remove(replaces)
        # Rows of an earlier version belong to another writer.
        ours = {sha256: ids[0][0] for sha256, ids in inserted.items() if ids[0][1] == version}
        self._compact_after(len(photos.hashes))
        return [
            ours.get(sha256) if first_positions.get(sha256) == position else None
            for position, sha256 in enumerate(photos.hashes)
        ]

    def _compact_after(self, count: int) -> None:
        """Compact if enough references were recorded since the last time, with these."""
        self._recorded += count
        if self._recorded >= _COMPACT_EVERY:
            self._recorded = 0
            try:
                self.compact()
            except (
                CollectionError,
                StorageUnavailableError,
            ) as error:  # the references are recorded; others compact too
                logging.getLogger("homing").warning("%s: small files were not merged: %s", self.path, error)

    def _to_table(self, texts: Sequence[tuple[str, str, datetime]], codes: np.ndarray, descriptors: np.ndarray) -> Any:
        hashes, sources, times = (list(column) for column in zip(*texts, strict=True))
        values = {
            "sha256": hashes,
            "source": sources,
            "added": times,
            CODE: to_list_column(codes),
            VECTOR: to_list_column(self.codebook.transform(torch.from_numpy(descriptors.astype(np.float32)))),
        }
        return load_extra("pyarrow", "lance").table(values, schema=self.table.dataset.schema)

    def remove(self, ids: Sequence[int]) -> list[tuple[int, str, str | None]]:
        removed = []
        for rows in self._look_up(ids, "sha256", "source"):
            releases = self._releases_of({row["sha256"]: row["id"] for row in rows})
            last = {row.photo: row.path for row in releases if row.written}  # sorted by time: the latest wins
            if rows:
                # With this order a crash leaves a passive reference, which repeating the call removes.
                self.log.delete(column_in("photo", [row["sha256"] for row in rows]))
                self.table.delete(row_ids_in([row["id"] for row in rows]))
                self.changed = True
            removed += [(row["id"], row["source"], last.get(row["id"])) for row in rows]
        return removed

    def update_source(self, photo: int, old: str, new: str) -> bool:
        sha256 = self.hashes_of([photo]).get(photo, "")
        same = f"sha256 = {quoted(sha256)} AND source = {quoted(old)}"
        return self.table.update({"source": quoted(new)}, same) > 0

    def find_by_source(self, source: str) -> list[tuple[int, str]]:
        rows = self.table.records(["sha256"], f"source = {quoted(source)}")
        return [(row["id"], row["sha256"]) for row in rows]

    def find_in_folder(self, folder: str) -> list[int]:
        first, end = folder_range(folder)
        return [row["id"] for row in self.table.records([], f"source >= {quoted(first)} AND source < {quoted(end)}")]

    def passive(self) -> list[tuple[str, str]]:
        released = self.log.states()
        return [
            (row["source"], row["sha256"])
            for batch in self.table.batches(["source", "sha256"])
            for row in batch.to_pylist()
            if row["sha256"] not in released
        ]

    def first_and_last_source(self) -> tuple[str, str]:
        ends: list[str] = []
        for batch in self.table.batches(["source"]):
            sources = [*ends, *batch["source"].to_pylist()]
            ends = [min(sources), max(sources)] if sources else []
        return (ends[0], ends[1]) if ends else ("", "")

    def sources_and_states(self, ids: Sequence[int]) -> dict[int, tuple[str, State]]:
        found: dict[int, tuple[str, State]] = {}
        for rows in self._look_up(ids, "sha256", "source"):
            states = self.log.states([row["sha256"] for row in rows])
            found |= {row["id"]: (row["source"], states.get(row["sha256"], "passive")) for row in rows}
        if missing := set(ids) - found.keys():
            raise NotFoundError(f"reference {min(missing)} is in the index but not in the catalog")
        return found

    def descriptors(self, ids: np.ndarray) -> dict[int, np.ndarray]:
        found: dict[int, np.ndarray] = {}
        for wanted in _chunks(ids.tolist()):
            rows = self.table.rows(["_rowid", "sha256", VECTOR], row_ids_in(wanted))
            if len(rows):
                hashes = rows["sha256"].to_pylist()
                released = self.log.descriptors(hashes)
                for number, sha256, original in zip(ids_of(rows).tolist(), hashes, self._originals(rows), strict=True):
                    found[number] = np.stack([original, *released.get(sha256, [])])
        return found

    def _originals(self, rows: Any) -> np.ndarray:
        """The descriptors (N, D) of the originals in a table of rows."""
        return self.codebook.quantizer.inverse_transform(np.ascontiguousarray(to_matrix(rows[VECTOR])))

    def counts(self) -> dict[str, int]:
        self.refresh()
        states = list(self.log.states().values())
        return {
            "photos": int(self.table.dataset.count_rows()),
            "activated": states.count("activated"),
            "unchanged": states.count("unchanged"),
        }

    def count(self, name: str = "", state: State | None = None) -> int:
        if name or state is not None:
            return super().count(name, state)
        with self.table.convert_errors("read"):
            return int(self.table.latest().count_rows())

    def references(self, query: ReferenceQuery, *, newest_first: bool = False) -> Iterator[Reference]:
        self.refresh()
        # Load all ids, 8 bytes each, and sort them: Lance returns rows in file order.
        pieces = [ids_of(batch) for batch in self.table.batches(["_rowid"])]
        ids = np.sort(np.concatenate(pieces)) if pieces else np.empty(0, np.int64)
        if newest_first:
            ids = ids[::-1]
        if query.after is not None:
            ids = ids[ids < query.after] if newest_first else ids[ids > query.after]
        given = 0
        for start in range(0, len(ids), _PAGE):
            found = self._references(ids[start : start + _PAGE].tolist(), query)
            for reference in reversed(found) if newest_first else found:
                yield reference
                given += 1
                if given == query.limit:
                    return

    def reference(self, number: int) -> Reference:
        self.refresh()
        if found := self._references([number], ReferenceQuery()):
            return found[0]
        raise NotFoundError(f"no reference has the id {number}")

    def _references(self, ids: list[int], query: ReferenceQuery) -> list[Reference]:
        """The references with these ids that match a query, in order of id."""
        rows = self.table.records(["sha256", "source", "added"], row_ids_in(ids))
        if query.name_contains:
            wanted = folded(query.name_contains)
            rows = [row for row in rows if wanted in folded_name(row["source"])]
        states = self.log.states([row["sha256"] for row in rows])
        releases: dict[int, list[Release]] = {}
        for released in reversed(self._releases_of({row["sha256"]: row["id"] for row in rows})):
            if released.written:
                releases.setdefault(released.photo, []).append(to_release(released))
        found = [
            Reference(
                id=row["id"],
                photo=row["source"],
                state=states.get(row["sha256"], "passive"),
                sha256=row["sha256"],
                added=row["added"],
                releases=tuple(releases.get(row["id"], ())),
            )
            for row in rows
        ]
        return [each for each in found if query.state in (None, each.state)]

    def rows(self, size: int = CHUNK) -> Iterator[list[StoredReference]]:
        columns = ["_rowid", "sha256", "source", "added", CODE, VECTOR]
        for batch in self.table.batches(columns, size=min(size, MAX_IDS)):
            texts = batch.select(["sha256", "source", "added"]).to_pylist()
            states = self.log.states([row["sha256"] for row in texts])
            vectors = self._originals(batch).astype(np.float16)
            yield [
                StoredReference(
                    id=number,
                    sha256=row["sha256"],
                    source=row["source"],
                    state=states.get(row["sha256"], "passive"),
                    added=format_time(row["added"]),
                    code=code.tobytes(),
                    vector=vector.tobytes(),
                )
                for number, row, code, vector in zip(
                    ids_of(batch).tolist(), texts, codes_of(batch), vectors, strict=True
                )
            ]

    def hashes(self) -> Iterator[dict[int, str]]:
        for batch in self.table.batches(["_rowid", "sha256"]):
            yield dict(zip(ids_of(batch).tolist(), batch["sha256"].to_pylist(), strict=True))

    def insert(self, rows: Sequence[StoredReference]) -> list[int]:
        texts = [(row.sha256, row.source, parse_time(row.added)) for row in rows]
        codes = np.stack([np.frombuffer(row.code, np.uint8) for row in rows])
        descriptors = np.stack([np.frombuffer(row.vector or b"", np.float16) for row in rows])
        self.table.insert_new(self._to_table(texts, codes, descriptors), "sha256")
        self.changed = True
        ids = self.ids_of([row.sha256 for row in rows])
        self._compact_after(len(rows))
        return [ids[row.sha256] for row in rows]

    def last_id(self) -> int:
        return max((max(batch) for batch in self.hashes() if batch), default=0)

    def set_code(self, photo: int, code: np.ndarray, descriptor: np.ndarray) -> None:
        rows = self.table.rows(["sha256", "source", "added"], row_ids_in([photo])).to_pylist()
        texts = [(row["sha256"], row["source"], row["added"]) for row in rows]
        self.table.replace(self._to_table(texts, code[None], descriptor[None]), "sha256")
        self.changed = True

    def confirm_releases(self, releases: Sequence[StoredRelease]) -> None:
        ids = {sha256: number for number, sha256 in self.hashes_of([row.photo for row in releases]).items()}
        done = {(row.photo, row.path, row.sha256) for row in self._releases_of(ids) if row.written}
        new = [row._replace(vector=None) for row in releases if (row.photo, row.path, row.sha256) not in done]
        now = format_time(datetime.now(timezone.utc))
        self.insert_releases([row._replace(written=1, changed=now) for row in new])

    def insert_releases(self, rows: Sequence[StoredRelease]) -> None:
        self.table.latest()  # another writer may have removed some of the references
        hashes = self.hashes_of(sorted({row.photo for row in rows}))
        if known := [row for row in rows if row.photo in hashes]:
            self.log.add(known, hashes)
            self.changed = True

    def find_released(self, sha256: str) -> int | None:
        photos = self.log.rows(["photo"], f"sha256 = {quoted(sha256)}")["photo"].to_pylist()
        return next(iter(self.ids_of(photos).values()), None)

    def releases(self, photos: Sequence[int] | None = None) -> Iterator[list[StoredRelease]]:
        if photos is None:
            ids = {sha256: number for batch in self.hashes() for number, sha256 in batch.items()}
            stored = self.log.stored(ids)
            yield from (stored[start : start + CHUNK] for start in range(0, len(stored), CHUNK))
            return
        for wanted in _chunks(photos):
            ids = {sha256: number for number, sha256 in self.hashes_of(wanted).items()}
            yield self.log.stored(ids, column_in("photo", list(ids)))

    def _releases_of(self, ids: dict[str, int]) -> list[StoredRelease]:
        """The releases of the references with these ids by hash, latest last, without descriptors."""
        return self.log.stored(ids, column_in("photo", list(ids)), vectors=False)

    def delete_released_descriptor(self, photo: int, sha256: str) -> None:
        same = f"{column_in('photo', list(self.hashes_of([photo]).values()))} AND sha256 = {quoted(sha256)}"
        self.log.update({VECTOR: "NULL"}, same)


def _chunks(values: Sequence[T]) -> Iterator[Sequence[T]]:
    """The values in pieces that fit in one filter."""
    return (values[start : start + MAX_IDS] for start in range(0, len(values), MAX_IDS))
