"""A collection of a million references: how fast it grows beside FAISS alone, opens, is searched, and what it takes.

python benchmarks/million.py            # a million: some minutes on two cores, and 3 GB of disk
python benchmarks/million.py --quick    # a tenth of that
"""

from __future__ import annotations

import hashlib
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median, quantiles

import faiss
import numpy as np
import torch

from homing import codebooks
from homing._machine import hardware
from homing.codebooks import Codebook
from homing.collection import Collection
from homing.collection.catalogue import NewPhoto
from homing.evaluation.results import markdown

BATCH = 20_000  # descriptors that are encoded, and references that are recorded, at once
QUERIES = 1000
FIRST, COUNTED = "--measure", 50  # what the child process is called with; searches before those that count


def main() -> None:
    """Print a table in Markdown."""
    if FIRST in sys.argv:
        print(json.dumps(_measure(Path(sys.argv[-1]))))
        return
    count = 100_000 if "--quick" in sys.argv[1:] else 1_000_000
    print(f"{hardware()}; {torch.get_num_threads()} threads; {count:,} references, {BATCH:,} at once\n")
    codebook = codebooks.load("homing-1")
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        path = Path(folder) / "million.homing"
        alone, theirs = _alone(codebook, count), _alone(codebook, count, codes=True)
        ours, kept = _grow(path, codebook, count)
        opened = {name: _child(path, fresh) for name, fresh in (("snapshot", False), ("no snapshot", True))}
        size = {file.name: file.stat().st_size for file in path.iterdir()}
    rows = [
        ("FAISS alone, add of descriptors", f"{count / alone:,.0f} a second"),
        ("FAISS alone, add of codes made before", f"{count / theirs:,.0f} a second"),
        ("homing, from descriptors to recorded on disk", f"{count / ours:,.0f} a second"),
        ("homing beside FAISS, both from descriptors", f"{100 * (ours / alone - 1):+.0f} % time"),
        ("following with the index, and its snapshot", f"{kept:.2f} s in all"),
        *((f"open, {name}, to the first answer", f"{each['open']:.2f} s") for name, each in opened.items()),
        ("search, one query, p50", f"{opened['snapshot']['p50']:.2f} ms"),
        ("search, one query, p99", f"{opened['snapshot']['p99']:.2f} ms"),
        ("memory of the process that searches", f"{opened['snapshot']['memory']:.0f} MB"),
        ("of that before it is opened", f"{opened['snapshot']['before']:.0f} MB"),
        ("catalogue on disk", f"{size['catalogue.sqlite'] / 1e6:,.0f} MB"),
        ("snapshot of the index on disk", f"{size['index.faiss'] / 1e6:,.0f} MB"),
    ]
    print(markdown(["what", "measured"], rows))


def _descriptors(count: int, dim: int, seed: int = 0) -> Iterator[torch.Tensor]:
    """Random unit vectors, batch by batch."""
    generator = torch.Generator().manual_seed(seed)
    for start in range(0, count, BATCH):
        rows = torch.randn(min(BATCH, count - start), dim, generator=generator)
        yield torch.nn.functional.normalize(rows, dim=1)


def _alone(codebook: Codebook, count: int, *, codes: bool = False) -> float:
    """Seconds in which FAISS takes the same descriptors, or the codes of them."""
    index = faiss.clone_index(codebook.quantiser.codec)
    took, last = 0.0, 0
    for rows in _descriptors(count, codebook.dim):
        given = codebook.encode(rows) if codes else codebook.turn(rows)
        ids = np.arange(last, last := last + len(rows))
        took += _seconds(lambda given=given, ids=ids: (index.add_sa_codes if codes else index.add_with_ids)(given, ids))
    return took


def _grow(path: Path, codebook: Codebook, count: int) -> tuple[float, float]:
    """Seconds in which a collection takes them, and in which its index follows and a snapshot is kept."""
    took, last = 0.0, 0
    with Collection.create(path, codebook=codebook) as collection:
        for rows in _descriptors(count, codebook.dim):
            names = range(last, last := last + len(rows))
            hashes = [hashlib.sha256(str(name).encode()).hexdigest() for name in names]

            def record(rows: torch.Tensor = rows, names: range = names, hashes: list[str] = hashes) -> object:
                codes = codebook.encode(rows)
                return collection.record(
                    [
                        NewPhoto(sha256, f"/photos/{name // 1000:06}/{name:09}.jpg", code, row)
                        for name, sha256, code, row in zip(names, hashes, codes, rows.numpy(), strict=True)
                    ]
                )

            took += _seconds(record)
        started = time.perf_counter()
        assert len(collection.index) == count
        collection.close()
        return took, time.perf_counter() - started


def _child(path: Path, fresh: bool) -> dict[str, float]:
    """What a process of its own measures: opened for the first time, in an empty memory."""
    if fresh:
        (path / "index.faiss").unlink()
    done = subprocess.run([sys.executable, __file__, FIRST, str(path)], check=True, capture_output=True, text=True)
    said: dict[str, float] = json.loads(done.stdout)
    return said


def _measure(path: Path) -> dict[str, float]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    started = time.perf_counter()
    with Collection.open(path) as collection:
        queries = next(_descriptors(QUERIES + COUNTED, collection.codebook.dim, seed=1))
        collection.search_descriptors(queries[:1])
        opened = time.perf_counter() - started
        took = [_seconds(lambda query=query: collection.search_descriptors(query[None])) for query in queries]
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    times = [1000 * each for each in took[COUNTED:]]
    return {
        "open": opened,
        "p50": median(times),
        "p99": quantiles(times, n=100)[98],
        "memory": memory,
        "before": before,
    }


def _seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
