"""Mixed load on one collection for an hour: growth of memory, files and time while references change under search.

python benchmarks/mixed.py --minutes 60
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
import threading
import time
from itertools import count
from pathlib import Path
from statistics import median

import numpy as np
import torch

from homing import codebooks
from homing._tensors import hardware, memory_in_use
from homing.bench.tables import markdown
from homing.collection import Collection
from homing.collection.references import NewPhotos

REFERENCES = 100_000
CHANGE = 50  # references added, and references removed, per change
SEARCHERS = 2
PAUSE = 0.1  # seconds between searches of one thread, and between changes
ROWS = 10


def main() -> None:
    """Print a table in Markdown: memory, open files and times for each tenth of the run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    minutes = parser.parse_args().minutes
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        load = Load(Path(folder) / "mixed.homing")
        rows = [load.run(60 * minutes / ROWS, number) for number in range(ROWS)]
    print(f"{hardware()}; {minutes:g} minutes, {REFERENCES:,} references at any time\n")
    print(
        markdown(["minutes", "added and removed", "searches", "p50, ms", "memory, MB", "open files", "disk, MB"], rows)
    )


class Load:
    """One collection, a thread that changes it, and threads that search it."""

    def __init__(self, path: Path) -> None:
        self.path, self.started, self.changed = path, time.perf_counter(), 0
        self.codebook = codebooks.load("homing-1")
        self.rng = np.random.default_rng(0)
        self.numbers = count()
        Collection.create(path, codebook=self.codebook).close()
        for _ in range(0, REFERENCES, 100 * CHANGE):
            with Collection.open(path) as collection:
                collection.record(self._new(100 * CHANGE))

    def run(self, seconds: float, number: int) -> list[str]:
        """Open the collection, run a tenth of the load, close it and return the row of the table."""
        times: list[float] = []
        over = threading.Event()
        with Collection.open(self.path) as collection:
            searchers = [
                threading.Thread(target=self._search, args=(collection, over, times, number * SEARCHERS + each))
                for each in range(SEARCHERS)
            ]
            for each in searchers:
                each.start()
            until = time.perf_counter() + seconds
            oldest = 1 + self.changed
            while time.perf_counter() < until:
                collection.record(self._new(CHANGE))
                removed = collection.remove(list(range(oldest, oldest + CHANGE)))
                assert [each.state for each in removed] == ["removed"] * CHANGE
                oldest, self.changed = oldest + CHANGE, self.changed + CHANGE
                time.sleep(PAUSE)
            over.set()
            for each in searchers:
                each.join()
            assert len(collection.index) == REFERENCES
            row = self._row(times)
        print(" ".join(row), file=sys.stderr, flush=True)
        return row

    def _search(self, collection: Collection, over: threading.Event, times: list[float], seed: int) -> None:
        rng = np.random.default_rng(1 + seed)
        while not over.wait(PAUSE):
            query = torch.from_numpy(_unit(rng, 1))
            started = time.perf_counter()
            assert len(collection.search_descriptors(query)[0]) == 10
            times.append(time.perf_counter() - started)

    def _row(self, times: list[float]) -> list[str]:
        disk = sum(file.stat().st_size for file in self.path.iterdir())
        return [
            f"{(time.perf_counter() - self.started) / 60:.1f}",
            f"{self.changed:,}",
            f"{len(times):,}",
            f"{1000 * median(times):.2f}",
            f"{memory_in_use() / 1e6:.0f}",
            f"{len(list(Path('/proc/self/fd').iterdir()))}",
            f"{disk / 1e6:.0f}",
        ]

    def _new(self, count: int) -> NewPhotos:
        rows = _unit(self.rng, count)
        names = [str(next(self.numbers)) for _ in range(count)]
        hashes = [hashlib.sha256(name.encode()).hexdigest() for name in names]
        return NewPhotos(
            hashes, [f"/photos/{name}.jpg" for name in names], self.codebook.encode(torch.from_numpy(rows)), rows
        )


def _unit(rng: np.random.Generator, count: int) -> np.ndarray:
    rows = rng.standard_normal((count, 512), dtype=np.float32)
    unit: np.ndarray = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


if __name__ == "__main__":
    main()
