"""What a check has found so far, and the one way something is repaired."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from homing.collection.outcome import Finding
from homing.errors import HomingError

Part = Literal["settings", "codebook", "distractors", "catalog", "reference", "index", "release", "file"]
# Seconds: nothing takes so long from its beginning to its end. What is younger may be somebody's who is at work.
STALE_SECONDS = 600


class Findings:
    """The findings of one check, which repairs as it goes if it is a repair."""

    def __init__(self, repair: bool) -> None:
        self.repair = repair
        self.found: list[Finding] = []

    def report(self, part: Part, problem: str, by_hand: str) -> None:
        """Something only a person can repair."""
        self.found.append(Finding(part, problem, by_hand))

    def repair_or_report(self, part: Part, problem: str, done: str, repair: Callable[[], None], by_hand: str) -> bool:
        """Something a repair repairs, which is then `done`; whether it is repaired now."""
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
