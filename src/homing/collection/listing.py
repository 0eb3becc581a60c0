"""What a collection holds, page by page: for people who look through it while others search and add."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from homing.collection._database import Database
from homing.collection.catalogue import ReleaseRow, State
from homing.errors import GoneError

# The last part of a source: all but what is left when everything after the last slash is cut off.
_NAME = "substr(source, length(rtrim(source, replace(source, '/', ''))) + 1)"
_COLUMNS = (
    "SELECT id, source, sha256, added,"
    " coalesce((SELECT min(state) FROM releases WHERE photo = id AND written), 'passive') FROM photos"
)


@dataclass(frozen=True)
class Listed:
    """A reference as a list shows it."""

    id: int
    source: str
    sha256: str
    added: str
    state: State


class Listing(Database):
    """The references of a catalogue, newest first. A connection of its own: a long look holds up no search."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "catalogue.sqlite")

    def page(self, limit: int, *, after: int | None = None, name: str = "") -> list[Listed]:
        """So many references that came before the one with the id `after`, whose file names hold `name`."""
        rows = self._all(
            f"{_COLUMNS} WHERE id < ? AND {_NAME} LIKE ? ESCAPE '!' ORDER BY id DESC LIMIT ?"
            if name
            else f"{_COLUMNS} WHERE id < ? AND ? ORDER BY id DESC LIMIT ?",
            2**63 - 1 if after is None else after,
            _like(name) if name else True,
            limit,
        )
        return [Listed(*row) for row in rows]

    def count(self, name: str = "") -> int:
        """How many references there are, or those whose file names hold `name`."""
        if not name:
            ((count,),) = self._all("SELECT count(*) FROM photos")
        else:
            ((count,),) = self._all(f"SELECT count(*) FROM photos WHERE {_NAME} LIKE ? ESCAPE '!'", _like(name))
        return int(count)

    def one(self, number: int) -> Listed:
        """One reference; GoneError if there is none with this id."""
        row = self._one(f"{_COLUMNS} WHERE id = ?", number)
        if row is None:
            raise GoneError(f"no reference has the id {number}")
        return Listed(*row)

    def releases(self, number: int) -> list[tuple[ReleaseRow, str]]:
        """What was released of a reference, and when, the latest first."""
        rows = self._all(
            "SELECT state, path, sha256, recipe, psnr, ssim, linf, reason, changed FROM releases"
            " WHERE photo = ? AND written ORDER BY changed DESC, rowid DESC",
            number,
        )
        return [(ReleaseRow(*row[:-1]), str(row[-1])) for row in rows]


def _like(name: str) -> str:
    escaped = name.replace("!", "!!").replace("%", "!%").replace("_", "!_")
    return f"%{escaped}%"
