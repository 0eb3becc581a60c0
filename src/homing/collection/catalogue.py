"""The truth about a collection: one SQLite file that says which photos there are and what was released of them."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from homing.collection._blobs import as_blobs, as_halves
from homing.collection._database import Database
from homing.errors import CollectionError, GoneError

State = Literal["passive", "activated", "unchanged"]
# As CURRENT_TIMESTAMP, with milliseconds: a photo may be released twice within a second.
_NOW = "strftime('%Y-%m-%d %H:%M:%f', 'now')"


@dataclass(frozen=True)
class NewPhotos:
    """References about to be recorded, N of them: codes are (N, bytes), descriptors (N, D)."""

    hashes: Sequence[str]
    sources: Sequence[str]
    codes: np.ndarray
    descriptors: np.ndarray


class ReleaseRow(NamedTuple):
    """What was released of a photo, or is about to be."""

    state: Literal["activated", "unchanged"]
    path: str
    sha256: str
    recipe: str
    psnr: float
    ssim: float
    linf: float
    reason: str | None


Planned = tuple[int, ReleaseRow]
"""The id of a reference, and what is to be released of it."""


class Catalogue(Database):
    """The catalogue of one collection; safe to read from several threads."""

    @property
    def revision(self) -> int:
        """A number that grows with every change to the references."""
        return self._count("revision", "")

    @property
    def recoded(self) -> int:
        """The last revision that gave references other codes: an index of an earlier one is built anew."""
        return self._count("recoded", "0")

    def _count(self, name: str, default: str) -> int:
        count = self.fact(name) or default
        if not count.isdecimal():
            raise CollectionError(
                "the catalogue has lost count of its changes; mend it with: homing check COLLECTION --repair"
            )
        return int(count)

    def fact(self, name: str) -> str | None:
        """A value kept under a name."""
        row = self._one("SELECT value FROM facts WHERE name = ?", name)
        return None if row is None else str(row[0])

    def set_facts(self, **values: str) -> None:
        """Keep values under names, all or none."""
        with self._change() as change:
            change.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", list(values.items()))

    def find(self, sha256: str) -> int | None:
        """The reference with this file hash."""
        row = self._one("SELECT id FROM photos WHERE sha256 = ?", sha256)
        return None if row is None else int(row[0])

    def find_released(self, sha256: str) -> int | None:
        """The reference of which a file with this hash was released."""
        row = self._one("SELECT photo FROM releases WHERE sha256 = ?", sha256)
        return None if row is None else int(row[0])

    def add(self, photos: NewPhotos, *, instead_of: Sequence[int] = ()) -> list[int | None]:
        """Record references, all or none; gives the id of each, None where it was known.

        What they come `instead_of` is removed in the same transaction.
        """
        ids: list[int | None] = []
        with self._change() as change:
            revision = self._advance(change)
            self._drop(change, instead_of, revision)
            rows = change.execute(
                "SELECT sha256 FROM photos WHERE sha256 IN (SELECT value FROM json_each(?))",
                (json.dumps(list(photos.hashes)),),
            )
            known = {sha256 for (sha256,) in rows}  # in this transaction, and before it
            # An id is never given twice: an index that still holds a removed reference must not take it for another.
            (last,) = change.execute(
                "SELECT max((SELECT coalesce(max(id), 0) FROM photos), (SELECT coalesce(max(photo), 0) FROM removed))"
            ).fetchone()
            for sha256 in photos.hashes:
                ids.append(None if sha256 in known else (last := last + 1))
                known.add(sha256)
            self._insert(change, ids, photos)
            return ids

    def _insert(self, change: sqlite3.Connection, ids: Sequence[int | None], photos: NewPhotos) -> None:
        rows = zip(ids, photos.hashes, photos.sources, as_blobs(photos.codes), strict=True)
        change.executemany(
            "INSERT INTO photos (id, sha256, source, code) VALUES (?, ?, ?, ?)", (row for row in rows if row[0])
        )
        vectors = zip(ids, as_blobs(as_halves(photos.descriptors)), strict=True)
        change.executemany("INSERT INTO descriptors VALUES (?, ?)", (row for row in vectors if row[0]))

    def remove(self, ids: Sequence[int]) -> list[tuple[int, str, str | None]]:
        """Remove references with all that is known of them, all or none.

        Gives the id of each that was there, its source, and the file that was released of it last.
        """
        with self._change() as change:
            rows = change.execute(
                "SELECT id, source, (SELECT path FROM releases WHERE photo = id AND written ORDER BY changed DESC)"
                " FROM photos WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id",
                (json.dumps(list(ids)),),
            ).fetchall()
            if rows:
                self._drop(change, [number for number, *_ in rows], self._advance(change))
            return rows

    def _drop(self, change: sqlite3.Connection, ids: Sequence[int], revision: int) -> None:
        wanted = json.dumps(list(ids))
        chosen = "FROM photos WHERE id IN (SELECT value FROM json_each(?))"
        change.execute(f"INSERT INTO removed SELECT id, ? {chosen}", (revision, wanted))
        change.execute(f"DELETE {chosen}", (wanted,))

    def _advance(self, change: sqlite3.Connection) -> int:
        change.execute("UPDATE facts SET value = CAST(value AS INTEGER) + 1 WHERE name = 'revision'")
        return self.revision

    def move(self, photo: int, old: str, new: str) -> bool:
        """Say where the file of a reference lies now; False if it was said before."""
        with self._change() as change:
            done = change.execute("UPDATE photos SET source = ? WHERE id = ? AND source = ?", (new, photo, old))
            return done.rowcount > 0

    def recode(self, photo: int, code: np.ndarray, descriptor: np.ndarray) -> None:
        """Give a reference another code and descriptor."""
        with self._change() as change:
            revision = self._advance(change)
            change.execute("UPDATE photos SET code = ? WHERE id = ?", (code.tobytes(), photo))
            vector = descriptor.astype(np.float16).tobytes()
            change.execute("INSERT OR REPLACE INTO descriptors VALUES (?, ?)", (photo, vector))
            change.execute("INSERT OR REPLACE INTO facts VALUES ('recoded', ?)", (str(revision),))

    def removed_since(self, revision: int) -> np.ndarray:
        """The ids (N,) of references that were removed after this revision."""
        rows = self._all("SELECT photo FROM removed WHERE revision > ?", revision)
        return np.array([number for (number,) in rows], dtype=np.int64)

    def existing(self, ids: Sequence[int]) -> list[int]:
        """Those of the ids that references have."""
        rows = self._all("SELECT id FROM photos WHERE id IN (SELECT value FROM json_each(?))", json.dumps(list(ids)))
        return [number for (number,) in rows]

    def at(self, source: str) -> list[tuple[int, str]]:
        """The ids and hashes of references with this source."""
        return self._all("SELECT id, sha256 FROM photos WHERE source = ? ORDER BY id", source)

    def below(self, folder: str) -> list[int]:
        """The ids of references whose source lies in this folder, at any depth."""
        inside = folder.rstrip(os.sep)
        rows = self._all(
            "SELECT id FROM photos WHERE source >= ? AND source < ? ORDER BY id",
            inside + os.sep,
            inside + chr(ord(os.sep) + 1),
        )
        return [number for (number,) in rows]

    def passive(self) -> list[tuple[str, str]]:
        """The sources and hashes of references of which nothing was released."""
        return self._all(
            "SELECT source, sha256 FROM photos"
            " WHERE NOT EXISTS (SELECT 1 FROM releases WHERE photo = id AND written) ORDER BY id"
        )

    def outermost(self) -> tuple[str, str]:
        """The first and the last source in the order of their names."""
        # One by one, each is the end of an index; together SQLite would read all.
        row = self._one("SELECT (SELECT min(source) FROM photos), (SELECT max(source) FROM photos)")
        assert row is not None
        return row[0] or "", row[1] or ""

    def plan_releases(self, releases: Sequence[Planned], descriptors: Sequence[np.ndarray | None]) -> None:
        """Say which files are about to be written, so that a crash leaves none behind that nobody knows.

        Each has the descriptor of what is released, if it is another than that of the original.
        """
        with self._change() as change:
            change.executemany(
                # The same file again: what was confirmed of it stays so.
                "INSERT INTO releases (photo, state, path, sha256, recipe, psnr, ssim, linf, reason, changed)"
                f" VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, {_NOW}) ON CONFLICT (photo, path, sha256) DO UPDATE SET"
                " recipe = excluded.recipe, state = excluded.state, psnr = excluded.psnr, ssim = excluded.ssim,"
                " linf = excluded.linf, reason = excluded.reason, changed = excluded.changed",
                [(photo, *row) for photo, row in releases],
            )
            change.executemany(
                "INSERT OR REPLACE INTO released_descriptors VALUES (?, ?, ?)",
                [
                    (photo, row.sha256, vector.astype(np.float16).tobytes())
                    for (photo, row), vector in zip(releases, descriptors, strict=True)
                    if vector is not None
                ],
            )

    def confirm_releases(self, releases: Sequence[Planned]) -> None:
        """Say that the planned files are on disk; where that was said before, nothing is written."""
        with self._change() as change:
            change.executemany(
                "UPDATE releases SET written = 1 WHERE photo = ? AND path = ? AND sha256 = ? AND NOT written",
                [(photo, row.path, row.sha256) for photo, row in releases],
            )

    def release(self, photo: int, path: str | None, sha256: str) -> ReleaseRow | None:
        """What was released, or planned to be, of a photo into this file, or into any (the last), with this hash."""
        row = self._one(
            "SELECT state, path, sha256, recipe, psnr, ssim, linf, reason FROM releases"
            " WHERE photo = ?1 AND (path = ?2 OR ?2 IS NULL) AND sha256 = ?3 ORDER BY changed DESC, rowid DESC",
            photo,
            path,
            sha256,
        )
        return None if row is None else ReleaseRow(*row)

    def last_release(self, photo: int) -> ReleaseRow | None:
        """What was released of a photo last, and is known to be on disk; the activated file, if there is one."""
        row = self._one(
            "SELECT state, path, sha256, recipe, psnr, ssim, linf, reason FROM releases WHERE photo = ? AND written"
            " ORDER BY state, changed DESC LIMIT 1",
            photo,
        )
        return None if row is None else ReleaseRow(*row)

    def describe(self, photo: int) -> tuple[str, State]:
        """The source of a reference, and its state: passive, activated or unchanged."""
        return self.describe_all([photo])[photo]

    def describe_all(self, ids: Sequence[int]) -> dict[int, tuple[str, State]]:
        """The source and the state of each of these references, which are distinct."""
        # Of several releases 'activated' counts, which comes first in the alphabet.
        rows = self._all(
            "SELECT id, source, coalesce((SELECT min(state) FROM releases WHERE photo = id AND written), 'passive')"
            " FROM photos WHERE id IN (SELECT value FROM json_each(?))",
            json.dumps(ids),
        )
        if len(rows) < len(ids):
            gone = min(set(ids) - {number for number, *_ in rows})
            raise GoneError(f"the catalogue has no reference {gone}, but the index does; homing check --repair")
        return {number: (source, state) for number, source, state in rows}

    def codes(self, *, after: int = 0, size: int = 100_000) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """All ids (N,), or those that came after one, and their codes (N, bytes), in pieces."""
        last = after
        while rows := self._all("SELECT id, code FROM photos WHERE id > ? ORDER BY id LIMIT ?", last, size):
            last = rows[-1][0]
            codes = np.frombuffer(b"".join(code for _, code in rows), dtype=np.uint8)
            yield np.array([number for number, _ in rows]), codes.reshape(len(rows), -1)

    def descriptors(self, ids: np.ndarray) -> dict[int, np.ndarray]:
        """The descriptors (P, D) of distinct photos that have any: the original's, then those of activated files."""
        wanted = "FROM json_each(?1) JOIN"  # as one value: SQLite takes some thousands only
        found: dict[int, list[bytes]] = {}
        for released, number, vector in self._all(
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
        """How many references there are in each state, and in all under `photos`."""
        rows = self._all(
            "SELECT state, count(*) FROM (SELECT min(state) AS state FROM releases WHERE written GROUP BY photo)"
            " GROUP BY state"
        )
        (total,) = self._one("SELECT count(*) FROM photos") or (0,)
        return {"photos": total, "activated": 0, "unchanged": 0, **dict(rows)}
