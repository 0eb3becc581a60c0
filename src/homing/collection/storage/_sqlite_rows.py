"""The references and releases in the SQLite file of a generation; `Storage` says what the methods do."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from homing.collection.references import (
    NewPhotos,
    Reference,
    ReferenceQuery,
    Release,
    State,
    StoredReference,
    StoredRelease,
    folded,
    folder_range,
    parse_time,
    to_float16,
    to_release,
)
from homing.collection.storage._sqlite_database import SqliteDatabase
from homing.collection.storage.base import CHUNK, Storage
from homing.errors import NotFoundError

_PAGE = 1_000  # references per query of a listing
_LARGEST = 2**63 - 1  # integer of SQLite
# With several releases 'activated' takes precedence: it sorts first.
_STATE = "coalesce((SELECT min(state) FROM releases WHERE photo = id AND written), 'passive')"
_RELEASE = StoredRelease._fields[:-1]  # the columns of `releases`
_IN_LIST = "IN (SELECT value FROM json_each(?))"  # one JSON value: SQLite limits the number of parameters


class SqliteRows(SqliteDatabase, Storage):
    """The references, their codes, descriptors and releases, and the ids of removed references."""

    def refresh(self) -> None:
        pass  # changes of other writers are seen at once

    @contextmanager
    def read_transaction(self) -> Iterator[None]:
        with self._lock:
            self._database.execute("BEGIN")
            try:
                yield
            finally:
                self._database.execute("ROLLBACK")

    def ids_of(self, hashes: Sequence[str]) -> dict[str, int]:
        return dict(self._fetch_all(f"SELECT sha256, id FROM photos WHERE sha256 {_IN_LIST}", _json(hashes)))

    def hashes_of(self, ids: Sequence[int]) -> dict[int, str]:
        return dict(self._fetch_all(f"SELECT id, sha256 FROM photos WHERE id {_IN_LIST}", _json(ids)))

    def add(self, photos: NewPhotos, *, replaces: Sequence[int] = ()) -> list[int | None]:
        ids: list[int | None] = []
        with self._transaction() as connection:
            revision = self._next_revision(connection)
            self._delete(connection, replaces, revision)
            known = set(self.ids_of(photos.hashes))  # added before or in this transaction
            # Ids are never reused: an outdated index must not confuse a removed reference with a new one.
            last = self.last_id()
            for sha256 in photos.hashes:
                ids.append(None if sha256 in known else (last := last + 1))
                known.add(sha256)
            rows = zip(ids, photos.hashes, photos.sources, _row_bytes(photos.codes), strict=True)
            connection.executemany(
                "INSERT INTO photos (id, sha256, source, code) VALUES (?, ?, ?, ?)", (row for row in rows if row[0])
            )
            vectors = zip(ids, _row_bytes(to_float16(photos.descriptors)), strict=True)
            connection.executemany("INSERT INTO descriptors VALUES (?, ?)", (row for row in vectors if row[0]))
            return ids

    def remove(self, ids: Sequence[int]) -> list[tuple[int, str, str | None]]:
        with self._transaction() as connection:
            rows = connection.execute(
                "SELECT id, source, (SELECT path FROM releases WHERE photo = id AND written ORDER BY changed DESC)"
                f" FROM photos WHERE id {_IN_LIST} ORDER BY id",
                (_json(ids),),
            ).fetchall()
            if rows:
                self._delete(connection, [number for number, *_ in rows], self._next_revision(connection))
            return rows

    def _delete(self, connection: sqlite3.Connection, ids: Sequence[int], revision: int) -> None:
        chosen = f"FROM photos WHERE id {_IN_LIST}"
        connection.execute(f"INSERT INTO removed SELECT id, ? {chosen}", (revision, _json(ids)))
        connection.execute(f"DELETE {chosen}", (_json(ids),))

    def update_source(self, photo: int, old: str, new: str) -> bool:
        with self._transaction() as connection:
            done = connection.execute("UPDATE photos SET source = ? WHERE id = ? AND source = ?", (new, photo, old))
            return done.rowcount > 0

    def find_by_source(self, source: str) -> list[tuple[int, str]]:
        return self._fetch_all("SELECT id, sha256 FROM photos WHERE source = ? ORDER BY id", source)

    def find_in_folder(self, folder: str) -> list[int]:
        inside = "SELECT id FROM photos WHERE source >= ? AND source < ? ORDER BY id"
        return [number for (number,) in self._fetch_all(inside, *folder_range(folder))]

    def passive(self) -> list[tuple[str, str]]:
        return self._fetch_all(f"SELECT source, sha256 FROM photos WHERE {_STATE} = 'passive' ORDER BY id")

    def first_and_last_source(self) -> tuple[str, str]:
        # Two subqueries each read one end of an index; a single query for both would scan it.
        row = self._fetch_one("SELECT (SELECT min(source) FROM photos), (SELECT max(source) FROM photos)")
        assert row is not None
        return row[0] or "", row[1] or ""

    def sources_and_states(self, ids: Sequence[int]) -> dict[int, tuple[str, State]]:
        rows = self._fetch_all(f"SELECT id, source, {_STATE} FROM photos WHERE id {_IN_LIST}", _json(ids))
        if len(rows) < len(ids):
            missing = min(set(ids) - {number for number, *_ in rows})
            problem = f"reference {missing} is in the index but not in the catalog"
            raise NotFoundError(f"{problem}; repair it with: homing check COLLECTION --repair")
        return {number: (source, state) for number, source, state in rows}

    def descriptors(self, ids: np.ndarray) -> dict[int, np.ndarray]:
        wanted = "FROM json_each(?1) JOIN"
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
        return {"photos": self.count(), "activated": 0, "unchanged": 0, **dict(rows)}

    def references(self, query: ReferenceQuery, *, newest_first: bool = False) -> Iterator[Reference]:
        last, given = (_LARGEST if newest_first else -1) if query.after is None else query.after, 0
        last = max(-_LARGEST, min(last, _LARGEST))
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
            releases: dict[int, list[Release]] = {}
            for row in self._fetch_all(
                f"SELECT {', '.join(_RELEASE)} FROM releases WHERE photo {_IN_LIST} AND written"
                " ORDER BY changed DESC, rowid DESC",
                _json([row[0] for row in rows]),
            ):
                releases.setdefault(row[0], []).append(to_release(StoredRelease(*row)))
            for number, source, sha256, added, state in rows:
                written = tuple(releases.get(number, ()))
                time = parse_time(added)
                yield Reference(id=number, photo=source, state=state, sha256=sha256, added=time, releases=written)
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
        ((last,),) = self._fetch_all(
            "SELECT max((SELECT coalesce(max(id), 0) FROM photos), (SELECT coalesce(max(photo), 0) FROM removed))"
        )
        return int(last)

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
            vector = descriptor.astype(np.float16).tobytes()
            connection.execute("INSERT OR REPLACE INTO descriptors VALUES (?, ?)", (photo, vector))
            connection.execute("INSERT OR REPLACE INTO metadata VALUES ('codes_revision', ?)", (str(revision),))

    def find_released(self, sha256: str) -> int | None:
        row = self._fetch_one("SELECT photo FROM releases WHERE sha256 = ?", sha256)
        return None if row is None else int(row[0])

    def confirm_releases(self, releases: Sequence[StoredRelease]) -> None:
        with self._transaction() as connection:
            connection.executemany(
                "UPDATE releases SET written = 1 WHERE photo = ? AND path = ? AND sha256 = ? AND NOT written",
                [(row.photo, row.path, row.sha256) for row in releases],
            )

    def insert_releases(self, rows: Sequence[StoredRelease]) -> None:
        updates = [f"{name} = excluded.{name}" for name in _RELEASE if name != "written"]
        with self._transaction() as connection:
            connection.executemany(
                f"INSERT INTO releases ({', '.join(_RELEASE)}) VALUES ({', '.join('?' * len(_RELEASE))})"
                " ON CONFLICT (photo, path, sha256) DO UPDATE"
                f" SET {', '.join(updates)}, written = max(written, excluded.written)",
                [row[:-1] for row in rows],
            )
            connection.executemany(
                "INSERT OR REPLACE INTO released_descriptors VALUES (?, ?, ?)",
                [(row.photo, row.sha256, row.vector) for row in rows if row.vector is not None],
            )

    def releases(self, photos: Sequence[int] | None = None) -> Iterator[list[StoredRelease]]:
        last, columns = 0, ", ".join(StoredRelease._fields)
        chosen = "" if photos is None else " AND photo IN (SELECT value FROM json_each(?3))"
        wanted = () if photos is None else (_json(photos),)
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


def _condition(name: str, state: State | None) -> tuple[str, list[str]]:
    """The SQL condition that a reference has a state, and a text in its file name, ignoring case; its parameters."""
    named = "instr(name_of(source), ?)" if name else "TRUE"
    in_state = f"{_STATE} = '{state}'" if state else "TRUE"
    text = folded(name).encode(errors="backslashreplace").decode()  # a text that is not UTF-8 is in no name
    return f"{named} AND {in_state}", [text] if name else []


def _row_bytes(rows: np.ndarray) -> Iterator[bytes]:
    """Yield the bytes of each row of an array (N, …)."""
    # Slicing one bytes object is faster than making an array for each of a million rows.
    whole, size = rows.tobytes(), rows.shape[1] * rows.itemsize
    return (whole[start : start + size] for start in range(0, len(whole), size))


def _json(values: Sequence[int] | Sequence[str]) -> str:
    return json.dumps(list(values))
