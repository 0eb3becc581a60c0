"""Collect the findings of a check, and run repairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from homing.collection.outcome import Finding
from homing.errors import HomingError

Part = Literal["settings", "codebook", "distractors", "catalog", "reference", "index", "release", "file"]
# Seconds: no single write takes this long. A younger file may still be in use.
STALE_SECONDS = 600


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
