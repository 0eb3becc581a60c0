"""Raw rows of a catalog, for export and migration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import NamedTuple

from homing.codebooks import Codebook
from homing.collection.catalog import Catalog
from homing.errors import CollectionError

CHUNK = 10_000  # rows per batch: about 10 MB at 512 dimensions


class PhotoRow(NamedTuple):
    """A reference with everything that the catalog stores. `vector` holds the fp16 bytes of its descriptor."""

    id: int
    sha256: str
    source: str
    state: str
    added: str
    code: bytes
    vector: bytes


class ReleaseRecord(NamedTuple):
    """A complete row of the releases. `vector` is the descriptor of the released file, if one is stored."""

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
    changed: str | datetime  # in the catalog's own type
    vector: bytes | None


class Transfer(Catalog):
    """A separate connection to a catalog, independent of other readers and writers."""

    @contextmanager
    def read_transaction(self) -> Iterator[None]:
        """Read one consistent state of the catalog inside this context, regardless of concurrent writers."""
        with self._lock:
            self._database.execute("BEGIN")
            try:
                yield
            finally:
                self._database.execute("ROLLBACK")

    def photos(self, codebook: Codebook, size: int = CHUNK) -> Iterator[list[PhotoRow]]:
        """Yield batches of all references in order of id. Raises an error on damaged rows."""
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
                        f"reference {row.id}, {row.source}, is damaged; "
                        "repair it with: homing check COLLECTION --repair"
                    )
            yield photos

    def releases(self, size: int = CHUNK) -> Iterator[list[ReleaseRecord]]:
        """Yield batches of all releases."""
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

    def insert_releases(self, rows: Sequence[ReleaseRecord]) -> None:
        """Record releases in one transaction, replacing earlier rows of the same files."""
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
        """The sources of the references with `after` < id <= `to`, by id."""
        return dict(self._fetch_all("SELECT id, source FROM photos WHERE id > ? AND id <= ?", after, to))

    def has_release(self, row: ReleaseRecord, ignoring_reason: str) -> bool:
        """Whether this catalog has the release, planned or written, with a reason other than `ignoring_reason`.

        State and recipe may differ.
        """
        query = (
            "SELECT 1 FROM releases WHERE photo = ? AND path = ? AND sha256 = ? AND written = ? AND changed = ?"
            " AND reason IS NOT ?"
        )
        return bool(self._fetch_all(query, row.photo, row.path, row.sha256, row.written, row.changed, ignoring_reason))

    def update_sources(self, sources: Sequence[tuple[str, int]]) -> None:
        """Set the sources of references, given as pairs of source and id."""
        if sources:
            with self._transaction() as connection:
                connection.executemany("UPDATE photos SET source = ? WHERE id = ?", sources)

    def last_id(self) -> int:
        """The largest id ever assigned."""
        row = self._fetch_one(
            "SELECT max(coalesce(max(id), 0), (SELECT coalesce(max(photo), 0) FROM removed)) FROM photos"
        )
        assert row is not None
        return int(row[0])

    def reserve_ids(self, last: int) -> None:
        """Reserve all ids up to this one: new references get larger ids."""
        if last > self.last_id():
            with self._transaction() as connection:
                connection.execute("INSERT INTO removed VALUES (?, ?)", (last, self._next_revision(connection)))

    def release_status(self, row: ReleaseRecord) -> tuple[str, str, str | None] | None:
        """The source of the photo and this catalog's state and reason of a release from another catalog."""
        found = self._fetch_one(
            "SELECT source, state, reason FROM releases JOIN photos ON id = photo"
            " WHERE photo = ? AND path = ? AND releases.sha256 = ?",
            row.photo,
            row.path,
            row.sha256,
        )
        return None if found is None else (found[0], found[1], found[2])
