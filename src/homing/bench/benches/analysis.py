"""The analysis bench: distances of released files and copies to their codes, and cells of the index."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from homing.bench.benches.compatibility import Compatibility, measure_compatibility
from homing.bench.protocol.config import PASSIVE, BenchConfig, CodebookRun, check_recipes, codebook_runs
from homing.bench.protocol.descriptor_set import DescriptorSet
from homing.bench.protocol.progress import Progress
from homing.bench.protocol.release import ReleaseResult
from homing.bench.scores import Interval, Spread, ivf_failure, rank_of, recall_at, recall_intervals, spread
from homing.codebooks import Codebook
from homing.edits import PAPER

LABELS = [edit.label for edit in PAPER]
UNRELATED_PAIRS = 10_000
SEED = 0
_DEPTH = 100  # references that a search returns, and the last rank reported
_IDENTITY = LABELS.index("identity")  # the released file itself


@dataclass(frozen=True, kw_only=True)
class AnalysisBench(BenchConfig):
    """The configuration of the analysis bench; passive is always among the recipes, for comparison."""

    recipes: Sequence[str] = (PASSIVE, "paper")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_recipes(self.recipes)


@dataclass(frozen=True, kw_only=True)
class AnalysisRow:
    """Squared distances ‖x̂ − q(x_o)‖² to the codes of the originals, and cell failures, of one recipe.

    Distances are those an index computes: for sign codes (LSH) the number of bits that differ, for RaBitQ its estimate.
    `released` are the files as written, `edited` their copies, `unrelated` the distractors. By edit: the mean distance,
    the share of copies that fall into another cell than their original (None for a codebook without cells), and the
    recall at rank 1 with one probe; both shares have 95 % intervals. `recall_within_bound` is true if no copy
    was found in another cell than its original's, so that the recall is at most one minus that share.
    """

    codebook: str
    extractor: str
    spec: str
    recipe: str
    photos: int
    released: Spread
    edited: Spread
    unrelated: Spread
    distance: dict[str, float]
    failure: dict[str, float] | None
    failure_interval: dict[str, Interval] | None
    recall: dict[str, float]
    interval: dict[str, Interval]
    recall_within_bound: bool | None


@dataclass(frozen=True)
class AnalyzedRecipe:
    """A row and its copies (P, E): squared distance, whether it is in the original's cell, rank with one probe."""

    row: AnalysisRow
    sources: list[str]
    squared: np.ndarray
    same_cell: np.ndarray
    ranks: np.ndarray


@dataclass(frozen=True)
class CodebookAnalysis:
    """The results for one codebook; squared distances (N,) of unrelated pairs."""

    run: CodebookRun
    recipe_results: list[AnalyzedRecipe]
    unrelated: np.ndarray
    compatibility: Compatibility | None


@dataclass(frozen=True)
class AnalysisResult:
    """The results of the bench, one per codebook."""

    bench: AnalysisBench
    codebook_results: list[CodebookAnalysis]
    seconds: float

    @property
    def rows(self) -> list[AnalysisRow]:
        """The rows of all codebooks."""
        return [each.row for codebook_result in self.codebook_results for each in codebook_result.recipe_results]


def run_analysis_bench(bench: AnalysisBench, progress: Progress) -> AnalysisResult:
    """Measure each codebook; descriptors and released files are cached in the out folder."""
    started = time.perf_counter()
    recipes = list(dict.fromkeys([PASSIVE, *bench.recipes]))
    codebook_results = [_measure(run, recipes) for run in codebook_runs(bench, progress)]
    return AnalysisResult(bench, codebook_results, time.perf_counter() - started)


def _measure(run: CodebookRun, recipes: Sequence[str]) -> CodebookAnalysis:
    recipes = run.supported_recipes(recipes)
    unrelated = unrelated_distances(run.codebook, run.descriptors.numpy(), run.distractors)
    recipe_results, compatibility = [], None
    for recipe in recipes:
        release_result = run.release(recipe)
        copies = run.copies(release_result, PAPER, recipe)
        recipe_results.append(_measure_recipe(run, recipe, release_result, copies, unrelated))
        if recipe == PASSIVE and len(recipes) > 1 and len(release_result.files) > 1:
            compatibility = measure_compatibility(run, copies, recipes[1])
    return CodebookAnalysis(run, recipe_results, unrelated, compatibility)


def _measure_recipe(
    run: CodebookRun,
    recipe: str,
    release_result: ReleaseResult,
    copies: np.ndarray,
    unrelated: np.ndarray,
) -> AnalyzedRecipe:
    """Distances, cells and ranks of (P, E, D) copies of the files of one release."""
    true_ids = run.true_ids(release_result)
    queries = copies.reshape(-1, copies.shape[2])
    found = run.search(copies, _DEPTH, 1, recipe)
    ranks = rank_of(found.ids, true_ids.repeat(len(LABELS))).reshape(len(true_ids), -1)
    targets = run.descriptors.numpy()[true_ids]
    columns = [_squared_distances(run.codebook, copies[:, i], targets) for i in range(len(LABELS))]
    squared = np.stack(columns, axis=1)
    originals = run.codebook.cells(run.descriptors).numpy()[true_ids]
    cells = run.codebook.cells(torch.from_numpy(np.array(queries))).numpy().reshape(ranks.shape)
    same_cell = cells == originals[:, None]
    with_cells = run.codebook.has_cells
    failure = dict(zip(LABELS, ivf_failure(originals, cells).tolist(), strict=True)) if with_cells else None
    failure_intervals = dict(zip(LABELS, recall_intervals(~same_cell).by_edit, strict=True)) if with_cells else None
    row = AnalysisRow(
        codebook=run.codebook.name,
        extractor=run.codebook.extractor,
        spec=run.codebook.spec,
        recipe=recipe,
        photos=len(release_result.files),
        released=spread(squared[:, _IDENTITY]),
        edited=spread(squared),
        unrelated=spread(unrelated),
        distance=dict(zip(LABELS, squared.mean(axis=0, dtype=float).tolist(), strict=True)),
        failure=failure,
        failure_interval=failure_intervals,
        recall={label: recall_at(ranks[:, i], 1) for i, label in enumerate(LABELS)},
        interval=dict(zip(LABELS, recall_intervals(ranks == 0).by_edit, strict=True)),
        recall_within_bound=bool(same_cell[ranks == 0].all()) if with_cells else None,
    )
    return AnalyzedRecipe(row, [file.source for file in release_result.files], squared, same_cell, ranks)


def unrelated_distances(codebook: Codebook, originals: np.ndarray, distractors: DescriptorSet) -> np.ndarray:
    """Squared distances of distractors to the codes of (P, D) originals, for random pairs, or all if they are few.

    Where only codes of the distractors are known, these are distances of the originals to the codes of distractors.
    """
    rows = distractors.descriptors
    pairs = len(originals) * len(rows)
    sampled = np.random.default_rng(SEED).choice(pairs, min(pairs, UNRELATED_PAIRS), replace=False, shuffle=False)
    distractor, original = np.divmod(np.sort(sampled), len(originals))  # in the order of the file
    if distractors.codes is not None:
        squared: np.ndarray = np.square(originals[original] - rows[distractor].astype(np.float32)).sum(axis=1)
        return squared
    return _squared_distances(codebook, rows[distractor], originals[original])


def _squared_distances(codebook: Codebook, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Squared distances (N,) of (N, D) rows to the codes of (N, D) others, pair by pair."""
    squared: np.ndarray = np.square(codebook.quantizer.distances(rows.astype(np.float32), others))
    return squared
