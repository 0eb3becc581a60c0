"""Outcomes of jobs on photos: progress, a line per failure, a summary, a report, the exit code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from homing._io.files import format_size
from homing.cli._console import console, print_json, print_remark
from homing.cli._progress import progress

if TYPE_CHECKING:
    from homing.collection import Outcome

# The states of outcomes and what the summary calls them, in its order.
ADDED = {"added": "added", "replaced": "replaced", "moved": "moved", "known": "known already", "failed": "failed"}
ACTIVATED = {"activated": "activated", "unchanged": "unchanged", "failed": "failed"}

Keep = Callable[["Outcome"], bool]
"""Whether an outcome is kept in memory after it is counted."""


class Tally:
    """The outcomes of a job: those to keep, their counts and their mean quality."""

    def __init__(self, labels: dict[str, str], advance: Callable[[], None], keep: Keep = lambda _: True) -> None:
        """`labels` maps states to words, in the order in which the summary lists them."""
        self.counts: Counter[str] = Counter()
        self.outcomes: list[Outcome] = []
        self._labels, self._advance, self._keep = labels, advance, keep
        self._resumed: Counter[str] = Counter()
        self._moved = self._overwrote = self._bytes_before = self._bytes_after = 0
        self._quality = {"psnr": 0.0, "ssim": 0.0, "linf": 0.0}

    def count(self, outcome: Outcome) -> None:
        """Count an outcome, and print a line if it is worth telling."""
        self._advance()
        if self._keep(outcome):
            self.outcomes.append(outcome)
        self.counts[outcome.state] += 1
        self._resumed[outcome.state] += outcome.resumed
        self._moved += outcome.moved_from is not None and outcome.state != "moved"
        self._overwrote += outcome.overwrote
        self._bytes_before += outcome.bytes_before or 0
        self._bytes_after += outcome.bytes_after or 0
        if outcome.state == "activated":
            for name in self._quality:
                self._quality[name] += getattr(outcome, name)
        if outcome.reason is not None or outcome.remarks:
            reason = f"{outcome.reason}." if outcome.reason is not None and outcome.remarks else outcome.reason
            text = " ".join(filter(None, [reason, *outcome.remarks]))
            style = "red" if outcome.state == "failed" else "yellow"
            print_remark("note" if outcome.reason is None else outcome.state, f"{outcome.photo}: {text}", style)

    def summary(self) -> str:
        """Counts, mean quality and sizes of files in one line."""
        parts = [self._phrase(state, word) for state, word in self._labels.items() if self.counts[state]]
        if self._moved:
            parts.append(f"{self._moved:,} of them moved")
        if self._overwrote:
            parts.append(f"{self._overwrote:,} of them replaced an earlier release")
        text = (", ".join(parts) or "Nothing to do") + "."
        if activated := self.counts["activated"]:
            psnr, ssim, linf = (total / activated for total in self._quality.values())
            text += f" Mean of the activated files: PSNR {psnr:.1f} dB, SSIM {ssim:.3f}, L∞ {linf:.0f}."
        if self._bytes_before:
            text += f" Files: {format_size(self._bytes_before)} before, {format_size(self._bytes_after)} after."
        return text

    def _phrase(self, state: str, word: str) -> str:
        count, before = self.counts[state], self._resumed[state]
        share = "all" if before == count else f"{before:,}"
        return f"{count:,} {word}" + (f" ({share} by an earlier job)" if before else "")


Document = Callable[[Tally], object]
"""Makes the JSON document of a job that has these outcomes."""


@contextmanager
def count_outcomes(
    description: str, total: int, labels: dict[str, str], document: Document | None, keep: Keep = lambda _: True
) -> Iterator[Tally]:
    """Show the progress of a job on this many photos; yields the tally that takes its outcomes.

    If the job is interrupted, its document, if one is asked for, is printed with the outcomes so far.
    """
    try:
        with progress(description, total, unit="photos", resumable=True) as advance:
            tally = Tally(labels, advance, keep)
            yield tally
    except typer.Exit:  # by Ctrl-C
        if document:
            print_json(document(tally))
        raise


def outcomes_json(tally: Tally) -> list[dict[str, object]]:
    """The JSON document of a job: the outcomes of its photos."""
    return [as_json(outcome) for outcome in tally.outcomes]


def as_json(outcome: Outcome) -> dict[str, object]:
    """An outcome as a JSON object."""
    document = asdict(replace(outcome, error=None))
    del document["error"]  # `reason` says it in words
    return document


def finish(
    tally: Tally, document: Document | None, report: Path | None = None, details: Callable[[], None] = lambda: None
) -> NoReturn:
    """Write the report of an activation, print the outcomes, and end the command: with exit code 1 if a photo failed.

    `details` prints what follows the summary.
    """
    if report is not None:
        from homing.reports import write_report

        with progress("Writing the report", len(tally.outcomes), unit="photos") as advance:
            write_report(tally.outcomes, report, advance)
    if document:
        print_json(document(tally))
    else:
        console.print(tally.summary())
        details()
        if report is not None:
            console.print(f"The report: {report}")
    raise typer.Exit(int(tally.counts["failed"] > 0))
