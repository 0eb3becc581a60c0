"""The retrieval bench: edited copies of held-out photos, released in several ways, searched for among strangers."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import fmean

import torch
from torch import Tensor

from homing import codebooks, extractors
from homing._parallel import map_ahead
from homing.activation import RECIPES, recipe_named
from homing.codebooks import Codebook
from homing.edits import PAPER
from homing.errors import HomingError, PhotoError, UnknownNameError
from homing.evaluation.references import References
from homing.evaluation.releasing import ReleasedFiles, release
from homing.evaluation.retrieval import Probes, Query, Released, recall, search_copies
from homing.evaluation.strangers import Strangers, find_strangers
from homing.extractors import Extractor, describe
from homing.extractors.base import images_at_once
from homing.photo import Found, Photo, gather

PASSIVE = "passive"  # the recipe that releases photos as they are

# Opens a bar of a description and a length; gives the function that moves it on by one.
Stage = Callable[[str, int], AbstractContextManager[Callable[[], None]]]


@dataclass(frozen=True, kw_only=True)
class RetrievalBench:
    """What is measured, on which photos, and where the results go."""

    photos: Path
    background: Path
    out: Path
    strangers: int = 300_000
    codebooks: Sequence[str] = ("homing-1",)
    probes: Sequence[Probes] = (1, 16, "exact")
    recipes: Sequence[str] = (PASSIVE, "paper")
    limit: int | None = None

    def __post_init__(self) -> None:
        for name in self.recipes:
            if name != PASSIVE and name not in RECIPES:
                raise UnknownNameError("recipe", name, [PASSIVE, *RECIPES])
        for probes in self.probes:
            if probes != "exact" and (type(probes) is not int or probes < 1):
                raise HomingError(f"probes are whole numbers from 1, or 'exact', got {probes!r}")
        if self.strangers < 1 or (self.limit is not None and self.limit < 1):
            raise HomingError(f"strangers and limit must be at least 1, got {self.strangers} and {self.limit}")


@dataclass(frozen=True, kw_only=True)
class Row:
    """Recall of the copies of files released with one recipe, found with one codebook and number of probes.

    PSNR and SSIM are means over the activated files.
    """

    codebook: str
    extractor: str
    spec: str
    recipe: str
    probes: Probes
    recall: dict[str, float]
    mean: float
    photos: int
    activated: int
    psnr: float | None
    ssim: float | None


@dataclass(frozen=True)
class Measured:
    """What was found for one codebook; the searches behind a row stand beside it."""

    codebook: Codebook
    photos: int
    strangers: Strangers
    rows: list[tuple[Row, list[Query]]]
    failures: list[str]


@dataclass(frozen=True)
class BenchResult:
    """What a bench found, codebook by codebook."""

    bench: RetrievalBench
    measured: list[Measured]
    seconds: float

    @property
    def rows(self) -> list[Row]:
        """The table."""
        return [row for each in self.measured for row, _ in each.rows]

    @property
    def failures(self) -> list[str]:
        """One line for each photo that could not be read or released."""
        return list(dict.fromkeys(line for each in self.measured for line in each.failures))


def run_retrieval_bench(bench: RetrievalBench, stage: Stage) -> BenchResult:
    """Measure each codebook in turn; released files and the background's descriptors stay in the out folder."""
    started = time.perf_counter()
    books = _codebooks(bench)
    photos, background = gather([bench.photos])[: bench.limit], gather([bench.background])
    _refuse_overlap(bench, photos, background)
    _make_out(bench.out)
    # All networks before any work: hours later it would be late to hear that one is missing.
    networks = [_network(book) for book in books]
    measured = [
        _measure(bench, book, network, photos, background, stage) for book, network in zip(books, networks, strict=True)
    ]
    return BenchResult(bench, measured, time.perf_counter() - started)


def _codebooks(bench: RetrievalBench) -> list[Codebook]:
    books = [codebooks.load(name) for name in dict.fromkeys(bench.codebooks)]
    names = [book.name for book in books]
    if stray := next((name for name in names if Path(name).name != name or ".." in name), None):
        raise HomingError(
            f"a codebook is named '{stray}', which cannot be the name of a folder; train it under another"
        )
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise HomingError(f"two of the codebooks are named '{twice}'; measure them into different --out folders")
    return books


def _refuse_overlap(bench: RetrievalBench, photos: Sequence[Found], background: Sequence[Found]) -> None:
    """No photo may be its own stranger, and what a bench writes may not become its input."""
    for folder in (bench.photos, bench.background):
        if Path(os.path.realpath(bench.out)).is_relative_to(os.path.realpath(folder)):
            raise HomingError(f"the out folder {bench.out} lies inside {folder}; choose another --out")
    strangers = {os.path.realpath(each.path) for each in background}
    if known := next((each.path for each in photos if os.path.realpath(each.path) in strangers), None):
        raise HomingError(f"{known} is among the photos and in the background; it cannot be its own stranger")


def _make_out(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise HomingError(f"cannot write into the out folder {out}: {error.strerror}") from error


def _network(codebook: Codebook) -> Extractor:
    extractor = extractors.load(codebook.extractor)
    codebook.check(extractor)
    return extractor


def _measure(
    bench: RetrievalBench,
    codebook: Codebook,
    extractor: Extractor,
    photos: Sequence[Found],
    background: Sequence[Found],
    stage: Stage,
) -> Measured:
    with stage(f"{codebook.name}: describing the background", min(bench.strangers, len(background))) as advance:
        strangers = find_strangers(extractor, background, bench.strangers, bench.out, advance)
    with stage(f"{codebook.name}: describing the photos", len(photos)) as advance:
        originals, descriptors, unreadable = _describe(extractor, photos, advance)
    if not originals:
        raise HomingError(f"none of the {len(photos)} photos can be read; the first says: {unreadable[0]}")
    failures = [*strangers.failures, *unreadable]
    sources = [original.source for original in originals]
    references = References(codebook, sources, torch.cat(descriptors), strangers.descriptors, extractor.device)
    searches = {probes: references.search(probes) for probes in bench.probes}
    rows: list[tuple[Row, list[Query]]] = []
    for recipe in dict.fromkeys(bench.recipes):
        made = _release(bench, codebook, extractor, originals, recipe, stage)
        failures += made.failures
        with stage(f"{codebook.name}: editing and searching, {recipe}", len(made.files)) as advance:
            queries = search_copies(extractor, made.files, PAPER, searches, advance)
        rows += [
            _row(codebook, recipe, probes, made, [query for query in queries if query.probes == probes])
            for probes in searches
        ]
    return Measured(codebook, len(originals), strangers, rows, failures)


def _describe(
    extractor: Extractor, photos: Sequence[Found], advance: Callable[[], None]
) -> tuple[list[Released], list[Tensor], list[str]]:
    """The photos that can be read, batches (B, dim) of their descriptors, and the errors of the others."""

    def square(photo: Found) -> Tensor | PhotoError:
        try:
            return extractor.resize(Photo.load(photo.path).view())
        except PhotoError as error:
            return error

    originals: list[Released] = []
    descriptors: list[Tensor] = []
    failures: list[str] = []
    results = enumerate(zip(photos, map_ahead(square, photos), strict=True))
    while some := list(islice(results, images_at_once(extractor))):
        squares = [result for _, (_, result) in some if isinstance(result, Tensor)]
        descriptors += [describe(extractor, squares)] if squares else []
        for seed, (photo, result) in some:
            advance()
            if isinstance(result, PhotoError):
                failures.append(str(result))
            else:
                originals.append(Released(str(photo.name), photo.path, seed))
    return originals, descriptors, failures


def _release(
    bench: RetrievalBench,
    codebook: Codebook,
    extractor: Extractor,
    originals: list[Released],
    recipe: str,
    stage: Stage,
) -> ReleasedFiles:
    """The files that others will edit."""
    if recipe == PASSIVE:
        return ReleasedFiles(originals, [], [])
    folder = bench.out / "released" / codebook.name / recipe
    with stage(f"{codebook.name}: activating, {recipe}", len(originals)) as advance:
        made = release(
            originals,
            folder,
            extractor=extractor,
            codebook=codebook,
            recipe=recipe_named(recipe),
            advance=advance,
        )
    if not made.files:
        raise HomingError(f"no photo could be released with recipe '{recipe}'; the first says: {made.failures[0]}")
    return made


def _row(
    codebook: Codebook, recipe: str, probes: Probes, made: ReleasedFiles, queries: list[Query]
) -> tuple[Row, list[Query]]:
    recalls = {edit.label: recall(queries, probes=probes, edit=edit.label) for edit in PAPER}
    row = Row(
        codebook=codebook.name,
        extractor=codebook.extractor,
        spec=codebook.spec,
        recipe=recipe,
        probes=probes,
        recall=recalls,
        mean=fmean(recalls.values()),
        photos=len(made.files),
        activated=len(made.qualities),
        psnr=fmean(quality.psnr for quality in made.qualities) if made.qualities else None,
        ssim=fmean(quality.ssim for quality in made.qualities) if made.qualities else None,
    )
    return row, queries
