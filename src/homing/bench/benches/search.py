"""The search bench: recall and cost of each search option."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from homing import codebooks
from homing.bench.protocol.config import PASSIVE, BenchConfig, CodebookRun, check_recipes, codebook_runs
from homing.bench.protocol.progress import Progress
from homing.bench.protocol.references import Neighbors, Probes
from homing.bench.protocol.release import ReleaseResult
from homing.bench.scores import Interval, gain_interval, rank_of, recall_at, recall_intervals
from homing.collection.search import VARIANTS
from homing.edits import PAPER
from homing.errors import HomingError

LABELS = [edit.label for edit in PAPER]
RERANK = 100  # references that are compared again
_TOP_K = 10  # the default of `Collection.search`


@dataclass(frozen=True, kw_only=True)
class SearchOption:
    """Options of `Collection.search`, or exact search."""

    probes: Probes | None = None
    probe_radius: float | None = None
    variants: bool = False
    rerank: int | None = None

    @property
    def name(self) -> str:
        """The options as words."""
        if self.probes == "exact":
            return "exact"
        cells = (
            f"probe radius {self.probe_radius:g}"
            if self.probe_radius is not None
            else f"{self.probes} probe" + "s" * (self.probes != 1)
        )
        return cells + ", variants" * self.variants + ", re-ranked" * (self.rerank is not None)


# The first is the baseline.
SEARCH_OPTIONS = (
    SearchOption(probes=1),
    SearchOption(probe_radius=0.05),
    SearchOption(probe_radius=0.1),
    SearchOption(probe_radius=0.2),
    SearchOption(probes=16),
    SearchOption(probes=1, variants=True),
    SearchOption(probes=1, rerank=RERANK),
    SearchOption(probe_radius=0.1, rerank=RERANK),
    SearchOption(probes=16, rerank=RERANK),
    SearchOption(probe_radius=0.1, variants=True, rerank=RERANK),
    SearchOption(probes="exact"),
)


@dataclass(frozen=True, kw_only=True)
class SearchBench(BenchConfig):
    """The configuration of the search bench, and the recipe to compare with passive."""

    recipe: str = "homing"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_recipes([self.recipe])


@dataclass(frozen=True, kw_only=True)
class SearchRow:
    """Recall at rank 1 of the copies of files released with one recipe, with one search option, and its cost.

    `gain` is the mean recall minus that with one probe. Costs are per query: codes and full descriptors compared, the
    time of the search on one core, and passes of the network.
    """

    codebook: str
    extractor: str
    spec: str
    recipe: str
    search: str
    probes: Probes | None
    probe_radius: float | None
    variants: bool
    rerank: int | None
    recall: dict[str, float]
    interval: dict[str, Interval]
    mean: float
    mean_interval: Interval
    gain: float
    gain_interval: Interval
    codes: float
    descriptors: float
    milliseconds: float | None
    passes: int
    photos: int
    activated: int


@dataclass(frozen=True)
class OptionSearch:
    """The searches for the copies of one release: the nearest reference of each copy, and ranks (P, E)."""

    run: CodebookRun
    recipe: str
    option: SearchOption
    release_result: ReleaseResult
    found: Neighbors
    ranks: np.ndarray
    codes: float
    descriptors: float
    milliseconds: float | None
    baseline: OptionSearch | None  # None for the baseline itself

    @cached_property
    def row(self) -> SearchRow:
        """The row of the table."""
        correct = self.ranks == 0
        correct_before = correct if self.baseline is None else self.baseline.ranks == 0
        intervals = recall_intervals(correct)
        return SearchRow(
            codebook=self.run.codebook.name,
            extractor=self.run.codebook.extractor,
            spec=self.run.codebook.spec,
            recipe=self.recipe,
            search=self.option.name,
            **vars(self.option),
            recall={label: recall_at(self.ranks[:, i], 1) for i, label in enumerate(LABELS)},
            interval=dict(zip(LABELS, intervals.by_edit, strict=True)),
            mean=float(correct.mean()),
            mean_interval=intervals.mean,
            gain=float(correct.mean() - correct_before.mean()),
            gain_interval=gain_interval(correct_before, correct),
            codes=self.codes,
            descriptors=self.descriptors,
            milliseconds=self.milliseconds,
            passes=VARIANTS if self.option.variants else 1,
            photos=len(self.release_result.files),
            activated=len(self.release_result.qualities),
        )


@dataclass(frozen=True)
class SearchBenchResult:
    """The results of the bench, for each codebook, recipe and option."""

    bench: SearchBench
    runs: list[CodebookRun]
    searches: list[OptionSearch]
    seconds: float

    @property
    def rows(self) -> list[SearchRow]:
        """The rows of all codebooks."""
        return [each.row for each in self.searches]


def run_search_bench(bench: SearchBench, progress: Progress) -> SearchBenchResult:
    """Measure each codebook; descriptors and released files are cached in the out folder."""
    started = time.perf_counter()
    for book in map(codebooks.load, bench.codebooks):
        if not book.has_cells:
            raise HomingError(f"'{book.name}' ({book.spec}) has no cells to select; give a codebook of an IVF index")
    measured = [(run, list(_searches(bench, run))) for run in codebook_runs(bench, progress)]
    searches = [each for _, searches_of_run in measured for each in searches_of_run]
    return SearchBenchResult(bench, [run for run, _ in measured], searches, time.perf_counter() - started)


def _searches(bench: SearchBench, run: CodebookRun) -> Iterator[OptionSearch]:
    for recipe in run.supported_recipes([PASSIVE, bench.recipe]):
        release_result = run.release(recipe)
        copies = run.copies(release_result, PAPER, f"{recipe}, all variants", variants=True)
        baseline = None
        with run.progress(f"{run.codebook.name}: searching, {recipe}", len(SEARCH_OPTIONS)) as advance:
            for option in SEARCH_OPTIONS:
                search = _search(run, recipe, release_result, copies, option, baseline)
                baseline = baseline or search
                advance()
                yield search


def _search(
    run: CodebookRun,
    recipe: str,
    release_result: ReleaseResult,
    copies: np.ndarray,
    option: SearchOption,
    baseline: OptionSearch | None,
) -> OptionSearch:
    """Search for (P, E, T, D) copies, of which variant 0 is the copy itself."""
    references, true_ids = run.references, run.true_ids(release_result)
    queries = copies.reshape(-1, *copies.shape[2:]) if option.variants else copies[:, :, 0].reshape(-1, copies.shape[3])
    probes, probe_radius, rerank = option.probes, option.probe_radius, option.rerank
    found = references.search(queries, rerank or _TOP_K, probes, probe_radius=probe_radius, rerank=rerank)
    codes, descriptors, milliseconds = 0.0, float(len(references)), None
    if probes != "exact":
        codes = float(references.codes_scanned(queries, probes, probe_radius).mean())
        descriptors = float((found.ids >= 0).sum(axis=1).mean()) if rerank is not None else 0.0
        milliseconds = references.search_ms_with(
            queries, _TOP_K, probes=probes, probe_radius=probe_radius, rerank=rerank
        )
    return OptionSearch(
        run,
        recipe,
        option,
        release_result,
        found.top1(),
        rank_of(found.ids, true_ids.repeat(len(LABELS))).reshape(copies.shape[:2]),
        codes,
        descriptors,
        milliseconds,
        baseline,
    )
