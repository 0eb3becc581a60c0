"""What adding and activating share: a bar, a line for each failure, a summary, an exit code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import typer

from homing.cli._console import console, err_console, finite_or_none, one_line, print_json, progress

if TYPE_CHECKING:
    from homing.collection import Collection, Outcome


def run(
    path: str,
    photos: list[str] | None,
    description: str,
    labels: dict[str, str],
    json: bool,
    job: Callable[[Collection, Callable[[Outcome], None]], list[Outcome]],
) -> None:
    """Run a job on a collection and tell how it went; exits with 1 if some photos failed.

    Without photos it is one on those that are still passive.
    """
    from homing.collection import Collection
    from homing.photo import find_photos

    tally = Tally(labels)
    with ExitStack() as stack:
        collection = stack.enter_context(Collection.open(path))
        total = len(find_photos(photos)) if photos else collection.info().passive
        advance = stack.enter_context(progress(description, total, resumable=True))
        outcomes = job(collection, tally.reporter(advance))
    if json:
        print_json([as_json(outcome) for outcome in outcomes])
    else:
        console.print(tally.summary(), highlight=False)
    raise typer.Exit(int(tally.counts["failed"] > 0))


class Tally:
    """What came of a job, counted photo by photo, however many there are."""

    def __init__(self, labels: dict[str, str]) -> None:
        """States, and the labels for them, in the order in which they are printed."""
        self.counts: Counter[str] = Counter()
        self._resumed: Counter[str] = Counter()
        self._labels, self._moved, self._overwrote = labels, 0, 0
        self._quality: dict[str, float] = dict.fromkeys(("psnr", "ssim", "linf"), 0.0)

    def reporter(self, advance: Callable[[], None]) -> Callable[[Outcome], None]:
        """Counts outcomes as they come, and says at once why some are not as they should be."""

        def report(outcome: Outcome) -> None:
            advance()
            self._count(outcome)
            if outcome.reason is not None:
                style = "red" if outcome.state == "failed" else "yellow"
                err_console.print(one_line(f"{outcome.state:9} {outcome.reason}", style), soft_wrap=True)

        return report

    def _count(self, outcome: Outcome) -> None:
        self.counts[outcome.state] += 1
        self._moved += outcome.moved_from is not None and outcome.state != "moved"
        self._overwrote += outcome.overwrote
        self._resumed[outcome.state] += outcome.resumed
        if outcome.state == "activated":
            for name in self._quality:
                self._quality[name] += getattr(outcome, name)

    def summary(self) -> str:
        """All of it in a line."""
        parts = [self._phrase(state, word) for state, word in self._labels.items() if self.counts[state]]
        if self._moved:
            parts.append(f"{self._moved:,} of them moved")
        if self._overwrote:
            parts.append(f"{self._overwrote:,} of them in place of earlier releases")
        text = (", ".join(parts) or "Nothing to do") + "."
        if activated := self.counts["activated"]:
            psnr, ssim, linf = (total / activated for total in self._quality.values())
            text += f" Mean of the activated files: PSNR {psnr:.1f} dB, SSIM {ssim:.3f}, L∞ {linf:.0f}."
        return text

    def _phrase(self, state: str, word: str) -> str:
        count, before = self.counts[state], self._resumed[state]
        share = "all" if before == count else f"{before:,}"
        return f"{count:,} {word}" + (f" ({share} by an earlier job)" if before else "")


def as_json(outcome: Outcome) -> dict[str, object]:
    """An outcome for machines."""
    document = asdict(replace(outcome, error=None))
    del document["error"]  # the reason tells it
    return document | {key: finite_or_none(document[key]) for key in ("psnr", "ssim", "linf")}
