"""What adding and activating share: a bar, a line for each failure, a summary, an exit code."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from homing.cli._screen import finite, line, messages, print_json, progress, screen

if TYPE_CHECKING:
    from homing.collection import Collection, Outcome


def run(
    path: Path,
    photos: list[str] | None,
    description: str,
    words: dict[str, str],
    json: bool,
    job: Callable[[Collection, Callable[[Outcome], None]], list[Outcome]],
) -> None:
    """Run a job on a collection and tell how it went; exits with 1 if some photos failed.

    Without photos it is one on those that are still passive.
    """
    from homing.collection import Collection
    from homing.photo import gather

    with ExitStack() as stack:
        collection = stack.enter_context(Collection.open(path))
        total = len(gather(photos)) if photos else collection.info().passive
        advance = stack.enter_context(progress(description, total, resumable=True))

        def report(outcome: Outcome) -> None:
            advance()
            if outcome.reason is not None:
                style = "red" if outcome.state == "failed" else "yellow"
                messages.print(line(f"{outcome.state:9} {outcome.reason}", style), soft_wrap=True)

        outcomes = job(collection, report)
    if json:
        print_json([as_json(outcome) for outcome in outcomes])
    else:
        screen.print(_summary(outcomes, words), highlight=False)
    raise typer.Exit(int(any(outcome.state == "failed" for outcome in outcomes)))


def _summary(outcomes: list[Outcome], words: dict[str, str]) -> str:
    counts: Counter[str] = Counter(outcome.state for outcome in outcomes)
    told = [f"{counts[state]:,} {word}" for state, word in words.items() if counts[state]]
    if moved := sum(outcome.moved_from is not None for outcome in outcomes if outcome.state != "moved"):
        told.append(f"{moved:,} of them moved")
    text = (", ".join(told) or "Nothing to do") + "."
    activated = [outcome for outcome in outcomes if outcome.state == "activated"]
    if activated:
        psnr, ssim, linf = (
            statistics.fmean(getattr(each, name) for each in activated) for name in ("psnr", "ssim", "linf")
        )
        text += f" Mean of the activated files: PSNR {psnr:.1f} dB, SSIM {ssim:.3f}, L∞ {linf:.0f}."
    return text


def as_json(outcome: Outcome) -> dict[str, object]:
    """An outcome for machines."""
    document = asdict(replace(outcome, error=None))
    del document["error"]  # the reason tells it
    return document | {key: finite(document[key]) for key in ("psnr", "ssim", "linf")}
