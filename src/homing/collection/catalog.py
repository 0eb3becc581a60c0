"""The catalog: a SQLite file with the references and releases of a collection, and the only source of truth."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Sequence

import numpy as np

from homing.collection._blobs import row_bytes, to_float16
from homing.collection._database import Database
from homing.collection.references import NewPhotos, ReleaseEntry, ReleaseRow, State
from homing.collection.storage.base import Storage
from homing.errors import CollectionError, NotFoundError

# Like CURRENT_TIMESTAMP, but with milliseconds: a photo may be released twice within a second.
_NOW = "strftime('%Y-%m-%d %H:%M:%f', 'now')"


class Catalog(Database, Storage):
    """The catalog of one collection. Thread-safe for reading."""

    @property
    def revision(self) -> int:
        """A counter that increases with every change to the references."""
        return self._counter("revision", "")

    def refresh(self) -> None:
        """Do nothing: changes of other writers are seen at once."""

    @property
    def codes_revision(self) -> int:
        """The last revision that changed codes of existing references. An older index must be rebuilt."""
        return self._counter("codes_revision", "0")

    def _counter(self, name: str, default: str) -> int:
        count = self.get_metadata(name) or default
        if not count.isdecimal():
            raise CollectionError(
                "the catalog has no valid revision number; repair it with: homing check COLLECTION --repair"
            )
        return int(count)

    def get_metadata(self, name: str) -> str | None:
        """The metadata value of a key, None if it is not set."""
        row = self._fetch_one("SELECT value FROM metadata WHERE name = ?", name)
        return None if row is None else str(row[0])

    def set_metadata(self, **values: str) -> None:
        """Set metadata values by key, in one transaction."""
        with self._transaction() as connection:
            connection.executemany("INSERT OR REPLACE INTO metadata VALUES (?, ?)", list(values.items()))

    def find(self, sha256: str) -> int | None:
        """The id of the reference with this file hash."""
        row = self._fetch_one("SELECT id FROM photos WHERE sha256 = ?", sha256)
        return None if row is None else int(row[0])

    def ids_of(self, hashes: Sequence[str]) -> dict[str, int]:
        """The ids of references by hash; unknown hashes are left out."""
        wanted = json.dumps(list(hashes))
        return dict(
            self._fetch_all("SELECT sha256, id FROM photos WHERE sha256 IN (SELECT value FROM json_each(?))", wanted)
        )

    def hashes_of(self, ids: Sequence[int]) -> dict[int, str]:
        """The hashes of references by id; unknown ids are left out."""
        wanted = json.dumps(list(ids))
        return dict(
            self._fetch_all("SELECT id, sha256 FROM photos WHERE id IN (SELECT value FROM json_each(?))", wanted)
        )

    def find_released(self, sha256: str) -> int | None:
        """The id of the reference that has a released file with this hash."""
        row = self._fetch_one("SELECT photo FROM releases WHERE sha256 = ?", sha256)
        return None if row is None else int(row[0])

    def add(self, photos: NewPhotos, *, replaces: Sequence[int] = ()) -> list[int | None]:
        """Record references in one transaction. Returns the id of each, None for those already known.

        The references in `replaces` are removed in the same transaction.
        """
        ids: list[int | None] = []
        with self._transaction() as connection:
            revision = self._next_revision(connection)
            self._delete(connection, replaces, revision)
            rows = connection.execute(
                "SELECT sha256 FROM photos WHERE sha256 IN (SELECT value FROM json_each(?))",
                (json.dumps(list(photos.hashes)),),
            )
            known = {sha256 for (sha256,) in rows}  # added before or in this transaction
            # Ids are never reused: an outdated index must not confuse a removed reference with a new one.
            (last,) = connection.execute(
                "SELECT max((SELECT coalesce(max(id), 0) FROM photos), (SELECT coalesce(max(photo), 0) FROM removed))"
            ).fetchone()
            for sha256 in photos.hashes:
                ids.append(None if sha256 in known else (last := last + 1))
                known.add(sha256)
            self._insert(connection, ids, photos)
            return ids

    def _insert(self, connection: sqlite3.Connection, ids: Sequence[int | None], photos: NewPhotos) -> None:
        rows = zip(ids, photos.hashes, photos.sources, row_bytes(photos.codes), strict=True)
        connection.executemany(
            "INSERT INTO photos (id, sha256, source, code) VALUES (?, ?, ?, ?)", (row for row in rows if row[0])
        )
        vectors = zip(ids, row_bytes(to_float16(photos.descriptors)), strict=True)
        connection.executemany("INSERT INTO descriptors VALUES (?, ?)", (row for row in vectors if row[0]))

    def remove(self, ids: Sequence[int]) -> list[tuple[int, str, str | None]]:
        """Remove references and their releases in one transaction.

        Returns the id, source and last released file of each reference that existed.
        """
        with self._transaction() as connection:
            rows = connection.execute(
                "SELECT id, source, (SELECT path FROM releases WHERE photo = id AND written ORDER BY changed DESC)"
                " FROM photos WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id",
                (json.dumps(list(ids)),),
            ).fetchall()
            if rows:
                self._delete(connection, [number for number, *_ in rows], self._next_revision(connection))
            return rows

    def _delete(self, connection: sqlite3.Connection, ids: Sequence[int], revision: int) -> None:
        wanted = json.dumps(list(ids))
        chosen = "FROM photos WHERE id IN (SELECT value FROM json_each(?))"
        connection.execute(f"INSERT INTO removed SELECT id, ? {chosen}", (revision, wanted))
        connection.execute(f"DELETE {chosen}", (wanted,))

    def _next_revision(self, connection: sqlite3.Connection) -> int:
        connection.execute("UPDATE metadata SET value = CAST(value AS INTEGER) + 1 WHERE name = 'revision'")
        return self.revision

    def update_source(self, photo: int, old: str, new: str) -> bool:
        """Change the source of a reference from `old` to `new`. Returns False if its source is not `old`."""
        with self._transaction() as connection:
            done = connection.execute("UPDATE photos SET source = ? WHERE id = ? AND source = ?", (new, photo, old))
            return done.rowcount > 0

    def set_code(self, photo: int, code: np.ndarray, descriptor: np.ndarray) -> None:
        """Replace the code and descriptor of a reference."""
        with self._transaction() as connection:
            revision = self._next_revision(connection)
            connection.execute("UPDATE photos SET code = ? WHERE id = ?", (code.tobytes(), photo))
            vector = descriptor.astype(np.float16).tobytes()
            connection.execute("INSERT OR REPLACE INTO descriptors VALUES (?, ?)", (photo, vector))
            connection.execute("INSERT OR REPLACE INTO metadata VALUES ('codes_revision', ?)", (str(revision),))

    def removed_since(self, revision: int) -> np.ndarray:
        """The ids (N,) of references removed after this revision."""
        rows = self._fetch_all("SELECT photo FROM removed WHERE revision > ?", revision)
        return np.array([number for (number,) in rows], dtype=np.int64)

    def existing_ids(self, ids: Sequence[int]) -> list[int]:
        """Filter ids: those that belong to references."""
        rows = self._fetch_all(
            "SELECT id FROM photos WHERE id IN (SELECT value FROM json_each(?))", json.dumps(list(ids))
        )
        return [number for (number,) in rows]

    def find_by_source(self, source: str) -> list[tuple[int, str]]:
        """The ids and hashes of references with this source."""
        return self._fetch_all("SELECT id, sha256 FROM photos WHERE source = ? ORDER BY id", source)

    def find_in_folder(self, folder: str) -> list[int]:
        """The ids of references with a source in this folder, at any depth."""
        inside = folder.rstrip(os.sep)
        rows = self._fetch_all(
            "SELECT id FROM photos WHERE source >= ? AND source < ? ORDER BY id",
            inside + os.sep,
            inside + chr(ord(os.sep) + 1),
        )
        return [number for (number,) in rows]

    def passive(self) -> list[tuple[str, str]]:
        """The sources and hashes of references without a release."""
        return self._fetch_all(
            "SELECT source, sha256 FROM photos"
            " WHERE NOT EXISTS (SELECT 1 FROM releases WHERE photo = id AND written) ORDER BY id"
        )

    def first_and_last_source(self) -> tuple[str, str]:
        """The first and the last source in sort order."""
        # Two subqueries each read one end of an index; a single query for both would scan it.
        row = self._fetch_one("SELECT (SELECT min(source) FROM photos), (SELECT max(source) FROM photos)")
        assert row is not None
        return row[0] or "", row[1] or ""

    def plan_releases(self, releases: Sequence[ReleaseEntry], descriptors: Sequence[np.ndarray | None]) -> None:
        """Record the files that are about to be written, so that a crash leaves no unknown files behind.

        `descriptors` are those of the released files; None where it is that of the original.
        """
        with self._transaction() as connection:
            connection.executemany(
                # On a repeated plan of the same file, a confirmed release stays confirmed.
                "INSERT INTO releases (photo, state, path, sha256, recipe, psnr, ssim, linf, reason, changed)"
                f" VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, {_NOW}) ON CONFLICT (photo, path, sha256) DO UPDATE SET"
                " recipe = excluded.recipe, state = excluded.state, psnr = excluded.psnr, ssim = excluded.ssim,"
                " linf = excluded.linf, reason = excluded.reason, changed = excluded.changed",
                [(photo, *row) for photo, row in releases],
            )
            connection.executemany(
                "INSERT OR REPLACE INTO released_descriptors VALUES (?, ?, ?)",
                [
                    (photo, row.sha256, vector.astype(np.float16).tobytes())
                    for (photo, row), vector in zip(releases, descriptors, strict=True)
                    if vector is not None
                ],
            )

    def confirm_releases(self, releases: Sequence[ReleaseEntry]) -> None:
        """Mark planned files as written. Files already marked cause no write."""
        with self._transaction() as connection:
            connection.executemany(
                "UPDATE releases SET written = 1 WHERE photo = ? AND path = ? AND sha256 = ? AND NOT written",
                [(photo, row.path, row.sha256) for photo, row in releases],
            )

    def find_release(self, photo: int, path: str | None, sha256: str) -> ReleaseRow | None:
        """The planned or written release of a photo with this path and hash. Without a path, the last one."""
        row = self._fetch_one(
            "SELECT state, path, sha256, recipe, psnr, ssim, linf, reason FROM releases"
            " WHERE photo = ?1 AND (path = ?2 OR ?2 IS NULL) AND sha256 = ?3 ORDER BY changed DESC, rowid DESC",
            photo,
            path,
            sha256,
        )
        return None if row is None else ReleaseRow(*row)

    def last_release(self, photo: int) -> ReleaseRow | None:
        """The last written release of a photo, preferring an activated file."""
        row = self._fetch_one(
            "SELECT state, path, sha256, recipe, psnr, ssim, linf, reason FROM releases WHERE photo = ? AND written"
            " ORDER BY state, changed DESC LIMIT 1",
            photo,
        )
        return None if row is None else ReleaseRow(*row)

    def sources_and_states(self, ids: Sequence[int]) -> dict[int, tuple[str, State]]:
        """The source and the state of each reference, by id. The ids must be distinct."""
        # With several releases 'activated' takes precedence: it sorts first.
        rows = self._fetch_all(
            "SELECT id, source, coalesce((SELECT min(state) FROM releases WHERE photo = id AND written), 'passive')"
            " FROM photos WHERE id IN (SELECT value FROM json_each(?))",
            json.dumps(ids),
        )
        if len(rows) < len(ids):
            missing = min(set(ids) - {number for number, *_ in rows})
            raise NotFoundError(
                f"reference {missing} is in the index but not in the catalog; repair it with: "
                "homing check COLLECTION --repair"
            )
        return {number: (source, state) for number, source, state in rows}

    def codes(self, *, after: int = 0, size: int = 100_000) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield batches of ids (N,) larger than `after`, and their codes (N, bytes)."""
        last = after
        while rows := self._fetch_all("SELECT id, code FROM photos WHERE id > ? ORDER BY id LIMIT ?", last, size):
            last = rows[-1][0]
            codes = np.frombuffer(b"".join(code for _, code in rows), dtype=np.uint8)
            yield np.array([number for number, _ in rows]), codes.reshape(len(rows), -1)

    def descriptors(self, ids: np.ndarray) -> dict[int, np.ndarray]:
        """The descriptors (P, D) of distinct photos by id: the original's, then those of activated files."""
        wanted = "FROM json_each(?1) JOIN"  # one JSON value: SQLite limits the number of parameters
        found: dict[int, list[bytes]] = {}
        for released, number, vector in self._fetch_all(
            f"SELECT 0, photo, vector {wanted} descriptors ON photo = value"
            f" UNION ALL SELECT 1, photo, vector {wanted} released_descriptors ON photo = value",
            json.dumps(ids.tolist()),
        ):
            found.setdefault(number, []).insert(released, vector)
        return {
            number: np.frombuffer(b"".join(vectors), np.float16).reshape(len(vectors), -1)
            for number, vectors in found.items()
        }

    def counts(self) -> dict[str, int]:
        """The number of references in each state, and the total under `photos`."""
        rows = self._fetch_all(
            "SELECT state, count(*) FROM (SELECT min(state) AS state FROM releases WHERE written GROUP BY photo)"
            " GROUP BY state"
        )
        (total,) = self._fetch_one("SELECT count(*) FROM photos") or (0,)
        return {"photos": total, "activated": 0, "unchanged": 0, **dict(rows)}
