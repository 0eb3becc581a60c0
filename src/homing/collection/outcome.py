"""What a collection answers with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from homing._io.paths import Location
from homing.errors import HomingError


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of one photo of a job; a reason is one line that begins with the photo's path."""

    photo: Location
    state: Literal["added", "known", "moved", "replaced", "activated", "unchanged", "removed", "failed"]
    released: Location | None = None
    psnr: float | None = None
    ssim: float | None = None
    linf: float | None = None
    reason: str | None = None
    bytes_before: int | None = None
    """Size of the photo's file."""
    bytes_after: int | None = None
    """Size of the released file."""
    notes: list[str] = field(default_factory=list)
    """What was written differently than in the photo's file, in short sentences."""
    moved_from: Location | None = None
    """Where the file of a known photo was recorded to lie, if it lies here now."""
    overwrote: bool = False
    """Whether the released file took the place of another that was released of the same photo."""
    resumed: bool = False
    """Whether an earlier job released it like this, so that nothing was to do."""
    error: HomingError | None = field(default=None, repr=False, compare=False)
    """What was in the way of adding or activating it: something about the photo, or about the collection."""


def failed(photo: Location, error: HomingError) -> Outcome:
    """The outcome of a photo that an error was in the way of, whose line has the photo in front."""
    reason = str(error) if str(error).startswith(str(photo)) else f"{photo}: {error}"
    return Outcome(photo=photo, state="failed", reason=reason, error=error)


@dataclass(frozen=True)
class Info:
    """What a collection holds."""

    path: Location
    codebook: str
    spec: str
    fingerprint: str
    extractor: str
    photos: int
    activated: int
    unchanged: int
    distractors: int
    bytes_on_disk: int
    next_codebook: str | None = None
    """Which one it is being migrated to."""
    previous_codebook: str | None = None
    """Which one it was migrated from, until that is forgotten."""
    version: int | None = None
    """Of the references, in Lance."""

    @property
    def passive(self) -> int:
        """Photos of which nothing was released."""
        return self.photos - self.activated - self.unchanged


@dataclass(frozen=True)
class MigratedRelease:
    """A file that was activated for the old codebook, and what the new one makes of it."""

    photo: str
    released: str
    reason: str | None


@dataclass(frozen=True)
class Migration:
    """How far the next generation is, and which activated files keep their gain there."""

    generation: Location
    codebook: str
    photos: int
    """References that were carried over."""
    missing: list[str]
    """Of those that could not be, a line each: another network needs the files again."""
    gain_kept: list[MigratedRelease]
    gain_lost: list[MigratedRelease]
    """Should be activated again."""
    gain_unknown: list[MigratedRelease]
    """Nobody can tell: the released files are gone."""


@dataclass(frozen=True)
class Finding:
    """Something of a collection that is not as it should be, and what is to be done about it or was done."""

    part: Literal["settings", "codebook", "distractors", "catalog", "reference", "index", "release", "file"]
    problem: str
    action: str
    repaired: bool = False

    def __str__(self) -> str:
        return f"{self.part}: {self.problem}; {self.action}"
