"""The analysis bench: why released files are found, in distances to their codes and in cells of the index."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from homing.codebooks import Codebook
from homing.edits import PAPER
from homing.evaluation.benches.compatibility import Compatibility, check_compatibility
from homing.evaluation.protocol.releasing import ReleasedFiles
from homing.evaluation.protocol.setting import PASSIVE, Setting, Subject, check_recipes, subjects
from homing.evaluation.protocol.stage import Stage
from homing.evaluation.scores import Interval, Spread, ivf_failure, rank_of, recall_at, recall_intervals, spread

LABELS = [edit.label for edit in PAPER]
UNRELATED_PAIRS = 10_000
SEED = 0
_DEPTH = 100  # the last rank that is told
_IDENTITY = LABELS.index("identity")  # this copy is the released file itself


@dataclass(frozen=True, kw_only=True)
class AnalysisBench(Setting):
    """The setting and the ways to release; passive is always one, to compare with."""

    recipes: Sequence[str] = (PASSIVE, "paper")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_recipes(self.recipes)


@dataclass(frozen=True, kw_only=True)
class Row:
    """Squared distances ‖x̂ − q(x_o)‖² to the codes of the originals, and what the cells let through, of one recipe.

    Distances are those an index finds: to signs, the number of bits that differ, or with RaBitQ what it estimates.
    `released` are the files as they were written, `edited` their copies, `unrelated` the strangers. By edit: the mean
    distance, the share of copies that leave the cell of their original (None for a codebook without cells), and the
    recall at rank 1 with one probe; both shares have 95 % intervals. `bounded` says that no copy was found in a cell
    that is not its original's, so that the recall is at most one minus that share.
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
    bounded: bool | None


@dataclass(frozen=True)
class Analysed:
    """A row and the copies (P, E) behind it: squared distance, whether in the original's cell, rank with one probe."""

    row: Row
    sources: list[str]
    squared: np.ndarray
    same_cell: np.ndarray
    ranks: np.ndarray


@dataclass(frozen=True)
class Measured:
    """What was found for one codebook; squared distances (N,) of unrelated pairs."""

    subject: Subject
    analysed: list[Analysed]
    unrelated: np.ndarray
    compatibility: Compatibility | None


@dataclass(frozen=True)
class AnalysisResult:
    """What a bench found, codebook by codebook."""

    bench: AnalysisBench
    measured: list[Measured]
    seconds: float

    @property
    def rows(self) -> list[Row]:
        """The table."""
        return [each.row for measured in self.measured for each in measured.analysed]


def run_analysis_bench(bench: AnalysisBench, stage: Stage) -> AnalysisResult:
    """Measure each codebook in turn; what was described and released stays in the out folder for the next run."""
    started = time.perf_counter()
    recipes = list(dict.fromkeys([PASSIVE, *bench.recipes]))
    measured = [_measure(subject, recipes) for subject in subjects(bench, stage)]
    return AnalysisResult(bench, measured, time.perf_counter() - started)


def _measure(subject: Subject, recipes: Sequence[str]) -> Measured:
    recipes = subject.ways(recipes)
    unrelated = unrelated_distances(subject.codebook, subject.descriptors.numpy(), subject.strangers.descriptors)
    analysed, compatibility = [], None
    for recipe in recipes:
        made = subject.release(recipe)
        copies = subject.copies(made, PAPER, recipe)
        analysed.append(_analyse(subject, recipe, made, copies, unrelated))
        if recipe == PASSIVE and len(recipes) > 1 and len(made.files) > 1:
            compatibility = check_compatibility(subject, copies, recipes[1])
    return Measured(subject, analysed, unrelated, compatibility)


def _analyse(
    subject: Subject,
    recipe: str,
    made: ReleasedFiles,
    copies: np.ndarray,
    unrelated: np.ndarray,
) -> Analysed:
    """Where (P, E, D) copies of the files of one release lie, seen from the codes of their originals."""
    own = subject.own(made)
    queries = copies.reshape(-1, copies.shape[2])
    found = subject.search(copies, _DEPTH, 1, recipe)
    ranks = rank_of(found.ids, own.repeat(len(LABELS))).reshape(len(own), -1)
    targets = subject.descriptors.numpy()[own]
    apart = [_squared(subject.codebook, copies[:, place], targets) for place in range(len(LABELS))]
    squared = np.stack(apart, axis=1)
    originals = subject.codebook.cells(subject.descriptors).numpy()[own]
    cells = subject.codebook.cells(torch.from_numpy(np.array(queries))).numpy().reshape(ranks.shape)
    same_cell = cells == originals[:, None]
    with_cells = subject.codebook.has_cells
    failure = dict(zip(LABELS, ivf_failure(originals, cells).tolist(), strict=True)) if with_cells else None
    around = dict(zip(LABELS, recall_intervals(~same_cell).by_edit, strict=True)) if with_cells else None
    row = Row(
        codebook=subject.codebook.name,
        extractor=subject.codebook.extractor,
        spec=subject.codebook.spec,
        recipe=recipe,
        photos=len(made.files),
        released=spread(squared[:, _IDENTITY]),
        edited=spread(squared),
        unrelated=spread(unrelated),
        distance=dict(zip(LABELS, squared.mean(axis=0, dtype=float).tolist(), strict=True)),
        failure=failure,
        failure_interval=around,
        recall={label: recall_at(ranks[:, place], 1) for place, label in enumerate(LABELS)},
        interval=dict(zip(LABELS, recall_intervals(ranks == 0).by_edit, strict=True)),
        bounded=bool(same_cell[ranks == 0].all()) if with_cells else None,
    )
    return Analysed(row, [file.source for file in made.files], squared, same_cell, ranks)


def unrelated_distances(codebook: Codebook, originals: np.ndarray, strangers: np.ndarray) -> np.ndarray:
    """Squared distances of (N, D) strangers to the codes of (P, D) originals, random pairs; all if they are few."""
    pairs = len(originals) * len(strangers)
    drawn = np.random.default_rng(SEED).choice(pairs, min(pairs, UNRELATED_PAIRS), replace=False, shuffle=False)
    stranger, original = np.divmod(np.sort(drawn), len(originals))  # in the order of the strangers' file
    return _squared(codebook, strangers[stranger], originals[original])


def _squared(codebook: Codebook, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Squared distances (N,) of (N, D) rows to the codes of others, pair by pair."""
    squared: np.ndarray = np.square(codebook.quantiser.apart(rows.astype(np.float32), others))
    return squared
