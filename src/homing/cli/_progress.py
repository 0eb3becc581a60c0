"""Progress on stderr: a bar on a terminal, one line a minute anywhere else; and Ctrl-C."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

import typer
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
from rich.text import Text

from homing.cli._console import err_console

LOG_INTERVAL = 60.0  # seconds
_last_line = monotonic()  # when the command began, or printed its last line


def start_command() -> None:
    """Begin the first interval of a command, in which no line is printed."""
    global _last_line
    _last_line = monotonic()


class _RateColumn(ProgressColumn):
    """Photos per second."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:.1f}/s" if task.speed else "", style="progress.data.speed")


@contextmanager
def progress(
    description: str, total: int, *, done: int = 0, unit: str = "", resumable: bool = False
) -> Iterator[Callable[[], None]]:
    """Show the progress of a job; yields the function that advances it by one.

    On a terminal it is a bar with rate and remaining time. Elsewhere it is one log line a minute, and none for a job
    that takes less than a minute. `unit` is what the lines count, such as "photos".
    """
    log = ProgressLog(description, total, done=done, unit=unit)
    with _bar(MofNCompleteColumn(), _RateColumn(), resumable=resumable) as bar:
        task = bar.add_task(description, total=total, completed=done)

        def advance() -> None:
            bar.advance(task)
            log.update(log.done + 1)

        yield advance


@contextmanager
def download_progress(description: str) -> Iterator[Callable[[int, int], None]]:
    """Show the progress of a download; yields the function that takes the bytes received and the size of the file."""
    log: ProgressLog | None = None
    with _bar(DownloadColumn(), TransferSpeedColumn(), resumable=True) as bar:

        def report(done: int, size: int) -> None:
            nonlocal log
            if log is None:  # The size is known only now. Bytes of an earlier call do not count for the rate.
                bar.add_task(description, total=size, completed=done)
                log = ProgressLog(f"{description}:", size / 1e6, done=done / 1e6, unit="MB")
            bar.update(bar.task_ids[0], completed=done)
            log.update(done / 1e6)

        yield report


class ProgressLog:
    """Progress lines for a stderr that is not a terminal.

    Lines of one command are at least `LOG_INTERVAL` apart, however many jobs it has. The first line comes that long
    after its start.
    """

    def __init__(self, description: str, total: float, *, done: float = 0, unit: str = "") -> None:
        self.done = done
        self._text = description[:1].lower() + description[1:] + ("" if unit else ":")
        self._total, self._unit = total, unit
        self._first, self._started = done, monotonic()

    def update(self, done: float) -> None:
        """Take what is done by now; print a line if one is due."""
        global _last_line
        self.done = done
        now = monotonic()
        if err_console.is_terminal or now - _last_line < LOG_INTERVAL or not self._first < done < self._total:
            return
        _last_line = now
        rate = (done - self._first) / (now - self._started)
        per_second = f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"
        counted = f"{done:,.0f} of {self._total:,.0f} {self._unit}".strip()
        left = _format_duration((self._total - done) / rate)
        err_console.print(
            f"homing: {self._text} {counted}, {per_second}/s, {left} left", highlight=False, soft_wrap=True
        )


def _format_duration(seconds: float) -> str:
    """A duration in its two largest units: 1 h 32 min."""
    minutes, hours = round(seconds / 60), round(seconds / 3600)
    if seconds < 60:
        return f"{seconds:.0f} s"
    if minutes < 60:
        return f"{minutes} min"
    if hours < 48:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{hours // 24} d {hours % 24} h"


@contextmanager
def _bar(*columns: ProgressColumn, resumable: bool) -> Iterator[Progress]:
    around = (TextColumn("{task.description}"), BarColumn(), *columns, TimeRemainingColumn())
    with Progress(*around, console=err_console, transient=True, disable=not err_console.is_terminal) as bar:
        try:
            with _interruptible(announce=resumable):
                yield bar
        except KeyboardInterrupt:
            kept = "; finished work is kept, run the same command to continue"
            err_console.print("homing: interrupted" + resumable * kept, soft_wrap=True)
            raise typer.Exit(130) from None


@contextmanager
def _interruptible(*, announce: bool) -> Iterator[None]:
    """Raise KeyboardInterrupt at the first Ctrl-C, exit at the second without waiting for photos in progress."""
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:  # Ctrl-C is ignored, or handled by someone else.
        yield
        return

    def stop(*_: object) -> None:
        # Until the process ends: without waiting for its threads. A collection survives being killed.
        signal.signal(signal.SIGINT, lambda *_: os._exit(130))
        if announce:
            err_console.print("homing: finishing the photos in progress; Ctrl-C again stops at once", soft_wrap=True)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is stop:
            signal.signal(signal.SIGINT, before)
