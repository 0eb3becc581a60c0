"""The bench of chances: how often unrelated photos come as near as a match's chance says they do."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from homing import codebooks, extractors
from homing._files import make_out
from homing.codebooks import Codebook
from homing.codebooks.unrelated import PairDistances, distances_between
from homing.errors import HomingError
from homing.evaluation.protocol.setting import refuse_inside
from homing.evaluation.protocol.stage import Stage
from homing.evaluation.protocol.strangers import Strangers, find_strangers, read_strangers
from homing.photo import gather

By = Literal["code", "descriptor"]
SIZES = (1, 10, 100, 1_000, 10_000, 100_000)  # of the collections
STATED = (1e-1, 1e-2, 1e-3, 1e-4)
ENOUGH = 10  # so many are expected where a share is judged: with fewer it tells little
_QUERIES_AT_ONCE = 500


@dataclass(frozen=True, kw_only=True)
class SureBench:
    """Unrelated photos, or descriptors of such, and where everything goes: each half is searched for in the other."""

    background: Path
    out: Path
    strangers: int = 20_000
    codebooks: Sequence[str] = ("homing-1",)

    def __post_init__(self) -> None:
        if self.strangers < 2:
            raise HomingError(f"strangers are searched for among others, got {self.strangers}; give 2 or more")


@dataclass(frozen=True, kw_only=True)
class Row:
    """Of so many searches in collections of one size: how many found something that unlikely, and how many should."""

    codebook: str
    by: By
    references: int
    stated: float
    searches: int
    found: int

    @property
    def observed(self) -> float:
        """The share of searches that found something of at most the stated chance."""
        return self.found / self.searches

    @property
    def judged(self) -> bool:
        """Whether there were enough searches to tell."""
        return self.stated * self.searches >= ENOUGH


@dataclass(frozen=True)
class SureResult:
    """What a bench found, codebook by codebook."""

    bench: SureBench
    rows: list[Row]
    codebooks: list[Codebook]
    strangers: Strangers
    seconds: float


def run_sure_bench(bench: SureBench, stage: Stage) -> SureResult:
    """Measure each codebook in turn; descriptors stay in the out folder for the next run."""
    started = time.perf_counter()
    books = [codebooks.load(name) for name in bench.codebooks]
    refuse_inside(bench.out, bench.background)
    make_out(bench.out)
    rows: list[Row] = []
    strangers = None
    for book in books:
        strangers = _strangers(bench, book, stage)
        rows += _measured(book, strangers, stage)
    assert strangers is not None, "a bench has a codebook"
    return SureResult(bench, rows, books, strangers, time.perf_counter() - started)


def _strangers(bench: SureBench, book: Codebook, stage: Stage) -> Strangers:
    network = extractors.load(book.extractor)
    book.check(network)
    if bench.background.is_file():
        return read_strangers(bench.background, network, bench.strangers)
    photos = gather([bench.background])[: bench.strangers]  # one descriptor each: crops of one photo are related
    with stage(f"{book.name}: describing the strangers", len(photos)) as advance:
        return find_strangers(network, photos, len(photos), bench.out, advance)


def _measured(book: Codebook, strangers: Strangers, stage: Stage) -> Iterator[Row]:
    rows = np.asarray(strangers.descriptors, dtype=np.float32)
    halves = np.array_split(rows[np.random.default_rng(0).permutation(len(rows))], 2)
    sizes = [size for size in SIZES if size <= len(halves[1])]
    ways: dict[By, PairDistances | None] = {"code": book.unrelated.code, "descriptor": book.unrelated.descriptor}
    for by, distances in ways.items():
        if distances is None:
            continue
        found = np.zeros((len(sizes), len(STATED)), dtype=int)
        with stage(f"{book.name}: searching, by {by}", len(rows)) as advance:
            for asked, kept in (halves, halves[::-1]):
                queries, points = book.quantiser.compared(asked, kept) if by == "code" else (asked, kept)
                for start in range(0, len(queries), _QUERIES_AT_ONCE):
                    apart = distances_between(queries[start : start + _QUERIES_AT_ONCE], points)
                    for place, size in enumerate(sizes):
                        chances = distances.chance(_nearest(apart, size), size)
                        found[place] += [(chances <= stated).sum() for stated in STATED]
                    for _ in apart:
                        advance()
        for place, size in enumerate(sizes):
            searches = sum(len(asked) * (len(kept) // size) for asked, kept in (halves, halves[::-1]))
            for stated, count in zip(STATED, found[place].tolist(), strict=True):
                yield Row(codebook=book.name, by=by, references=size, stated=stated, searches=searches, found=count)


def _nearest(apart: np.ndarray, size: int) -> np.ndarray:
    """The smallest distances (Q, C) in each of as many collections of this size as the references (Q, N) make."""
    whole = apart.shape[1] // size
    smallest: np.ndarray = apart[:, : whole * size].reshape(len(apart), whole, size).min(axis=2)
    return smallest
