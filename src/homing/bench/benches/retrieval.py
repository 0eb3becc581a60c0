"""The retrieval bench: recall of edited copies of photos released with several recipes, among distractors."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
import torch

from homing.bench.protocol.config import PASSIVE, BenchConfig, CodebookRun, check_recipes, codebook_runs
from homing.bench.protocol.progress import Progress
from homing.bench.protocol.references import Milliseconds, Neighbors, Probes
from homing.bench.protocol.release import ReleaseResult
from homing.bench.scores import Interval, ivf_failure, rank_of, recall_at, recall_intervals
from homing.edits import PAPER
from homing.errors import HomingError

RANKS = (1, 10, 100)
LABELS = [edit.label for edit in PAPER]


@dataclass(frozen=True, kw_only=True)
class RetrievalBench(BenchConfig):
    """The configuration of the retrieval bench: recipes, and probes of a search."""

    probes: Sequence[Probes] = (1, 16, "exact")
    recipes: Sequence[str] = (PASSIVE, "paper")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_recipes(self.recipes)
        for probes in self.probes:
            if probes != "exact" and (type(probes) is not int or probes < 1):
                raise HomingError(f"probes are whole numbers from 1, or 'exact', got {probes!r}")


@dataclass(frozen=True, kw_only=True)
class RetrievalRow:
    """Recall of the copies of files released with one recipe, with one codebook and number of probes.

    By edit: `recall` at rank 1 with its 95 % interval, and `failure`, the share of copies that fall into another cell
    (None for a codebook without cells). `recall_at` is the mean over the edits at each rank, with its interval. PSNR
    and SSIM are means over the activated files.
    """

    codebook: str
    extractor: str
    spec: str
    recipe: str
    probes: Probes
    recall: dict[str, float]
    interval: dict[str, Interval]
    mean: float
    mean_interval: Interval
    recall_at: dict[int, float]
    recall_at_interval: dict[int, Interval]
    failure: dict[str, float] | None
    photos: int
    activated: int
    psnr: float | None
    ssim: float | None
    seconds_per_photo: float | None
    bytes_per_vector: int
    milliseconds: Milliseconds | None


@dataclass(frozen=True)
class RetrievalSearch:
    """A row and its searches: names of the files, the nearest reference of each copy, and ranks (P, E)."""

    row: RetrievalRow
    sources: list[str]
    found: Neighbors
    ranks: np.ndarray


@dataclass(frozen=True)
class CodebookRetrieval:
    """The results for one codebook."""

    run: CodebookRun
    searches: list[RetrievalSearch]


@dataclass(frozen=True)
class RetrievalResult:
    """The results of the bench, one per codebook."""

    bench: RetrievalBench
    codebook_results: list[CodebookRetrieval]
    seconds: float

    @property
    def rows(self) -> list[RetrievalRow]:
        """The rows of all codebooks."""
        return [each.row for codebook_result in self.codebook_results for each in codebook_result.searches]


def run_retrieval_bench(bench: RetrievalBench, progress: Progress) -> RetrievalResult:
    """Measure each codebook; descriptors and released files are cached in the out folder."""
    started = time.perf_counter()
    codebook_results = [CodebookRetrieval(run, list(_searches(bench, run))) for run in codebook_runs(bench, progress)]
    return RetrievalResult(bench, codebook_results, time.perf_counter() - started)


def _searches(bench: RetrievalBench, run: CodebookRun) -> Iterator[RetrievalSearch]:
    for recipe in run.supported_recipes(bench.recipes):
        release_result = run.release(recipe)
        copies = run.copies(release_result, PAPER, recipe)
        for probes in run.probes(bench.probes):
            yield _search(run, recipe, release_result, copies, probes)


def _search(
    run: CodebookRun, recipe: str, release_result: ReleaseResult, copies: np.ndarray, probes: Probes
) -> RetrievalSearch:
    """Search for the (P, E, D) copies of the files of one release."""
    queries = copies.reshape(-1, copies.shape[2])
    true_ids = run.true_ids(release_result)
    found = run.search(copies, max(RANKS), probes, recipe)
    search_ms = None if probes == "exact" else run.references.search_ms(queries, max(RANKS), probes)
    ranks = rank_of(found.ids, true_ids.repeat(len(LABELS))).reshape(len(true_ids), -1)
    correct = ranks == 0
    cells = run.codebook.cells(torch.from_numpy(np.array(queries))).numpy().reshape(correct.shape)
    failure = ivf_failure(run.codebook.cells(run.descriptors).numpy()[true_ids], cells)
    intervals = recall_intervals(correct)
    recalls = {label: recall_at(ranks[:, i], 1) for i, label in enumerate(LABELS)}
    row = RetrievalRow(
        codebook=run.codebook.name,
        extractor=run.codebook.extractor,
        spec=run.codebook.spec,
        recipe=recipe,
        probes=probes,
        recall=recalls,
        interval=dict(zip(LABELS, intervals.by_edit, strict=True)),
        mean=float(correct.mean()),
        mean_interval=intervals.mean,
        recall_at={k: recall_at(ranks.ravel(), k) for k in RANKS},
        recall_at_interval={k: recall_intervals((ranks >= 0) & (ranks < k)).mean for k in RANKS},
        failure=dict(zip(LABELS, failure.tolist(), strict=True)) if run.codebook.has_cells else None,
        photos=len(release_result.files),
        activated=len(release_result.qualities),
        psnr=fmean(quality.psnr for quality in release_result.qualities) if release_result.qualities else None,
        ssim=fmean(quality.ssim for quality in release_result.qualities) if release_result.qualities else None,
        seconds_per_photo=release_result.seconds / len(release_result.files) if recipe != PASSIVE else None,
        bytes_per_vector=4 * run.extractor.dim if probes == "exact" else run.references.bytes_per_vector,
        milliseconds=search_ms,
    )
    return RetrievalSearch(row, [file.source for file in release_result.files], found.top1(), ranks)
