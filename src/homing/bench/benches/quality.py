"""The quality bench: visual quality and recall of activated files, at several strengths."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from homing.activation import Recipe, resolve_recipe
from homing.bench.protocol.config import PASSIVE, BenchConfig, CodebookRun, codebook_runs
from homing.bench.protocol.lpips import measure_lpips
from homing.bench.protocol.progress import Progress
from homing.bench.protocol.release import ReleaseResult
from homing.bench.scores import Interval, Spread, precision_recall, rank_of, recall_intervals, spread
from homing.edits import PAPER, parse
from homing.errors import HomingError
from homing.perception import BUDGETS, JND, Budget, Quality, budget_named
from homing.perception.quality import Distance, load_lpips

PSNRS = (50.0, 46.0, 43.8, 40.0, 36.0, 32.0)
NEAREST = 10  # references that a search returns, for the µAP
_UNEDITED = PAPER.index(parse("identity"))


@dataclass(frozen=True, kw_only=True)
class QualityBench(BenchConfig):
    """The configuration of the quality bench: recipes, and strengths besides their own, as PSNRs or the paper's alphas.

    Kinds of budgets are compared at one PSNR. The default is that of the paper's figure: there the L∞ budget is a whole
    step of 8 bits, so that it can be met.
    """

    recipes: Sequence[str] = ("paper",)
    psnrs: Sequence[float] | None = None
    alphas: Sequence[float] | None = None
    budgets: Sequence[str] = tuple(BUDGETS)
    budgets_at: float = 36.0
    probes: int = 1
    pictures: int = 4
    lpips: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if PASSIVE in self.recipes:
            raise HomingError("passive has no strength and is always measured; remove it from the recipes")
        for name in self.recipes:
            resolve_recipe(name)
        if self.psnrs is not None and self.alphas is not None:
            raise HomingError("strengths are given as psnrs or as alphas, got both; give one of them")
        if self.probes < 1 or self.pictures < 0:
            raise HomingError(f"probes start at 1 and pictures at 0, got {self.probes} and {self.pictures}")
        self.strengths(), self.compared_budgets()  # raise for invalid values

    def strengths(self) -> list[JND]:
        """The strengths as budgets."""
        if self.alphas is not None:
            return [JND(alpha=alpha) for alpha in self.alphas]
        return [JND(psnr=psnr) for psnr in (PSNRS if self.psnrs is None else self.psnrs)]

    def compared_budgets(self) -> list[Budget]:
        """The budgets to compare."""
        return [budget_named(name)(psnr=self.budgets_at) for name in dict.fromkeys(self.budgets)]


class PhotoQuality(NamedTuple):
    """The result for one photo: quality, distance of the file to its code, number of copies found."""

    photo: str
    state: str
    quality: Quality | None
    lpips: float | None
    distance: float | None
    copies_found: int | None


@dataclass(frozen=True, kw_only=True)
class QualityRow:
    """Quality of the files of one recipe at one strength, as written, and recall of their copies.

    `release` names the folder of the files. `own_budget` is true at the recipe's own strength. PSNR, SSIM, L∞ and LPIPS
    are of the activated files. Recall at rank 1 is the mean over the edits, and the µAP is over the queries of all
    edits. The distance is from an unedited file to its code, as the index computes it: for sign codes the square root
    of the number of bits that differ.
    """

    codebook: str
    extractor: str
    spec: str
    recipe: str
    release: str
    budget: str | None
    own_budget: bool
    photos: int
    activated: int
    psnr: Spread | None
    ssim: Spread | None
    linf: Spread | None
    lpips: Spread | None
    seconds_per_photo: float | None
    recall: float
    interval: Interval
    average_precision: float
    distance: Spread


@dataclass(frozen=True)
class ReleaseQuality:
    """A row, its files, and the result for each photo."""

    row: QualityRow
    release_result: ReleaseResult
    photos: list[PhotoQuality]


@dataclass(frozen=True)
class CodebookQuality:
    """The results for one codebook.

    `strengths` are passive, then each recipe from the highest PSNR to the lowest; `budgets` each recipe with each kind
    of budget.
    """

    run: CodebookRun
    strengths: list[ReleaseQuality]
    budgets: list[ReleaseQuality]

    @property
    def releases(self) -> list[ReleaseQuality]:
        """All releases, without duplicates."""
        return list({each.row.release: each for each in (*self.strengths, *self.budgets)}.values())


@dataclass(frozen=True)
class QualityResult:
    """The results of the bench, one per codebook."""

    bench: QualityBench
    codebook_results: list[CodebookQuality]
    seconds: float

    @property
    def rows(self) -> list[QualityRow]:
        """The rows of all codebooks."""
        return [each.row for codebook_result in self.codebook_results for each in codebook_result.releases]


def run_quality_bench(bench: QualityBench, progress: Progress) -> QualityResult:
    """Measure each codebook; descriptors and released files are cached in the out folder."""
    started = time.perf_counter()
    lpips = load_lpips() if bench.lpips else None
    codebook_results = [_measure_codebook(bench, run, lpips) for run in codebook_runs(bench, progress)]
    return QualityResult(bench, codebook_results, time.perf_counter() - started)


def at_strength(recipe: Recipe, budget: Budget) -> Recipe:
    """The recipe with another budget, renamed to a valid folder name; unchanged if the budget is its own."""
    if budget == recipe.budget:
        return recipe
    kind = "" if budget.name == recipe.budget.name else f"-{budget.name}"
    strength = f"{budget.psnr:g}dB" if budget.psnr is not None else f"alpha-{budget.alpha:g}"
    return replace(recipe, name=f"{recipe.name}{kind}-{strength}", budget=budget)


def _measure_codebook(bench: QualityBench, run: CodebookRun, lpips: Distance | None) -> CodebookQuality:
    codebook_result = CodebookQuality(run, [_measure(bench, run, None, None, lpips)], [])
    for recipe in (resolve_recipe(name) for name in run.supported_recipes(bench.recipes) if name != PASSIVE):
        varied = dict.fromkeys([recipe, *(at_strength(recipe, budget) for budget in bench.strengths())])
        compared_budgets = [at_strength(recipe, budget) for budget in bench.compared_budgets()]
        found = {
            each: _measure(bench, run, recipe, each, lpips) for each in dict.fromkeys([*varied, *compared_budgets])
        }
        # A strength at which no file was activated has no PSNR and comes first.
        codebook_result.strengths.extend(sorted((found[each] for each in varied), key=_strength))
        codebook_result.budgets.extend(found[each] for each in compared_budgets)
    return codebook_result


def _strength(release: ReleaseQuality) -> float:
    psnr = release.row.psnr
    return -np.inf if psnr is None else -psnr.mean


def _measure(
    bench: QualityBench, run: CodebookRun, recipe: Recipe | None, varied: Recipe | None, lpips: Distance | None
) -> ReleaseQuality:
    """Release the photos with a recipe at one strength, or passive if it is None, and search for their copies."""
    name = PASSIVE if varied is None else varied.name
    release_result = run.release(PASSIVE if varied is None else varied)
    copies = run.copies(release_result, PAPER, name)
    true_ids = run.true_ids(release_result)
    lpips_values = [] if lpips is None else measure_lpips(run, release_result, name, lpips)
    found = run.search(copies, NEAREST, bench.probes, name)
    query_true_ids = true_ids.repeat(len(PAPER))
    correct = rank_of(found.ids, query_true_ids).reshape(len(true_ids), -1) == 0
    # The index stores the code of the original.
    unedited = np.array(copies[:, _UNEDITED])
    distances = run.codebook.quantizer.distances(unedited, run.descriptors[true_ids].numpy()).tolist()
    row = QualityRow(
        codebook=run.codebook.name,
        extractor=run.codebook.extractor,
        spec=run.codebook.spec,
        recipe=PASSIVE if recipe is None else recipe.name,
        release=name,
        budget=None if varied is None else str(varied.budget),
        own_budget=varied == recipe,
        photos=len(release_result.files),
        activated=len(release_result.activated),
        psnr=_spread([quality.psnr for quality in release_result.qualities]),
        ssim=_spread([quality.ssim for quality in release_result.qualities]),
        linf=_spread([quality.linf for quality in release_result.qualities]),
        lpips=_spread(lpips_values),
        seconds_per_photo=None if varied is None else release_result.seconds / len(release_result.files),
        recall=float(correct.mean()),
        interval=recall_intervals(correct).mean,
        average_precision=precision_recall(found.ids, found.distances, query_true_ids).average_precision,
        distance=spread(distances),
    )
    return ReleaseQuality(
        row, release_result, list(_lines(run, release_result, name, lpips_values, distances, correct))
    )


def _spread(values: Sequence[float]) -> Spread | None:
    return spread(values) if values else None


def _lines(
    run: CodebookRun,
    release_result: ReleaseResult,
    name: str,
    lpips: Sequence[float],
    distances: Sequence[float],
    correct: np.ndarray,
) -> Iterator[PhotoQuality]:
    activated = {file.source: number for number, file in enumerate(release_result.activated)}
    positions = {file.source: position for position, file in enumerate(release_result.files)}
    for original in run.originals:
        position, number = positions.get(original.source), activated.get(original.source)
        if position is None:
            yield PhotoQuality(original.source, "failed", None, None, None, None)
            continue
        state = PASSIVE if name == PASSIVE else "unchanged" if number is None else "activated"
        quality = None if number is None else release_result.qualities[number]
        lpips_value = None if number is None or not lpips else lpips[number]
        yield PhotoQuality(
            original.source, state, quality, lpips_value, distances[position], int(correct[position].sum())
        )
