"""The search bench: what each option of a search adds to the recall, and what it costs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from homing import codebooks
from homing.collection.turning import TURNS
from homing.edits import PAPER
from homing.errors import HomingError
from homing.evaluation.protocol.references import Nearest, Probes
from homing.evaluation.protocol.releasing import ReleasedFiles
from homing.evaluation.protocol.setting import PASSIVE, Setting, Subject, check_recipes, subjects
from homing.evaluation.protocol.stage import Stage
from homing.evaluation.scores import Interval, gain_interval, rank_of, recall_at, recall_intervals

LABELS = [edit.label for edit in PAPER]
AGAIN = 100  # how many are compared again
_MATCHES = 10  # that a search gives, as one does that is asked for nothing else


@dataclass(frozen=True, kw_only=True)
class Option:
    """One way to search: the options of `Collection.search`, or exact."""

    probes: Probes | None = None
    margin: float | None = None
    turned: bool = False
    rerank: int | None = None

    @property
    def name(self) -> str:
        """In words."""
        if self.probes == "exact":
            return "exact"
        cells = (
            f"margin {self.margin:g}" if self.margin is not None else f"{self.probes} probe" + "s" * (self.probes != 1)
        )
        return cells + ", turned" * self.turned + ", ranked again" * (self.rerank is not None)


# The first is what the others are compared with.
OPTIONS = (
    Option(probes=1),
    Option(margin=0.05),
    Option(margin=0.1),
    Option(margin=0.2),
    Option(probes=16),
    Option(probes=1, turned=True),
    Option(probes=1, rerank=AGAIN),
    Option(margin=0.1, rerank=AGAIN),
    Option(probes=16, rerank=AGAIN),
    Option(margin=0.1, turned=True, rerank=AGAIN),
    Option(probes="exact"),
)


@dataclass(frozen=True, kw_only=True)
class SearchBench(Setting):
    """The setting, and the recipe that photos are activated with; they are released as they are, too."""

    recipe: str = "homing"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_recipes([self.recipe])


@dataclass(frozen=True, kw_only=True)
class Row:
    """Recall at rank 1 of the copies of files released with one recipe, found by one way to search, and its cost.

    `adds` is what the mean recall gains over one probe. Costs are per query: codes and full descriptors compared, the
    time of the search on one core, and how often the network runs.
    """

    codebook: str
    extractor: str
    spec: str
    recipe: str
    search: str
    probes: Probes | None
    margin: float | None
    turned: bool
    rerank: int | None
    recall: dict[str, float]
    interval: dict[str, Interval]
    mean: float
    mean_interval: Interval
    adds: float
    adds_interval: Interval
    codes: float
    descriptors: float
    milliseconds: float | None
    passes: int
    photos: int
    activated: int


@dataclass(frozen=True)
class Searched:
    """The searches for the copies of one release: the nearest of each copy, file by file, and ranks (P, E)."""

    subject: Subject
    recipe: str
    option: Option
    made: ReleasedFiles
    found: Nearest
    ranks: np.ndarray
    codes: float
    descriptors: float
    milliseconds: float | None
    first: Searched | None  # by the first option; None for that one itself

    @cached_property
    def row(self) -> Row:
        """What there is to say of them."""
        home = self.ranks == 0
        before = home if self.first is None else self.first.ranks == 0
        intervals = recall_intervals(home)
        return Row(
            codebook=self.subject.codebook.name,
            extractor=self.subject.codebook.extractor,
            spec=self.subject.codebook.spec,
            recipe=self.recipe,
            search=self.option.name,
            **vars(self.option),
            recall={label: recall_at(self.ranks[:, place], 1) for place, label in enumerate(LABELS)},
            interval=dict(zip(LABELS, intervals.by_edit, strict=True)),
            mean=float(home.mean()),
            mean_interval=intervals.mean,
            adds=float(home.mean() - before.mean()),
            adds_interval=gain_interval(before, home),
            codes=self.codes,
            descriptors=self.descriptors,
            milliseconds=self.milliseconds,
            passes=TURNS if self.option.turned else 1,
            photos=len(self.made.files),
            activated=len(self.made.qualities),
        )


@dataclass(frozen=True)
class SearchResult:
    """What a bench found, for each codebook, recipe and option."""

    bench: SearchBench
    subjects: list[Subject]
    searched: list[Searched]
    seconds: float

    @property
    def rows(self) -> list[Row]:
        """The table."""
        return [each.row for each in self.searched]


def run_search_bench(bench: SearchBench, stage: Stage) -> SearchResult:
    """Measure each codebook in turn; what was described and released stays in the out folder for the next run."""
    started = time.perf_counter()
    for book in map(codebooks.load, bench.codebooks):
        if not book.has_cells:
            raise HomingError(
                f"'{book.name}' ({book.spec}) has no cells to choose from; measure one that begins with IVF"
            )
    measured = [(subject, list(_searches(bench, subject))) for subject in subjects(bench, stage)]
    searched = [each for _, some in measured for each in some]
    return SearchResult(bench, [subject for subject, _ in measured], searched, time.perf_counter() - started)


def _searches(bench: SearchBench, subject: Subject) -> Iterator[Searched]:
    for recipe in subject.ways([PASSIVE, bench.recipe]):
        made = subject.release(recipe)
        copies = subject.copies(made, PAPER, f"{recipe}, in all turns", turned=True)
        first = None
        with subject.stage(f"{subject.codebook.name}: searching, {recipe}", len(OPTIONS)) as advance:
            for option in OPTIONS:
                searched = _search(subject, recipe, made, copies, option, first)
                first = first or searched
                advance()
                yield searched


def _search(
    subject: Subject, recipe: str, made: ReleasedFiles, copies: np.ndarray, option: Option, first: Searched | None
) -> Searched:
    """Search for (P, E, T, D) copies, which begin with those that are not turned."""
    references, own = subject.references, subject.own(made)
    queries = copies.reshape(-1, *copies.shape[2:]) if option.turned else copies[:, :, 0].reshape(-1, copies.shape[3])
    probes, margin, rerank = option.probes, option.margin, option.rerank
    found = references.search(queries, rerank or _MATCHES, probes, margin=margin, rerank=rerank)
    codes, descriptors, milliseconds = 0.0, float(len(references)), None
    if probes != "exact":
        codes = float(references.looked_at(queries, probes, margin).mean())
        descriptors = float((found.ids >= 0).sum(axis=1).mean()) if rerank is not None else 0.0
        milliseconds = references.milliseconds_with(queries, _MATCHES, probes=probes, margin=margin, rerank=rerank)
    return Searched(
        subject,
        recipe,
        option,
        made,
        found.first(),
        rank_of(found.ids, own.repeat(len(LABELS))).reshape(copies.shape[:2]),
        codes,
        descriptors,
        milliseconds,
        first,
    )
