"""The SQLite file of a generation: tables, transactions, revisions, and error messages that a user can act on."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from homing.collection.outcome import Findings
from homing.collection.storage.layout import FORMAT, refuse_other_format
from homing.errors import BusyError, CollectionError

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
_REVISION_GAP = 1_000_000
RESTORE = (
    "restore catalog.sqlite from a backup, or save its readable rows with: "
    "sqlite3 catalog.sqlite .recover | sqlite3 recovered.sqlite"
)


class SqliteDatabase:
    """One SQLite file. Thread-safe."""

    def __init__(self, path: Path) -> None:
        """Open the file, or create it. Raises FormatError if it has another format version."""
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
            ((version,),) = self._fetch_all("PRAGMA user_version")
            if version:  # 0: a new catalog, or none, which the first query reports
                refuse_other_format(path, version)
            stack.pop_all()

    def create_tables(self) -> None:
        """Create the tables of a new catalog, and mark it with the format version."""
        with self._transaction() as connection:
            for statement in _SCHEMA.split(";\n"):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {FORMAT}")

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

    @property
    def revision(self) -> int:
        """A counter that increases with every change to the references."""
        return self._counter("revision", "")

    @property
    def codes_revision(self) -> int:
        """The last revision that changed codes of existing references. An older index must be rebuilt."""
        return self._counter("codes_revision", "0")

    def _counter(self, name: str, default: str) -> int:
        count = self.get_metadata(name) or default
        if not count.isdecimal():
            problem = "the catalog has no valid revision number"
            raise CollectionError(f"{problem}; repair it with: homing check COLLECTION --repair")
        return int(count)

    def _next_revision(self, connection: sqlite3.Connection) -> int:
        connection.execute("UPDATE metadata SET value = CAST(value AS INTEGER) + 1 WHERE name = 'revision'")
        return self.revision

    def get_metadata(self, name: str) -> str | None:
        """The metadata value of a key, None if it is not set."""
        row = self._fetch_one("SELECT value FROM metadata WHERE name = ?", name)
        return None if row is None else str(row[0])

    def set_metadata(self, **values: str) -> None:
        """Set metadata values by key, in one transaction."""
        with self._transaction() as connection:
            connection.executemany("INSERT OR REPLACE INTO metadata VALUES (?, ?)", list(values.items()))

    def check(self, findings: Findings) -> bool:
        """Run SQLite's checks, and find rows without their reference."""
        try:
            problems = self._integrity_problems()
            if problems:
                count = f" ({len(problems):,} problems)" if problems[1:] else ""
                problem = f"the database is damaged: {problems[0]}{count}"
                done = "its indexes were rebuilt"
                if not findings.repair_or_report("catalog", problem, done, self._rebuild_indexes, RESTORE):
                    return False
            self._fetch_all("SELECT 1 FROM photos, descriptors, releases, metadata LIMIT 0")  # do they exist?
            for table, row, *_ in self._fetch_all("PRAGMA foreign_key_check"):
                findings.report("catalog", f"row {row} of {table} belongs to no existing reference", RESTORE)
        except CollectionError as error:
            findings.report("catalog", str(error), RESTORE)
            return False
        try:
            _ = self.revision, self.codes_revision
        except CollectionError as error:
            done = "a new revision number was set"
            return findings.repair_or_report("catalog", str(error), done, self._advance_revision, RESTORE)
        return True

    def _integrity_problems(self) -> list[str]:
        lines = [" ".join(str(row[0]).split()) for row in self._fetch_all("PRAGMA integrity_check")]
        return [] if lines == ["ok"] else lines

    def _rebuild_indexes(self) -> None:
        with self._transaction() as connection:
            connection.execute("REINDEX")
        if remaining := self._integrity_problems():
            raise CollectionError(remaining[0])

    def _advance_revision(self) -> None:
        """Raise the revision above any value that open connections hold, so that all of them reload the changes."""
        known = self._fetch_all(
            "SELECT max(revision) FROM removed UNION SELECT max(CAST(value AS INTEGER)) FROM metadata"
            " WHERE name IN ('codes_revision', 'snapshot_revision')"
        )
        revision = max(number or 0 for (number,) in known) + _REVISION_GAP
        self.set_metadata(revision=str(revision), codes_revision=str(revision))


@contextmanager
def file_lock(root: Path, name: str) -> Iterator[None]:
    """Hold a lock in a collection's folder. The operating system releases it when the process ends, even in a crash."""
    if not root.is_dir():  # locking would create the folder
        raise CollectionError(f"{root} cannot be changed: it does not exist any more")
    # A new lock object for each job, so that a second acquisition fails even within one process or thread.
    lock = FileLock(root / name)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise BusyError(f"another process is changing {root}; try again when it has finished") from None
    except OSError as error:
        raise CollectionError(f"{root} cannot be changed: {error.strerror}") from error
    try:
        yield
    finally:
        lock.release()
