"""The job of releasing photos: index, activate, verify, write."""

from __future__ import annotations

import hashlib
import os
import unicodedata
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from inspect import unwrap
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from homing._files import is_case_blind
from homing._parallel import map_ahead
from homing._places import Address, Place, is_below, is_taken, make_ready, recorded, write_whole
from homing.activation import Activation, Recipe, activate
from homing.activation.batch import Loop
from homing.activation.engine import optimise
from homing.activation.pipeline import in_batches, size_for
from homing.activation.workers import File, Work, in_workers, pays_off, worth_compiling
from homing.collection._sources import ANOTHER_FILE, moved_from
from homing.collection._targets import targets
from homing.collection.catalogue import NewPhotos, Planned, ReleaseRow
from homing.collection.folder import UPLOADS
from homing.collection.outcome import Outcome, failed
from homing.errors import CollectionError, HomingError, PhotoError
from homing.photo import FoundAt, Photo, format_name, read_file

if TYPE_CHECKING:
    from homing.collection.collection import Collection


@dataclass(frozen=True)
class _Task:
    """A photo's file, and where what is released of it goes."""

    path: Place
    target: Place


class ActivationJob:
    """One call of `activate`: photos of one recipe into one folder."""

    def __init__(
        self,
        collection: Collection,
        out: Place,
        recipe: Recipe,
        format: str | None,
        loop: Loop = optimise,
        *,
        expected: Mapping[Place, Container[str]] | None = None,
        processes: bool = False,
    ) -> None:
        """`expected` are the hashes that a photo's file must have one of."""
        self.collection, self.catalogue = collection, collection.folder.catalogue
        self.out, self.recipe, self.loop, self.processes = out, recipe, loop, processes
        self._expected = expected or {}
        self._moved: dict[_Task, Place] = {}
        self.format = format_name(format) if format else None
        settings = {field.name: getattr(recipe, field.name) for field in fields(recipe) if field.name != "summary"}
        self._settings = f"{settings} {self.format}"

    def run(self, found: Sequence[FoundAt[Place]], report: Callable[[Outcome], None]) -> list[Outcome]:
        """Release photos; each one's file is on disk when it is reported."""
        tasks = self._targets(found)
        make_ready(self.out)
        if isinstance(self.out, Path) and is_case_blind(self.out):
            _refuse_clashes(tasks)
        outcomes = []
        for batch in self._activated(tasks):
            for outcome in self._release(batch):
                report(outcome)
                outcomes.append(outcome)
        return outcomes

    def _targets(self, found: Sequence[FoundAt[Place]]) -> list[_Task]:
        """The released file of each photo."""
        if not found:
            raise HomingError("no photos were given")
        home = self.collection.folder.home
        if is_below(self.out, home) and not is_below(self.out, home / UPLOADS):
            raise HomingError(f"the out folder {self.out} lies inside the collection; choose another")
        return [_Task(path, target) for target, path in targets(found, self.out, self.format).items()]

    def _activated(self, tasks: Sequence[_Task]) -> Iterator[list[tuple[_Task, Activation | PhotoError | Outcome]]]:
        """What came of the photos, batch by batch, in order."""
        device = self.collection.extractor.device
        # Workers load the network by its name, and run the engine.
        elsewhere = self.processes and self.loop is optimise and not self.collection.extractor_given
        if elsewhere and pays_off(len(tasks), device):
            compiled = worth_compiling(len(tasks), self.recipe)
            work = Work(self.collection.codebook, self.recipe, self.format, compiled)
            return in_workers(map_ahead(self._read, tasks), work)
        size = size_for(device)
        if unwrap(self.loop) is not optimise:  # compared with as it would be run by itself: a batch after the other
            size = replace(size, at_once=1, threads=None)
        return in_batches(map_ahead(self._load, tasks), self._activate, size)

    def _read(self, task: _Task) -> tuple[_Task, File | Outcome]:
        try:
            data = read_file(task.path)
            sha256 = hashlib.sha256(data).hexdigest()
            if task.path in self._expected and sha256 not in self._expected[task.path]:
                raise PhotoError(f"{task.path}: {ANOTHER_FILE}")
            number = self.catalogue.find(sha256)
            if number is not None and (before := moved_from(self.catalogue, number, task.path)) is not None:
                self._moved[task] = before
            done = self._done_before(number, sha256, task.path, task.target)
            return task, done or File(str(task.path), data)
        except (PhotoError, CollectionError) as error:
            return task, failed(task.path, error)

    def _load(self, task: _Task) -> tuple[_Task, Photo | Outcome]:
        _, read = self._read(task)
        if isinstance(read, Outcome):
            return task, read
        try:
            return task, Photo.decode(read.data, read.name)
        except PhotoError as error:
            return task, failed(task.path, error)

    def _done_before(self, number: int | None, sha256: str, path: Place, target: Place) -> Outcome | None:
        """The outcome of an earlier run that stands; refuses to write over files homing did not write."""
        if number is None and (original := self.catalogue.find_released(sha256)) is not None:
            source, _ = self.catalogue.describe(original)
            raise PhotoError(f"{path}: is the released version of {source} already; release it as it is")
        if not is_taken(target):
            return None
        row = self._release_in(number, target) if number is not None else None
        if number is None or row is None:
            raise CollectionError(f"{path}: {target} exists and was not written for this photo; move it away")
        if row.recipe != self._settings:
            return None
        self.catalogue.confirm_releases([(number, row)])
        return _outcome(path, target, row)

    def _release_in(self, number: int, target: Place) -> ReleaseRow | None:
        """What homing released of a photo, if that is what this file holds; whole folders may have been moved."""
        if not target.is_file():
            return None
        sha256 = hashlib.sha256(read_file(target)).hexdigest()
        return self.catalogue.release(number, _key(target), sha256) or self.catalogue.release(number, None, sha256)

    def _activate(self, photos: Sequence[Photo]) -> list[Activation | PhotoError]:
        return activate(
            photos,
            extractor=self.collection.extractor,
            codebook=self.collection.codebook,
            recipe=self.recipe,
            format=self.format,
            loop=self.loop,
        )

    def _release(self, batch: Sequence[tuple[_Task, Activation | PhotoError | Outcome]]) -> list[Outcome]:
        """Reference, plan, file, confirmation, in this order: a crash in between is finished by the next run.

        Each is one change of the catalogue for the whole batch; a photo whose file cannot be written fails alone.
        """
        made = [(task, result) for task, result in batch if isinstance(result, Activation)]
        outcomes = {task: result for task, result in batch if isinstance(result, Outcome)}
        outcomes |= {task: failed(task.path, result) for task, result in batch if isinstance(result, PhotoError)}
        try:
            releases = self._plan(made) if made else []
            written = []
            planned = [(*pair, *release) for pair, release in zip(made, releases, strict=True)]
            # In threads: each file is waited for until it is on disk.
            unwritten = map_ahead(lambda each: self._write(each[0], each[1].data, each[2]), planned)
            for (task, _, number, row), failure in zip(planned, unwritten, strict=True):
                outcomes[task] = failure or _outcome(task.path, task.target, row)
                written += [] if failure else [(number, row)]
            if written:
                self.catalogue.confirm_releases(written)
        except CollectionError as error:
            outcomes |= {task: failed(task.path, error) for task, _ in made}
        return [replace(outcomes[task], moved_from=self._moved.get(task)) for task, _ in batch]

    def _plan(self, made: Sequence[tuple[_Task, Activation]]) -> list[Planned]:
        """Record the references that are new, and what is about to be released of each."""
        new = [(task, each) for task, each in made if self.catalogue.find(each.sha256) is None]
        if new:
            hashes, sources = [each.sha256 for _, each in new], [recorded(task.path) for task, _ in new]
            codes, descriptors = [each.code for _, each in new], [each.descriptor for _, each in new]
            self.collection.record(NewPhotos(hashes, sources, np.stack(codes), np.stack(descriptors)))
        releases = []
        for task, activation in made:
            number = self.catalogue.find(activation.sha256)
            assert number is not None
            row = ReleaseRow(
                state=activation.state,
                path=_key(task.target),
                sha256=hashlib.sha256(activation.data).hexdigest(),
                recipe=self._settings,
                psnr=activation.quality.psnr,
                ssim=activation.quality.ssim,
                linf=activation.quality.linf,
                reason=activation.reason,
            )
            releases.append((number, row))
        self.catalogue.plan_releases(releases, [activation.descriptor_after for _, activation in made])
        return releases

    def _write(self, task: _Task, data: bytes, number: int) -> Outcome | None:
        """Write the file of one photo; what happened where that was not possible."""
        try:
            write_whole(task.target, data, new=self._release_in(number, task.target) is None)
        except PhotoError as error:
            return failed(task.path, error)
        except OSError as error:
            return failed(task.path, CollectionError(f"{task.path}: cannot write {task.target}: {error.strerror}"))
        return None


def _refuse_clashes(tasks: Sequence[_Task]) -> None:
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


def _outcome(path: Place, target: Place, row: ReleaseRow) -> Outcome:
    reason = f"{path}: {row.reason}" if row.reason else None
    return Outcome(
        photo=path, state=row.state, released=target, psnr=row.psnr, ssim=row.ssim, linf=row.linf, reason=reason
    )


def _key(target: Place) -> str:
    """A released file under the one name it has however its folder was spelt."""
    if isinstance(target, Address):
        return str(target)
    return str(Path(os.path.realpath(target.parent)) / target.name)
