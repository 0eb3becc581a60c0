"""Result types of a collection's methods."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from homing._io.paths import Location, printable
from homing.errors import HomingError


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The result of a job for one photo; paths are given as strings."""

    photo: str
    """The photo's path, as it was given or found."""
    state: Literal["added", "known", "moved", "replaced", "activated", "unchanged", "removed", "failed"]
    released: str | None = None
    """The path of the released file."""
    psnr: float | None = None
    ssim: float | None = None
    linf: float | None = None
    reason: str | None = None
    """Why the photo failed or is unchanged, or what was done to keep the budget: one line, without the path."""
    bytes_before: int | None = None
    """Size of the photo's file."""
    bytes_after: int | None = None
    """Size of the released file."""
    notes: list[str] = field(default_factory=list)
    """What was written differently than in the original, in short sentences."""
    moved_from: str | None = None
    """The previously recorded path of a known photo whose file moved here."""
    overwrote: bool = False
    """Whether the released file replaced an earlier release of the same photo."""
    resumed: bool = False
    """Whether an earlier job already released the photo with these settings."""
    error: HomingError | None = field(default=None, repr=False, compare=False)
    """The error that prevented adding or activating the photo."""

    @property
    def remarks(self) -> list[str]:
        """The notes, and whether an earlier release was replaced."""
        return self.notes + ["An earlier release was replaced."] * self.overwrote


OutcomeCallback = Callable[[Outcome], None]
"""Called with the outcome of each photo as soon as it is known."""


def report_each(outcomes: Iterable[Outcome], on_outcome: OutcomeCallback | None) -> list[Outcome]:
    """A list of the outcomes, each reported as soon as it is known."""
    reported = []
    for outcome in outcomes:
        if on_outcome is not None:
            on_outcome(outcome)
        reported.append(outcome)
    return reported


def failed(photo: Location, error: HomingError) -> Outcome:
    """The outcome of a photo that failed with an error."""
    reason = str(error).removeprefix(f"{photo}: ").removeprefix(f"{printable(photo)}: ")
    return Outcome(photo=str(photo), state="failed", reason=reason, error=error)


@dataclass(frozen=True)
class Info:
    """A summary of a collection's contents."""

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
    """The codebook of the next generation, during a migration."""
    previous_codebook: str | None = None
    """The codebook of the previous generation, until it is deleted."""
    version: int | None = None
    """The version of the references, in a storage that keeps versions."""

    @property
    def passive(self) -> int:
        """The number of photos without a release."""
        return self.photos - self.activated - self.unchanged


@dataclass(frozen=True)
class Version:
    """A version of the references, in a storage that keeps versions."""

    number: int
    time: datetime
    photos: int


@dataclass(frozen=True)
class MigratedRelease:
    """A file that was activated for the old codebook, and its status with the new one."""

    photo: str
    released: str
    reason: str | None


@dataclass(frozen=True)
class Migration:
    """The progress of a migration, and which activated files keep their gain."""

    generation: Location
    codebook: str
    photos: int
    """Number of references in the next generation."""
    missing: list[str]
    """One line for each reference that could not be migrated: another extractor needs the files again."""
    gain_kept: list[MigratedRelease]
    gain_lost: list[MigratedRelease]
    """Files that need to be activated again."""
    gain_unknown: list[MigratedRelease]
    """Files whose gain cannot be measured because they are gone."""


# Seconds: no single write takes this long. A younger file may still be in use.
STALE_SECONDS = 600
Part = Literal["settings", "codebook", "distractors", "catalog", "reference", "index", "release", "file"]


@dataclass(frozen=True)
class Finding:
    """A problem in a collection, and how to fix it or how it was fixed."""

    part: Part
    problem: str
    action: str
    repaired: bool = False

    def __str__(self) -> str:
        return f"{self.part}: {self.problem}; {self.action}"


class Findings:
    """The findings of one check. With `repair`, problems are fixed as they are found."""

    def __init__(self, repair: bool) -> None:
        self.repair = repair
        self.found: list[Finding] = []

    def report(self, part: Part, problem: str, by_hand: str) -> None:
        """Report a problem that only the user can fix."""
        self.found.append(Finding(part, problem, by_hand))

    def repair_or_report(self, part: Part, problem: str, done: str, repair: Callable[[], None], by_hand: str) -> bool:
        """Fix a problem if this is a repair, otherwise report it. Returns whether it is fixed."""
        if not self.repair:
            self.report(part, problem, "homing check --repair repairs it")
            return False
        try:
            repair()
        except (HomingError, OSError) as error:
            self.report(part, problem, f"not repaired: {error}; {by_hand}")
            return False
        self.found.append(Finding(part, problem, done, repaired=True))
        return True
