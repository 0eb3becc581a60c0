"""File to file: time of releasing photos by stage, and recall of their edited copies."""

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
from homing._io.files import write_atomically
from homing.activation.release_check import ReleaseCheck
from homing.bench.benches.speed_loop import LoopConfig
from homing.bench.demo import passive_and_released
from homing.bench.protocol.config import PASSIVE
from homing.bench.protocol.progress import Progress
from homing.bench.retrieval import Probes, recall, search_copies
from homing.bench.stopwatch import Stopwatch
from homing.codebooks import Codebook
from homing.collection import Collection, Outcome
from homing.collection.release import release_photos
from homing.collection.storage.sqlite import SqliteStorage
from homing.edits import PAPER
from homing.errors import HomingError
from homing.extractors import Extractor, describe_images
from homing.perception import Budget
from homing.perception.quality import measure_batch
from homing.photo import Photo, find_photos

COLLECTION = "speed.homing"
ONE_PROBE: Probes = 1
STAGES: dict[str, tuple[Callable[..., Any], ...]] = {
    "decode": (Photo.decode, Photo.pixels),
    "describe": (describe_images,),
    "loop": (),  # timed where it is passed to the collection
    "pixel bound": (Budget.pixel_bound, Budget.pixel_bounds),
    "write and check": (ReleaseCheck.run,),
    "measure": (measure_batch,),
    "catalog": (
        *(SqliteStorage.find, SqliteStorage.find_released, SqliteStorage.find_release),
        *(SqliteStorage.plan_releases, SqliteStorage.confirm_releases, Collection.record, write_atomically),
    ),
}
"""The stages of releasing a photo, and the functions of each."""


@dataclass(frozen=True, kw_only=True)
class FileRow:
    """One loop, file to file: the median of its rounds, and the milliseconds of each stage, all per photo.

    Stages run in parallel threads, so that they can add up to more than the elapsed time.
    """

    name: str
    ms: float
    photos_per_second: float
    rounds: list[float]
    stages: dict[str, float]


@dataclass(frozen=True)
class FilesResult:
    """Rows; recall by loop and of passive, None without distractors; errors of photos that could not be released."""

    rows: list[FileRow]
    recall: dict[str, float | None]
    distractors: int
    failures: list[str]


def time_files(
    loop_configs: Sequence[LoopConfig],
    photos: Path,
    folder: Path,
    *,
    rounds: int,
    extractor: Extractor,
    codebook: Codebook,
    progress: Progress,
) -> FilesResult:
    """Release the photos of a folder with each loop in turn, each time into a new collection.

    The first round is not counted; its files are edited and searched for.
    """
    release = partial(_release, photos=photos, extractor=extractor, codebook=codebook)
    count = sum(1 for _ in photos.iterdir())
    first_rounds: dict[str, list[Outcome]] = {}
    ms_per_photo: dict[str, list[float]] = {config.name: [] for config in loop_configs}
    stopwatches = {config.name: Stopwatch(list(STAGES)) for config in loop_configs}
    with progress("File to file", (1 + rounds) * len(loop_configs) * count) as advance:
        for config in loop_configs:
            first_rounds[config.name], _ = release(
                config, folder=folder / config.name, stopwatch=Stopwatch(list(STAGES)), advance=advance
            )
        failures = [
            f"{each.photo}: {each.reason}"
            for outcomes in first_rounds.values()
            for each in outcomes
            if each.state == "failed"
        ]
        if len(failures) == count * len(loop_configs):
            raise HomingError(f"no photo could be released; the first error: {failures[0]}")
        for config in [*loop_configs] * rounds:
            with tempfile.TemporaryDirectory(dir=folder) as again:
                outcomes, seconds = release(
                    config, folder=Path(again, config.name), stopwatch=stopwatches[config.name], advance=advance
                )
            ms_per_photo[config.name].append(1000 * seconds / len(outcomes))
    rows = [_row(name, each, stopwatches[name], rounds * count) for name, each in ms_per_photo.items()]
    distractors = len(codebooks.bundled_distractors(codebook)) if codebooks.has_distractors(codebook) else 0
    recalls: dict[str, float | None] = dict.fromkeys([PASSIVE, *first_rounds])
    if distractors:
        with progress("Editing and searching", (1 + len(loop_configs)) * count) as advance:
            recalls |= _recalls(first_rounds, folder, extractor, advance)
    return FilesResult(rows, recalls, distractors, failures)


def _release(
    config: LoopConfig,
    *,
    photos: Path,
    folder: Path,
    extractor: Extractor,
    codebook: Codebook,
    stopwatch: Stopwatch,
    advance: Callable[[], None],
) -> tuple[list[Outcome], float]:
    """The outcomes and the seconds they took; the collection and the released files are in the folder."""
    folder.mkdir()
    with (
        Collection.create(
            folder / COLLECTION,
            codebook=codebook,
            with_distractors=codebooks.has_distractors(codebook),
            extractor=extractor,
        ) as collection,
        stopwatch.timing(STAGES),
    ):
        started = time.perf_counter()
        loop = stopwatch.timed("loop", config.loop)
        with collection.lock_for_writing():
            outcomes = release_photos(
                collection,
                find_photos([photos]),
                folder / "released",
                recipe=config.recipe,
                loop=loop,
                on_outcome=lambda _: advance(),
            )
        return outcomes, time.perf_counter() - started


def _row(name: str, rounds: list[float], stopwatch: Stopwatch, released: int) -> FileRow:
    ms = median(rounds)
    stages = {stage: 1000 * seconds / released for stage, seconds in stopwatch.seconds.items()}
    return FileRow(name=name, ms=ms, photos_per_second=1000 / ms, rounds=rounds, stages=stages)


def _recalls(
    first_rounds: dict[str, list[Outcome]], folder: Path, extractor: Extractor, advance: Callable[[], None]
) -> dict[str, float]:
    """Recall with one probe of edited copies of the files of each loop, passive first."""
    recalls: dict[str, float] = {}
    for name, outcomes in first_rounds.items():
        with Collection.open(folder / name / COLLECTION, extractor=extractor) as collection:
            before, after = passive_and_released(outcomes)
            search = partial(collection.search_descriptors, k=1, probes=ONE_PROBE)
            sets = {name: after} if recalls else {PASSIVE: before, name: after}
            for each, released in sets.items():
                queries = search_copies(extractor, released, PAPER, {ONE_PROBE: search}, advance)
                recalls[each] = recall(queries, probes=ONE_PROBE)
    return recalls
