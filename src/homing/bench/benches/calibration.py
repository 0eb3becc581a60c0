"""The calibration bench: how often false matches occur, compared with their stated probability."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from homing import codebooks, extractors
from homing._io.files import prepare_output_folder
from homing.bench.protocol.config import refuse_inside
from homing.bench.protocol.descriptor_set import DescriptorSet, compute_descriptor_set, read_descriptor_set
from homing.bench.protocol.progress import Progress
from homing.bench.related import MAX_PAIRS, related_pairs
from homing.codebooks import Codebook
from homing.codebooks.null_distribution import ComparedBy
from homing.codebooks.pairs import NO_PAIRS, pairwise_distances
from homing.errors import HomingError
from homing.photo import find_photos

SIZES = (1, 10, 100, 1_000, 10_000, 100_000)  # numbers of references in a collection
STATED_PROBABILITIES = (1e-1, 1e-2, 1e-3, 1e-4)
MIN_EXPECTED = 10  # expected false matches below which a share is too uncertain to report
_QUERIES_AT_ONCE = 500


@dataclass(frozen=True, kw_only=True)
class CalibrationBench:
    """Unrelated photos, or their descriptors, and the out folder: each half is searched for in the other."""

    distractor_photos: Path
    out: Path
    distractors: int = 20_000
    codebooks: Sequence[str] = ("homing-1",)
    exclude_related: bool = False

    def __post_init__(self) -> None:
        if self.exclude_related and self.distractor_photos.is_file():
            raise HomingError("related photos cannot be found from descriptors alone; give a folder of photos")
        if self.distractors < 2:
            raise HomingError(
                f"distractors must be at least 2, to search for one half in the other, got {self.distractors}"
            )


@dataclass(frozen=True, kw_only=True)
class CalibrationRow:
    """The number of searches in collections of one size, and of those with a match of at most a stated probability."""

    codebook: str
    compared: ComparedBy
    references: int
    stated: float
    searches: int
    found: int

    @property
    def observed(self) -> float:
        """The share of searches with a match of at most the stated false-match probability."""
        return self.found / self.searches

    @property
    def enough_searches(self) -> bool:
        """Whether there are enough searches for a meaningful share."""
        return self.stated * self.searches >= MIN_EXPECTED


@dataclass(frozen=True)
class CalibrationResult:
    """The results of the bench: the rows of all codebooks."""

    bench: CalibrationBench
    rows: list[CalibrationRow]
    codebooks: list[Codebook]
    distractors: DescriptorSet
    related: int
    seconds: float


def run_calibration_bench(bench: CalibrationBench, progress: Progress) -> CalibrationResult:
    """Measure each codebook; descriptors are cached in the out folder."""
    started = time.perf_counter()
    books = [codebooks.load(name) for name in bench.codebooks]
    refuse_inside(bench.out, bench.distractor_photos)
    prepare_output_folder(bench.out)
    rows: list[CalibrationRow] = []
    distractors, related = None, NO_PAIRS
    for book in books:
        distractors = _distractors(bench, book, progress)
        if bench.exclude_related:
            related = _related(bench, distractors, progress)
        rows += measure(book, distractors, related, progress)
    assert distractors is not None, "a bench has a codebook"
    return CalibrationResult(bench, rows, books, distractors, len(related), time.perf_counter() - started)


def _distractors(bench: CalibrationBench, book: Codebook, progress: Progress) -> DescriptorSet:
    network = extractors.load(book.extractor)
    book.check(network)
    if bench.distractor_photos.is_file():
        return read_descriptor_set(bench.distractor_photos, network, bench.distractors)
    photos = find_photos([bench.distractor_photos])[: bench.distractors]  # no crops: crops of one photo are related
    with progress(f"{book.name}: describing the distractors", len(photos)) as advance:
        return compute_descriptor_set(network, photos, len(photos), bench.out, advance)


def _related(bench: CalibrationBench, distractors: DescriptorSet, progress: Progress) -> np.ndarray:
    if distractors.failures:
        raise HomingError(f"--exclude-related needs photos that can all be read; one cannot: {distractors.failures[0]}")
    photos = [photo.path for photo in find_photos([bench.distractor_photos])[: bench.distractors]]
    with progress("looking for pairs of the same scene", MAX_PAIRS) as advance:
        return related_pairs(photos, distractors.descriptors, advance)


def measure(
    book: Codebook, distractors: DescriptorSet, related: np.ndarray, progress: Progress
) -> Iterator[CalibrationRow]:
    """Search for each half of the distractors in collections of the other; related pairs (R, 2) are excluded."""
    rows = np.asarray(distractors.descriptors, dtype=np.float32)
    halves = np.array_split(np.random.default_rng(0).permutation(len(rows)), 2)
    sizes = [size for size in SIZES if size <= len(halves[1])]
    kinds: list[ComparedBy] = ["code", "descriptor"]
    related_both_orders = np.concatenate([related, related[:, ::-1]])
    for compared in kinds:
        found = np.zeros((len(sizes), len(STATED_PROBABILITIES)), dtype=int)
        with progress(f"{book.name}: searching, by {compared}", len(rows)) as advance:
            for query_rows, reference_rows in (halves, halves[::-1]):
                queries, points = rows[query_rows], rows[reference_rows]
                if compared == "code":
                    queries, points = book.quantizer.comparison_points(queries, points)
                density_ratios = {size: _density_ratios(book, rows[reference_rows], size) for size in sizes}
                for start in range(0, len(query_rows), _QUERIES_AT_ONCE):
                    chunk = query_rows[start : start + _QUERIES_AT_ONCE]
                    distances = pairwise_distances(queries[start : start + _QUERIES_AT_ONCE], points)
                    distances[_table_positions(related_both_orders, chunk, reference_rows, len(rows))] = np.inf
                    for i, size in enumerate(sizes):
                        nearest = _in_collections(distances.T, size).min(axis=1)
                        probabilities = book.null_distribution.false_match_probability(
                            compared, nearest, size, density_ratios[size]
                        )
                        found[i] += [(probabilities <= stated).sum() for stated in STATED_PROBABILITIES]
                    for _ in chunk:
                        advance()
        for i, size in enumerate(sizes):
            searches = sum(
                len(query_rows) * (len(reference_rows) // size) for query_rows, reference_rows in (halves, halves[::-1])
            )
            for stated, count in zip(STATED_PROBABILITIES, found[i].tolist(), strict=True):
                yield CalibrationRow(
                    codebook=book.name,
                    compared=compared,
                    references=size,
                    stated=stated,
                    searches=searches,
                    found=count,
                )


def _in_collections(references: np.ndarray, size: int) -> np.ndarray:
    """The references (N, …) split into collections of this size: (C, size, …)."""
    whole = len(references) // size
    return references[: whole * size].reshape(whole, size, *references.shape[1:])


def _density_ratios(book: Codebook, references: np.ndarray, size: int) -> np.ndarray:
    """The density ratio of each collection of this size: (C, 1)."""
    return np.array([[book.null_distribution.density_ratio(chunk)] for chunk in _in_collections(references, size)])


def _table_positions(
    pairs: np.ndarray, queries: np.ndarray, references: np.ndarray, photos: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of pairs of photos in the matrix of these queries and references."""
    rows, columns = np.full(photos, -1), np.full(photos, -1)
    rows[queries], columns[references] = np.arange(len(queries)), np.arange(len(references))
    row, column = rows[pairs[:, 0]], columns[pairs[:, 1]]
    inside = (row >= 0) & (column >= 0)
    return row[inside], column[inside]
