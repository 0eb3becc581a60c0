"""The references of a generation in a Lance dataset; `Storage` says what the methods do."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from typing import Any

import numpy as np
import torch

from homing._imports import load_extra
from homing._io.paths import Location
from homing.codebooks import Codebook
from homing.collection.references import (
    NewPhotos,
    Reference,
    ReferenceQuery,
    State,
    StoredReference,
    folded,
    folded_name,
    format_time,
    parse_time,
)
from homing.collection.storage._lance_releases import MAX_IDS, REFERENCES, RELEASES, LanceReleases, log_schema
from homing.collection.storage._lance_table import CREATED, column_in, quoted, row_ids_in
from homing.collection.storage.base import CHUNK
from homing.collection.storage.parts import Parts
from homing.errors import NotFoundError
from homing.indexes.lance import CODE, VECTOR, codes_of, ids_of, to_list_column, to_matrix

_PAGE = 1_000  # references per query of a listing
# A job compacts after this many photos. Each batch writes one file, and a lookup per photo in thousands of small
# files would dominate the time.
_COMPACT_EVERY = 10_000


def schemas(codebook: Codebook) -> dict[str, Any]:
    """The schemas of the two datasets of a generation."""
    arrow = load_extra("pyarrow", "lance")
    code, transformed = arrow.list_(arrow.uint8(), codebook.code_size), arrow.list_(arrow.float32(), codebook.dim)
    texts = [(name, arrow.string()) for name in ("sha256", "source")]
    added = ("added", arrow.timestamp("ms", tz="UTC"))
    return {
        REFERENCES: arrow.schema([*texts, added, (CODE, code), (VECTOR, transformed)]),
        RELEASES: log_schema(codebook),
    }


class LanceReferences(LanceReleases):
    """The references, their codes and descriptors."""

    def __init__(self, root: Location, path: Location, parts: Parts, version: int | None = None) -> None:
        super().__init__(root, path, parts, version)
        self._schema, self._recorded = schemas(parts.codebook)[REFERENCES], 0

    @property
    def revision(self) -> int:
        """The version of the references, which increases with every change to them, by any writer."""
        return int(self.table.latest().version)

    def ids_of(self, hashes: Sequence[str]) -> dict[str, int]:
        return {sha256: ids[0][0] for sha256, ids in self._all_ids_of(hashes).items()}

    def _all_ids_of(self, hashes: Sequence[str]) -> dict[str, list[tuple[int, int]]]:
        """The ids of each photo, with the versions that added them: one, unless two writers have just added it."""
        found: dict[str, list[tuple[int, int]]] = {}
        for start in range(0, len(hashes), MAX_IDS):
            wanted = column_in("sha256", hashes[start : start + MAX_IDS])
            rows = self.table.rows(["_rowid", "sha256", CREATED], wanted)
            columns = (ids_of(rows).tolist(), rows["sha256"].to_pylist(), rows[CREATED].to_pylist())
            for number, sha256, version in sorted(zip(*columns, strict=True)):
                found.setdefault(sha256, []).append((number, version))
        return found

    def hashes_of(self, ids: Sequence[int]) -> dict[int, str]:
        found: dict[int, str] = {}
        for start in range(0, len(ids), MAX_IDS):
            rows = self.table.rows(["_rowid", "sha256"], row_ids_in(ids[start : start + MAX_IDS]))
            found |= zip(ids_of(rows).tolist(), rows["sha256"].to_pylist(), strict=True)
        return found

    def add(self, photos: NewPhotos, *, replaces: Sequence[int] = ()) -> list[int | None]:
        """Record references in one commit. Returns the id of each, None for those already known.

        The references in `replaces` are removed afterwards.
        """
        known = self.ids_of(photos.hashes)
        first_positions = {
            sha256: position for position, sha256 in reversed(list(enumerate(photos.hashes))) if sha256 not in known
        }
        version = None
        if first_positions:
            version = self.table.insert_new(self._new_rows(photos, sorted(first_positions.values())), "sha256")
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
            self.compact()

    def _new_rows(self, photos: NewPhotos, positions: list[int]) -> Any:
        now = datetime.now(timezone.utc)
        texts = [(photos.hashes[position], photos.sources[position], now) for position in positions]
        return self._to_table(texts, np.asarray(photos.codes)[positions], np.asarray(photos.descriptors)[positions])

    def _to_table(self, texts: Sequence[tuple[str, str, datetime]], codes: np.ndarray, descriptors: np.ndarray) -> Any:
        hashes, sources, times = (list(column) for column in zip(*texts, strict=True))
        values = {
            "sha256": hashes,
            "source": sources,
            "added": times,
            CODE: to_list_column(codes),
            VECTOR: to_list_column(self.codebook.transform(torch.from_numpy(descriptors.astype(np.float32)))),
        }
        return load_extra("pyarrow", "lance").table(values, schema=self._schema)

    def remove(self, ids: Sequence[int]) -> list[tuple[int, str, str | None]]:
        batches = (ids[start : start + MAX_IDS] for start in range(0, len(ids), MAX_IDS))
        return [each for batch in batches for each in self._remove(batch)]

    def _remove(self, ids: Sequence[int]) -> list[tuple[int, str, str | None]]:
        rows = self.table.rows(["_rowid", "sha256", "source"], row_ids_in(ids))
        hashes = rows["sha256"].to_pylist()
        if not hashes:
            return []
        last = {photo: row.path for photo, row in self.log.written(hashes)}  # rows are sorted by time: the latest wins
        # With this order a crash leaves a passive reference, which repeating the call removes.
        self.releases_table.delete(column_in("photo", hashes))
        self.table.delete(row_ids_in(ids))
        self.changed = True
        found = zip(ids_of(rows).tolist(), rows["source"].to_pylist(), hashes, strict=True)
        return [(number, source, last.get(sha256)) for number, source, sha256 in sorted(found)]

    def update_source(self, photo: int, old: str, new: str) -> bool:
        sha256 = self.hashes_of([photo]).get(photo, "")
        same = f"sha256 = {quoted(sha256)} AND source = {quoted(old)}"
        return self.table.update({"source": quoted(new)}, same) > 0

    def find_by_source(self, source: str) -> list[tuple[int, str]]:
        rows = self.table.rows(["_rowid", "sha256"], f"source = {quoted(source)}")
        return sorted(zip(ids_of(rows).tolist(), rows["sha256"].to_pylist(), strict=True))

    def find_in_folder(self, folder: str) -> list[int]:
        inside = folder.rstrip(os.sep)
        first, end = inside + os.sep, inside + chr(ord(os.sep) + 1)
        rows = self.table.rows(["_rowid"], f"source >= {quoted(first)} AND source < {quoted(end)}")
        return sorted(ids_of(rows).tolist())

    def passive(self) -> list[tuple[str, str]]:
        released = self.log.states()
        return [
            (row["source"], row["sha256"])
            for batch in self.table.batches(["source", "sha256"])
            for row in batch.to_pylist()
            if row["sha256"] not in released
        ]

    def first_and_last_source(self) -> tuple[str, str]:
        ends = [
            end
            for batch in self.table.batches(["source"])
            if (sources := batch["source"].to_pylist())
            for end in (min(sources), max(sources))
        ]
        return min(ends, default=""), max(ends, default="")

    def sources_and_states(self, ids: Sequence[int]) -> dict[int, tuple[str, State]]:
        found: dict[int, tuple[str, State]] = {}
        for start in range(0, len(ids), MAX_IDS):
            rows = self.table.rows(["_rowid", "sha256", "source"], row_ids_in(ids[start : start + MAX_IDS]))
            hashes = rows["sha256"].to_pylist()
            states = self.log.states(hashes)
            for number, source, sha256 in zip(ids_of(rows).tolist(), rows["source"].to_pylist(), hashes, strict=True):
                found[number] = source, states.get(sha256, "passive")
        if missing := set(ids) - found.keys():
            raise NotFoundError(f"reference {min(missing)} is in the index but not in the catalog")
        return found

    def descriptors(self, ids: np.ndarray) -> dict[int, np.ndarray]:
        found: dict[int, np.ndarray] = {}
        for start in range(0, len(ids), MAX_IDS):
            wanted = row_ids_in(ids[start : start + MAX_IDS].tolist())
            rows = self.table.rows(["_rowid", "sha256", VECTOR], wanted)
            if not len(rows):
                continue
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
        for reference in self._references([number], ReferenceQuery()):
            return reference
        raise NotFoundError(f"no reference has the id {number}")

    def _references(self, ids: list[int], query: ReferenceQuery) -> list[Reference]:
        """The references with these ids that match a query, in order of id."""
        table = self.table.rows(["_rowid", "sha256", "source", "added"], row_ids_in(ids))
        rows = dict(zip(ids_of(table).tolist(), table.select(["sha256", "source", "added"]).to_pylist(), strict=True))
        if query.name_contains:
            wanted = folded(query.name_contains)
            rows = {number: row for number, row in rows.items() if wanted in folded_name(row["source"])}
        hashes = [row["sha256"] for row in rows.values()]
        states, releases = self.log.states(hashes), self.log.listed(hashes)
        found = [
            Reference(
                id=number,
                photo=row["source"],
                state=states.get(row["sha256"], "passive"),
                sha256=row["sha256"],
                added=row["added"],
                releases=tuple(releases.get(row["sha256"], ())),
            )
            for number, row in sorted(rows.items())
        ]
        return [each for each in found if query.state in (None, each.state)]

    def rows(self, size: int = CHUNK) -> Iterator[list[StoredReference]]:
        """Yield batches of all references."""
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
        """Record references, which get new ids."""
        texts = [(row.sha256, row.source, parse_time(row.added)) for row in rows]
        codes = np.stack([np.frombuffer(row.code, np.uint8) for row in rows])
        descriptors = np.stack([np.frombuffer(row.vector or b"", np.float16) for row in rows])
        self.table.insert_new(self._to_table(texts, codes, descriptors), "sha256")
        self.changed = True
        ids = self.ids_of([row.sha256 for row in rows])
        self._compact_after(len(rows))
        return [ids[row.sha256] for row in rows]

    def last_id(self) -> int:
        """The largest id of a reference."""
        return max((max(batch) for batch in self.hashes() if batch), default=0)

    def set_code(self, photo: int, code: np.ndarray, descriptor: np.ndarray) -> None:
        """Replace the code and descriptor of a reference, which keeps its id."""
        rows = self.table.rows(["sha256", "source", "added"], row_ids_in([photo])).to_pylist()
        texts = [(row["sha256"], row["source"], row["added"]) for row in rows]
        self.table.replace(self._to_table(texts, code[None], descriptor[None]), "sha256")
        self.changed = True
