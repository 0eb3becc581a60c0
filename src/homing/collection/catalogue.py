"""The truth about a collection: one SQLite file that says which photos there are and what was released of them."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from homing.errors import CollectionError

State = Literal["passive", "activated", "unchanged"]
_SCHEMA = """
CREATE TABLE photos (
    id INTEGER PRIMARY KEY,
    sha256 TEXT NOT NULL UNIQUE,
    source TEXT NOT NULL,
    code BLOB NOT NULL,
    added TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE TABLE descriptors (  -- of the originals, fp16; apart from photos, so that reading codes stays fast
    photo INTEGER PRIMARY KEY REFERENCES photos (id) ON DELETE CASCADE,
    vector BLOB NOT NULL
);
CREATE TABLE releases (
    photo INTEGER NOT NULL REFERENCES photos (id) ON DELETE CASCADE,
    path TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('activated', 'unchanged')),
    sha256 TEXT NOT NULL,
    recipe TEXT NOT NULL,
    psnr REAL NOT NULL,
    ssim REAL NOT NULL,
    linf REAL NOT NULL,
    reason TEXT,
    written INTEGER NOT NULL DEFAULT 0,  -- 1 once the file is known to be on disk
    changed TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
    PRIMARY KEY (photo, path, sha256)  -- one file may be released again; what went out before stays known
);
CREATE INDEX releases_by_hash ON releases (sha256);
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO facts VALUES ('revision', '0');
"""


@dataclass(frozen=True)
class NewPhoto:
    """A reference about to be recorded."""

    sha256: str
    source: str
    code: np.ndarray
    descriptor: np.ndarray


@dataclass(frozen=True)
class ReleaseRow:
    """What was released of a photo, or is about to be."""

    state: Literal["activated", "unchanged"]
    path: str
    sha256: str
    recipe: str
    psnr: float
    ssim: float
    linf: float
    reason: str | None


Release = tuple[int, ReleaseRow]
"""The id of a reference, and what was released of it."""


class Catalogue:
    """The catalogue of one collection; safe to read from several threads."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.RLock()
        # Autocommit; transactions are opened by `_change` alone.
        self._database = sqlite3.connect(path, timeout=30, check_same_thread=False, isolation_level=None)
        try:
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = FULL")
            self._database.execute("PRAGMA foreign_keys = ON")
        except sqlite3.Error as error:
            self._database.close()
            raise CollectionError(f"cannot open the catalogue {path}: {error}") from error

    def create(self) -> None:
        """Make the tables of a new catalogue."""
        with self._change() as change:
            for statement in _SCHEMA.split(";\n"):
                change.execute(statement)

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    @property
    def revision(self) -> int:
        """A number that grows with every change to the references."""
        return int(self.fact("revision") or 0)

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

    def add(self, photos: Sequence[NewPhoto]) -> tuple[list[int | None], int]:
        """Record references, all or none; gives the id of each (None where it was known) and the revision."""
        ids: list[int | None] = []
        with self._change() as change:
            for photo in photos:
                known = self.find(photo.sha256) is not None  # in this transaction: another process may have been first
                ids.append(None if known else self._insert(change, photo))
            change.execute("UPDATE facts SET value = CAST(value AS INTEGER) + 1 WHERE name = 'revision'")
            return ids, self.revision

    def _insert(self, change: sqlite3.Connection, photo: NewPhoto) -> int:
        (number,) = change.execute(
            "INSERT INTO photos (sha256, source, code) VALUES (?, ?, ?) RETURNING id",
            (photo.sha256, photo.source, photo.code.tobytes()),
        ).fetchone()
        vector = photo.descriptor.astype(np.float16).tobytes()
        change.execute("INSERT INTO descriptors VALUES (?, ?)", (number, vector))
        return int(number)

    def plan_releases(self, releases: Sequence[Release]) -> None:
        """Say which files are about to be written, so that a crash leaves none behind that nobody knows."""
        with self._change() as change:
            change.executemany(
                "INSERT OR REPLACE INTO releases (photo, state, path, sha256, recipe, psnr, ssim, linf, reason)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [(photo, *astuple(row)) for photo, row in releases],
            )

    def confirm_releases(self, releases: Sequence[Release]) -> None:
        """Say that the planned files are on disk; where that was said before, nothing is written."""
        with self._change() as change:
            change.executemany(
                "UPDATE releases SET written = 1 WHERE photo = ? AND path = ? AND sha256 = ? AND NOT written",
                [(photo, row.path, row.sha256) for photo, row in releases],
            )

    def release(self, photo: int, path: str, sha256: str) -> ReleaseRow | None:
        """What was released, or planned to be, of a photo into this file with this hash."""
        row = self._one(
            "SELECT state, path, sha256, recipe, psnr, ssim, linf, reason FROM releases"
            " WHERE photo = ? AND path = ? AND sha256 = ?",
            photo,
            path,
            sha256,
        )
        return None if row is None else ReleaseRow(*row)

    def find_source(self, source: str) -> int | None:
        """The reference that was last added from this file."""
        row = self._one("SELECT max(id) FROM photos WHERE source = ?", source)
        return None if row is None or row[0] is None else int(row[0])

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
        # Of several releases 'activated' counts, which comes first in the alphabet.
        row = self._one(
            "SELECT source, coalesce((SELECT min(state) FROM releases WHERE photo = id AND written), 'passive')"
            " FROM photos WHERE id = ?",
            photo,
        )
        if row is None:
            raise CollectionError(f"the catalogue has no reference {photo}, but the index does")
        source, state = row
        return source, state

    def codes(self, size: int = 100_000) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """All ids (N,) and codes (N, bytes), in pieces."""
        last = 0
        while rows := self._all("SELECT id, code FROM photos WHERE id > ? ORDER BY id LIMIT ?", last, size):
            last = rows[-1][0]
            codes = np.frombuffer(b"".join(code for _, code in rows), dtype=np.uint8)
            yield np.array([number for number, _ in rows]), codes.reshape(len(rows), -1)

    def descriptors(self, ids: np.ndarray) -> dict[int, np.ndarray]:
        """The descriptors (D,) of the originals, by id; none for ids that are not in the catalogue."""
        wanted = json.dumps(ids.tolist())  # as one value: SQLite takes some thousands only
        rows = self._all(
            "SELECT photo, vector FROM descriptors WHERE photo IN (SELECT value FROM json_each(?))", wanted
        )
        return {number: np.frombuffer(vector, np.float16) for number, vector in rows}

    def counts(self) -> dict[str, int]:
        """How many references there are in each state, and in all under `photos`."""
        rows = self._all(
            "SELECT state, count(*) FROM (SELECT min(state) AS state FROM releases WHERE written GROUP BY photo)"
            " GROUP BY state"
        )
        (total,) = self._one("SELECT count(*) FROM photos") or (0,)
        return {"photos": total, "activated": 0, "unchanged": 0, **dict(rows)}

    @contextmanager
    def _change(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                self._database.execute("BEGIN IMMEDIATE")
                yield self._database
                self._database.execute("COMMIT")
            except BaseException as error:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                if isinstance(error, sqlite3.Error):
                    raise CollectionError(f"the catalogue cannot be written: {error}") from error
                raise

    def _one(self, query: str, *values: object) -> tuple[Any, ...] | None:
        return next(iter(self._all(query, *values)), None)

    def _all(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with self._lock:
            try:
                return self._database.execute(query, values).fetchall()
            except sqlite3.Error as error:
                raise CollectionError(f"the catalogue cannot be read: {error}") from error
