"""The detection bench: copies of references told from copies of other photos by the distance of what is found."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np

from homing._parallel import map_ahead
from homing.edits import Edit, parse
from homing.errors import HomingError, PhotoError
from homing.evaluation.benches.retrieval import RetrievalBench
from homing.evaluation.protocol.references import Nearest, Probes
from homing.evaluation.protocol.releasing import Released, ReleasedFiles
from homing.evaluation.protocol.setting import Subject, refuse_inside, refuse_overlap, subjects
from homing.evaluation.protocol.stage import Stage
from homing.evaluation.scores import (
    Interval,
    PrecisionRecall,
    average_precision_interval,
    false_match_interval,
    precision_recall,
    recall_at_false_match_rate,
)
from homing.photo import Photo, gather

NEAREST = 10  # references that a search returns; each makes a pair with the query
ROUNDS = 200  # of the bootstrap: each looks at every pair again


@dataclass(frozen=True, kw_only=True)
class DetectionBench(RetrievalBench):
    """What the retrieval bench is told, a folder of photos that are no references, and how all of them are edited.

    `false_matches` are the shares of negative queries that may be taken for copies.
    """

    negatives: Path
    edits: Sequence[Edit] = (parse("random"),)
    false_matches: Sequence[float] = (0.01, 0.001)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.edits:
            raise HomingError("a copy needs an edit, got none; 'identity' leaves copies as they are")
        for rate in self.false_matches:
            if not 0 <= rate <= 1:
                raise HomingError(f"rates of false matches are numbers from 0 to 1, got {rate:g}")
        # What is named twice is measured once.
        object.__setattr__(self, "edits", tuple(dict.fromkeys(self.edits)))
        object.__setattr__(self, "false_matches", tuple(dict.fromkeys(self.false_matches)))

    @property
    def labels(self) -> list[str]:
        """The edits in words."""
        return [edit.label for edit in self.edits]


@dataclass(frozen=True, kw_only=True)
class AtRate:
    """The recall, with its 95 % interval, when at most this rate of the negative queries is nearer than the threshold.

    The threshold is None where every match may be accepted.
    """

    rate: float
    recall: float
    interval: Interval
    threshold: float | None


@dataclass(frozen=True, kw_only=True)
class Row:
    """How well the copies of files released with one recipe are detected with one codebook and number of probes.

    The average precision (the µAP) has its 95 % interval. Positives and negatives are numbers of queries; the PSNR is
    the mean over the activated files.
    """

    codebook: str
    extractor: str
    spec: str
    recipe: str
    probes: Probes
    average_precision: float
    interval: Interval
    recall_at_false_matches: list[AtRate]
    positives: int
    negatives: int
    psnr: float | None


@dataclass(frozen=True)
class Searched:
    """A row, its curve, and the searches behind it.

    The sources are the names of the positive files, then of the negative ones; each has a query for each edit, found
    (Q, k) in this order. `own` (Q,) is the reference a query is a copy of, -1 for the negative ones.
    """

    row: Row
    curve: PrecisionRecall
    sources: list[str]
    own: np.ndarray
    found: Nearest


@dataclass(frozen=True)
class Measured:
    """What was found for one codebook."""

    subject: Subject
    searched: list[Searched]


@dataclass(frozen=True)
class DetectionResult:
    """What a bench found, codebook by codebook, with these negatives."""

    bench: DetectionBench
    measured: list[Measured]
    negatives: ReleasedFiles
    seconds: float

    @property
    def rows(self) -> list[Row]:
        """The table."""
        return [each.row for measured in self.measured for each in measured.searched]


def run_detection_bench(bench: DetectionBench, stage: Stage) -> DetectionResult:
    """Measure each codebook in turn; what was described and released stays in the out folder for the next run."""
    started = time.perf_counter()
    listed = _listed(bench)
    negatives = None
    measured = []
    for subject in subjects(bench, stage):
        negatives = negatives or _readable(listed, stage)
        measured.append(Measured(subject, list(_searches(bench, subject, negatives))))
    assert negatives is not None, "a setting has a codebook"
    return DetectionResult(bench, measured, negatives, time.perf_counter() - started)


def _listed(bench: DetectionBench) -> list[Released]:
    """The negatives as they are released: as they were, with seeds that go on where those of the photos end."""
    negatives = gather([bench.negatives])
    photos = gather([bench.photos])[: bench.limit]
    background = [] if bench.background.is_file() else gather([bench.background])
    refuse_inside(bench.out, bench.negatives)
    for references, where in ((photos, "among the photos"), (background, "in the background")):
        refuse_overlap(negatives, references, f"among the negatives and {where}; a negative cannot be a reference")
    return [Released(str(each.name), each.path, len(photos) + number) for number, each in enumerate(negatives)]


def _readable(negatives: list[Released], stage: Stage) -> ReleasedFiles:
    """Those that can be read, and the errors of the others."""

    def read(item: Released) -> PhotoError | None:
        try:
            Photo.load(item.file).view()
        except PhotoError as error:
            return error
        return None

    made = ReleasedFiles([], [], [], 0.0)
    with stage("reading the negatives", len(negatives)) as advance:
        for item, error in zip(negatives, map_ahead(read, negatives), strict=True):
            advance()
            if error is None:
                made.files.append(item)
            else:
                made.failures.append(str(error))
    if not made.files:
        raise HomingError(f"none of the {len(negatives)} negatives can be read; the first says: {made.failures[0]}")
    return made


def _searches(bench: DetectionBench, subject: Subject, negatives: ReleasedFiles) -> Iterator[Searched]:
    released = {recipe: subject.release(recipe) for recipe in subject.ways(bench.recipes)}
    copies = {recipe: subject.copies(made, bench.edits, recipe) for recipe, made in released.items()}
    others = subject.copies(negatives, bench.edits, "negatives")
    for probes in subject.probes(bench.probes):
        strange = subject.search(others, NEAREST, probes, "negatives")  # once: they are the same whatever the recipe
        for recipe, made in released.items():
            home = subject.search(copies[recipe], NEAREST, probes, recipe)
            found = Nearest(*(np.concatenate(both) for both in zip(home, strange, strict=True)))
            yield _searched(bench, subject, recipe, made, negatives, probes, found)


def _searched(
    bench: DetectionBench,
    subject: Subject,
    recipe: str,
    made: ReleasedFiles,
    negatives: ReleasedFiles,
    probes: Probes,
    found: Nearest,
) -> Searched:
    """Score what was found for the copies of the files of one release, then for those of the negatives."""
    own = np.append(subject.own(made), np.full(len(negatives.files), -1)).repeat(len(bench.edits))
    curve = precision_recall(found.ids, found.distances, own)
    row = Row(
        codebook=subject.codebook.name,
        extractor=subject.codebook.extractor,
        spec=subject.codebook.spec,
        recipe=recipe,
        probes=probes,
        average_precision=curve.average_precision,
        interval=average_precision_interval(found.ids, found.distances, own, len(bench.edits), rounds=ROUNDS),
        recall_at_false_matches=[_at_rate(found, own, len(bench.edits), rate) for rate in bench.false_matches],
        positives=int((own >= 0).sum()),
        negatives=int((own < 0).sum()),
        psnr=fmean(quality.psnr for quality in made.qualities) if made.qualities else None,
    )
    sources = [file.source for file in (*made.files, *negatives.files)]
    return Searched(row, curve, sources, own, found)


def _at_rate(found: Nearest, own: np.ndarray, edits: int, rate: float) -> AtRate:
    recall, threshold = recall_at_false_match_rate(found.ids, found.distances, own, rate)
    interval = false_match_interval(found.ids, found.distances, own, edits, rate, rounds=ROUNDS)
    return AtRate(
        rate=rate, recall=recall, interval=interval, threshold=threshold if math.isfinite(threshold) else None
    )
