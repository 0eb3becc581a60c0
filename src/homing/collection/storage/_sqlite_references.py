"""The references in the SQLite file of a generation; `Storage` says what the methods do."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from homing.collection.references import (
    NewPhotos,
    Reference,
    ReferenceQuery,
    State,
    StoredReference,
    folded,
    parse_time,
    to_bytes,
    to_float16,
)
from homing.collection.storage._sqlite_database import row_bytes
from homing.collection.storage._sqlite_releases import SqliteReleases
from homing.collection.storage.base import CHUNK, Storage
from homing.errors import NotFoundError

_PAGE = 1_000  # references per query of a listing
_STATE = "coalesce((SELECT min(state) FROM releases WHERE photo = id AND written), 'passive')"


class SqliteReferences(SqliteReleases, Storage):
    """The references, their codes and descriptors, and the ids of removed ones."""

    def refresh(self) -> None:
        """Do nothing: changes of other writers are seen at once."""

    @contextmanager
    def read_transaction(self) -> Iterator[None]:
        """Read one consistent state of the catalog inside this context, regardless of concurrent writers."""
        with self._lock:
            self._database.execute("BEGIN")
            try:
                yield
            finally:
                self._database.execute("ROLLBACK")

    def ids_of(self, hashes: Sequence[str]) -> dict[str, int]:
        wanted = json.dumps(list(hashes))
        return dict(
            self._fetch_all("SELECT sha256, id FROM photos WHERE sha256 IN (SELECT value FROM json_each(?))", wanted)
        )

    def hashes_of(self, ids: Sequence[int]) -> dict[int, str]:
        wanted = json.dumps(list(ids))
        return dict(
            self._fetch_all("SELECT id, sha256 FROM photos WHERE id IN (SELECT value FROM json_each(?))", wanted)
        )

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

    def update_source(self, photo: int, old: str, new: str) -> bool:
        with self._transaction() as connection:
            done = connection.execute("UPDATE photos SET source = ? WHERE id = ? AND source = ?", (new, photo, old))
            return done.rowcount > 0

    def find_by_source(self, source: str) -> list[tuple[int, str]]:
        return self._fetch_all("SELECT id, sha256 FROM photos WHERE source = ? ORDER BY id", source)

    def find_in_folder(self, folder: str) -> list[int]:
        inside = folder.rstrip(os.sep)
        rows = self._fetch_all(
            "SELECT id FROM photos WHERE source >= ? AND source < ? ORDER BY id",
            inside + os.sep,
            inside + chr(ord(os.sep) + 1),
        )
        return [number for (number,) in rows]

    def passive(self) -> list[tuple[str, str]]:
        return self._fetch_all(
            "SELECT source, sha256 FROM photos"
            " WHERE NOT EXISTS (SELECT 1 FROM releases WHERE photo = id AND written) ORDER BY id"
        )

    def first_and_last_source(self) -> tuple[str, str]:
        # Two subqueries each read one end of an index; a single query for both would scan it.
        row = self._fetch_one("SELECT (SELECT min(source) FROM photos), (SELECT max(source) FROM photos)")
        assert row is not None
        return row[0] or "", row[1] or ""

    def sources_and_states(self, ids: Sequence[int]) -> dict[int, tuple[str, State]]:
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

    def descriptors(self, ids: np.ndarray) -> dict[int, np.ndarray]:
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
        rows = self._fetch_all(
            "SELECT state, count(*) FROM (SELECT min(state) AS state FROM releases WHERE written GROUP BY photo)"
            " GROUP BY state"
        )
        (total,) = self._fetch_one("SELECT count(*) FROM photos") or (0,)
        return {"photos": total, "activated": 0, "unchanged": 0, **dict(rows)}

    def references(self, query: ReferenceQuery, *, newest_first: bool = False) -> Iterator[Reference]:
        last, given = (2**63 - 1 if newest_first else -1) if query.after is None else query.after, 0
        condition, values = _condition(query.name_contains or "", query.state)
        beyond, order = ("<", "DESC") if newest_first else (">", "ASC")
        while size := query.page_size(given, _PAGE):
            rows = self._fetch_all(
                f"SELECT id, source, sha256, added, {_STATE} FROM photos"
                f" WHERE id {beyond} ? AND {condition} ORDER BY id {order} LIMIT ?",
                last,
                *values,
                size,
            )
            releases = self._written_releases([row[0] for row in rows])
            for number, source, sha256, added, state in rows:
                yield Reference(
                    id=number,
                    photo=source,
                    state=state,
                    sha256=sha256,
                    added=parse_time(added),
                    releases=tuple(releases.get(number, ())),
                )
            if len(rows) < size:
                return
            last, given = rows[-1][0], given + len(rows)

    def count(self, name: str = "", state: State | None = None) -> int:
        condition, values = _condition(name, state)
        # Without a condition, SQLite counts all rows quickly.
        where = f" WHERE {condition}" if name or state else ""
        ((count,),) = self._fetch_all(f"SELECT count(*) FROM photos{where}", *values)
        return int(count)

    def rows(self, size: int = CHUNK) -> Iterator[list[StoredReference]]:
        """Yield batches of all references in order of id, damaged ones too."""
        last = 0
        while rows := self._fetch_all(
            f"SELECT id, sha256, source, {_STATE}, added, code, vector"
            " FROM photos LEFT JOIN descriptors ON photo = id WHERE id > ? ORDER BY id LIMIT ?",
            last,
            size,
        ):
            last = rows[-1][0]
            yield [StoredReference(*row) for row in rows]

    def hashes(self) -> Iterator[dict[int, str]]:
        last = 0
        while rows := self._fetch_all("SELECT id, sha256 FROM photos WHERE id > ? ORDER BY id LIMIT ?", last, CHUNK):
            last = rows[-1][0]
            yield dict(rows)

    def insert(self, rows: Sequence[StoredReference]) -> list[int]:
        """Record references with their original ids, in one transaction."""
        with self._transaction() as connection:
            revision = self._next_revision(connection)
            if self._fetch_one("SELECT 1 FROM photos WHERE id > ?", rows[0].id):
                # An index update expects new references in order of id; after these the index is rebuilt.
                connection.execute("INSERT OR REPLACE INTO metadata VALUES ('codes_revision', ?)", (str(revision),))
            connection.executemany(
                "INSERT INTO photos (id, sha256, source, code, added) VALUES (?, ?, ?, ?, ?)",
                [(row.id, row.sha256, row.source, row.code, row.added) for row in rows],
            )
            connection.executemany("INSERT INTO descriptors VALUES (?, ?)", [(row.id, row.vector) for row in rows])
        return [row.id for row in rows]

    def last_id(self) -> int:
        """The largest id ever assigned."""
        row = self._fetch_one(
            "SELECT max(coalesce(max(id), 0), (SELECT coalesce(max(photo), 0) FROM removed)) FROM photos"
        )
        assert row is not None
        return int(row[0])

    def reserve_ids(self, last: int) -> None:
        if last > self.last_id():
            with self._transaction() as connection:
                connection.execute("INSERT INTO removed VALUES (?, ?)", (last, self._next_revision(connection)))

    def codes(self, *, after: int = 0, size: int = 100_000) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield batches of ids (N,) larger than `after`, and their codes (N, bytes)."""
        last = after
        while rows := self._fetch_all("SELECT id, code FROM photos WHERE id > ? ORDER BY id LIMIT ?", last, size):
            last = rows[-1][0]
            codes = np.frombuffer(b"".join(code for _, code in rows), dtype=np.uint8)
            yield np.array([number for number, _ in rows]), codes.reshape(len(rows), -1)

    def removed_since(self, revision: int) -> np.ndarray:
        """The ids (N,) of references removed after this revision."""
        rows = self._fetch_all("SELECT photo FROM removed WHERE revision > ?", revision)
        return np.array([number for (number,) in rows], dtype=np.int64)

    def set_code(self, photo: int, code: np.ndarray, descriptor: np.ndarray) -> None:
        with self._transaction() as connection:
            revision = self._next_revision(connection)
            connection.execute("UPDATE photos SET code = ? WHERE id = ?", (code.tobytes(), photo))
            vector = to_bytes(descriptor)
            connection.execute("INSERT OR REPLACE INTO descriptors VALUES (?, ?)", (photo, vector))
            connection.execute("INSERT OR REPLACE INTO metadata VALUES ('codes_revision', ?)", (str(revision),))


def _condition(name: str, state: State | None) -> tuple[str, list[str]]:
    """The SQL condition that a reference has a state, and a text in its file name, ignoring case; its parameters."""
    named = "instr(name_of(source), ?)" if name else "TRUE"
    in_state = f"{_STATE} = '{state}'" if state else "TRUE"
    return f"{named} AND {in_state}", [folded(name)] if name else []
