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

START_TIMEOUT = 300  # maximum seconds to start or stop a server


@dataclass(frozen=True)
class ServerProcess:
    """A running server and its address."""

    process: subprocess.Popen[bytes]
    address: str


@contextmanager
def serve(folder: Path, *options: str) -> Iterator[ServerProcess]:
    """Start a server for a collection, wait until it listens, and stop it afterwards if it still runs.

    Its output is in a log file next to the folder.
    """
    command = [sys.executable, "-m", "homing", "serve", str(folder), "--port", "0", *options]
    log = folder.with_suffix(".log")
    with log.open("wb") as output:  # a pipe that nobody reads would fill up
        process = subprocess.Popen(command, stderr=output)
    try:
        yield ServerProcess(process, _address(process, log))
    finally:
        process.terminate()
        try:
            process.wait(START_TIMEOUT)
        finally:
            process.kill()


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    """The address of a server, read from its log once it listens."""
    end = time.monotonic() + START_TIMEOUT
    while process.poll() is None and time.monotonic() < end:
        if found := re.search(r"at (http://\S+)\n", log.read_text()):
            return found[1]
        time.sleep(0.02)
    raise RuntimeError(f"homing serve does not listen: {log.read_text().strip() or 'its log is empty'}")
