"""References and their releases, as recorded and as shown to users, and queries for them."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Literal, NamedTuple

import numpy as np
import torch

from homing.errors import HomingError, UnknownNameError, check_type

State = Literal["passive", "activated", "unchanged"]
_STATES: tuple[State, ...] = ("passive", "activated", "unchanged")


@dataclass(frozen=True)
class NewPhotos:
    """N references to record: codes (N, bytes) and descriptors (N, D)."""

    hashes: Sequence[str]
    sources: Sequence[str]
    codes: np.ndarray
    descriptors: np.ndarray


class StoredReference(NamedTuple):
    """A reference with everything that is stored of it. `vector` holds the fp16 bytes of its descriptor."""

    id: int
    sha256: str
    source: str
    state: str
    added: str
    code: bytes
    vector: bytes | None


class StoredRelease(NamedTuple):
    """A planned or written release of the reference `photo`, with everything that is stored of it.

    `changed` is a text in UTC, such as 2026-11-19 12:49:25.031. `vector` is the fp16 bytes of the released file's
    descriptor; None where it is that of the original.
    """

    photo: int
    path: str
    state: Literal["activated", "unchanged"]
    sha256: str
    recipe: str
    psnr: float
    ssim: float
    linf: float
    reason: str | None
    written: int = 0
    changed: str = ""
    vector: bytes | None = None


@dataclass(frozen=True, kw_only=True)
class Release:
    """A released file of a reference: its path, time (UTC) and quality."""

    path: str
    state: Literal["activated", "unchanged"]
    sha256: str
    psnr: float
    ssim: float
    linf: float
    reason: str | None
    """Why the photo is unchanged, or what was done to keep the budget."""
    time: datetime


def to_release(row: StoredRelease) -> Release:
    """A stored release as it is shown."""
    names = ("path", "state", "sha256", "psnr", "ssim", "linf", "reason")
    return Release(**{name: getattr(row, name) for name in names}, time=parse_time(row.changed))


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A reference: its id, source file, time of addition (UTC), and releases, latest first."""

    id: int
    photo: str
    state: State
    sha256: str
    added: datetime
    releases: tuple[Release, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ReferenceQuery:
    """A query for references, in order of id."""

    state: State | None = None
    name_contains: str | None = None
    """Text in the file name, ignoring case."""
    after: int | None = None
    """Only references with larger ids."""
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.state is not None and self.state not in _STATES:
            raise UnknownNameError("state", str(self.state), _STATES)
        for name, value in (("limit", self.limit), ("after", self.after)):
            if value is not None:
                check_type(name, value, "a whole number")
        if self.name_contains is not None:
            check_type("name_contains", self.name_contains, "a text")
        if self.limit is not None and self.limit < 1:
            raise HomingError(f"limit must be at least 1, got {self.limit}")

    def page_size(self, given: int, largest: int) -> int:
        """Size of the next page after `given` references, at most `largest`."""
        return largest if self.limit is None else min(largest, self.limit - given)


def format_time(moment: datetime) -> str:
    """A time as the text that is stored."""
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def parse_time(text: str) -> datetime:
    """A time from the text that is stored."""
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)


def to_float16(rows: np.ndarray) -> np.ndarray:
    """Descriptors as they are stored."""
    half: np.ndarray = torch.tensor(rows, dtype=torch.half).numpy()  # twice as fast as NumPy
    return half


def folded_name(source: str) -> str:
    """The file name of a source, normalized for comparison."""
    return folded(source.rpartition("/")[2])


def folder_range(folder: str) -> tuple[str, str]:
    """The sources in a folder, at any depth, are at least the first text and below the second."""
    inside = folder.rstrip(os.sep)
    return inside + os.sep, inside + chr(ord(os.sep) + 1)


def folded(text: str) -> str:
    """Normalize a text: fold its case and compose letters with their accents."""
    return unicodedata.normalize("NFC", text.casefold())
