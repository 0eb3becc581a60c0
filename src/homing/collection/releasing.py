"""The stages of releasing photos, on one machine or on many: read, asked after, and when moved planned and written."""

from __future__ import annotations

import hashlib
import os
import unicodedata
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from homing._files import is_case_blind
from homing._parallel import map_ahead
from homing._places import Address, Place, is_below, is_taken, make_ready, recorded, write_whole
from homing.activation import Activation, Recipe
from homing.activation.workers import File
from homing.collection._sources import ANOTHER_FILE, moved_from
from homing.collection._targets import targets
from homing.collection.catalogue import NewPhotos, Planned, ReleaseRow
from homing.collection.folder import UPLOADS
from homing.collection.outcome import Outcome, failed
from homing.errors import CollectionError, HomingError, PhotoError
from homing.photo import FoundAt, format_name, read_file

if TYPE_CHECKING:
    from homing.collection.collection import Collection


@dataclass(frozen=True)
class Task:
    """A photo's file, and where what is released of it goes."""

    path: Place
    target: Place
    moved_from: Place | None = None
    """Where the file of a known photo was recorded to lie, if it lies here now."""


@dataclass(frozen=True)
class Read:
    """A photo's file as it was read, and the hash of what lies at its target: None where nothing does."""

    task: Task
    file: File
    sha256: str
    held: str | None


@dataclass(frozen=True)
class Made:
    """What came of a photo, but for the bytes to release: only their hash."""

    task: Task
    activation: Activation
    sha256: str

    @classmethod
    def of(cls, task: Task, activation: Activation) -> Made:
        """What is told to the catalogue of an activation."""
        return cls(task, replace(activation, data=b""), hashlib.sha256(activation.data).hexdigest())


def tasks_for(found: Sequence[FoundAt[Place]], out: Place, format: str | None, collection: Collection) -> list[Task]:
    """The released file of each photo, and the folder made ready."""
    if not found:
        raise HomingError("no photos were given")
    home = collection.folder.home
    if is_below(out, home) and not is_below(out, home / UPLOADS):
        raise HomingError(f"the out folder {out} lies inside the collection; choose another")
    tasks = [Task(path, target) for target, path in targets(found, out, format).items()]
    make_ready(out)
    if isinstance(out, Path) and is_case_blind(out):
        refuse_clashes(tasks)
    return tasks


def refuse_clashes(tasks: Sequence[Task]) -> None:
    """Refuse photos whose files a case-blind disk takes for one; one of them would be lost."""
    seen: dict[str, Place] = {}
    for task in tasks:
        key = unicodedata.normalize("NFC", str(task.target)).casefold()
        if key in seen:
            raise HomingError(
                f"{seen[key]} and {task.path} would both be written to {task.target}, as the disk knows no upper and "
                "lower case; activate them into different folders"
            )
        seen[key] = task.path


def read(task: Task) -> Read | Outcome:
    """The file of a photo, with its hash, and what lies where its release goes."""
    try:
        data = read_file(task.path)
        return Read(task, File(str(task.path), data), hashlib.sha256(data).hexdigest(), _held(task))
    except (PhotoError, CollectionError) as error:
        return failed(task.path, error)


def _held(task: Task) -> str | None:
    """The hash of what lies at a target; empty if it is no file, None if nothing is there."""
    try:
        if not is_taken(task.target):
            return None
        return hashlib.sha256(read_file(task.target)).hexdigest() if task.target.is_file() else ""
    except OSError as error:
        raise CollectionError(f"{task.path}: cannot look at {task.target}: {error.strerror}") from error


class Releases:
    """What releasing asks of a collection's catalogue, and tells it: all of a job go to the same one."""

    def __init__(
        self,
        collection: Collection,
        recipe: Recipe,
        format: str | None,
        expected: Mapping[Place, Container[str]] | None = None,
    ) -> None:
        """`expected` are the hashes that a photo's file must have one of."""
        self._collection, self._catalogue = collection, collection.folder.catalogue
        self._expected = expected or {}
        settings = {field.name: getattr(recipe, field.name) for field in fields(recipe) if field.name != "summary"}
        self._settings = f"{settings} {format_name(format) if format else None}"

    def meet(self, photos: Sequence[tuple[Task, str, str | None]]) -> list[tuple[Task, Outcome | None]]:
        """Tasks, given the hashes of their photos and of what their targets hold, and what there is to tell already."""
        return [self._meet(*photo) for photo in photos]

    def _meet(self, task: Task, sha256: str, held: str | None) -> tuple[Task, Outcome | None]:
        try:
            if task.path in self._expected and sha256 not in self._expected[task.path]:
                raise PhotoError(f"{task.path}: {ANOTHER_FILE}")
            number = self._catalogue.find(sha256)
            if number is not None and (before := moved_from(self._catalogue, number, task.path)) is not None:
                task = replace(task, moved_from=before)
            return task, self._done_before(number, sha256, task, held)
        except (PhotoError, CollectionError) as error:
            return task, failed(task.path, error)

    def _done_before(self, number: int | None, sha256: str, task: Task, held: str | None) -> Outcome | None:
        """The outcome of an earlier run that stands; refuses to write over files homing did not write."""
        if number is None and (original := self._catalogue.find_released(sha256)) is not None:
            source, _ = self._catalogue.describe(original)
            raise PhotoError(f"{task.path}: is the released version of {source} already; release it as it is")
        if held is None:
            return None
        row = self._release(number, _key(task.target), held) if number is not None else None
        if number is None or row is None:
            raise CollectionError(f"{task.path}: {task.target} exists and was not written for this photo; move it away")
        if row.recipe != self._settings:
            return None
        self._catalogue.confirm_releases([(number, row)])
        return replace(_outcome(task, row), before=True)

    def plan(self, made: Sequence[Made]) -> list[Planned]:
        """Record the references that are new, and what is about to be released of each."""
        new = [each for each in made if self._catalogue.find(each.activation.sha256) is None]
        if new:
            hashes, sources = [each.activation.sha256 for each in new], [recorded(each.task.path) for each in new]
            codes, descriptors = [each.activation.code for each in new], [each.activation.descriptor for each in new]
            self._collection.record(NewPhotos(hashes, sources, np.stack(codes), np.stack(descriptors)))
        releases = []
        for each in made:
            number = self._catalogue.find(each.activation.sha256)
            assert number is not None
            quality = each.activation.quality
            row = ReleaseRow(
                state=each.activation.state,
                path=_key(each.task.target),
                sha256=each.sha256,
                recipe=self._settings,
                psnr=quality.psnr,
                ssim=quality.ssim,
                linf=quality.linf,
                reason=each.activation.reason,
            )
            releases.append((number, row))
        self._catalogue.plan_releases(releases, [each.activation.descriptor_after for each in made])
        return releases

    def wrote(self, photo: int, path: str, sha256: str) -> bool:
        """Whether a file with this hash at this path was released of this photo, or was to be."""
        return self._release(photo, path, sha256) is not None

    def _release(self, photo: int, path: str, sha256: str) -> ReleaseRow | None:
        # Whole folders may have been moved.
        return self._catalogue.release(photo, path, sha256) or self._catalogue.release(photo, None, sha256)

    def confirm(self, releases: Sequence[Planned]) -> None:
        """Say that planned files are on disk."""
        self._catalogue.confirm_releases(releases)


def release(batch: Sequence[tuple[Task, Activation | PhotoError | Outcome]], releases: Releases) -> list[Outcome]:
    """Reference, plan, file, confirmation, in this order: a crash in between is finished by the next run.

    Each is one change of the catalogue for the whole batch; a photo whose file cannot be written fails alone.
    """
    made = [(task, result) for task, result in batch if isinstance(result, Activation)]
    outcomes = {task: result for task, result in batch if isinstance(result, Outcome)}
    outcomes |= {task: failed(task.path, result) for task, result in batch if isinstance(result, PhotoError)}
    try:
        plans = releases.plan([Made.of(task, result) for task, result in made]) if made else []
        planned = [(task, result.data, plan) for (task, result), plan in zip(made, plans, strict=True)]
        written = []
        # In threads: each file is waited for until it is on disk.
        results = map_ahead(lambda each: _write(*each, releases), planned)
        for (task, _, plan), outcome in zip(planned, results, strict=True):
            outcomes[task] = outcome
            written += [] if outcome.state == "failed" else [plan]
        if written:
            releases.confirm(written)
    except CollectionError as error:
        outcomes |= {task: failed(task.path, error) for task, _ in made}
    return [replace(outcomes[task], moved_from=task.moved_from) for task, _ in batch]


def _write(task: Task, data: bytes, planned: Planned, releases: Releases) -> Outcome:
    """Write the file of one photo, over what was released of it before, but over nothing else."""
    number, row = planned
    try:
        held = _held(task)
        ours = held is not None and releases.wrote(number, row.path, held)
        write_whole(task.target, data, new=not ours)
    except (PhotoError, CollectionError) as error:
        return failed(task.path, error)
    except OSError as error:
        return failed(task.path, CollectionError(f"{task.path}: cannot write {task.target}: {error.strerror}"))
    return replace(_outcome(task, row), instead=ours and held != row.sha256)


def _outcome(task: Task, row: ReleaseRow) -> Outcome:
    return Outcome(
        photo=task.path,
        state=row.state,
        released=task.target,
        psnr=row.psnr,
        ssim=row.ssim,
        linf=row.linf,
        reason=f"{task.path}: {row.reason}" if row.reason else None,
    )


def _key(target: Place) -> str:
    """A released file under the one name it has however its folder was spelt."""
    if isinstance(target, Address):
        return str(target)
    return str(Path(os.path.realpath(target.parent)) / target.name)
