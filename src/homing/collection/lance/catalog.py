"""The catalog of a collection in Lance: one dataset of references, and one of their releases.

Has the interface of the SQLite catalog. References are inserted by their hashes, so that concurrent writers add each
photo only once.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

import numpy as np
import torch

from homing._extras import load_extra
from homing._io.paths import Location
from homing.codebooks import Codebook
from homing.collection.lance.release_log import RELEASES, ReleaseLog, log_schema
from homing.collection.lance.table import CREATED, LanceTable, column_in, quoted, row_ids_in
from homing.collection.references import NewPhotos, ReleaseEntry, ReleaseRow, State
from homing.collection.storage.base import Storage
from homing.errors import NotFoundError
from homing.indexes.lance import CODE, VECTOR, ids_of, to_list_column, to_matrix

REFERENCES = "references.lance"
_MAX_IDS = 5_000  # maximum number of references in one filter


def schemas(codebook: Codebook) -> dict[str, Any]:
    """The schemas of the two datasets of a collection."""
    arrow = load_extra("pyarrow", "lance")
    code, transformed = arrow.list_(arrow.uint8(), codebook.code_size), arrow.list_(arrow.float32(), codebook.dim)
    texts = [(name, arrow.string()) for name in ("sha256", "source")]
    added = ("added", arrow.timestamp("ms", tz="UTC"))
    return {
        REFERENCES: arrow.schema([*texts, added, (CODE, code), (VECTOR, transformed)]),
        RELEASES: log_schema(codebook),
    }


class LanceCatalog(Storage):
    """The references and releases of a collection. Safe to use from several threads and machines."""

    def __init__(self, where: Location, codebook: Codebook, version: int | None = None) -> None:
        self._codebook, self._schema = codebook, schemas(codebook)[REFERENCES]
        self.references = LanceTable(where / REFERENCES, version)
        self.releases = LanceTable(where / RELEASES)
        self.log = ReleaseLog(self.releases, codebook)
        self.changed = False  # whether this instance has changed the references or releases

    @property
    def lookups(self) -> list[tuple[LanceTable, tuple[str, ...]]]:
        """Both datasets, each with the columns that rows are looked up by."""
        return [(self.references, ("sha256", "source")), (self.releases, ("photo", "sha256"))]

    def close(self) -> None:
        """Do nothing: there are no open files."""

    def refresh(self) -> None:
        """Load the latest versions, with the changes of other writers."""
        self.references.latest()
        self.releases.latest()

    @property
    def revision(self) -> int:
        """A counter that increases with every change to the references, by any writer."""
        return int(self.references.latest().version)

    def find(self, sha256: str) -> int | None:
        """The id of the reference with this file hash."""
        return next(iter(self.ids_of([sha256]).values()), None)

    def ids_of(self, hashes: Sequence[str]) -> dict[str, int]:
        """The ids of photos by hash."""
        return {sha256: ids[0][0] for sha256, ids in self._all_ids_of(hashes).items()}

    def _all_ids_of(self, hashes: Sequence[str]) -> dict[str, list[tuple[int, int]]]:
        """The ids of each photo, with the versions that added them: one, unless two writers have just added it."""
        rows = self.references.rows(["_rowid", "sha256", CREATED], column_in("sha256", hashes))
        found: dict[str, list[tuple[int, int]]] = {}
        columns = (ids_of(rows).tolist(), rows["sha256"].to_pylist(), rows[CREATED].to_pylist())
        for number, sha256, version in sorted(zip(*columns, strict=True)):
            found.setdefault(sha256, []).append((number, version))
        return found

    def hashes_of(self, ids: Sequence[int]) -> dict[int, str]:
        """The hashes of photos by id."""
        rows = self.references.rows(["_rowid", "sha256"], row_ids_in(ids))
        return dict(zip(ids_of(rows).tolist(), rows["sha256"].to_pylist(), strict=True))

    def find_released(self, sha256: str) -> int | None:
        """The id of the reference that has a released file with this hash."""
        photos = [photo for photo, _ in self.log.releases(f"sha256 = {quoted(sha256)}")]
        return next(iter(self.ids_of(photos).values()), None)

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
            version = self.references.insert_new(self._new_rows(photos, sorted(first_positions.values())), "sha256")
            self.changed = True
        inserted = self._all_ids_of(list(first_positions))
        # The second of two concurrent writers sees both rows and deletes its own; after a crash, a repair does.
        if duplicates := [number for ids in inserted.values() for number, _ in ids[1:]]:
            self.references.delete(row_ids_in(duplicates))
        if replaces:
            self.remove(replaces)
        # Rows of an earlier version belong to another writer.
        ours = {sha256: ids[0][0] for sha256, ids in inserted.items() if ids[0][1] == version}
        return [
            ours.get(sha256) if first_positions.get(sha256) == position else None
            for position, sha256 in enumerate(photos.hashes)
        ]

    def _new_rows(self, photos: NewPhotos, positions: list[int]) -> Any:
        descriptors = torch.from_numpy(np.asarray(photos.descriptors)[positions])
        values = {
            "sha256": [photos.hashes[position] for position in positions],
            "source": [photos.sources[position] for position in positions],
            "added": [_now()] * len(positions),
            CODE: to_list_column(np.asarray(photos.codes)[positions]),
            VECTOR: to_list_column(self._codebook.transform(descriptors)),
        }
        return load_extra("pyarrow", "lance").table(values, schema=self._schema)

    def remove(self, ids: Sequence[int]) -> list[tuple[int, str, str | None]]:
        """Remove references and their releases.

        Returns the id, source and last released file of each reference that existed.
        """
        batches = (ids[start : start + _MAX_IDS] for start in range(0, len(ids), _MAX_IDS))
        return [each for batch in batches for each in self._remove(batch)]

    def _remove(self, ids: Sequence[int]) -> list[tuple[int, str, str | None]]:
        rows = self.references.rows(["_rowid", "sha256", "source"], row_ids_in(ids))
        hashes = rows["sha256"].to_pylist()
        if not hashes:
            return []
        last = {photo: row.path for photo, row in self.log.written(hashes)}  # rows are sorted by time: the latest wins
        # With this order a crash leaves a passive reference, which repeating the call removes.
        self.releases.delete(column_in("photo", hashes))
        self.references.delete(row_ids_in(ids))
        self.changed = True
        found = zip(ids_of(rows).tolist(), rows["source"].to_pylist(), hashes, strict=True)
        return [(number, source, last.get(sha256)) for number, source, sha256 in sorted(found)]

    def update_source(self, photo: int, old: str, new: str) -> bool:
        """Change the source of a reference from `old` to `new`. Returns False if its source is not `old`."""
        sha256 = self.hashes_of([photo]).get(photo, "")
        same = f"sha256 = {quoted(sha256)} AND source = {quoted(old)}"
        return self.references.update({"source": new}, same) > 0

    def existing_ids(self, ids: Sequence[int]) -> list[int]:
        """Filter ids: those that belong to references."""
        return list(self.hashes_of(ids))

    def find_by_source(self, source: str) -> list[tuple[int, str]]:
        """The ids and hashes of references with this source."""
        rows = self.references.rows(["_rowid", "sha256"], f"source = {quoted(source)}")
        return sorted(zip(ids_of(rows).tolist(), rows["sha256"].to_pylist(), strict=True))

    def find_in_folder(self, folder: str) -> list[int]:
        """The ids of references with a source in this folder, at any depth."""
        inside = folder.rstrip(os.sep)
        first, end = inside + os.sep, inside + chr(ord(os.sep) + 1)
        rows = self.references.rows(["_rowid"], f"source >= {quoted(first)} AND source < {quoted(end)}")
        return sorted(ids_of(rows).tolist())

    def passive(self) -> list[tuple[str, str]]:
        """The sources and hashes of references without a release."""
        released = self.log.states()
        return [
            (row["source"], row["sha256"])
            for batch in self.references.batches(["source", "sha256"])
            for row in batch.to_pylist()
            if row["sha256"] not in released
        ]

    def first_and_last_source(self) -> tuple[str, str]:
        """The first and the last source in sort order."""
        ends = [
            end
            for batch in self.references.batches(["source"])
            if (sources := batch["source"].to_pylist())
            for end in (min(sources), max(sources))
        ]
        return min(ends, default=""), max(ends, default="")

    def plan_releases(self, releases: Sequence[ReleaseEntry], descriptors: Sequence[np.ndarray | None]) -> None:
        """Record the files that are about to be written, so that a crash leaves no unknown files behind.

        `descriptors` are those of the released files; None where it is that of the original.
        """
        self._log_releases(releases, descriptors, written=False)

    def confirm_releases(self, releases: Sequence[ReleaseEntry]) -> None:
        """Mark planned files as written. Files already marked cause no write."""
        hashes = self.hashes_of([photo for photo, _ in releases])
        done = {(photo, row.path, row.sha256) for photo, row in self.log.written(list(hashes.values()))}
        new = [each for each in releases if (hashes.get(each[0]), each[1].path, each[1].sha256) not in done]
        if new:
            self._log_releases(new, [None] * len(new), written=True)

    def _log_releases(
        self, releases: Sequence[ReleaseEntry], descriptors: Sequence[np.ndarray | None], *, written: bool
    ) -> None:
        self.references.latest()  # another writer may have removed some of them
        hashes = self.hashes_of([photo for photo, _ in releases])
        existing = [position for position, (photo, _) in enumerate(releases) if photo in hashes]
        if existing:
            rows = [(hashes[releases[position][0]], releases[position][1]) for position in existing]
            self.log.add(rows, [descriptors[position] for position in existing], _now(), written=written)
            self.changed = True

    def find_release(self, photo: int, path: str | None, sha256: str) -> ReleaseRow | None:
        """The planned or written release of a photo with this path and hash. Without a path, the last one."""
        hashes = list(self.hashes_of([photo]).values())
        same_path = "" if path is None else f" AND path = {quoted(path)}"
        rows = self.log.releases(f"{column_in('photo', hashes)} AND sha256 = {quoted(sha256)}{same_path}")
        return rows[-1][1] if rows else None

    def last_release(self, photo: int) -> ReleaseRow | None:
        """The last written release of a photo, preferring an activated file."""
        rows = [row for _, row in self.log.written(list(self.hashes_of([photo]).values()))]
        activated = [row for row in rows if row.state == "activated"]
        return (activated or rows)[-1] if rows else None

    def sources_and_states(self, ids: Sequence[int]) -> dict[int, tuple[str, State]]:
        """The source and the state of each reference, by id. The ids must be distinct."""
        rows = self.references.rows(["_rowid", "sha256", "source"], row_ids_in(ids))
        hashes = rows["sha256"].to_pylist()
        if len(hashes) < len(ids):
            missing = min(set(ids) - set(ids_of(rows).tolist()))
            raise NotFoundError(f"reference {missing} is in the index but not in the catalog")
        states = self.log.states(hashes)
        found = zip(ids_of(rows).tolist(), rows["source"].to_pylist(), hashes, strict=True)
        return {number: (source, states.get(sha256, "passive")) for number, source, sha256 in found}

    def descriptors(self, ids: np.ndarray) -> dict[int, np.ndarray]:
        """The descriptors (P, D) of distinct photos by id: the original's, then those of activated files."""
        rows = self.references.rows(["_rowid", "sha256", VECTOR], row_ids_in(ids.tolist()))
        if not len(rows):
            return {}
        originals = self._codebook.quantizer.inverse_transform(np.ascontiguousarray(to_matrix(rows[VECTOR])))
        hashes = rows["sha256"].to_pylist()
        released = self.log.descriptors(hashes)
        return {
            number: np.stack([original, *released.get(sha256, [])])
            for number, sha256, original in zip(ids_of(rows).tolist(), hashes, originals, strict=True)
        }

    def counts(self) -> dict[str, int]:
        """The number of references in each state, and the total under `photos`."""
        states = list(self.log.states().values())
        return {
            "photos": int(self.references.dataset.count_rows()),
            "activated": states.count("activated"),
            "unchanged": states.count("unchanged"),
        }


def _now() -> datetime:
    return datetime.now(timezone.utc)
