"""The releases in the SQLite file of a generation; `Storage` says what the methods do."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import numpy as np

from homing.collection.references import Release, ReleaseEntry, ReleaseRow, StoredRelease, parse_time, to_bytes
from homing.collection.storage._sqlite_database import SqliteDatabase
from homing.collection.storage.base import CHUNK

# Like CURRENT_TIMESTAMP, but with milliseconds: a photo may be released twice within a second.
_NOW = "strftime('%Y-%m-%d %H:%M:%f', 'now')"
_ROW = ", ".join(ReleaseRow._fields)


class SqliteReleases(SqliteDatabase):
    """The planned and written releases, and the descriptors of activated files."""

    def find_released(self, sha256: str) -> int | None:
        row = self._fetch_one("SELECT photo FROM releases WHERE sha256 = ?", sha256)
        return None if row is None else int(row[0])

    def plan_releases(self, releases: Sequence[ReleaseEntry], descriptors: Sequence[np.ndarray | None]) -> None:
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
                    (photo, row.sha256, to_bytes(vector))
                    for (photo, row), vector in zip(releases, descriptors, strict=True)
                    if vector is not None
                ],
            )

    def confirm_releases(self, releases: Sequence[ReleaseEntry]) -> None:
        with self._transaction() as connection:
            connection.executemany(
                "UPDATE releases SET written = 1 WHERE photo = ? AND path = ? AND sha256 = ? AND NOT written",
                [(photo, row.path, row.sha256) for photo, row in releases],
            )

    def find_release(self, photo: int, path: str | None, sha256: str) -> ReleaseRow | None:
        row = self._fetch_one(
            f"SELECT {_ROW} FROM releases"
            " WHERE photo = ?1 AND (path = ?2 OR ?2 IS NULL) AND sha256 = ?3 ORDER BY changed DESC, rowid DESC",
            photo,
            path,
            sha256,
        )
        return None if row is None else ReleaseRow(*row)

    def last_release(self, photo: int) -> ReleaseRow | None:
        row = self._fetch_one(
            f"SELECT {_ROW} FROM releases WHERE photo = ? AND written ORDER BY state, changed DESC LIMIT 1", photo
        )
        return None if row is None else ReleaseRow(*row)

    def insert_releases(self, rows: Sequence[StoredRelease]) -> None:
        """Record releases in one transaction, replacing earlier rows of the same files."""
        columns = StoredRelease._fields[:-1]
        with self._transaction() as connection:
            connection.executemany(
                f"INSERT OR REPLACE INTO releases ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",
                [row[:-1] for row in rows],
            )
            connection.executemany(
                "INSERT OR REPLACE INTO released_descriptors VALUES (?, ?, ?)",
                [(row.photo, row.sha256, row.vector) for row in rows if row.vector is not None],
            )

    def releases(self, photos: Sequence[int] | None = None) -> Iterator[list[StoredRelease]]:
        """Yield batches of all planned and written releases, or of those of some references."""
        last, columns = 0, ", ".join(StoredRelease._fields)
        chosen = "" if photos is None else " AND photo IN (SELECT value FROM json_each(?3))"
        wanted = () if photos is None else (json.dumps(list(photos)),)
        while rows := self._fetch_all(
            f"SELECT releases.rowid, {columns} FROM releases LEFT JOIN released_descriptors USING (photo, sha256)"
            f" WHERE releases.rowid > ?1{chosen} ORDER BY releases.rowid LIMIT ?2",
            last,
            CHUNK,
            *wanted,
        ):
            last = rows[-1][0]
            yield [StoredRelease(*row[1:]) for row in rows]

    def delete_released_descriptor(self, photo: int, sha256: str) -> None:
        with self._transaction() as connection:
            connection.execute("DELETE FROM released_descriptors WHERE photo = ? AND sha256 = ?", (photo, sha256))

    def _written_releases(self, ids: Sequence[int]) -> dict[int, list[Release]]:
        """The written releases of references by id, latest first."""
        found: dict[int, list[Release]] = {}
        for photo, *row, changed in self._fetch_all(
            "SELECT photo, path, state, sha256, psnr, ssim, linf, reason, changed FROM releases"
            " WHERE photo IN (SELECT value FROM json_each(?)) AND written ORDER BY changed DESC, rowid DESC",
            json.dumps(list(ids)),
        ):
            names = ("path", "state", "sha256", "psnr", "ssim", "linf", "reason")
            release = Release(**dict(zip(names, row, strict=True)), time=parse_time(changed))
            found.setdefault(photo, []).append(release)
        return found
