"""What a person sees: progress and messages on stderr, results on stdout; one JSON document for machines."""

from __future__ import annotations

import json
import math
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.table import Table
from rich.text import Text

# No markup: names of files may hold square brackets. Wide when piped, so that no line is folded.
console = Console(markup=False, width=None if sys.stdout.isatty() else 1000)
err_console = Console(markup=False, stderr=True)

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
CollectionPath = Annotated[
    str, typer.Argument(metavar="COLLECTION", help="The collection's folder, or its address: s3://bucket/photos.lance.")
]
PhotoPaths = Annotated[
    list[Path], typer.Argument(metavar="PHOTO_OR_FOLDER…", readable=False, help="Photos, or folders of photos.")
]
_SOURCES = typer.Argument(
    metavar="PHOTO_OR_FOLDER…", help="Photos, or folders of photos: paths, or addresses such as s3://bucket/photos."
)
PhotoSources = Annotated[list[str], _SOURCES]
OptionalPhotoSources = Annotated[list[str] | None, _SOURCES]


class _Rate(ProgressColumn):
    """Photos per second."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:.1f}/s" if task.speed else "", style="progress.data.speed")


@contextmanager
def progress(description: str, total: int, *, done: int = 0, resumable: bool = False) -> Iterator[Callable[[], None]]:
    """A bar with a rate and an ETA; gives the function that moves it on by one. Silent when piped."""
    with _bar(MofNCompleteColumn(), _Rate(), resumable=resumable) as bar:
        task = bar.add_task(description, total=total, completed=done)
        yield lambda: bar.advance(task)


@contextmanager
def download_progress(description: str) -> Iterator[Callable[[int, int], None]]:
    """The same for a file: gives the function that takes how many bytes of how many are here."""
    with _bar(DownloadColumn(), TransferSpeedColumn(), resumable=True) as bar:

        def report(done: int, size: int) -> None:
            if bar.tasks:
                bar.update(bar.task_ids[0], completed=done)
            else:  # only now is the size known; what an earlier call fetched does not count for the rate
                bar.add_task(description, total=size, completed=done)

        yield report


@contextmanager
def _bar(*columns: ProgressColumn, resumable: bool) -> Iterator[Progress]:
    around = (TextColumn("{task.description}"), BarColumn(), *columns, TimeRemainingColumn())
    with Progress(*around, console=err_console, transient=True, disable=not err_console.is_terminal) as bar:
        try:
            with _interruptible(announce=resumable):
                yield bar
        except KeyboardInterrupt:
            err_console.print("homing: interrupted" + resumable * "; what was done is kept, the same command continues")
            raise typer.Exit(130) from None


@contextmanager
def _interruptible(*, announce: bool) -> Iterator[None]:
    """Ctrl-C is heard at once, though photos in hand may take a while to be done; a second one does not wait."""
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # it is ignored in the background, or somebody else's
        yield
        return

    def stop(*_: object) -> None:
        signal.signal(signal.SIGINT, _exit_now)  # and stays so until the process is gone
        if announce:
            err_console.print("homing: stopping when what is in hand is done; Ctrl-C again stops at once")
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is stop:
            signal.signal(signal.SIGINT, before)


def _exit_now(*_: object) -> None:
    """End this process here and now, without waiting for its threads: no collection minds being killed."""
    os._exit(130)


def print_json(document: Any) -> None:
    """One JSON document on stdout."""
    typer.echo(json.dumps(document, indent=2, default=str, allow_nan=False))


def finite_or_none(value: float | None) -> float | None:
    """JSON has no infinity: the PSNR of two equal photos is null there."""
    return value if value is not None and math.isfinite(value) else None


def table(*headings: str) -> Table:
    """A plain table."""
    result = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        result.add_column(heading, overflow="fold")
    return result


def print_key_values(facts: dict[str, object]) -> None:
    """Names and values, one pair a line."""
    result = Table(box=None, show_header=False, pad_edge=False)
    for name, value in facts.items():
        result.add_row(Text(name, style="bold"), one_line(value))
    console.print(result)


def one_line(text: object, style: str = "") -> Text:
    """One line whatever the names of files in it: what would break it, or speak to the terminal, is written out."""
    shown = (each if each.isprintable() else each.encode("unicode_escape").decode() for each in str(text))
    return Text("".join(shown), style=style)


def report_error(error: object) -> int:
    """Say in one line why the call was wrong."""
    err_console.print(one_line(f"homing: {error}", "red"), soft_wrap=True)
    return 2
