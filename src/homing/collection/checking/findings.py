"""What a check has found so far, and the one way something is mended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from homing.collection.outcome import Finding
from homing.errors import HomingError

Part = Literal["settings", "codebook", "background", "catalogue", "reference", "index", "release", "file"]
# Seconds: nothing takes so long from its beginning to its end. What is younger may be somebody's who is at work.
STALE = 600


class Findings:
    """The findings of one check, which mends as it goes if it is a repair."""

    def __init__(self, repair: bool) -> None:
        self.repair = repair
        self.found: list[Finding] = []

    def leave(self, part: Part, problem: str, by_hand: str) -> None:
        """Something only a person can mend."""
        self.found.append(Finding(part, problem, by_hand))

    def mend(self, part: Part, problem: str, done: str, mend: Callable[[], None], by_hand: str) -> bool:
        """Something a repair mends, which is then `done`; whether it is mended now."""
        if not self.repair:
            self.leave(part, problem, "homing check --repair mends it")
            return False
        try:
            mend()
        except (HomingError, OSError) as error:
            self.leave(part, problem, f"not mended: {error}; {by_hand}")
            return False
        self.found.append(Finding(part, problem, done, mended=True))
        return True
