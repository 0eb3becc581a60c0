"""A real `homing serve`, for tests and benchmarks."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Served:
    """A server, and where it listens."""

    process: subprocess.Popen[bytes]
    address: str


def begin(folder: Path, *options: str) -> Served:
    """Start a server over a collection; it listens when this is done. What it says lies in a file beside the folder."""
    command = [sys.executable, "-m", "homing", "serve", str(folder), "--port", "0", *options]
    log = folder.with_suffix(".log")
    with log.open("wb") as said:  # no pipe, which fills up where nobody reads it
        process = subprocess.Popen(command, stderr=said)
    while process.poll() is None:
        if found := re.search(r"at (http://\S+)\n", log.read_text()):
            return Served(process, found[1])
        time.sleep(0.02)
    raise AssertionError(log.read_text())


@contextmanager
def serve(folder: Path, *options: str) -> Iterator[Served]:
    """A server, which is stopped afterwards."""
    served = begin(folder, *options)
    try:
        yield served
    finally:
        served.process.terminate()
        served.process.wait(120)
