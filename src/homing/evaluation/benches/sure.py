"""The bench of chances: how often unrelated photos come as near as a match's chance says they do."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from homing import codebooks, extractors
from homing._files import make_out
from homing.codebooks import Codebook
from homing.codebooks.pairs import NO_PAIRS, distances_between
from homing.codebooks.unrelated import By
from homing.errors import HomingError
from homing.evaluation.protocol.setting import refuse_inside
from homing.evaluation.protocol.stage import Stage
from homing.evaluation.protocol.strangers import Strangers, find_strangers, read_strangers
from homing.evaluation.related import LOOKED_AT, related_pairs
from homing.photo import gather

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
    leave_out_related: bool = False

    def __post_init__(self) -> None:
        if self.leave_out_related and self.background.is_file():
            raise HomingError("descriptors do not tell which photos show one scene; give a folder of photos")
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
    related: int
    seconds: float


def run_sure_bench(bench: SureBench, stage: Stage) -> SureResult:
    """Measure each codebook in turn; descriptors stay in the out folder for the next run."""
    started = time.perf_counter()
    books = [codebooks.load(name) for name in bench.codebooks]
    refuse_inside(bench.out, bench.background)
    make_out(bench.out)
    rows: list[Row] = []
    strangers, related = None, NO_PAIRS
    for book in books:
        strangers = _strangers(bench, book, stage)
        if bench.leave_out_related:
            related = _related(bench, strangers, stage)
        rows += measured(book, strangers, related, stage)
    assert strangers is not None, "a bench has a codebook"
    return SureResult(bench, rows, books, strangers, len(related), time.perf_counter() - started)


def _strangers(bench: SureBench, book: Codebook, stage: Stage) -> Strangers:
    network = extractors.load(book.extractor)
    book.check(network)
    if bench.background.is_file():
        return read_strangers(bench.background, network, bench.strangers)
    photos = gather([bench.background])[: bench.strangers]  # one descriptor each: crops of one photo are related
    with stage(f"{book.name}: describing the strangers", len(photos)) as advance:
        return find_strangers(network, photos, len(photos), bench.out, advance)


def _related(bench: SureBench, strangers: Strangers, stage: Stage) -> np.ndarray:
    if strangers.failures:
        raise HomingError(f"all photos must be readable to tell which are related; one is not: {strangers.failures[0]}")
    photos = [photo.path for photo in gather([bench.background])[: bench.strangers]]
    with stage("looking for pairs that show one scene", LOOKED_AT) as advance:
        return related_pairs(photos, strangers.descriptors, advance)


def measured(book: Codebook, strangers: Strangers, related: np.ndarray, stage: Stage) -> Iterator[Row]:
    """Search for each half of the strangers in collections of the other; pairs (R, 2) that are related do not count."""
    rows = np.asarray(strangers.descriptors, dtype=np.float32)
    halves = np.array_split(np.random.default_rng(0).permutation(len(rows)), 2)
    sizes = [size for size in SIZES if size <= len(halves[1])]
    ways: list[By] = ["code"] if book.unrelated.descriptor is None else ["code", "descriptor"]
    both_ways = np.concatenate([related, related[:, ::-1]])
    for by in ways:
        found = np.zeros((len(sizes), len(STATED)), dtype=int)
        with stage(f"{book.name}: searching, by {by}", len(rows)) as advance:
            for asked, kept in (halves, halves[::-1]):
                queries, points = rows[asked], rows[kept]
                if by == "code":
                    queries, points = book.quantiser.compared(queries, points)
                likeness = {size: _likeness(book, rows[kept], size) for size in sizes}
                for start in range(0, len(asked), _QUERIES_AT_ONCE):
                    some = asked[start : start + _QUERIES_AT_ONCE]
                    apart = distances_between(queries[start : start + _QUERIES_AT_ONCE], points)
                    apart[_where(both_ways, some, kept, len(rows))] = np.inf
                    for place, size in enumerate(sizes):
                        nearest = _in_collections(apart.T, size).min(axis=1)
                        chances = book.unrelated.chance(by, nearest, size, likeness[size])
                        found[place] += [(chances <= stated).sum() for stated in STATED]
                    for _ in some:
                        advance()
        for place, size in enumerate(sizes):
            searches = sum(len(asked) * (len(kept) // size) for asked, kept in (halves, halves[::-1]))
            for stated, count in zip(STATED, found[place].tolist(), strict=True):
                yield Row(codebook=book.name, by=by, references=size, stated=stated, searches=searches, found=count)


def _in_collections(references: np.ndarray, size: int) -> np.ndarray:
    """As many collections (C, size, …) of this size as the references (N, …) make."""
    whole = len(references) // size
    return references[: whole * size].reshape(whole, size, *references.shape[1:])


def _likeness(book: Codebook, references: np.ndarray, size: int) -> np.ndarray:
    """How much alike the photos of each of these collections are: (C, 1)."""
    return np.array([[book.unrelated.likeness(some)] for some in _in_collections(references, size)])


def _where(
    pairs: np.ndarray, queries: np.ndarray, references: np.ndarray, photos: int
) -> tuple[np.ndarray, np.ndarray]:
    """Where in a table of queries and references, each some of the photos, pairs of photos stand."""
    rows, columns = np.full(photos, -1), np.full(photos, -1)
    rows[queries], columns[references] = np.arange(len(queries)), np.arange(len(references))
    row, column = rows[pairs[:, 0]], columns[pairs[:, 1]]
    here = (row >= 0) & (column >= 0)
    return row[here], column[here]
