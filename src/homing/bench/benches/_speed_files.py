"""File to file: the time of releasing photos by stage, and the recall of their edited copies."""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from statistics import median
from typing import Any

from homing import codebooks
from homing._io.files import write_atomically
from homing.activation.release_check import ReleaseCheck
from homing.bench.base import PASSIVE, Progress
from homing.bench.benches._speed_loop import LoopConfig
from homing.bench.demo import passive_and_released
from homing.bench.references import search_copies
from homing.bench.tables import Row
from homing.codebooks import Codebook
from homing.collection import Collection, Outcome
from homing.collection.release import release_photos
from homing.collection.storage.sqlite import SqliteStorage
from homing.errors import HomingError
from homing.extractors import Extractor, describe_images
from homing.perception import Budget
from homing.perception.quality import measure_batch
from homing.photo import Photo, find_photos

COLLECTION = "speed.homing"
STAGES: dict[str, tuple[Callable[..., Any], ...]] = {
    "decode": (Photo.decode, Photo.pixels),
    "describe": (describe_images,),
    "loop": (),  # timed where it is passed to the collection
    "pixel bound": (Budget.pixel_bound, Budget.pixel_bounds),
    "write and check": (ReleaseCheck.run,),
    "measure": (measure_batch,),
    "catalog": (
        *(SqliteStorage.find, SqliteStorage.find_released, SqliteStorage.find_release),
        *(SqliteStorage.insert_releases, SqliteStorage.confirm_releases, SqliteStorage.add, write_atomically),
    ),
}
"""The stages of releasing a photo, and the functions of each."""


class Stopwatch:
    """Seconds by stage, summed over all threads.

    Stages have an order. A later stage inside an earlier one is counted on its own; an earlier stage inside a later one
    belongs to the later one: decoding a file again during the release check counts as the check.
    """

    def __init__(self, stages: Sequence[str]) -> None:
        self.seconds = dict.fromkeys(stages, 0.0)
        self._order = list(stages)
        self._open: ContextVar[tuple[str, ...]] = ContextVar("open", default=())  # inherited by threads
        self._lock = threading.Lock()

    def timed(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, wrapped so that its time counts for this stage."""
        position = self._order.index(stage)

        @wraps(function)
        def counted(*args: Any, **kwargs: Any) -> Any:
            around = self._open.get()[-1:]
            if around and self._order.index(around[0]) >= position:
                return function(*args, **kwargs)
            token = self._open.set((*self._open.get(), stage))
            started = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                seconds = time.perf_counter() - started
                self._open.reset(token)
                with self._lock:
                    self.seconds[stage] += seconds
                    for each in around:
                        self.seconds[each] -= seconds

        return counted

    @contextmanager
    def timing(self, stages: Mapping[str, Sequence[Callable[..., Any]]]) -> Iterator[None]:
        """Time every call of these functions and methods of homing inside the context."""
        with ExitStack() as stack:
            for stage, functions in stages.items():
                for function in functions:
                    for owner, name in _owners(function):
                        before = vars(owner)[name]
                        stack.callback(setattr, owner, name, before)
                        timed = self.timed(stage, getattr(before, "__func__", before))
                        setattr(owner, name, classmethod(timed) if isinstance(before, classmethod) else timed)
            yield


def _owners(function: Callable[..., Any]) -> list[tuple[Any, str]]:
    """Where callers look up a method or function: its class, or every module that imported it."""
    module = sys.modules[function.__module__]
    if "." in function.__qualname__:
        owner, name = function.__qualname__.split(".")
        return [(getattr(module, owner), name)]
    modules = [each for name, each in list(sys.modules.items()) if name.split(".")[0] == "homing"]
    return [(module, name) for module in modules for name, value in list(vars(module).items()) if value is function]


@dataclass(frozen=True)
class FilesResult:
    """Rows; recall by loop and of passive, None without distractors; errors of photos that could not be released."""

    rows: list[Row]
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

    def release(config: LoopConfig, folder: Path, stopwatch: Stopwatch) -> tuple[list[Outcome], float]:
        """The outcomes and the seconds they took; the collection and the released files are in the folder."""
        folder.mkdir()
        with (
            Collection.create(
                folder / COLLECTION, codebook=codebook, with_distractors=has_distractors, extractor=extractor
            ) as collection,
            stopwatch.timing(STAGES),
        ):
            started = time.perf_counter()
            with collection.lock_for_writing():
                outcomes = release_photos(
                    collection,
                    find_photos([photos]),
                    folder / "released",
                    recipe=config.recipe,
                    loop=stopwatch.timed("loop", config.loop),
                    on_outcome=lambda _: advance(),
                )
            return outcomes, time.perf_counter() - started

    has_distractors = codebooks.has_distractors(codebook)
    count = sum(1 for _ in photos.iterdir())
    first_rounds: dict[str, list[Outcome]] = {}
    ms_per_photo: dict[str, list[float]] = {config.name: [] for config in loop_configs}
    stopwatches = {config.name: Stopwatch(list(STAGES)) for config in loop_configs}
    with progress("File to file", (1 + rounds) * len(loop_configs) * count) as advance:
        for config in loop_configs:
            first_rounds[config.name], _ = release(config, folder / config.name, Stopwatch(list(STAGES)))
        outcomes = [each for released in first_rounds.values() for each in released]
        failures = [f"{each.photo}: {each.reason}" for each in outcomes if each.state == "failed"]
        if len(failures) == count * len(loop_configs):
            raise HomingError(f"no photo could be released; the first error: {failures[0]}")
        for config in [*loop_configs] * rounds:
            with tempfile.TemporaryDirectory(dir=folder) as again:
                outcomes, seconds = release(config, Path(again, config.name), stopwatches[config.name])
            ms_per_photo[config.name].append(1000 * seconds / len(outcomes))
    rows = [_row(name, each, stopwatches[name], rounds * count) for name, each in ms_per_photo.items()]
    distractors = len(codebooks.bundled_distractors(codebook)) if has_distractors else 0
    recalls: dict[str, float | None] = dict.fromkeys([PASSIVE, *first_rounds])
    if distractors:
        with progress("Editing and searching", (1 + len(loop_configs)) * count) as advance:
            recalls |= _recalls(first_rounds, folder, extractor, advance)
    return FilesResult(rows, recalls, distractors, failures)


def _row(name: str, rounds: list[float], stopwatch: Stopwatch, released: int) -> Row:
    """One loop, file to file: the median of its rounds, and the milliseconds of each stage, all per photo.

    Stages run in parallel threads, so that they can add up to more than the elapsed time.
    """
    ms = median(rounds)
    stages = {stage: 1000 * seconds / released for stage, seconds in stopwatch.seconds.items()}
    return {"name": name, "ms": ms, "photos_per_second": 1000 / ms, "rounds": rounds, "stages": stages}


def _recalls(
    first_rounds: dict[str, list[Outcome]], folder: Path, extractor: Extractor, advance: Callable[[], None]
) -> dict[str, float]:
    """Recall with one probe of edited copies of the files of each loop, passive first."""
    recalls: dict[str, float] = {}
    for name, outcomes in first_rounds.items():
        with Collection.open(folder / name / COLLECTION, extractor=extractor) as collection:
            before, after = passive_and_released(outcomes)
            sets = {name: after} if recalls else {PASSIVE: before, name: after}
            for each, released in sets.items():
                recalls[each] = float(search_copies(collection, released, [1], advance)[1].correct.mean())
    return recalls
