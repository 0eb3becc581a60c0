"""What a collection holds, page by page: for people who look through it while others search and add."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from pathlib import Path

from homing.collection.catalog import Catalog, ReleaseRow, State
from homing.errors import NotFoundError

_COLUMNS = (
    "SELECT id, source, sha256, added,"
    " coalesce((SELECT min(state) FROM releases WHERE photo = id AND written), 'passive') FROM photos"
)


@dataclass(frozen=True)
class ListedReference:
    """A reference as a list shows it."""

    id: int
    source: str
    sha256: str
    added: str
    state: State


class ReferenceListing(Catalog):
    """The references of a catalog, newest first. A connection of its own: a long look holds up no search."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "catalog.sqlite")
        self._database.create_function("name_of", 1, _name_of, deterministic=True)  # LIKE folds ASCII alone

    def page(self, limit: int, *, after: int | None = None, name: str = "") -> list[ListedReference]:
        """So many references that came before the one with the id `after`, whose file names hold `name`."""
        where, values = _name_condition(name)
        before = 2**63 - 1 if after is None else after
        rows = self._fetch_all(f"{_COLUMNS} WHERE id < ? AND {where} ORDER BY id DESC LIMIT ?", before, *values, limit)
        return [ListedReference(*row) for row in rows]

    def count(self, name: str = "") -> int:
        """How many references there are, or those whose file names hold `name`."""
        where, values = _name_condition(name)
        # Of all SQLite knows how many there are, if it is asked without a condition.
        ((count,),) = self._fetch_all(
            f"SELECT count(*) FROM photos WHERE {where}" if name else "SELECT count(*) FROM photos", *values
        )
        return int(count)

    def one(self, number: int) -> ListedReference:
        """One reference; NotFoundError if there is none with this id."""
        row = self._fetch_one(f"{_COLUMNS} WHERE id = ?", number)
        if row is None:
            raise NotFoundError(f"no reference has the id {number}")
        return ListedReference(*row)

    def releases(self, number: int) -> list[tuple[ReleaseRow, str]]:
        """What was released of a reference, and when, the latest first."""
        rows = self._fetch_all(
            "SELECT state, path, sha256, recipe, psnr, ssim, linf, reason, changed FROM releases"
            " WHERE photo = ? AND written ORDER BY changed DESC, rowid DESC",
            number,
        )
        return [(ReleaseRow(*row[:-1]), str(row[-1])) for row in rows]


def _name_condition(name: str) -> tuple[str, list[str]]:
    """The condition that a file name holds this text, in whatever case it is written, and its values."""
    return ("instr(name_of(source), ?)", [_folded(name)]) if name else ("TRUE", [])


def _name_of(source: str) -> str:
    """The last part of a source, as names are compared."""
    return _folded(source.rpartition("/")[2])


def _folded(text: str) -> str:
    """One spelling of all that differ in case, or in how a letter and its accent are put together."""
    return unicodedata.normalize("NFC", text.casefold())
