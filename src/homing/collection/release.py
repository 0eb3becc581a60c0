"""Release photos: read and look up, activate, plan, write and confirm, on one machine or a cluster."""

from __future__ import annotations

import hashlib
import os
import unicodedata
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from inspect import unwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from homing._io.files import is_case_insensitive
from homing._io.parallel import prefetch_map, thread_map
from homing._io.paths import (
    Address,
    Location,
    is_inside,
    is_storable,
    path_exists,
    prepare_output_location,
    printable,
    stored_path,
    write_file,
)
from homing.activation import Activation, Recipe, activate_batch
from homing.activation.optimize import optimize
from homing.activation.pipeline import (
    ActivateBatch,
    BatchSize,
    Loop,
    ReleasePipeline,
    activate_in_worker,
    batch_size_for,
    should_compile,
    use_processes,
)
from homing.collection.add import READ_THREADS, read_to_record
from homing.collection.outcome import Outcome, OutcomeCallback, failed, report_each
from homing.collection.references import NewPhotos, StoredRelease, to_float16
from homing.collection.sources import SOURCE_CHANGED, update_moved_source
from homing.collection.storage.layout import UPLOADS
from homing.errors import CollectionError, HomingError, PhotoError
from homing.photo import SUFFIXES, FoundPhoto, MemoryPhoto, PhotoFile, differences, format_name, read_file

if TYPE_CHECKING:
    from homing.collection.collection import Collection


PhotoT = TypeVar("PhotoT", Location, Location | MemoryPhoto)


@dataclass(frozen=True)
class Task:
    """A photo's file, and the path of its released file."""

    path: Location
    target: Location
    moved_from: Location | None = None
    """The previously recorded path of a known photo whose file moved here."""


def tasks_for(found: Sequence[FoundPhoto[Location]], out: Location, format: str | None, root: Location) -> list[Task]:
    """Assign a target file to each photo, and create the output folder. `root` is that of the collection."""
    if not found:
        raise HomingError("no photos were given")
    if is_inside(out, root) and not is_inside(out, root / UPLOADS):
        raise HomingError(f"the out folder {out} lies inside the collection; choose another")
    if isinstance(out, Path) and not is_storable(Path(os.path.realpath(out))):
        raise HomingError(f"the out folder {printable(out)} has a name that is not valid UTF-8; choose another")
    tasks = [Task(path, target) for target, path in targets(found, out, format).items()]
    prepare_output_location(out)
    if isinstance(out, Path) and is_case_insensitive(out):
        refuse_name_clashes(tasks)
    return tasks


def refuse_name_clashes(tasks: Sequence[Task]) -> None:
    """Raise an error if target names differ only in case: on a case-insensitive disk one would overwrite the other."""
    seen: dict[str, Location] = {}
    for task in tasks:
        key = unicodedata.normalize("NFC", str(task.target)).casefold()
        if key in seen:
            raise HomingError(
                f"{seen[key]} and {task.path} would both be written to {task.target}, because the disk "
                "ignores case; activate them into different folders"
            )
        seen[key] = task.path


def targets(found: Iterable[FoundPhoto[PhotoT]], out: Location, format: str | None) -> dict[Location, PhotoT]:
    """Map each target file, in `format` if given, to its photo. Photos inside `out` are skipped."""
    photos: dict[Location, PhotoT] = {}
    for item in found:
        if not isinstance(item.path, MemoryPhoto) and is_inside(item.path, out):
            continue
        target = out / (item.name.with_suffix(SUFFIXES[format]) if format else item.name)
        if target in photos:
            raise HomingError(
                f"{photos[target]} and {item.path} would both be written to {target}; "
                "activate them into different folders"
            )
        photos[target] = item.path
    if not photos:
        raise HomingError(f"all photos are in the output folder {out}; choose another output folder")
    return photos


def release_photos(
    collection: Collection,
    found: Sequence[FoundPhoto[Location]],
    out: Location,
    *,
    recipe: Recipe,
    format: str | None = None,
    graphics: bool = False,
    processes: bool = False,
    loop: Loop = optimize,
    expected: Mapping[Location, Container[str]] | None = None,
    on_outcome: OutcomeCallback | None,
) -> list[Outcome]:
    """Release photos into one folder, and report each one once its file is on disk.

    `loop` replaces the optimization loop, for comparisons; its recipe must have a distinct name. `expected` maps each
    photo to the hashes that its file may have. The caller holds the lock.
    """
    format = format_name(format) if format else None
    tasks = tasks_for(found, out, format, collection.root)
    records = ReleaseRecords(collection, settings_of(recipe, format, graphics), expected)
    extractor, codebook = collection.extractor, collection.codebook
    size = batch_size_for(extractor.device)
    options: dict[str, Any] = {"codebook": codebook, "recipe": recipe, "format": format, "graphics": graphics}
    # Workers load the network by its name and run the default loop.
    can_use_workers = processes and loop is optimize and not collection.has_custom_extractor
    if can_use_workers and use_processes(len(tasks), extractor.device):
        work = partial(activate_in_worker, compiled=should_compile(len(tasks), recipe), **options)
        outcomes = release_pipeline(records, work, size).run_in_processes(tasks)
    else:
        if unwrap(loop) is not optimize:  # a loop that is compared with ours runs one batch at a time
            size = replace(size, concurrent=1, threads=None)
        activate = partial(activate_batch, extractor=extractor, loop=loop, **options)
        outcomes = release_pipeline(records, activate, size).run(tasks)
    return report_each(outcomes, on_outcome)


def release_pipeline(
    records: ReleaseRecords, activate: ActivateBatch, size: BatchSize
) -> ReleasePipeline[Task, Outcome]:
    """The pipeline from the files of photos to their released files and records."""
    return ReleasePipeline(
        source=partial(read_tasks, records=records),
        activate=activate,
        sink=partial(write_releases, records=records),
        size=size,
    )


def settings_of(recipe: Recipe, format: str | None, graphics: bool) -> str:
    """Everything that a released file depends on, as it is recorded with it."""
    settings = {field.name: getattr(recipe, field.name) for field in fields(recipe) if field.name != "summary"}
    return f"{settings} {format}{' graphics' if graphics else ''}"


class ReleaseRecords:
    """What a job looks up and records of releases. One job uses one instance for all its photos."""

    def __init__(
        self, collection: Collection, settings: str, expected: Mapping[Location, Container[str]] | None = None
    ) -> None:
        """`settings` are those of the job; `expected` maps each photo to the hashes that its file may have."""
        self._storage, self._settings, self._expected = collection.storage, settings, expected or {}

    def look_up(self, photos: Sequence[tuple[Task, str, str | None]]) -> list[tuple[Task, Outcome | None]]:
        """Look up tasks by the hashes of their photo and target. Gives the outcome of those that need no activation."""
        return [self._look_up(*photo) for photo in photos]

    def _look_up(self, task: Task, sha256: str, target_sha256: str | None) -> tuple[Task, Outcome | None]:
        try:
            if task.path in self._expected and sha256 not in self._expected[task.path]:
                raise PhotoError(f"{task.path}: {SOURCE_CHANGED}")
            number = self._storage.find(sha256)
            if number is not None and (before := update_moved_source(self._storage, number, task.path)) is not None:
                task = replace(task, moved_from=before)
            return task, self._already_released(number, sha256, task, target_sha256)
        except (PhotoError, CollectionError) as error:
            return task, failed(task.path, error)

    def _already_released(
        self, number: int | None, sha256: str, task: Task, target_sha256: str | None
    ) -> Outcome | None:
        """The outcome of an earlier run, if it is valid. Raises an error if the target was not written by homing."""
        if number is None and (original := self._storage.find_released(sha256)) is not None:
            source, _ = self._storage.source_and_state(original)
            raise PhotoError(f"{task.path}: is the released version of {source} already; release it as it is")
        if target_sha256 is None:
            return None
        path = _stored_target(task.target)
        row = None if number is None else self._storage.find_release(number, target_sha256, path)
        if row is None:
            raise CollectionError(f"{task.path}: {task.target} exists and was not written for this photo; move it away")
        if row.recipe != self._settings:
            return None
        if not row.written:
            self._storage.confirm_releases([row])
        return replace(_outcome(task, row), resumed=True)

    def plan(self, photos: NewPhotos, releases: Sequence[StoredRelease]) -> list[StoredRelease]:
        """Record photos that are no references yet, and the planned release of each. Returns what was planned."""
        ids = self._storage.ids_of(photos.hashes)
        while not ids.keys() >= set(photos.hashes):  # where writers have no lock, another may remove some meanwhile
            self._storage.add(photos)
            ids = self._storage.ids_of(photos.hashes)
        planned = [
            row._replace(photo=ids[sha256], recipe=self._settings)
            for sha256, row in zip(photos.hashes, releases, strict=True)
        ]
        self._storage.plan_releases(planned)
        return planned

    def is_own_release(self, photo: int, path: str, sha256: str) -> bool:
        """Whether this photo has a planned or written release with this hash."""
        return self._storage.find_release(photo, sha256, path) is not None

    def confirm(self, releases: Sequence[StoredRelease]) -> None:
        """Mark planned files as written."""
        self._storage.confirm_releases(releases)


def read_tasks(tasks: Sequence[Task], records: ReleaseRecords) -> list[tuple[Task, PhotoFile | Outcome]]:
    """The source of a release: the files of photos, or the outcomes of those that need no activation."""
    read = thread_map(_read, tasks, threads=READ_THREADS)
    files = [(task, *each) for task, each in zip(tasks, read, strict=True) if not isinstance(each, Outcome)]
    looked_up = iter(records.look_up([(task, file.sha256, target_sha256) for task, file, target_sha256 in files]))
    pairs: list[tuple[Task, PhotoFile | Outcome]] = []
    for task, each in zip(tasks, read, strict=True):
        if isinstance(each, Outcome):
            pairs.append((task, each))
        else:
            known, outcome = next(looked_up)
            pairs.append((known, each[0] if outcome is None else _finished(known, each[0], outcome)))
    return pairs


def _read(task: Task) -> tuple[PhotoFile, str | None] | Outcome:
    """The file of a photo, and the hash of the existing file at its target."""
    try:
        return read_to_record(task.path), _target_sha256(task)
    except (PhotoError, CollectionError) as error:
        return failed(task.path, error)


def _target_sha256(task: Task) -> str | None:
    """The hash of the file at a target. Empty if it is not a file, None if it does not exist."""
    try:
        if not path_exists(task.target):
            return None
        return hashlib.sha256(read_file(task.target)).hexdigest() if task.target.is_file() else ""
    except OSError as error:
        raise CollectionError(f"{task.path}: cannot read {task.target}: {error.strerror}") from error


def _finished(task: Task, file: PhotoFile, outcome: Outcome) -> Outcome:
    """The outcome of a photo that is not activated; that of an earlier job with file sizes and notes."""
    if outcome.resumed:
        try:
            released = read_file(task.target)
            notes = differences(file.data, released, outcome.photo)
        except PhotoError as error:
            return failed(task.path, error)
        outcome = replace(outcome, bytes_before=len(file.data), bytes_after=len(released), notes=notes)
    return _with_move(task, outcome)


def write_releases(
    batch: Sequence[tuple[Task, Activation | PhotoError | Outcome]], records: ReleaseRecords
) -> list[Outcome]:
    """The sink of a release: write references, plans, files and confirmations, in this order.

    Each step is one transaction for the whole batch; after a crash the next run completes them. A photo whose file
    cannot be written fails alone.
    """
    activated = {task: result for task, result in batch if isinstance(result, Activation)}
    outcomes = {
        task: failed(task.path, result) if isinstance(result, PhotoError) else result
        for task, result in batch
        if not isinstance(result, Activation)
    }
    try:
        rows = _plan(activated, records) if activated else []
        planned = [(task, activated[task], row) for task, row in zip(activated, rows, strict=True)]
        # In threads, because each write waits for the disk.
        written = dict(zip(activated, prefetch_map(lambda each: _write(*each, records), planned), strict=True))
        outcomes |= written
        if done := [row for task, _, row in planned if written[task].state != "failed"]:
            records.confirm(done)
    except CollectionError as error:
        outcomes |= {task: failed(task.path, error) for task in activated}
    return [_with_move(task, outcomes[task]) for task, _ in batch]


def _plan(activated: Mapping[Task, Activation], records: ReleaseRecords) -> list[StoredRelease]:
    """Record the references, and the files that are about to be written."""
    results = list(activated.values())
    photos = NewPhotos(
        [each.sha256 for each in results],
        [stored_path(task.path) for task in activated],
        np.stack([each.code for each in results]),
        np.stack([each.descriptor for each in results]),
    )
    releases = [
        StoredRelease(
            photo=0,  # filled in by `ReleaseRecords.plan`, like the recipe
            path=_stored_target(task.target),
            state=each.state,
            sha256=hashlib.sha256(each.data).hexdigest(),
            recipe="",
            psnr=each.quality.psnr,
            ssim=each.quality.ssim,
            linf=each.quality.linf,
            reason=each.reason,
            vector=None if each.descriptor_after is None else to_float16(each.descriptor_after).tobytes(),
        )
        for task, each in activated.items()
    ]
    return records.plan(photos, releases)


def _write(task: Task, activation: Activation, row: StoredRelease, records: ReleaseRecords) -> Outcome:
    """Write the file of one photo. Only an earlier release of the same photo may be overwritten."""
    try:
        target_sha256 = _target_sha256(task)
        is_ours = target_sha256 is not None and records.is_own_release(row.photo, row.path, target_sha256)
        write_file(task.target, activation.data, new=not is_ours)
    except (PhotoError, CollectionError) as error:
        return failed(task.path, error)
    except OSError as error:
        return failed(task.path, CollectionError(f"{task.path}: cannot write {task.target}: {error.strerror}"))
    return replace(
        _outcome(task, row),
        overwrote=is_ours and target_sha256 != row.sha256,
        bytes_before=activation.bytes_before,
        bytes_after=len(activation.data),
        notes=activation.notes,
    )


def _outcome(task: Task, row: StoredRelease) -> Outcome:
    figures = {name: getattr(row, name) for name in ("state", "psnr", "ssim", "linf", "reason")}
    return Outcome(photo=str(task.path), released=str(task.target), **figures)


def _with_move(task: Task, outcome: Outcome) -> Outcome:
    return replace(outcome, moved_from=None if task.moved_from is None else str(task.moved_from))


def _stored_target(target: Location) -> str:
    """The canonical path of a released file, independent of how its folder is spelled."""
    if isinstance(target, Address):
        return str(target)
    return str(Path(os.path.realpath(target.parent)) / target.name)
