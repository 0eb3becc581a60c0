"""Jobs that add or activate photos: progress, a line per failure, a summary, the exit code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from homing._io.files import format_size
from homing.cli._console import console, err_console, one_line, print_json
from homing.cli._progress import progress

if TYPE_CHECKING:
    from homing.collection import Collection, Outcome


def run(
    path: str,
    photos: list[str] | None,
    description: str,
    labels: dict[str, str],
    json: bool,
    job: Callable[[Collection, Callable[[Outcome], None]], list[Outcome]],
    report: Path | None = None,
) -> None:
    """Run a job on a collection and print its outcomes. Ends the command: exit code 1 if a photo failed.

    Without `photos` the job is about the references that are still passive. A `report` is the path of an activation
    report to write.
    """
    from homing.collection import Collection
    from homing.photo import find_photos

    tally = Tally(labels)
    with ExitStack() as stack:
        collection = stack.enter_context(Collection.open(path))
        total = len(find_photos(photos)) if photos else collection.info().passive
        advance = stack.enter_context(progress(description, total, unit="photos", resumable=True))
        outcomes = job(collection, tally.reporter(advance))
    if report is not None:
        from homing.reports import write_report

        with progress("Writing the report", len(outcomes), unit="photos") as advance:
            write_report(outcomes, report, advance)
    if json:
        print_json([as_json(outcome) for outcome in outcomes])
    else:
        console.print(tally.summary(), highlight=False)
        if report is not None:
            console.print(f"The report: {report}", highlight=False)
    raise typer.Exit(int(tally.counts["failed"] > 0))


class Tally:
    """Counts and mean quality of the outcomes of a job."""

    def __init__(self, labels: dict[str, str]) -> None:
        """`labels` maps states to words, in the order in which the summary lists them."""
        self.counts: Counter[str] = Counter()
        self._resumed: Counter[str] = Counter()
        self._labels, self._moved, self._overwrote = labels, 0, 0
        self._bytes_before, self._bytes_after = 0, 0
        self._quality: dict[str, float] = dict.fromkeys(("psnr", "ssim", "linf"), 0.0)

    def reporter(self, advance: Callable[[], None]) -> Callable[[Outcome], None]:
        """A callback that counts each outcome and prints one line for each that is worth telling."""

        def report(outcome: Outcome) -> None:
            advance()
            self._count(outcome)
            if outcome.reason is not None:
                style = "red" if outcome.state == "failed" else "yellow"
                err_console.print(
                    one_line(f"{outcome.state:9} {outcome.photo}: {outcome.reason}", style), soft_wrap=True
                )
            if outcome.remarks and not outcome.resumed:
                line = f"note      {outcome.photo}: {' '.join(outcome.remarks)}"
                err_console.print(one_line(line, "yellow"), soft_wrap=True)

        return report

    def _count(self, outcome: Outcome) -> None:
        self.counts[outcome.state] += 1
        self._moved += outcome.moved_from is not None and outcome.state != "moved"
        self._overwrote += outcome.overwrote
        self._bytes_before += outcome.bytes_before or 0
        self._bytes_after += outcome.bytes_after or 0
        self._resumed[outcome.state] += outcome.resumed
        if outcome.state == "activated":
            for name in self._quality:
                self._quality[name] += getattr(outcome, name)

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


def as_json(outcome: Outcome) -> dict[str, object]:
    """An outcome as a JSON object."""
    document = asdict(replace(outcome, error=None))
    del document["error"]  # `reason` says it in words
    return document
