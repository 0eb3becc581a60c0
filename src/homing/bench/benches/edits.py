"""The edits bench: recall at every strength of an edit, as in the figure of the paper's appendix."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from homing.bench.benches.retrieval import RANKS, RetrievalBench
from homing.bench.protocol.config import CodebookRun, codebook_runs
from homing.bench.protocol.progress import Progress
from homing.bench.protocol.references import Neighbors, Probes
from homing.bench.protocol.release import ReleaseResult
from homing.bench.scores import Interval, RecallIntervals, rank_of, recall_at, recall_intervals
from homing.edits import SWEEPS, Edit
from homing.errors import HomingError, UnknownNameError


@dataclass(frozen=True, kw_only=True)
class EditsBench(RetrievalBench):
    """The configuration of the retrieval bench, and the families of edits (such as rotation)."""

    probes: Sequence[Probes] = (1,)
    families: Sequence[str] = tuple(SWEEPS)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.families:
            raise HomingError(f"the bench needs a family of edits, got none; available: {', '.join(SWEEPS)}")
        for family in self.families:
            if family not in SWEEPS:
                raise UnknownNameError("family of edits", family, SWEEPS)


@dataclass(frozen=True, kw_only=True)
class EditsRow:
    """Recall at rank 1 of one edit at one strength, with its 95 % interval."""

    codebook: str
    extractor: str
    spec: str
    recipe: str
    probes: Probes
    family: str
    edit: str
    strength: float
    recall: float
    interval: Interval
    photos: int


@dataclass(frozen=True)
class EditSweep:
    """Search results for the copies of P released files, each with the E edits of one family.

    `found` is the nearest reference of each copy, file by file. `ranks` (P, E) are the ranks of the correct references:
    0 for the nearest, -1 if it was not returned.
    """

    run: CodebookRun
    recipe: str
    probes: Probes
    family: str
    sources: list[str]
    found: Neighbors
    ranks: np.ndarray

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits of the family, one per strength."""
        return SWEEPS[self.family]

    @cached_property
    def intervals(self) -> RecallIntervals:
        """Intervals of the recall at every strength, and of their mean."""
        return recall_intervals(self.ranks == 0)

    @property
    def rows(self) -> list[EditsRow]:
        """The recall at every strength."""
        book = self.run.codebook
        return [
            EditsRow(
                codebook=book.name,
                extractor=book.extractor,
                spec=book.spec,
                recipe=self.recipe,
                probes=self.probes,
                family=self.family,
                edit=edit.label,
                strength=float(edit.strength or 0),
                recall=recall_at(self.ranks[:, i], 1),
                interval=self.intervals.by_edit[i],
                photos=len(self.ranks),
            )
            for i, edit in enumerate(self.edits)
        ]


@dataclass(frozen=True)
class EditsResult:
    """The results of the bench: a sweep for each codebook, recipe, family and number of probes."""

    bench: EditsBench
    runs: list[CodebookRun]
    sweeps: list[EditSweep]
    seconds: float


def run_edits_bench(bench: EditsBench, progress: Progress) -> EditsResult:
    """Measure each codebook; descriptors and released files are cached in the out folder."""
    started = time.perf_counter()
    measured = [(run, list(_sweeps(bench, run))) for run in codebook_runs(bench, progress)]
    sweeps = [each for _, sweeps_of_run in measured for each in sweeps_of_run]
    return EditsResult(bench, [run for run, _ in measured], sweeps, time.perf_counter() - started)


def _sweeps(bench: EditsBench, run: CodebookRun) -> Iterator[EditSweep]:
    for recipe in run.supported_recipes(bench.recipes):
        release_result = run.release(recipe)
        for family in dict.fromkeys(bench.families):
            # Cached by family: another run may add families.
            copies = run.copies(release_result, SWEEPS[family], f"{recipe}, {family}")
            for probes in run.probes(bench.probes):
                yield _search(run, recipe, release_result, family, copies, probes)


def _search(
    run: CodebookRun, recipe: str, release_result: ReleaseResult, family: str, copies: np.ndarray, probes: Probes
) -> EditSweep:
    """Search for the (P, E, D) copies of the files of one release."""
    shape = copies.shape[:2]
    found = run.search(copies, max(RANKS), probes, f"{recipe}, {family}")
    return EditSweep(
        run,
        recipe,
        probes,
        family,
        sources=[file.source for file in release_result.files],
        found=found.top1(),
        ranks=rank_of(found.ids, run.true_ids(release_result).repeat(shape[1])).reshape(shape),
    )
