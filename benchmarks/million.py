"""A collection of a million references: how fast it grows beside FAISS alone, opens, is searched, and what it takes.

python benchmarks/million.py            # a million: some minutes on two cores, and 3 GB of disk
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
from homing._io.device import hardware, memory_in_use
from homing._io.parallel import prefetch_map
from homing.codebooks import Codebook
from homing.collection import Collection
from homing.collection.catalog import NewPhotos
from homing.evaluation.results import markdown

BATCH = 20_000  # descriptors that are encoded, and references that are recorded, at once
QUERIES = 1000
NOISE_SCALE = 0.5  # how far a descriptor lies from the code it is drawn beside
CHILD_FLAG, WARMUP_SEARCHES = "--measure", 50  # what the child process is called with; searches before those that count


def main() -> None:
    """Print a table in Markdown."""
    if CHILD_FLAG in sys.argv:
        print(json.dumps(_measure(Path(sys.argv[-1]))))
        return
    count = 100_000 if "--quick" in sys.argv[1:] else 1_000_000
    print(f"{hardware()}; {torch.get_num_threads()} threads; {count:,} references, {BATCH:,} at once\n", flush=True)
    codebook = codebooks.load("homing-1")
    descriptors = descriptors_of_photos(codebook, count)
    batches = [descriptors[start : start + BATCH] for start in range(0, count, BATCH)]
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        path = Path(folder) / "million.homing"
        alone, codes_only = _alone(codebook, batches)
        ours, kept = fill_collection(path, codebook, batches)
        opened = {name: _child(path, name) for name in ("snapshot", "no snapshot")}
        size = {file.name: file.stat().st_size for file in path.iterdir()}
    rows = [
        ("FAISS alone, add of descriptors", f"{count / alone:,.0f} a second"),
        ("FAISS alone, add of codes made before", f"{count / codes_only:,.0f} a second"),
        ("homing, from descriptors to recorded on disk", f"{count / ours:,.0f} a second"),
        ("homing beside FAISS, both from descriptors", f"{100 * (ours / alone - 1):+.0f} % time"),
        ("following with the index, and its snapshot", f"{kept:.2f} s in all"),
        *((f"open, {name}, to the first answer", f"{each['open']:.2f} s") for name, each in opened.items()),
        ("search, one query, p50", f"{opened['snapshot']['p50']:.2f} ms"),
        ("search, one query, p99", f"{opened['snapshot']['p99']:.2f} ms"),
        ("memory of the process that searches", f"{opened['snapshot']['memory']:.0f} MB"),
        ("of that before it is opened", f"{opened['snapshot']['before']:.0f} MB"),
        ("catalog on disk", f"{size['catalog.sqlite'] / 1e6:,.0f} MB"),
        ("snapshot of the index on disk", f"{size['index.faiss'] / 1e6:,.0f} MB"),
    ]
    print(markdown(["what", "measured"], rows))


def descriptors_of_photos(codebook: Codebook, count: int, seed: int = 0) -> torch.Tensor:
    """Unit vectors that lie as those of photos do: at random beside the codes of COCO that come with the codebook."""
    generator = torch.Generator().manual_seed(seed)
    codes = codebooks.bundled_distractors(codebook).codes
    made = torch.empty(count, codebook.dim)
    for start in range(0, count, BATCH):
        some = torch.randint(len(codes), (min(BATCH, count - start),), generator=generator)
        noise = torch.nn.functional.normalize(torch.randn(len(some), codebook.dim, generator=generator), dim=1)
        rows = torch.nn.functional.normalize(codebook.decode(codes[some.numpy()]), dim=1) + NOISE_SCALE * noise
        made[start : start + len(some)] = torch.nn.functional.normalize(rows, dim=1)
    return made


def _alone(codebook: Codebook, batches: Sequence[torch.Tensor]) -> tuple[float, float]:
    """Seconds in which FAISS takes descriptors, and in which it takes the codes of them, made before."""
    codes = [codebook.encode(rows) for rows in batches]
    first = np.cumsum([0, *map(len, batches)])
    numbers = [first[place] + np.arange(len(rows)) for place, rows in enumerate(batches)]
    index, other = (faiss.clone_index(codebook.quantizer.codec) for _ in range(2))

    def add() -> None:
        for rows, ids in zip(batches, numbers, strict=True):
            index.add_with_ids(rows.numpy(), ids)

    def add_codes() -> None:
        for some, ids in zip(codes, numbers, strict=True):
            other.add_sa_codes(some, ids)

    return _seconds(add), _seconds(add_codes)


def fill_collection(path: Path, codebook: Codebook, batches: Sequence[torch.Tensor]) -> tuple[float, float]:
    """Seconds in which a collection takes them, and in which its index follows and a snapshot is kept."""
    count = sum(map(len, batches))
    hashes = [hashlib.sha256(str(number).encode()).hexdigest() for number in range(count)]
    names = [f"/photos/{number // 1000:06}/{number:09}.jpg" for number in range(count)]

    def record() -> None:
        # One batch is encoded while that before it is recorded, as photos are read while others are described.
        for place, codes in enumerate(prefetch_map(codebook.encode, batches, threads=1)):
            some = slice(place * BATCH, (place + 1) * BATCH)
            collection.record(NewPhotos(hashes[some], names[some], codes, batches[place].numpy()))

    with Collection.create(path, codebook=codebook) as collection:
        took = _seconds(record)
        started = time.perf_counter()
        assert len(collection.index) == count
        collection.close()
        return took, time.perf_counter() - started


def _child(path: Path, name: str) -> dict[str, float]:
    """What a process of its own measures that opens the collection with a snapshot, or without."""
    if name == "no snapshot":
        (path / "index.faiss").unlink()
    done = subprocess.run([sys.executable, __file__, CHILD_FLAG, str(path)], check=True, capture_output=True, text=True)
    said: dict[str, float] = json.loads(done.stdout)
    return said


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
