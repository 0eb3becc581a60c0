"""A collection of a million references: time to add (compared with FAISS alone), open and search; memory and disk.

python benchmarks/million.py            # a million; a few minutes on two cores, 3 GB of disk
python benchmarks/million.py --quick    # a tenth of that
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median, quantiles

import faiss
import numpy as np
import torch

from homing import codebooks
from homing._io.parallel import prefetch_map
from homing._tensors import hardware, memory_in_use
from homing.bench.tables import markdown
from homing.codebooks import Codebook
from homing.collection import Collection
from homing.collection.references import NewPhotos

BATCH = 20_000  # descriptors per encoding batch and references per recorded batch
QUERIES = 1000
NOISE_SCALE = 0.5  # distance of a descriptor from the code it is sampled around
CHILD_FLAG = "--measure"  # argument of the child process
WARMUP_SEARCHES = 50  # searches that are not counted


def main() -> None:
    """Print a table in Markdown."""
    if CHILD_FLAG in sys.argv:
        print(json.dumps(_measure(Path(sys.argv[-1]))))
        return
    count = 100_000 if "--quick" in sys.argv[1:] else 1_000_000
    print(
        f"{hardware()}; {torch.get_num_threads()} threads; {count:,} references in batches of {BATCH:,}\n", flush=True
    )
    codebook = codebooks.load("homing-1")
    descriptors = descriptors_of_photos(codebook, count)
    batches = [descriptors[start : start + BATCH] for start in range(0, count, BATCH)]
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        path = Path(folder) / "million.homing"
        faiss_seconds, codes_seconds = _faiss_seconds(codebook, batches)
        ours, snapshot_seconds = fill_collection(path, codebook, batches)
        opened = {name: _child(path, name) for name in ("snapshot", "no snapshot")}
        size = {file.name: file.stat().st_size for file in path.iterdir()}
    rows = [
        ("FAISS alone, add of descriptors", f"{count / faiss_seconds:,.0f} per second"),
        ("FAISS alone, add of precomputed codes", f"{count / codes_seconds:,.0f} per second"),
        ("homing, from descriptors to recorded on disk", f"{count / ours:,.0f} per second"),
        ("homing compared with FAISS, both from descriptors", f"{100 * (ours / faiss_seconds - 1):+.0f} % time"),
        ("index update and snapshot", f"{snapshot_seconds:.2f} s in total"),
        *((f"open, {name}, until the first answer", f"{each['open']:.2f} s") for name, each in opened.items()),
        ("search, one query, p50", f"{opened['snapshot']['p50']:.2f} ms"),
        ("search, one query, p99", f"{opened['snapshot']['p99']:.2f} ms"),
        ("memory of the searching process", f"{opened['snapshot']['memory']:.0f} MB"),
        ("of which before opening", f"{opened['snapshot']['before']:.0f} MB"),
        ("catalog on disk", f"{size['catalog.sqlite'] / 1e6:,.0f} MB"),
        ("snapshot of the index on disk", f"{size['index.faiss'] / 1e6:,.0f} MB"),
    ]
    print(markdown(["what", "measured"], rows))


def descriptors_of_photos(codebook: Codebook, count: int, seed: int = 0) -> torch.Tensor:
    """Sample unit vectors distributed like those of photos: the bundled distractors with random noise."""
    generator = torch.Generator().manual_seed(seed)
    codes = codebooks.bundled_distractors(codebook).codes
    descriptors = torch.empty(count, codebook.dim)
    for start in range(0, count, BATCH):
        indices = torch.randint(len(codes), (min(BATCH, count - start),), generator=generator)
        noise = torch.nn.functional.normalize(torch.randn(len(indices), codebook.dim, generator=generator), dim=1)
        rows = torch.nn.functional.normalize(codebook.decode(codes[indices.numpy()]), dim=1) + NOISE_SCALE * noise
        descriptors[start : start + len(indices)] = torch.nn.functional.normalize(rows, dim=1)
    return descriptors


def _faiss_seconds(codebook: Codebook, batches: Sequence[torch.Tensor]) -> tuple[float, float]:
    """Seconds that FAISS takes to add descriptors, and to add their precomputed codes."""
    codes = [codebook.encode(rows) for rows in batches]
    first = np.cumsum([0, *map(len, batches)])
    numbers = [first[i] + np.arange(len(rows)) for i, rows in enumerate(batches)]
    index, other = (faiss.clone_index(codebook.quantizer.codec) for _ in range(2))

    def add() -> None:
        for rows, ids in zip(batches, numbers, strict=True):
            index.add_with_ids(rows.numpy(), ids)

    def add_codes() -> None:
        for batch, ids in zip(codes, numbers, strict=True):
            other.add_sa_codes(batch, ids)

    return _seconds(add), _seconds(add_codes)


def fill_collection(path: Path, codebook: Codebook, batches: Sequence[torch.Tensor]) -> tuple[float, float]:
    """Fill a collection; return seconds to record the references, and to update the index and write its snapshot."""
    count = sum(map(len, batches))
    hashes = [hashlib.sha256(str(number).encode()).hexdigest() for number in range(count)]
    names = [f"/photos/{number // 1000:06}/{number:09}.jpg" for number in range(count)]

    def record() -> None:
        # One batch is encoded while the previous one is recorded, as photos are decoded while others are described.
        for number, codes in enumerate(prefetch_map(codebook.encode, batches, threads=1)):
            rows = slice(number * BATCH, (number + 1) * BATCH)
            collection.record(NewPhotos(hashes[rows], names[rows], codes, batches[number].numpy()))

    with Collection.create(path, codebook=codebook) as collection:
        took = _seconds(record)
        started = time.perf_counter()
        assert len(collection.index) == count
        collection.close()
        return took, time.perf_counter() - started


def _child(path: Path, name: str) -> dict[str, float]:
    """Measure in a new process that opens the collection with or without a snapshot."""
    if name == "no snapshot":
        (path / "index.faiss").unlink()
    done = subprocess.run([sys.executable, __file__, CHILD_FLAG, str(path)], check=True, capture_output=True, text=True)
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def _measure(path: Path) -> dict[str, float]:
    queries = descriptors_of_photos(codebooks.load("homing-1"), QUERIES + WARMUP_SEARCHES, seed=1)
    before = memory_in_use(peak=True) / 1e6
    started = time.perf_counter()
    with Collection.open(path) as collection:
        collection.search_descriptors(queries[:1])
        opened = time.perf_counter() - started
        took = [_seconds(lambda query=query: collection.search_descriptors(query[None])) for query in queries]
        memory = memory_in_use(peak=True) / 1e6
    times = [1000 * each for each in took[WARMUP_SEARCHES:]]
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
