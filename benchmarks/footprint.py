"""Memory and time of adding photos, and startup time of the command line.

make bench
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from importlib.resources import files
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image
from rich.console import Console
from rich.table import Table

HOMING = str(Path(sys.executable).with_name("homing"))
SIZE = (1280, 960)


def main() -> None:
    """Measure child processes and print one table."""
    rows = [(f"homing {option}", _seconds(option), None) for option in ("--version", "--help")]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for count in (100, 1000):  # ascending: the system reports the peak over all children so far
            photos = _photos(folder / str(count), count)
            collection = str(folder / f"{count}.homing")
            _seconds("init", collection)
            seconds = _seconds("add", collection, str(photos))
            rows.append((f"homing add, {count:,} photos of {SIZE[0]}×{SIZE[1]}", seconds, _peak()))
    table = Table("command", "seconds", "peak memory")
    for name, seconds, peak in rows:
        table.add_row(name, f"{seconds:.2f}", f"{peak:.2f} GB" if peak else "")
    Console().print(table)


def _photos(folder: Path, count: int) -> Path:
    """Write different crops of a real photo as JPEG files."""
    folder.mkdir()
    source = Image.open(BytesIO(files("sklearn.datasets.images").joinpath("china.jpg").read_bytes())).convert("RGB")
    rng = np.random.default_rng(0)
    for number in range(count):
        left, top = int(rng.integers(0, 240)), int(rng.integers(0, 127))
        source.crop((left, top, left + 400, top + 300)).resize(SIZE).save(folder / f"{number:04}.jpg", quality=90)
    return folder


def _seconds(*arguments: str) -> float:
    started = time.perf_counter()
    subprocess.run([HOMING, *arguments], check=True, capture_output=True)
    return time.perf_counter() - started


def _peak() -> float:
    """Peak memory of all children so far, in GB (Linux counts in kilobytes)."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6


if __name__ == "__main__":
    main()
