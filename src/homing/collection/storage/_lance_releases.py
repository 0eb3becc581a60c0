"""The releases of a generation in Lance: an append-only log.

A file that was planned and then written has two rows. Photos are identified by hash, because ids are valid in one
dataset only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, cast

import numpy as np

from homing._imports import load_extra
from homing._io.paths import Location
from homing.codebooks import Codebook
from homing.collection.references import (
    Release,
    ReleaseEntry,
    ReleaseRow,
    State,
    StoredRelease,
    format_time,
    parse_time,
    to_float16,
)
from homing.collection.storage._lance_table import LanceTable, column_in, quoted
from homing.collection.storage.base import CHUNK, Storage
from homing.collection.storage.parts import Parts
from homing.indexes.lance import VECTOR

REFERENCES, RELEASES = "references.lance", "releases.lance"
MAX_IDS = 5_000  # maximum number of references in one filter
LoggedRelease = tuple[str, ReleaseRow]
"""The hash of a photo, and a planned or written release."""


def log_schema(codebook: Codebook) -> Any:
    """The schema of the log."""
    arrow = load_extra("pyarrow", "lance")
    return arrow.schema(
        [
            *((name, arrow.string()) for name in ("photo", "state", "path", "sha256", "recipe")),
            *((name, arrow.float64()) for name in ("psnr", "ssim", "linf")),
            ("reason", arrow.string()),
            ("written", arrow.bool_()),
            ("changed", arrow.timestamp("ms", tz="UTC")),
            (VECTOR, arrow.list_(arrow.float16(), codebook.dim)),  # null unless the file is activated
        ]
    )


class ReleaseLog:
    """The release log of one generation."""

    def __init__(self, table: LanceTable, codebook: Codebook) -> None:
        self._table, self._schema = table, log_schema(codebook)

    def add(
        self, releases: Iterable[LoggedRelease], descriptors: Iterable[np.ndarray | None], *, written: bool
    ) -> None:
        """Append planned or written releases, each with the descriptor of the released file or None."""
        common = {"written": written, "changed": datetime.now(timezone.utc)}
        self._append(
            {"photo": photo, **row._asdict(), **common, VECTOR: None if vector is None else to_float16(vector)}
            for (photo, row), vector in zip(releases, descriptors, strict=True)
        )

    def add_stored(self, releases: Iterable[StoredRelease], hashes: Mapping[int, str]) -> None:
        """Append releases of another generation or of an export. `hashes` has those of their references."""
        self._append(
            row._asdict()
            | {"photo": hashes[row.photo], "written": bool(row.written), "changed": parse_time(row.changed)}
            | {VECTOR: None if row.vector is None else np.frombuffer(row.vector, np.float16)}
            for row in releases
        )

    def _append(self, rows: Iterable[dict[str, Any]]) -> None:
        arrow = load_extra("pyarrow", "lance")
        self._table.append(arrow.Table.from_pylist(list(rows), schema=self._schema))

    def releases(self, where: str) -> list[LoggedRelease]:
        """The releases that match a filter, latest last."""
        return [
            (row["photo"], ReleaseRow(**{name: row[name] for name in ReleaseRow._fields}))
            for row in self._rows(["photo", *ReleaseRow._fields, "changed"], where)
        ]

    def written(self, hashes: Sequence[str]) -> list[LoggedRelease]:
        """The written releases of photos, latest last."""
        return self.releases(f"written AND {column_in('photo', hashes)}")

    def listed(self, hashes: Sequence[str]) -> dict[str, list[Release]]:
        """The written releases of photos by hash, each file once, latest first."""
        found: dict[str, dict[tuple[str, str], Release]] = {}
        columns = ["photo", *ReleaseRow._fields, "changed"]
        for row in reversed(self._rows(columns, f"written AND {column_in('photo', hashes)}")):
            photo, time, _ = row.pop("photo"), row.pop("changed"), row.pop("recipe")
            release = Release(**row, time=time)
            found.setdefault(photo, {}).setdefault((release.path, release.sha256), release)
        return {photo: list(releases.values()) for photo, releases in found.items()}

    def _rows(self, columns: Sequence[str], where: str | None = None) -> list[dict[str, Any]]:
        rows = self._table.rows(columns, where).to_pylist()
        return sorted(rows, key=lambda row: cast(datetime, row["changed"]))  # a stable sort

    def stored(self, ids: Mapping[str, int], hashes: Sequence[str] | None = None) -> list[StoredRelease]:
        """All planned and written releases of the references with these ids by hash, the rows of each file merged.

        With `hashes`, only those of these photos are read.
        """
        files: dict[tuple[str, str, str], StoredRelease] = {}
        columns = ["photo", *ReleaseRow._fields, "written", "changed", VECTOR]
        for row in self._rows(columns, None if hashes is None else column_in("photo", hashes)):
            if row["photo"] not in ids:
                continue
            key, vector = (row["photo"], row["path"], row["sha256"]), row[VECTOR]
            own = {"photo": ids[row["photo"]], "written": int(row["written"]), "changed": format_time(row["changed"])}
            half = None if vector is None else np.asarray(vector, np.float16).tobytes()
            now, before = StoredRelease(**row | own | {"vector": half}), files.get(key)
            if before is not None:
                now = now._replace(written=max(before.written, now.written), vector=now.vector or before.vector)
            files[key] = now
        return list(files.values())

    def states(self, hashes: Sequence[str] | None = None) -> dict[str, State]:
        """The states of photos, or of all, by hash. 'activated' takes precedence: it sorts first."""
        which = "" if hashes is None else f" AND {column_in('photo', hashes)}"
        rows = self._table.rows(["photo", "state"], f"written{which}")
        least = rows.group_by("photo").aggregate([("state", "min")])
        return dict(zip(least["photo"].to_pylist(), least["state_min"].to_pylist(), strict=True))

    def descriptors(self, hashes: Sequence[str]) -> dict[str, list[np.ndarray]]:
        """The descriptors of activated files by photo hash. A file that was planned twice counts once."""
        rows = self._table.rows(["photo", "sha256", VECTOR], f"{VECTOR} IS NOT NULL AND {column_in('photo', hashes)}")
        found: dict[str, dict[str, np.ndarray]] = {}
        for row in rows.to_pylist():
            found.setdefault(row["photo"], {})[row["sha256"]] = np.asarray(row[VECTOR], dtype=np.float32)
        return {photo: list(files.values()) for photo, files in found.items()}


class LanceReleases(Storage):
    """The two datasets of a generation at the versions last loaded, and the releases in one of them."""

    def __init__(self, root: Location, path: Location, parts: Parts, version: int | None = None) -> None:
        super().__init__(root, path, parts)
        self.table = LanceTable(path / REFERENCES, version)
        self.releases_table = LanceTable(path / RELEASES)
        self.log = ReleaseLog(self.releases_table, parts.codebook)
        self.changed = False  # whether this instance has changed the references or releases

    @property
    def lookups(self) -> list[tuple[LanceTable, tuple[str, ...]]]:
        """Both datasets, each with the columns that rows are looked up by."""
        return [(self.table, ("sha256", "source")), (self.releases_table, ("photo", "sha256"))]

    def refresh(self) -> None:
        """Load the latest versions, with the changes of other writers."""
        self.table.latest()
        self.releases_table.latest()

    def plan_releases(self, releases: Sequence[ReleaseEntry], descriptors: Sequence[np.ndarray | None]) -> None:
        self._log_releases(releases, descriptors, written=False)

    def confirm_releases(self, releases: Sequence[ReleaseEntry]) -> None:
        hashes = self.hashes_of([photo for photo, _ in releases])
        done = {(photo, row.path, row.sha256) for photo, row in self.log.written(list(hashes.values()))}
        new = [each for each in releases if (hashes.get(each[0]), each[1].path, each[1].sha256) not in done]
        if new:
            self._log_releases(new, [None] * len(new), written=True)

    def _log_releases(
        self, releases: Sequence[ReleaseEntry], descriptors: Sequence[np.ndarray | None], *, written: bool
    ) -> None:
        self.table.latest()  # another writer may have removed some of them
        hashes = self.hashes_of([photo for photo, _ in releases])
        existing = [position for position, (photo, _) in enumerate(releases) if photo in hashes]
        if existing:
            rows = [(hashes[releases[position][0]], releases[position][1]) for position in existing]
            self.log.add(rows, [descriptors[position] for position in existing], written=written)
            self.changed = True

    def find_release(self, photo: int, path: str | None, sha256: str) -> ReleaseRow | None:
        hashes = list(self.hashes_of([photo]).values())
        same_path = "" if path is None else f" AND path = {quoted(path)}"
        rows = self.log.releases(f"{column_in('photo', hashes)} AND sha256 = {quoted(sha256)}{same_path}")
        return rows[-1][1] if rows else None

    def find_released(self, sha256: str) -> int | None:
        photos = [photo for photo, _ in self.log.releases(f"sha256 = {quoted(sha256)}")]
        return next(iter(self.ids_of(photos).values()), None)

    def last_release(self, photo: int) -> ReleaseRow | None:
        rows = [row for _, row in self.log.written(list(self.hashes_of([photo]).values()))]
        activated = [row for row in rows if row.state == "activated"]
        return (activated or rows)[-1] if rows else None

    def releases(self, photos: Sequence[int] | None = None) -> Iterator[list[StoredRelease]]:
        """Yield all planned and written releases, or those of some references, each file once."""
        if photos is None:
            ids = {sha256: number for batch in self.hashes() for number, sha256 in batch.items()}
            stored = self.log.stored(ids)
            yield from (stored[start : start + CHUNK] for start in range(0, len(stored), CHUNK))
            return
        for start in range(0, len(photos), MAX_IDS):
            hashes = self.hashes_of(photos[start : start + MAX_IDS])
            yield self.log.stored({sha256: number for number, sha256 in hashes.items()}, list(hashes.values()))

    def insert_releases(self, rows: Sequence[StoredRelease]) -> None:
        """Append releases to the log. Those of unknown references are left out."""
        hashes = self.hashes_of(sorted({row.photo for row in rows}))
        if known := [row for row in rows if row.photo in hashes]:
            self.log.add_stored(known, hashes)
            self.changed = True

    def delete_released_descriptor(self, photo: int, sha256: str) -> None:
        same = f"{column_in('photo', list(self.hashes_of([photo]).values()))} AND sha256 = {quoted(sha256)}"
        self.releases_table.update({VECTOR: "NULL"}, same)
