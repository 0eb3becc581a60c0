"""Rate, latency and errors of searches in a service: clients on this machine send edited copies.

python benchmarks/serving.py --photos FOLDER                 # among the bundled distractors
python benchmarks/serving.py --photos FOLDER --references 1000000 --seconds 120    # 3 GB of disk, a few minutes more
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from random import Random

import httpx
import numpy as np
from million import BATCH, descriptors_of_photos, fill_collection

from homing import codebooks
from homing._tensors import hardware
from homing.bench.tables import markdown
from homing.collection import Collection
from homing.edits import PAPER
from homing.imaging import to_image
from homing.photo import LocalPhoto, Photo, find_photos

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.service.server_process import serve

PARTS = ("decode", "network", "search")
MOST = 200  # maximum number of photos used
WARMUP_SECONDS = 1.0  # seconds of each round that are not counted


@dataclass(frozen=True)
class Query:
    """Request body of a copy, and the name of its photo."""

    photo: str
    body: bytes
    headers: dict[str, str]


@dataclass
class Round:
    """Statuses and times of the requests of one number of clients."""

    clients: int
    seconds: float = 0.0
    statuses: Counter[str] = field(default_factory=Counter)
    whole: list[float] = field(default_factory=list)
    parts: list[tuple[float, ...]] = field(default_factory=list)
    found: int = 0

    def rows(self) -> Iterator[Sequence[str]]:
        """Yield one row for each part of a request."""
        parts = np.array(self.parts)
        times = {"whole request": np.array(self.whole), **dict(zip(PARTS, parts.T, strict=True))}
        times["all except the network"] = times["whole request"] - times["network"]
        rate = f"{len(self.whole) / self.seconds:.1f}"
        for name, values in times.items():
            yield str(self.clients), name, *(f"{np.percentile(values, at):.1f}" for at in (50, 95, 99)), rate

    def __str__(self) -> str:
        statuses = ", ".join(f"{number:,} of {status}" for status, number in sorted(self.statuses.items()))
        share = 100 * self.found / max(len(self.whole), 1)
        return (
            f"{self.clients} clients, {self.seconds:.0f} s: {statuses}; the photo was the first match of {share:.0f} %"
        )


def main() -> None:
    """Print a table in Markdown; exit with 1 at any status other than 200 and 429."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--photos", type=Path, required=True, help="a folder of photos: references and sources of the copies"
    )
    parser.add_argument(
        "--references", type=int, default=0, help="number of synthetic references; 0: the bundled distractors"
    )
    parser.add_argument("--collection", type=Path, help="the collection to use; created if missing")
    parser.add_argument("--seconds", type=float, default=20, help="duration of each round")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 64])
    options = parser.parse_args()
    print(f"{hardware()}; load {os.getloadavg()[0]:.1f} before", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as root:
        folder = options.collection or Path(root) / "served.homing"
        if not folder.exists():
            _make(folder, options.photos, options.references)
        queries = list(_queries(options.photos))
        with serve(folder) as server:
            rounds = [asyncio.run(_round(server.address, queries, each, options.seconds)) for each in options.clients]
    print(f"{hardware()}; load {os.getloadavg()[0]:.1f} at the end\n")
    print(markdown(["clients", "part", "p50, ms", "p95, ms", "p99, ms", "answered per second"], _rows(rounds)))
    print(*rounds, sep="\n")
    wrong = {status for each in rounds for status in each.statuses} - {"200", "429"}
    sys.exit(f"errors: {wrong}" if wrong else 0)


def _rows(rounds: Sequence[Round]) -> list[Sequence[str]]:
    return [row for each in rounds for row in each.rows()]


def _make(folder: Path, photos: Path, references: int) -> None:
    """Create a collection of the photos and synthetic references, or the bundled distractors."""
    codebook = codebooks.load("homing-1")
    if references:
        made = descriptors_of_photos(codebook, references)
        fill_collection(folder, codebook, [made[start : start + BATCH] for start in range(0, references, BATCH)])
    else:
        Collection.create(folder, codebook=codebook, with_distractors=True).close()
    with Collection.open(folder) as collection:
        collection.add([each.path for each in _chosen_photos(photos)])
        print(collection.search_settings(), file=sys.stderr, flush=True)


def _chosen_photos(photos: Path) -> list[LocalPhoto]:
    return find_photos([photos])[:MOST]


def _queries(photos: Path) -> Iterator[Query]:
    """Yield one copy of each photo, with the edits of the paper in turn."""
    for number, each in enumerate(_chosen_photos(photos)):
        edit, made = PAPER[number % len(PAPER)], BytesIO()
        edit(to_image(Photo.load(each.path).pixels()), seed=number).convert("RGB").save(made, "JPEG", quality=85)
        request = httpx.Request("POST", "http://localhost/", files={"photo": ("copy.jpg", made.getvalue())})
        yield Query(each.path.name, request.read(), {"Content-Type": request.headers["Content-Type"]})


async def _round(address: str, queries: Sequence[Query], clients: int, seconds: float) -> Round:
    """Run clients that each send the next request after the answer; the first second does not count."""
    seen = Round(clients)
    begin = time.perf_counter() + WARMUP_SECONDS
    end = begin + seconds

    async def one(number: int) -> None:
        rng = Random(number)
        async with httpx.AsyncClient(base_url=address, timeout=60) as client:
            while (started := time.perf_counter()) < end:
                query = rng.choice(queries)
                try:
                    answer = await client.post("/v1/search?k=10", content=query.body, headers=query.headers)
                except httpx.HTTPError as error:
                    seen.statuses[type(error).__name__] += 1
                    continue
                took = time.perf_counter() - started
                if started >= begin:
                    _note(seen, query, answer, 1000 * took)
                if answer.status_code == 429:
                    await asyncio.sleep(float(answer.headers["Retry-After"]))

    await asyncio.gather(*(one(number) for number in range(clients)))
    seen.seconds = time.perf_counter() - begin
    return seen


def _note(seen: Round, query: Query, answer: httpx.Response, took: float) -> None:
    seen.statuses[str(answer.status_code)] += 1
    if answer.status_code == 200:
        document = answer.json()
        seen.whole.append(took)
        seen.parts.append(tuple(document["milliseconds"][part] for part in PARTS))
        seen.found += bool(document["matches"]) and document["matches"][0]["photo"] == query.photo


if __name__ == "__main__":
    main()
