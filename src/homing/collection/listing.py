"""List the references of a collection page by page, concurrently with searches and changes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from homing.collection.catalog import Catalog
from homing.collection.references import Reference, ReferenceQuery, Release, State, folded, folded_name
from homing.errors import NotFoundError

_PAGE = 1_000
_STATE = "coalesce((SELECT min(state) FROM releases WHERE photo = id AND written), 'passive')"
_COLUMNS = f"SELECT id, source, sha256, added, {_STATE} FROM photos"


class ReferenceListing(Catalog):
    """The references of a catalog. Uses a separate connection, so that long reads block no search."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "catalog.sqlite")
        self._database.create_function("name_of", 1, folded_name, deterministic=True)  # LIKE ignores case in ASCII only

    def count(self, name: str = "", state: State | None = None) -> int:
        """The number of references, or of those with `name` in their file names, or with a state."""
        where, values = _name_condition(name)
        if state is not None:
            where = f"{where} AND {_STATE} = '{state}'"
        # Without a condition, SQLite counts all rows quickly.
        condition = f" WHERE {where}" if name or state else ""
        ((count,),) = self._fetch_all(f"SELECT count(*) FROM photos{condition}", *values)
        return int(count)

    def one(self, number: int) -> Reference:
        """The reference with this id. Raises NotFoundError if there is none."""
        row = self._fetch_one(f"{_COLUMNS} WHERE id = ?", number)
        if row is None:
            raise NotFoundError(f"no reference has the id {number}")
        (reference,) = self._to_references([row])
        return reference

    def references(self, query: ReferenceQuery, *, newest_first: bool = False) -> Iterator[Reference]:
        """Iterate over the references of a query in order of id; `newest_first` in the opposite order."""
        last, given = (2**63 - 1 if newest_first else -1) if query.after is None else query.after, 0
        name, values = _name_condition(query.name_contains or "")
        state = "TRUE" if query.state is None else f"{_STATE} = '{query.state}'"
        beyond, order = ("<", "DESC") if newest_first else (">", "ASC")
        while size := query.page_size(given, _PAGE):
            rows = self._fetch_all(
                f"{_COLUMNS} WHERE id {beyond} ? AND {name} AND {state} ORDER BY id {order} LIMIT ?",
                last,
                *values,
                size,
            )
            yield from self._to_references(rows)
            if len(rows) < size:
                return
            last, given = rows[-1][0], given + len(rows)

    def _to_references(self, rows: Sequence[tuple[Any, ...]]) -> list[Reference]:
        releases = self._releases_of([row[0] for row in rows])
        return [
            Reference(
                id=number,
                photo=source,
                state=state,
                sha256=sha256,
                added=_parse_time(added),
                releases=tuple(releases.get(number, ())),
            )
            for number, source, sha256, added, state in rows
        ]

    def _releases_of(self, ids: list[int]) -> dict[int, list[Release]]:
        found: dict[int, list[Release]] = {}
        for photo, *row, changed in self._fetch_all(
            "SELECT photo, path, state, sha256, psnr, ssim, linf, reason, changed FROM releases"
            " WHERE photo IN (SELECT value FROM json_each(?)) AND written ORDER BY changed DESC, rowid DESC",
            json.dumps(ids),
        ):
            names = ("path", "state", "sha256", "psnr", "ssim", "linf", "reason")
            release = Release(**dict(zip(names, row, strict=True)), time=_parse_time(changed))
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
