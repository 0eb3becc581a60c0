"""The retrieval bench: edited copies of held-out photos, released in several ways, searched for among strangers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
import torch

from homing.edits import PAPER
from homing.errors import HomingError
from homing.evaluation.protocol.references import Milliseconds, Nearest, Probes
from homing.evaluation.protocol.releasing import ReleasedFiles
from homing.evaluation.protocol.setting import PASSIVE, Setting, Subject, check_recipes, subjects
from homing.evaluation.protocol.stage import Stage
from homing.evaluation.scores import Interval, ivf_failure, rank_of, recall_at, recall_intervals

RANKS = (1, 10, 100)
LABELS = [edit.label for edit in PAPER]


@dataclass(frozen=True, kw_only=True)
class RetrievalBench(Setting):
    """The setting, the ways to release, and how many cells a search looks into."""

    probes: Sequence[Probes] = (1, 16, "exact")
    recipes: Sequence[str] = (PASSIVE, "paper")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_recipes(self.recipes)
        for probes in self.probes:
            if probes != "exact" and (type(probes) is not int or probes < 1):
                raise HomingError(f"probes are whole numbers from 1, or 'exact', got {probes!r}")


@dataclass(frozen=True, kw_only=True)
class Row:
    """Recall of the copies of files released with one recipe, found with one codebook and number of probes.

    Recall, with its 95 % interval, and the share of copies that leave their cell (None for a codebook without) stand
    by edit; `recall_at` is the mean over the edits at each rank, with its interval too. PSNR and SSIM are means over
    the activated files.
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
class Searched:
    """A row and the searches behind it: the files' names, the nearest of each copy, file by file, and ranks (P, E)."""

    row: Row
    sources: list[str]
    found: Nearest
    ranks: np.ndarray


@dataclass(frozen=True)
class Measured:
    """What was found for one codebook."""

    subject: Subject
    searched: list[Searched]


@dataclass(frozen=True)
class RetrievalResult:
    """What a bench found, codebook by codebook."""

    bench: RetrievalBench
    measured: list[Measured]
    seconds: float

    @property
    def rows(self) -> list[Row]:
        """The table."""
        return [each.row for measured in self.measured for each in measured.searched]


def run_retrieval_bench(bench: RetrievalBench, stage: Stage) -> RetrievalResult:
    """Measure each codebook in turn; what was described and released stays in the out folder for the next run."""
    started = time.perf_counter()
    measured = [Measured(subject, list(_searches(bench, subject))) for subject in subjects(bench, stage)]
    return RetrievalResult(bench, measured, time.perf_counter() - started)


def _searches(bench: RetrievalBench, subject: Subject) -> Iterator[Searched]:
    for recipe in subject.ways(bench.recipes):
        made = subject.release(recipe)
        copies = subject.copies(made, PAPER, recipe)
        for probes in subject.probes(bench.probes):
            yield _search(subject, recipe, made, copies, probes)


def _search(subject: Subject, recipe: str, made: ReleasedFiles, copies: np.ndarray, probes: Probes) -> Searched:
    """Search for (P, E, D) copies of the files of one release."""
    queries = copies.reshape(-1, copies.shape[2])
    own = subject.own(made)
    found = subject.search(copies, max(RANKS), probes, recipe)
    times = None if probes == "exact" else subject.references.milliseconds(queries, max(RANKS), probes)
    ranks = rank_of(found.ids, own.repeat(len(LABELS))).reshape(len(own), -1)
    home = ranks == 0
    cells = subject.codebook.cells(torch.from_numpy(np.array(queries))).numpy().reshape(home.shape)
    failure = ivf_failure(subject.codebook.cells(subject.descriptors).numpy()[own], cells)
    intervals = recall_intervals(home)
    recalls = {label: recall_at(ranks[:, place], 1) for place, label in enumerate(LABELS)}
    row = Row(
        codebook=subject.codebook.name,
        extractor=subject.codebook.extractor,
        spec=subject.codebook.spec,
        recipe=recipe,
        probes=probes,
        recall=recalls,
        interval=dict(zip(LABELS, intervals.by_edit, strict=True)),
        mean=float(home.mean()),
        mean_interval=intervals.mean,
        recall_at={k: recall_at(ranks.ravel(), k) for k in RANKS},
        recall_at_interval={k: recall_intervals((ranks >= 0) & (ranks < k)).mean for k in RANKS},
        failure=dict(zip(LABELS, failure.tolist(), strict=True)) if subject.codebook.has_cells else None,
        photos=len(made.files),
        activated=len(made.qualities),
        psnr=fmean(quality.psnr for quality in made.qualities) if made.qualities else None,
        ssim=fmean(quality.ssim for quality in made.qualities) if made.qualities else None,
        seconds_per_photo=made.seconds / len(made.files) if recipe != PASSIVE else None,
        bytes_per_vector=4 * subject.extractor.dim if probes == "exact" else subject.references.bytes_per_vector,
        milliseconds=times,
    )
    return Searched(row, [file.source for file in made.files], found.first(), ranks)
