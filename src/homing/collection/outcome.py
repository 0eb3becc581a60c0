"""What a collection answers with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of one photo of a job; a reason is one line that begins with the photo's path."""

    photo: Path
    state: Literal["added", "known", "activated", "unchanged", "failed"]
    released: Path | None = None
    psnr: float | None = None
    ssim: float | None = None
    linf: float | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Match:
    """A reference that lies near a query: its source file, and how far it lies from the query's descriptor.

    `by` says what of it lies so far away: its code or, where matches were ranked again, its full descriptor. `chance`
    is how likely the nearest of all references would come this near to a photo that is related to none of them.
    """

    photo: str
    distance: float
    state: Literal["passive", "activated", "unchanged", "background"]
    by: Literal["code", "descriptor"] = "code"
    chance: float = 1.0


@dataclass(frozen=True)
class Info:
    """What a collection holds."""

    path: Path
    codebook: str
    spec: str
    fingerprint: str
    extractor: str
    photos: int
    activated: int
    unchanged: int
    background: int
    bytes_on_disk: int
