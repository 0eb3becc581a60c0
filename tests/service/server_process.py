"""A real `homing serve`, for tests, benchmarks and tools."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

START_TIMEOUT = 300  # seconds that a server takes to begin or to end, at most


@dataclass(frozen=True)
class ServerProcess:
    """A server, and where it listens."""

    process: subprocess.Popen[bytes]
    address: str


@contextmanager
def serve(folder: Path, *options: str) -> Iterator[ServerProcess]:
    """A server over a collection that listens by now, and is stopped afterwards if it still runs.

    What it says lies in a file beside the folder.
    """
    command = [sys.executable, "-m", "homing", "serve", str(folder), "--port", "0", *options]
    log = folder.with_suffix(".log")
    with log.open("wb") as said:  # no pipe, which fills up where nobody reads it
        process = subprocess.Popen(command, stderr=said)
    try:
        yield ServerProcess(process, _address(process, log))
    finally:
        process.terminate()
        try:
            process.wait(START_TIMEOUT)
        finally:
            process.kill()


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    """Where a server listens, once it says so."""
    end = time.monotonic() + START_TIMEOUT
    while process.poll() is None and time.monotonic() < end:
        if found := re.search(r"at (http://\S+)\n", log.read_text()):
            return found[1]
        time.sleep(0.02)
    raise RuntimeError(f"homing serve does not listen: {log.read_text().strip() or 'it says nothing'}")
