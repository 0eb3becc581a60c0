"""The steps of releasing photos, on one machine or a cluster: read, look up, then after activation plan and write."""

from __future__ import annotations

import hashlib
import os
import unicodedata
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from homing._io.files import is_case_insensitive
from homing._io.parallel import prefetch_map
from homing._io.paths import Address, Location, is_inside, path_exists, prepare_output_location, stored_path, write_file
from homing.activation import Activation, Recipe
from homing.activation.workers import EncodedPhoto
from homing.collection._sources import SOURCE_CHANGED, update_moved_source
from homing.collection._targets import targets
from homing.collection.folder import UPLOADS
from homing.collection.outcome import Outcome, failed
from homing.collection.references import NewPhotos, ReleaseEntry, ReleaseRow
from homing.errors import CollectionError, HomingError, PhotoError
from homing.photo import FoundPhoto, differences, format_name, read_file

if TYPE_CHECKING:
    from homing.collection.collection import Collection


@dataclass(frozen=True)
class Task:
    """A photo's file, and the path of its released file."""

    path: Location
    target: Location
    moved_from: Location | None = None
    """The previously recorded path of a known photo whose file moved here."""


@dataclass(frozen=True)
class FileToRelease:
    """A photo's file with its hash, and the hash of the existing target file, None if there is none."""

    task: Task
    file: EncodedPhoto
    sha256: str
    target_sha256: str | None


@dataclass(frozen=True)
class PlannedRelease:
    """The result of activating a photo, with the hash of the file to release instead of its bytes."""

    task: Task
    activation: Activation
    sha256: str

    @classmethod
    def from_activation(cls, task: Task, activation: Activation) -> PlannedRelease:
        """Reduce an activation to what the catalog records."""
        return cls(task, replace(activation, data=b""), hashlib.sha256(activation.data).hexdigest())


def tasks_for(
    found: Sequence[FoundPhoto[Location]], out: Location, format: str | None, collection: Collection
) -> list[Task]:
    """Assign a target file to each photo, and create the output folder."""
    if not found:
        raise HomingError("no photos were given")
    root = collection.root
    if is_inside(out, root) and not is_inside(out, root / UPLOADS):
        raise HomingError(f"the out folder {out} lies inside the collection; choose another")
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


def read(task: Task) -> FileToRelease | Outcome:
    """Read and hash the file of a photo, and hash the existing file at its target."""
    try:
        data = read_file(task.path)
        return FileToRelease(
            task, EncodedPhoto(str(task.path), data), hashlib.sha256(data).hexdigest(), _target_sha256(task)
        )
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


class ReleaseWriter:
    """The catalog operations of releasing photos. One job uses one instance for all its photos."""

    def __init__(
        self,
        collection: Collection,
        recipe: Recipe,
        format: str | None,
        expected: Mapping[Location, Container[str]] | None = None,
        *,
        graphics: bool = False,
    ) -> None:
        """`expected` maps each photo to the hashes that its file may have."""
        self._collection, self._catalog = collection, collection.storage
        self._expected = expected or {}
        settings = {field.name: getattr(recipe, field.name) for field in fields(recipe) if field.name != "summary"}
        self._settings = f"{settings} {format_name(format) if format else None}{' graphics' if graphics else ''}"

    def lookup_existing(self, photos: Sequence[tuple[Task, str, str | None]]) -> list[tuple[Task, Outcome | None]]:
        """Look up tasks by the hashes of their photo and target. Gives the outcome of those that need no activation."""
        return [self._lookup_existing(*photo) for photo in photos]

    def _lookup_existing(self, task: Task, sha256: str, target_sha256: str | None) -> tuple[Task, Outcome | None]:
        try:
            if task.path in self._expected and sha256 not in self._expected[task.path]:
                raise PhotoError(f"{task.path}: {SOURCE_CHANGED}")
            number = self._catalog.find(sha256)
            if number is not None and (before := update_moved_source(self._catalog, number, task.path)) is not None:
                task = replace(task, moved_from=before)
            return task, self._already_released(number, sha256, task, target_sha256)
        except (PhotoError, CollectionError) as error:
            return task, failed(task.path, error)

    def _already_released(
        self, number: int | None, sha256: str, task: Task, target_sha256: str | None
    ) -> Outcome | None:
        """The outcome of an earlier run, if it is valid. Raises an error if the target was not written by homing."""
        if number is None and (original := self._catalog.find_released(sha256)) is not None:
            source, _ = self._catalog.source_and_state(original)
            raise PhotoError(f"{task.path}: is the released version of {source} already; release it as it is")
        if target_sha256 is None:
            return None
        row = self._release(number, _stored_target(task.target), target_sha256) if number is not None else None
        if number is None or row is None:
            raise CollectionError(f"{task.path}: {task.target} exists and was not written for this photo; move it away")
        if row.recipe != self._settings:
            return None
        self._catalog.confirm_releases([(number, row)])
        return replace(_outcome(task, row), resumed=True)

    def plan_releases(self, planned: Sequence[PlannedRelease]) -> list[ReleaseEntry]:
        """Record new references and the planned release of each photo."""
        new = [each for each in planned if self._catalog.find(each.activation.sha256) is None]
        if new:
            hashes, sources = [each.activation.sha256 for each in new], [stored_path(each.task.path) for each in new]
            codes, descriptors = [each.activation.code for each in new], [each.activation.descriptor for each in new]
            self._collection.record(NewPhotos(hashes, sources, np.stack(codes), np.stack(descriptors)))
        releases = []
        for each in planned:
            number = self._catalog.find(each.activation.sha256)
            assert number is not None
            quality = each.activation.quality
            row = ReleaseRow(
                state=each.activation.state,
                path=_stored_target(each.task.target),
                sha256=each.sha256,
                recipe=self._settings,
                psnr=quality.psnr,
                ssim=quality.ssim,
                linf=quality.linf,
                reason=each.activation.reason,
            )
            releases.append((number, row))
        self._catalog.plan_releases(releases, [each.activation.descriptor_after for each in planned])
        return releases

    def is_own_release(self, photo: int, path: str, sha256: str) -> bool:
        """Whether this photo has a planned or written release with this path and hash."""
        return self._release(photo, path, sha256) is not None

    def _release(self, photo: int, path: str, sha256: str) -> ReleaseRow | None:
        # The hash alone is enough: the whole output folder may have been moved.
        return self._catalog.find_release(photo, path, sha256) or self._catalog.find_release(photo, None, sha256)

    def confirm(self, releases: Sequence[ReleaseEntry]) -> None:
        """Mark planned files as written."""
        self._catalog.confirm_releases(releases)


def release(batch: Sequence[tuple[Task, Activation | PhotoError | Outcome]], releases: ReleaseWriter) -> list[Outcome]:
    """Write references, plans, files and confirmations, in this order. After a crash the next run completes them.

    Each step is one transaction for the whole batch. A photo whose file cannot be written fails alone.
    """
    activations = [(task, result) for task, result in batch if isinstance(result, Activation)]
    outcomes = {task: result for task, result in batch if isinstance(result, Outcome)}
    outcomes |= {task: failed(task.path, result) for task, result in batch if isinstance(result, PhotoError)}
    try:
        plans = (
            releases.plan_releases([PlannedRelease.from_activation(task, result) for task, result in activations])
            if activations
            else []
        )
        planned = [(task, result, plan) for (task, result), plan in zip(activations, plans, strict=True)]
        written = []
        # In threads, because each write waits for the disk.
        results = prefetch_map(lambda each: _write(*each, releases), planned)
        for (task, _, plan), outcome in zip(planned, results, strict=True):
            outcomes[task] = outcome
            written += [] if outcome.state == "failed" else [plan]
        if written:
            releases.confirm(written)
    except CollectionError as error:
        outcomes |= {task: failed(task.path, error) for task, _ in activations}
    return [
        replace(outcomes[task], moved_from=None if task.moved_from is None else str(task.moved_from))
        for task, _ in batch
    ]


def _write(task: Task, activation: Activation, planned: ReleaseEntry, releases: ReleaseWriter) -> Outcome:
    """Write the file of one photo. Only an earlier release of the same photo may be overwritten."""
    number, row = planned
    try:
        target_sha256 = _target_sha256(task)
        is_ours = target_sha256 is not None and releases.is_own_release(number, row.path, target_sha256)
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


def with_differences(outcome: Outcome, task: Task, data: bytes) -> Outcome:
    """Add file sizes and notes to the outcome of an earlier job. `data` is the photo's original file."""
    if not outcome.resumed:
        return outcome
    try:
        after = read_file(task.target)
        notes = differences(data, after, outcome.photo)
    except PhotoError as error:
        return failed(task.path, error)
    return replace(outcome, bytes_before=len(data), bytes_after=len(after), notes=notes)


def _outcome(task: Task, row: ReleaseRow) -> Outcome:
    return Outcome(
        photo=str(task.path),
        state=row.state,
        released=str(task.target),
        psnr=row.psnr,
        ssim=row.ssim,
        linf=row.linf,
        reason=row.reason,
    )


def _stored_target(target: Location) -> str:
    """The canonical path of a released file, independent of how its folder is spelled."""
    if isinstance(target, Address):
        return str(target)
    return str(Path(os.path.realpath(target.parent)) / target.name)
