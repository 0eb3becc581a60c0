"""The rows of a catalog as they are, for moving them elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import NamedTuple

from homing.codebooks import Codebook
from homing.collection.catalog import Catalog
from homing.errors import CollectionError

CHUNK = 10_000  # rows at a time: of 512 dimensions, some 10 MB


class PhotoRow(NamedTuple):
    """A reference with all that the catalog holds of it; the vector is its descriptor's fp16 bytes."""

    id: int
    sha256: str
    source: str
    state: str
    added: str
    code: bytes
    vector: bytes


class ReleaseRecord(NamedTuple):
    """A row of the releases, whole; the vector is the descriptor of the released file, where one is kept."""

    photo: int
    path: str
    state: str
    sha256: str
    recipe: str
    psnr: float
    ssim: float
    linf: float
    reason: str | None
    written: int
    changed: str | datetime  # as the catalog has it
    vector: bytes | None


class Transfer(Catalog):
    """A connection of its own to a catalog: nobody else's reading or writing is in its way."""

    @contextmanager
    def read_transaction(self) -> Iterator[None]:
        """All that is read inside is the catalog of one moment, whoever writes meanwhile."""
        with self._lock:
            self._database.execute("BEGIN")
            try:
                yield
            finally:
                self._database.execute("ROLLBACK")

    def photos(self, codebook: Codebook, size: int = CHUNK) -> Iterator[list[PhotoRow]]:
        """All references in the order of their ids, in pieces; refuses what is damaged."""
        last = 0
        while rows := self._fetch_all(
            "SELECT id, sha256, source,"
            " coalesce((SELECT min(state) FROM releases WHERE photo = id AND written), 'passive'),"
            " added, code, vector FROM photos LEFT JOIN descriptors ON photo = id WHERE id > ? ORDER BY id LIMIT ?",
            last,
            size,
        ):
            last = rows[-1][0]
            photos = [PhotoRow(*row) for row in rows]
            for row in photos:
                complete = isinstance(row.code, bytes) and isinstance(row.vector, bytes)
                if not complete or (len(row.code), len(row.vector)) != (codebook.code_size, 2 * codebook.dim):
                    raise CollectionError(
                        f"reference {row.id}, {row.source}, is damaged; repair it: homing check --repair"
                    )
            yield photos

    def releases(self, size: int = CHUNK) -> Iterator[list[ReleaseRecord]]:
        """All that was released, in pieces."""
        last = 0
        columns = ", ".join(ReleaseRecord._fields)
        while rows := self._fetch_all(
            f"SELECT releases.rowid, {columns} FROM releases LEFT JOIN released_descriptors USING (photo, sha256)"
            " WHERE releases.rowid > ? ORDER BY releases.rowid LIMIT ?",
            last,
            size,
        ):
            last = rows[-1][0]
            yield [ReleaseRecord(*row[1:]) for row in rows]

    def insert_photos(self, rows: Sequence[PhotoRow]) -> None:
        """Record references under the ids they had, all or none."""
        with self._transaction() as connection:
            revision = self._next_revision(connection)
            if self._fetch_one("SELECT 1 FROM photos WHERE id > ?", rows[0].id):
                # An index follows references that come in the order of their ids; for these it is built anew.
                connection.execute("INSERT OR REPLACE INTO metadata VALUES ('codes_revision', ?)", (str(revision),))
            connection.executemany(
                "INSERT INTO photos (id, sha256, source, code, added) VALUES (?, ?, ?, ?, ?)",
                [(row.id, row.sha256, row.source, row.code, row.added) for row in rows],
            )
            connection.executemany("INSERT INTO descriptors VALUES (?, ?)", [(row.id, row.vector) for row in rows])

    def insert_releases(self, rows: Sequence[ReleaseRecord]) -> None:
        """Record what was released, all or none, in place of what was known of the same files."""
        columns = ReleaseRecord._fields[:-1]
        with self._transaction() as connection:
            connection.executemany(
                f"INSERT OR REPLACE INTO releases ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",
                [row[:-1] for row in rows],
            )
            connection.executemany(
                "INSERT OR REPLACE INTO released_descriptors VALUES (?, ?, ?)",
                [(row.photo, row.sha256, row.vector) for row in rows if row.vector is not None],
            )

    def sources(self, after: int, to: int = 2**62) -> dict[int, str]:
        """The sources of the references whose ids lie behind one and no farther than another."""
        return dict(self._fetch_all("SELECT id, source FROM photos WHERE id > ? AND id <= ?", after, to))

    def has_release(self, row: ReleaseRecord, ignoring_reason: str) -> bool:
        """Whether this file was planned or released here, unless its reason is `ignoring_reason`.

        State and recipe may differ.
        """
        query = (
            "SELECT 1 FROM releases WHERE photo = ? AND path = ? AND sha256 = ? AND written = ? AND changed = ?"
            " AND reason IS NOT ?"
        )
        return bool(self._fetch_all(query, row.photo, row.path, row.sha256, row.written, row.changed, ignoring_reason))

    def update_sources(self, sources: Sequence[tuple[str, int]]) -> None:
        """Say where the files of references lie now."""
        if sources:
            with self._transaction() as connection:
                connection.executemany("UPDATE photos SET source = ? WHERE id = ?", sources)

    def last_id(self) -> int:
        """The largest id that was ever given."""
        row = self._fetch_one(
            "SELECT max(coalesce(max(id), 0), (SELECT coalesce(max(photo), 0) FROM removed)) FROM photos"
        )
        assert row is not None
        return int(row[0])

    def reserve_ids(self, last: int) -> None:
        """Give no id up to this one to another reference."""
        if last > self.last_id():
            with self._transaction() as connection:
                connection.execute("INSERT INTO removed VALUES (?, ?)", (last, self._next_revision(connection)))

    def release_status(self, row: ReleaseRecord) -> tuple[str, str, str | None] | None:
        """The source, state and reason of what was released elsewhere, as this catalog sees it."""
        found = self._fetch_one(
            "SELECT source, state, reason FROM releases JOIN photos ON id = photo"
            " WHERE photo = ? AND path = ? AND releases.sha256 = ?",
            row.photo,
            row.path,
            row.sha256,
        )
        return None if found is None else (found[0], found[1], found[2])
