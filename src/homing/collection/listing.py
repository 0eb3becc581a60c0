"""List the references of a collection page by page, concurrently with searches and changes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from homing.collection.catalog import Catalog, ReleaseRow, State
from homing.collection.references import Reference, ReferenceQuery, Release, folded, folded_name
from homing.errors import NotFoundError

_PAGE = 1_000
_STATE = "coalesce((SELECT min(state) FROM releases WHERE photo = id AND written), 'passive')"
_COLUMNS = f"SELECT id, source, sha256, added, {_STATE} FROM photos"


@dataclass(frozen=True)
class ListedReference:
    """A reference as shown in a list."""

    id: int
    source: str
    sha256: str
    added: str
    state: State


class ReferenceListing(Catalog):
    """The references of a catalog, newest first. Uses a separate connection, so that long reads block no search."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "catalog.sqlite")
        self._database.create_function("name_of", 1, folded_name, deterministic=True)  # LIKE ignores case in ASCII only

    def page(self, limit: int, *, after: int | None = None, name: str = "") -> list[ListedReference]:
        """Up to `limit` references older than the one with the id `after`, with `name` in their file names."""
        where, values = _name_condition(name)
        before = 2**63 - 1 if after is None else after
        rows = self._fetch_all(f"{_COLUMNS} WHERE id < ? AND {where} ORDER BY id DESC LIMIT ?", before, *values, limit)
        return [ListedReference(*row) for row in rows]

    def count(self, name: str = "") -> int:
        """The number of references, or of those with `name` in their file names."""
        where, values = _name_condition(name)
        # Without a condition, SQLite counts all rows quickly.
        ((count,),) = self._fetch_all(
            f"SELECT count(*) FROM photos WHERE {where}" if name else "SELECT count(*) FROM photos", *values
        )
        return int(count)

    def one(self, number: int) -> ListedReference:
        """The reference with this id. Raises NotFoundError if there is none."""
        row = self._fetch_one(f"{_COLUMNS} WHERE id = ?", number)
        if row is None:
            raise NotFoundError(f"no reference has the id {number}")
        return ListedReference(*row)

    def releases(self, number: int) -> list[tuple[ReleaseRow, str]]:
        """The releases of a reference with their times, latest first."""
        rows = self._fetch_all(
            "SELECT state, path, sha256, recipe, psnr, ssim, linf, reason, changed FROM releases"
            " WHERE photo = ? AND written ORDER BY changed DESC, rowid DESC",
            number,
        )
        return [(ReleaseRow(*row[:-1]), str(row[-1])) for row in rows]

    def references(self, query: ReferenceQuery) -> Iterator[Reference]:
        """Iterate over the references of a query in order of id."""
        last, given = -1 if query.after is None else query.after, 0
        name, values = _name_condition(query.name_contains or "")
        state = "TRUE" if query.state is None else f"{_STATE} = '{query.state}'"
        while size := query.page_size(given, _PAGE):
            rows = self._fetch_all(
                f"{_COLUMNS} WHERE id > ? AND {name} AND {state} ORDER BY id LIMIT ?", last, *values, size
            )
            releases = self._releases_of([row[0] for row in rows])
            for number, source, sha256, added, its_state in rows:
                yield Reference(
                    id=number,
                    photo=source,
                    state=its_state,
                    sha256=sha256,
                    added=_parse_time(added),
                    releases=tuple(releases.get(number, ())),
                )
            if len(rows) < size:
                return
            last, given = rows[-1][0], given + len(rows)

    def _releases_of(self, ids: list[int]) -> dict[int, list[Release]]:
        found: dict[int, list[Release]] = {}
        for photo, *row, changed in self._fetch_all(
            "SELECT photo, path, state, sha256, psnr, ssim, linf, reason, changed FROM releases"
            " WHERE photo IN (SELECT value FROM json_each(?)) AND written ORDER BY changed DESC, rowid DESC",
            json.dumps(ids),
        ):
            names = ("path", "state", "sha256", "psnr", "ssim", "linf", "reason")
            release = Release(**dict(zip(names, row, strict=True)), released=_parse_time(changed))
            found.setdefault(photo, []).append(release)
        return found


def list_references(folder: Path, query: ReferenceQuery) -> Iterator[Reference]:
    """Iterate over the references of a query in the folder of a generation, concurrently with other jobs."""
    with closing(ReferenceListing(folder)) as listing:
        yield from listing.references(query)


def _parse_time(text: str) -> datetime:
    """Parse a UTC time in SQLite's format."""
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)


def _name_condition(name: str) -> tuple[str, list[str]]:
    """The SQL condition that a file name contains this text, ignoring case, and its parameters."""
    return ("instr(name_of(source), ?)", [folded(name)]) if name else ("TRUE", [])
