"""What a collection says about its references, one by one, and which of them are asked for."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from homing.collection.catalog import State
from homing.errors import HomingError, UnknownNameError

_STATES: tuple[State, ...] = ("passive", "activated", "unchanged")


@dataclass(frozen=True, kw_only=True)
class Release:
    """A file that was released of a reference: where it was written, when (UTC), and its quality."""

    path: str
    state: Literal["activated", "unchanged"]
    sha256: str
    psnr: float
    ssim: float
    linf: float
    reason: str | None
    """Why it is unchanged, or what was done to keep the budget."""
    released: datetime


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A reference: its id, the file it was added from, when that was (UTC), and what was released, the latest first."""

    id: int
    photo: str
    state: State
    sha256: str
    added: datetime
    releases: tuple[Release, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ReferenceQuery:
    """Which references are asked for, in the order of their ids."""

    state: State | None = None
    name_contains: str | None = None
    """A text in the names of their files, whatever its case."""
    after: int | None = None
    """The id that theirs are larger than."""
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.state is not None and self.state not in _STATES:
            raise UnknownNameError("state", str(self.state), _STATES)
        if self.limit is not None and self.limit < 1:
            raise HomingError(f"limit must be at least 1, got {self.limit}")

    def page_size(self, given: int, largest: int) -> int:
        """How many more references one page holds, after so many have been given."""
        return largest if self.limit is None else min(largest, self.limit - given)


def folded_name(source: str) -> str:
    """The last part of a source, as names are compared."""
    return folded(source.rpartition("/")[2])


def folded(text: str) -> str:
    """One spelling of all that differ in case, or in how a letter and its accent are put together."""
    return unicodedata.normalize("NFC", text.casefold())
