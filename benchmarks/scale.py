"""Indexes from 10^4 to 10^7 references: time to add, bytes, search time; and time to choose a cell.

python benchmarks/scale.py --out scale        # about twenty minutes on two cores, 4 GB of memory, 30 GB of disk
python benchmarks/scale.py --out scale --references 1e4,1e5 --cells 4096,65536

Prints tables in Markdown and the corresponding lines of src/homing/rates.toml; writes scale.json.
The references are synthetic: the bundled distractors with random noise.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import mean, median, quantiles
from typing import Any

import faiss
import numpy as np
import torch
from million import descriptors_of_photos
from scale_catalog import record
from scale_engines import ENGINES
from scale_results import tables, toml

from homing import codebooks
from homing._tensors import hardware, memory_in_use
from homing.codebooks import Codebook

PIECE = 100_000  # descriptors in memory at a time
QUERIES, WARMUP = 1000, 50  # counted searches, and searches before them
QUERY_SEED = 1_000_000_007  # different from the seed of every piece
FLAT, GRAPH = "all centers", "HNSW32"


def main() -> None:
    """Measure, print the tables and write scale.json."""
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(_measure(sys.argv[2], Path(sys.argv[3]))))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--references", type=_numbers, default=[10_000, 100_000, 1_000_000, 1_100_000, 10_000_000])
    parser.add_argument(
        "--cells", type=_numbers, default=[4096, 65_536, 262_144], help="numbers of cells to choose from"
    )
    parser.add_argument("--engine", type=_engines, default=list(ENGINES), help=f"comma-separated: {', '.join(ENGINES)}")
    parser.add_argument("--out", type=Path, default=Path("scale"))
    options = parser.parse_args()
    codebook = codebooks.load("homing-1")
    options.out.mkdir(parents=True, exist_ok=True)
    document = {
        "hardware": f"{hardware()}; {torch.get_num_threads()} threads",
        "command": "python benchmarks/scale.py " + " ".join(sys.argv[1:]),
        "spec": codebook.spec,
        "queries": QUERIES,
        "rows": list(_grow(codebook, options.references, options.engine)),
        "cells": [row for count in options.cells for row in _choose(codebook, count)],
        "catalog": list(record(codebook, options.engine)),
        "memory": memory_in_use(peak=True),
    }
    (options.out / "scale.json").write_text(json.dumps(document, indent=2) + "\n")
    print(f"{tables(document)}\nFor src/homing/rates.toml:\n\n{toml(document)}", flush=True)


def _grow(codebook: Codebook, counts: Sequence[int], names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield one row for each number of references and engine; the engines add each piece in turn."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as temporary:
        folders = {name: Path(temporary, name) for name in names}
        for folder in folders.values():
            folder.mkdir()
        engines = {name: ENGINES[name](folder, codebook) for name, folder in folders.items()}
        took, encoding, added = dict.fromkeys(names, 0.0), 0.0, 0
        sizes = np.zeros(codebook.quantizer.ivf.nlist, dtype=np.int64)
        for count in sorted(counts):
            for first in range(added, count, PIECE):
                rows = descriptors_of_photos(codebook, min(PIECE, count - first), seed=first)
                ids = np.arange(first, first + len(rows))
                begun = time.perf_counter()
                codes = codebook.encode(rows)
                encoding += time.perf_counter() - begun
                sizes += np.bincount(codes[:, :2].copy().view("<u2").ravel(), minlength=len(sizes))  # a code's cell
                for name, engine in engines.items():
                    took[name] += _seconds(partial(engine.add, ids, codes, rows))
            added = count
            for name, engine in engines.items():
                saved = _seconds(engine.save)
                row = {"engine": name, "references": count, "encode_s": encoding, "add_s": took[name], "save_s": saved}
                row["disk"] = sum(file.stat().st_size for file in folders[name].rglob("*") if file.is_file())
                call = [sys.executable, __file__, "--measure", name, str(folders[name])]
                row |= json.loads(subprocess.run(call, check=True, stdout=subprocess.PIPE, text=True).stdout)
                for way in ("one", "default"):
                    row[way]["codes"] = _codes_scanned(codebook, sizes, row[way]["probes"])
                print(json.dumps(row), file=sys.stderr, flush=True)
                yield row


def _measure(name: str, folder: Path) -> dict[str, Any]:
    """Open an index in this process and measure its memory and searches."""
    codebook = codebooks.load("homing-1")
    queries = descriptors_of_photos(codebook, WARMUP + QUERIES, seed=QUERY_SEED)
    faiss.omp_set_num_threads(1)  # one core per search, as in a service with many clients
    faiss.IndexFlatL2(codebook.dim).search(queries[:1].numpy(), 1)  # memory of FAISS itself does not count
    before, begun = _memory(), time.perf_counter()
    search, probes_of = ENGINES[name].open(folder, codebook)
    search(queries[:1], 1)
    measured: dict[str, Any] = {"open_s": time.perf_counter() - begun, "memory": _memory() - before}
    for way, probes in (("one", 1), ("default", None)):
        took = [1000 * _seconds(partial(search, query[None], probes)) for query in queries][WARMUP:]
        measured[way] = {"p50": median(took), "p99": quantiles(took, n=100)[98], "probes": probes_of(probes)}
    return measured


def _memory() -> int:
    """Bytes in use, without freed memory that glibc retains."""
    ctypes.CDLL(None).malloc_trim(0)
    return memory_in_use()


def _codes_scanned(codebook: Codebook, sizes: np.ndarray, probes: int) -> float:
    """Average number of codes that a search compares, for cells of these sizes."""
    queries = descriptors_of_photos(codebook, WARMUP + QUERIES, seed=QUERY_SEED)[WARMUP:]
    _, cells = codebook.quantizer.ivf.quantizer.search(codebook.transform(queries), probes)
    return float(sizes[cells].sum(axis=1).mean())


def _choose(codebook: Codebook, cells: int) -> Iterator[dict[str, Any]]:
    """Measure the time to find the nearest of synthetic centroids, by exhaustive search and along a graph."""
    pieces = [
        descriptors_of_photos(codebook, min(PIECE, cells - first), seed=first) for first in range(0, cells, PIECE)
    ]
    queries = descriptors_of_photos(codebook, WARMUP + QUERIES, seed=QUERY_SEED).numpy()
    nearest: list[int] = []
    for way, index in ((FLAT, faiss.IndexFlatL2(codebook.dim)), (GRAPH, faiss.IndexHNSWFlat(codebook.dim, 32))):
        faiss.omp_set_num_threads(torch.get_num_threads())
        build = _seconds(lambda index=index: [index.add(piece.numpy()) for piece in pieces])
        faiss.omp_set_num_threads(1)
        took, found = [], []
        for query in queries:
            begun = time.perf_counter()
            _, ids = index.search(query[None], 1)
            took.append(1000 * (time.perf_counter() - begun))
            found.append(int(ids[0, 0]))
        nearest = nearest or found
        same = mean(one == other for one, other in zip(found, nearest, strict=True))
        row = {"cells": cells, "way": way, "build_s": build, "p50": median(took[WARMUP:]), "same": same}
        print(json.dumps(row), file=sys.stderr, flush=True)
        yield row
    faiss.omp_set_num_threads(torch.get_num_threads())


def _numbers(text: str) -> list[int]:
    return [int(float(each)) for each in text.split(",")]


def _engines(text: str) -> list[str]:
    names = text.split(",")
    if unknown := set(names) - set(ENGINES):
        raise argparse.ArgumentTypeError(f"unknown engine: {', '.join(unknown)}; choose from {', '.join(ENGINES)}")
    return names


def _seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
