"""The SQLite file of the catalog: tables, transactions, and error messages that a user can act on."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from homing.errors import CollectionError

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
    PRIMARY KEY (photo, path, sha256)  -- a file can be released again; earlier releases are kept
);
CREATE INDEX releases_by_hash ON releases (sha256);
CREATE TABLE metadata (name TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO metadata VALUES ('revision', '0');
-- The revision at which each reference was removed, so that an index is updated without a rebuild.
CREATE TABLE removed (photo INTEGER PRIMARY KEY, revision INTEGER NOT NULL);
CREATE INDEX removed_by_revision ON removed (revision);
CREATE INDEX photos_by_source ON photos (source);
CREATE TABLE released_descriptors (  -- of activated files, fp16
    photo INTEGER NOT NULL REFERENCES photos (id) ON DELETE CASCADE,
    sha256 TEXT NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (photo, sha256)
);
"""


class Database:
    """One SQLite file. Thread-safe."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.RLock()
        with ExitStack() as stack:
            try:
                # Autocommit: only `_transaction` opens transactions.
                self._database = sqlite3.connect(path, timeout=30, check_same_thread=False, isolation_level=None)
                stack.callback(self._database.close)
                # Applies to a new catalog; an existing one keeps its page size. SQLite's default of 4096 bytes holds
                # three descriptors with a quarter unused, and a million hashes then span so many pages that writing
                # them back dominates the time.
                self._database.execute("PRAGMA page_size = 16384")
                self._database.execute("PRAGMA journal_mode = WAL")
                self._database.execute("PRAGMA synchronous = FULL")
                self._database.execute("PRAGMA foreign_keys = ON")
                # 64 MB: hashes arrive in random order, and each one reads and writes another page of their index.
                self._database.execute("PRAGMA cache_size = -65536")
            except sqlite3.Error as error:
                raise CollectionError(f"cannot open the catalog {path}: {error}") from error
            stack.pop_all()

    def create(self) -> None:
        """Create the tables of a new catalog."""
        with self._transaction() as connection:
            for statement in _SCHEMA.split(";\n"):
                connection.execute(statement)

    def close(self) -> None:
        """Close the file."""
        with self._lock:  # SQLite crashes if it is closed during a query
            self._database.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                self._database.execute("BEGIN IMMEDIATE")
                yield self._database
                self._database.execute("COMMIT")
            except BaseException as error:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                if isinstance(error, sqlite3.Error):
                    raise CollectionError(f"the catalog cannot be written: {error}") from error
                raise

    def _fetch_one(self, query: str, *values: object) -> tuple[Any, ...] | None:
        return next(iter(self._fetch_all(query, *values)), None)

    def _fetch_all(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with self._lock:
            try:
                return self._database.execute(query, values).fetchall()
            except sqlite3.Error as error:
                raise CollectionError(f"the catalog cannot be read: {error}") from error
