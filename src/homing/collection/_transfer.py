"""The rows of a catalogue as they are, for moving them elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from homing.collection.catalogue import Catalogue

PIECE = 10_000  # rows at a time: of 512 dimensions, some 10 MB


class PhotoRow(NamedTuple):
    """A reference with all that the catalogue holds of it; the vector is its descriptor's fp16 bytes."""

    id: int
    sha256: str
    source: str
    state: str
    added: str
    code: bytes
    vector: bytes


class SentOut(NamedTuple):
    """A row of the releases, whole."""

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
    changed: str


class Transfer(Catalogue):
    """A connection of its own to a catalogue: nobody else's reading or writing is in its way."""

    @contextmanager
    def standstill(self) -> Iterator[None]:
        """All that is read inside is the catalogue of one moment, whoever writes meanwhile."""
        with self._lock:
            self._database.execute("BEGIN")
            try:
                yield
            finally:
                self._database.execute("ROLLBACK")

    def photos(self, size: int = PIECE) -> Iterator[list[PhotoRow]]:
        """All references in the order of their ids, in pieces."""
        last = 0
        while rows := self._all(
            "SELECT id, sha256, source,"
            " coalesce((SELECT min(state) FROM releases WHERE photo = id AND written), 'passive'),"
            " added, code, vector FROM photos JOIN descriptors ON photo = id WHERE id > ? ORDER BY id LIMIT ?",
            last,
            size,
        ):
            last = rows[-1][0]
            yield [PhotoRow(*row) for row in rows]

    def releases(self, size: int = PIECE) -> Iterator[list[SentOut]]:
        """All that was released, in pieces."""
        last = 0
        columns = ", ".join(SentOut._fields)
        while rows := self._all(
            f"SELECT rowid, {columns} FROM releases WHERE rowid > ? ORDER BY rowid LIMIT ?", last, size
        ):
            last = rows[-1][0]
            yield [SentOut(*row[1:]) for row in rows]

    def take_photos(self, rows: Sequence[PhotoRow]) -> None:
        """Record references under the ids they had, all or none."""
        with self._change() as change:
            change.executemany(
                "INSERT INTO photos (id, sha256, source, code, added) VALUES (?, ?, ?, ?, ?)",
                [(row.id, row.sha256, row.source, row.code, row.added) for row in rows],
            )
            change.executemany("INSERT INTO descriptors VALUES (?, ?)", [(row.id, row.vector) for row in rows])
            change.execute("UPDATE facts SET value = CAST(value AS INTEGER) + 1 WHERE name = 'revision'")

    def take_releases(self, rows: Sequence[SentOut]) -> None:
        """Record what was released, all or none."""
        columns, places = ", ".join(SentOut._fields), ", ".join("?" * len(SentOut._fields))
        with self._change() as change:
            change.executemany(f"INSERT INTO releases ({columns}) VALUES ({places})", rows)

    def known(self, after: int, to: int | None = None) -> dict[int, tuple[str, str]]:
        """Hash and source of the references whose ids lie behind one and, if that is given, no farther than another."""
        rows = self._all(
            "SELECT id, sha256, source FROM photos WHERE id > ? AND id <= ?", after, 2**62 if to is None else to
        )
        return {number: (sha256, source) for number, sha256, source in rows}

    def has_release(self, row: SentOut) -> bool:
        """Whether this was released, or planned, here as well; state, recipe and reason may differ."""
        query = "SELECT 1 FROM releases WHERE photo = ? AND path = ? AND sha256 = ? AND written = ? AND changed = ?"
        return bool(self._all(query, row.photo, row.path, row.sha256, row.written, row.changed))

    def drop(self, photos: Sequence[int], releases: Sequence[SentOut]) -> None:
        """Forget references, with all that hangs on them, and releases."""
        if not photos and not releases:
            return
        with self._change() as change:
            change.executemany("DELETE FROM photos WHERE id = ?", [(number,) for number in photos])
            change.executemany(
                "DELETE FROM releases WHERE photo = ? AND path = ? AND sha256 = ?",
                [(row.photo, row.path, row.sha256) for row in releases],
            )
            change.execute("UPDATE facts SET value = CAST(value AS INTEGER) + 1 WHERE name = 'revision'")

    def rename(self, sources: Sequence[tuple[str, int]]) -> None:
        """Say where the files of references lie now."""
        if not sources:
            return
        with self._change() as change:
            change.executemany("UPDATE photos SET source = ? WHERE id = ?", sources)

    @contextmanager
    def sealing(self, message: str) -> Iterator[None]:
        """Nobody writes references or releases while this lasts, nor, if it goes well, ever after."""
        with self._change() as change:
            yield
            for table in ("photos", "descriptors", "releases"):
                for verb in ("INSERT", "UPDATE", "DELETE"):
                    change.execute(
                        f"CREATE TRIGGER IF NOT EXISTS sealed_{table}_{verb} BEFORE {verb} ON {table}"
                        f" BEGIN SELECT RAISE(ABORT, '{message}'); END"
                    )

    def verdict(self, row: SentOut) -> tuple[str, str, str | None] | None:
        """The source, state and reason of what was released elsewhere, as this catalogue sees it."""
        found = self._one(
            "SELECT source, state, reason FROM releases JOIN photos ON id = photo"
            " WHERE photo = ? AND path = ? AND releases.sha256 = ?",
            row.photo,
            row.path,
            row.sha256,
        )
        return None if found is None else (found[0], found[1], found[2])
