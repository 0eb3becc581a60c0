"""File to file: what releasing photos costs, where the time goes, and how many edited copies come home for it."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from homing import codebooks
from homing._files import write_atomically
from homing.activation.courses import answer_together
from homing.codebooks import Codebook
from homing.collection import Collection, Outcome
from homing.collection.catalogue import Catalogue
from homing.edits import PAPER
from homing.errors import HomingError
from homing.evaluation.benches.speed_loop import Way
from homing.evaluation.demo import before_and_after
from homing.evaluation.protocol.setting import PASSIVE
from homing.evaluation.protocol.stage import Stage
from homing.evaluation.retrieval import Probes, recall, search_copies
from homing.evaluation.stopwatch import Stopwatch
from homing.extractors import Extractor, describe
from homing.perception import Budget
from homing.perception.quality import measure_each
from homing.photo import Photo

COLLECTION = "speed.homing"
ONE_PROBE: Probes = 1
STAGES: dict[str, tuple[Callable[..., Any], ...]] = {
    "decode": (Photo.decode, Photo.view),
    "describe": (describe,),
    "loop": (),  # given to the job as it is timed
    "room": (Budget.room, Budget.rooms),
    "write and check": (answer_together,),
    "measure": (measure_each,),
    "catalogue": (
        *(Catalogue.find, Catalogue.find_released, Catalogue.release, Catalogue.plan_releases),
        *(Catalogue.confirm_releases, Collection.record, write_atomically),
    ),
}
"""What releasing a photo consists of, by the functions that do it."""


@dataclass(frozen=True, kw_only=True)
class FileRow:
    """One way, from files to files: the median of its rounds, and the milliseconds of each stage, all per photo.

    Stages that run beside each other in threads add up to more than the time that passed.
    """

    way: str
    ms: float
    photos_per_second: float
    rounds: list[float]
    stages: dict[str, float]


@dataclass(frozen=True)
class FilesFound:
    """Rows; the recall by way, passive too, or None where there are no strangers; why photos could not be released."""

    rows: list[FileRow]
    recall: dict[str, float | None]
    strangers: int
    failures: list[str]


def time_files(
    ways: Sequence[Way],
    photos: Path,
    folder: Path,
    *,
    rounds: int,
    extractor: Extractor,
    codebook: Codebook,
    stage: Stage,
) -> FilesFound:
    """Release the photos of a folder with each way in turn, as a user does, each time for a new collection.

    The first round is not counted; its files are those that others edit.
    """
    release = partial(_release, photos=photos, extractor=extractor, codebook=codebook)
    count = sum(1 for _ in photos.iterdir())
    firsts: dict[str, list[Outcome]] = {}
    took: dict[str, list[float]] = {way.name: [] for way in ways}
    stopwatches = {way.name: Stopwatch(list(STAGES)) for way in ways}
    with stage("File to file", (1 + rounds) * len(ways) * count) as advance:
        for way in ways:
            firsts[way.name], _ = release(
                way, folder=folder / way.name, stopwatch=Stopwatch(list(STAGES)), advance=advance
            )
        failures = [str(each.reason) for outcomes in firsts.values() for each in outcomes if each.state == "failed"]
        if len(failures) == count * len(ways):
            raise HomingError(f"no photo could be released; the first says: {failures[0]}")
        for way in [*ways] * rounds:
            with tempfile.TemporaryDirectory(dir=folder) as again:
                outcomes, seconds = release(
                    way, folder=Path(again, way.name), stopwatch=stopwatches[way.name], advance=advance
                )
            took[way.name].append(1000 * seconds / len(outcomes))
    rows = [_row(name, each, stopwatches[name], rounds * count) for name, each in took.items()]
    strangers = len(codebooks.bundled_background(codebook)) if codebooks.has_background(codebook) else 0
    recalls: dict[str, float | None] = dict.fromkeys([PASSIVE, *firsts])
    if strangers:
        with stage("Editing and searching", (1 + len(ways)) * count) as advance:
            recalls |= _recalls(firsts, folder, extractor, advance)
    return FilesFound(rows, recalls, strangers, failures)


def _release(
    way: Way,
    *,
    photos: Path,
    folder: Path,
    extractor: Extractor,
    codebook: Codebook,
    stopwatch: Stopwatch,
    advance: Callable[[], None],
) -> tuple[list[Outcome], float]:
    """What came of each photo, and how many seconds it took; a collection and the released files are in the folder."""
    folder.mkdir()
    with (
        Collection.create(
            folder / COLLECTION,
            codebook=codebook,
            with_background=codebooks.has_background(codebook),
            extractor=extractor,
        ) as collection,
        stopwatch.watching(STAGES),
    ):
        started = time.perf_counter()
        outcomes = collection.activate(
            photos,
            folder / "released",
            recipe=way.recipe,
            loop=stopwatch.timed("loop", way.loop),
            report=lambda _: advance(),
        )
        return outcomes, time.perf_counter() - started


def _row(name: str, rounds: list[float], stopwatch: Stopwatch, released: int) -> FileRow:
    ms = median(rounds)
    stages = {stage: 1000 * seconds / released for stage, seconds in stopwatch.seconds.items()}
    return FileRow(way=name, ms=ms, photos_per_second=1000 / ms, rounds=rounds, stages=stages)


def _recalls(
    firsts: dict[str, list[Outcome]], folder: Path, extractor: Extractor, advance: Callable[[], None]
) -> dict[str, float]:
    """The share of edited copies of the files of each way that come home with one probe; passive before all."""
    recalls: dict[str, float] = {}
    for name, outcomes in firsts.items():
        with Collection.open(folder / name / COLLECTION, extractor=extractor) as collection:
            before, after = before_and_after(outcomes)
            search = partial(collection.search_descriptors, k=1, probes=ONE_PROBE)
            sets = {name: after} if recalls else {PASSIVE: before, name: after}
            for each, released in sets.items():
                queries = search_copies(extractor, released, PAPER, {ONE_PROBE: search}, advance)
                recalls[each] = recall(queries, probes=ONE_PROBE)
    return recalls
