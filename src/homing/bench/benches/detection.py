"""The detection bench: tell copies of references from copies of other photos by the distance of the nearest match."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np

from homing._io.parallel import prefetch_map
from homing.bench.benches.retrieval import RetrievalBench
from homing.bench.protocol.config import CodebookRun, codebook_runs, refuse_inside, refuse_overlap
from homing.bench.protocol.progress import Progress
from homing.bench.protocol.references import Neighbors, Probes
from homing.bench.protocol.release import ReleasedPhoto, ReleaseResult
from homing.bench.scores import (
    Interval,
    PrecisionRecall,
    average_precision_interval,
    false_match_interval,
    precision_recall,
    recall_at_false_match_rate,
)
from homing.edits import Edit, parse
from homing.errors import HomingError, PhotoError
from homing.photo import Photo, find_photos

NEAREST = 10  # references that a search returns; each is a pair with the query
ROUNDS = 200  # of the bootstrap


@dataclass(frozen=True, kw_only=True)
class DetectionBench(RetrievalBench):
    """The configuration of the retrieval bench, a folder of photos that are not references, and the edits.

    `max_false_match` are the rates of false matches among the negative queries at which the recall is reported.
    """

    negatives: Path
    edits: Sequence[Edit] = (parse("random"),)
    max_false_match: Sequence[float] = (0.01, 0.001)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.edits:
            raise HomingError("a copy needs an edit, got none; 'identity' leaves it unedited")
        for rate in self.max_false_match:
            if not 0 <= rate <= 1:
                raise HomingError(f"rates of false matches are numbers from 0 to 1, got {rate:g}")
        # Duplicates are measured once.
        object.__setattr__(self, "edits", tuple(dict.fromkeys(self.edits)))
        object.__setattr__(self, "max_false_match", tuple(dict.fromkeys(self.max_false_match)))

    @property
    def labels(self) -> list[str]:
        """The labels of the edits."""
        return [edit.label for edit in self.edits]


@dataclass(frozen=True, kw_only=True)
class RecallAtRate:
    """The recall, with its 95 % interval, at the threshold that at most this rate of the negative queries passes.

    The threshold is None if every match is accepted.
    """

    rate: float
    recall: float
    interval: Interval
    threshold: float | None


@dataclass(frozen=True, kw_only=True)
class DetectionRow:
    """Detection of copies of files released with one recipe, with one codebook and number of probes.

    `average_precision` is the µAP, with its 95 % interval. Positives and negatives are numbers of queries; the PSNR is
    the mean over the activated files.
    """

    codebook: str
    extractor: str
    spec: str
    recipe: str
    probes: Probes
    average_precision: float
    interval: Interval
    recall_at_false_matches: list[RecallAtRate]
    positives: int
    negatives: int
    psnr: float | None


@dataclass(frozen=True)
class DetectionSearch:
    """A row, its curve, and its searches.

    `sources` are the names of the positive files, then of the negative ones; each has a query for each edit, and
    `found` (Q, k) is in this order. `true_ids` (Q,) are the references the queries are copies of, -1 for negatives.
    """

    row: DetectionRow
    curve: PrecisionRecall
    sources: list[str]
    true_ids: np.ndarray
    found: Neighbors


@dataclass(frozen=True)
class CodebookDetection:
    """The results for one codebook."""

    run: CodebookRun
    searches: list[DetectionSearch]


@dataclass(frozen=True)
class DetectionResult:
    """The results of the bench, one per codebook, and the negatives."""

    bench: DetectionBench
    codebook_results: list[CodebookDetection]
    negatives: ReleaseResult
    seconds: float

    @property
    def rows(self) -> list[DetectionRow]:
        """The rows of all codebooks."""
        return [each.row for codebook_result in self.codebook_results for each in codebook_result.searches]


def run_detection_bench(bench: DetectionBench, progress: Progress) -> DetectionResult:
    """Measure each codebook; descriptors and released files are cached in the out folder."""
    started = time.perf_counter()
    negative_photos = _negative_photos(bench)
    negatives = None
    codebook_results = []
    for run in codebook_runs(bench, progress):
        negatives = negatives or _readable_negatives(negative_photos, progress)
        codebook_results.append(CodebookDetection(run, list(_searches(bench, run, negatives))))
    assert negatives is not None, "a bench has a codebook"
    return DetectionResult(bench, codebook_results, negatives, time.perf_counter() - started)


def _negative_photos(bench: DetectionBench) -> list[ReleasedPhoto]:
    """The negatives, released unmodified; their seeds follow those of the photos."""
    negatives = find_photos([bench.negatives])
    photos = find_photos([bench.photos])[: bench.limit]
    folder = bench.distractor_photos
    distractor_photos = [] if folder is None or folder.is_file() else find_photos([folder])
    refuse_inside(bench.out, bench.negatives)
    for references, where in ((photos, "among the photos"), (distractor_photos, "among the distractors")):
        refuse_overlap(negatives, references, f"among the negatives and {where}; a negative cannot be a reference")
    return [ReleasedPhoto(str(each.name), each.path, len(photos) + number) for number, each in enumerate(negatives)]


def _readable_negatives(negatives: list[ReleasedPhoto], progress: Progress) -> ReleaseResult:
    """The readable negatives, and the errors of the others."""

    def read(item: ReleasedPhoto) -> PhotoError | None:
        try:
            Photo.load(item.file).pixels()
        except PhotoError as error:
            return error
        return None

    release_result = ReleaseResult([], [], [], 0.0)
    with progress("reading the negatives", len(negatives)) as advance:
        for item, error in zip(negatives, prefetch_map(read, negatives), strict=True):
            advance()
            if error is None:
                release_result.files.append(item)
            else:
                release_result.failures.append(str(error))
    if not release_result.files:
        raise HomingError(
            f"none of the {len(negatives)} negatives can be read; the first error: {release_result.failures[0]}"
        )
    return release_result


def _searches(bench: DetectionBench, run: CodebookRun, negatives: ReleaseResult) -> Iterator[DetectionSearch]:
    released = {recipe: run.release(recipe) for recipe in run.supported_recipes(bench.recipes)}
    copies = {recipe: run.copies(release_result, bench.edits, recipe) for recipe, release_result in released.items()}
    others = run.copies(negatives, bench.edits, "negatives")
    for probes in run.probes(bench.probes):
        # Once: the negatives are the same for all recipes.
        negative_neighbors = run.search(others, NEAREST, probes, "negatives")
        for recipe, release_result in released.items():
            positive_neighbors = run.search(copies[recipe], NEAREST, probes, recipe)
            found = Neighbors(
                *(np.concatenate(both) for both in zip(positive_neighbors, negative_neighbors, strict=True))
            )
            yield _score(bench, run, recipe, release_result, negatives, probes, found)


def _score(
    bench: DetectionBench,
    run: CodebookRun,
    recipe: str,
    release_result: ReleaseResult,
    negatives: ReleaseResult,
    probes: Probes,
    found: Neighbors,
) -> DetectionSearch:
    """Score the searches for copies of the files of one release, followed by those of the negatives."""
    true_ids = np.append(run.true_ids(release_result), np.full(len(negatives.files), -1)).repeat(len(bench.edits))
    curve = precision_recall(found.ids, found.distances, true_ids)
    row = DetectionRow(
        codebook=run.codebook.name,
        extractor=run.codebook.extractor,
        spec=run.codebook.spec,
        recipe=recipe,
        probes=probes,
        average_precision=curve.average_precision,
        interval=average_precision_interval(found.ids, found.distances, true_ids, len(bench.edits), rounds=ROUNDS),
        recall_at_false_matches=[_at_rate(found, true_ids, len(bench.edits), rate) for rate in bench.max_false_match],
        positives=int((true_ids >= 0).sum()),
        negatives=int((true_ids < 0).sum()),
        psnr=fmean(quality.psnr for quality in release_result.qualities) if release_result.qualities else None,
    )
    sources = [file.source for file in (*release_result.files, *negatives.files)]
    return DetectionSearch(row, curve, sources, true_ids, found)


def _at_rate(found: Neighbors, true_ids: np.ndarray, edits: int, rate: float) -> RecallAtRate:
    recall, threshold = recall_at_false_match_rate(found.ids, found.distances, true_ids, rate)
    interval = false_match_interval(found.ids, found.distances, true_ids, edits, rate, rounds=ROUNDS)
    return RecallAtRate(
        rate=rate, recall=recall, interval=interval, threshold=threshold if math.isfinite(threshold) else None
    )
