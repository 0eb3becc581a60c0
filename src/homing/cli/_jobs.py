"""What adding and activating share: a bar, a line for each failure, a summary, an exit code."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.text import Text

from homing.cli._screen import finite, messages, print_json, progress, screen

if TYPE_CHECKING:
    from homing.collection import Collection, Outcome


def run(
    path: Path,
    photos: list[str],
    description: str,
    words: dict[str, str],
    json: bool,
    job: Callable[[Collection, Callable[[Outcome], None]], list[Outcome]],
) -> None:
    """Run a job on a collection and tell how it went; exits with 1 if some photos failed."""
    from homing.collection import Collection
    from homing.photo import gather

    with Collection.open(path) as collection, progress(description, len(gather(photos)), resumable=True) as advance:

        def report(outcome: Outcome) -> None:
            advance()
            if outcome.reason is not None:
                style = "red" if outcome.state == "failed" else "yellow"
                messages.print(Text(f"{outcome.state:9} {outcome.reason}", style=style), soft_wrap=True)

        outcomes = job(collection, report)
    if json:
        print_json([_as_json(outcome) for outcome in outcomes])
    else:
        screen.print(_summary(outcomes, words), highlight=False)
    raise typer.Exit(int(any(outcome.state == "failed" for outcome in outcomes)))


def _summary(outcomes: list[Outcome], words: dict[str, str]) -> str:
    counts: Counter[str] = Counter(outcome.state for outcome in outcomes)
    text = ", ".join(f"{counts[state]:,} {word}" for state, word in words.items() if counts[state]) + "."
    moved = [outcome for outcome in outcomes if outcome.state == "activated"]
    if moved:
        psnr, ssim, linf = (
            statistics.fmean(getattr(each, name) for each in moved) for name in ("psnr", "ssim", "linf")
        )
        text += f" Mean of the activated files: PSNR {psnr:.1f} dB, SSIM {ssim:.3f}, L∞ {linf:.0f}."
    return text


def _as_json(outcome: Outcome) -> dict[str, object]:
    document = asdict(outcome)
    return document | {key: finite(document[key]) for key in ("psnr", "ssim", "linf")}
