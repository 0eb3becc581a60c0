"""The job of releasing photos, on one machine: index, activate, verify, write."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from inspect import unwrap
from typing import TYPE_CHECKING

from homing._parallel import map_ahead, map_behind
from homing._places import Place
from homing.activation import Activation, Recipe, activate
from homing.activation.batch import Loop
from homing.activation.engine import optimise
from homing.activation.pipeline import in_batches, size_for
from homing.activation.workers import File, Work, in_workers, pays_off, worth_compiling
from homing.collection.outcome import Outcome, failed
from homing.collection.releasing import Releases, Task, read, release, tasks_for
from homing.errors import PhotoError
from homing.photo import FoundAt, Photo, format_name

if TYPE_CHECKING:
    from homing.collection.collection import Collection


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
        self.collection, self.out, self.recipe = collection, out, recipe
        self.loop, self.processes = loop, processes
        self.format = format_name(format) if format else None
        self._releases = Releases(collection, recipe, format, expected)

    def run(self, found: Sequence[FoundAt[Place]], report: Callable[[Outcome], None]) -> list[Outcome]:
        """Release photos; each one's file is on disk when it is reported."""
        tasks = tasks_for(found, self.out, self.format, self.collection)
        outcomes = []
        for batch in self._released(tasks):
            for outcome in batch:
                report(outcome)
                outcomes.append(outcome)
        return outcomes

    def _released(self, tasks: Sequence[Task]) -> Iterator[list[Outcome]]:
        """What came of the photos, batch by batch, in order."""
        device = self.collection.extractor.device
        finish = partial(release, releases=self._releases)
        # Workers load the network by its name, and run the engine.
        elsewhere = self.processes and self.loop is optimise and not self.collection.extractor_given
        if elsewhere and pays_off(len(tasks), device):
            compiled = worth_compiling(len(tasks), self.recipe)
            work = Work(self.collection.codebook, self.recipe, self.format, compiled)
            # Batches come so fast that to wait for the disk, and only then for the next one, would halve the pace.
            return map_behind(finish, in_workers(map_ahead(self._read, tasks), work))
        size = size_for(device)
        if unwrap(self.loop) is not optimise:  # compared with as it would be run by itself: a batch after the other
            size = replace(size, at_once=1, threads=None)
        return map(finish, in_batches(map_ahead(self._load, tasks), self._activate, size))

    def _read(self, task: Task) -> tuple[Task, File | Outcome]:
        photo = read(task)
        if isinstance(photo, Outcome):
            return task, photo
        ((task, done),) = self._releases.meet([(task, photo.sha256, photo.held)])
        return task, done or photo.file

    def _load(self, task: Task) -> tuple[Task, Photo | Outcome]:
        task, read = self._read(task)
        if isinstance(read, Outcome):
            return task, read
        try:
            return task, Photo.decode(read.data, read.name)
        except PhotoError as error:
            return task, failed(task.path, error)

    def _activate(self, photos: Sequence[Photo]) -> list[Activation | PhotoError]:
        return activate(
            photos,
            extractor=self.collection.extractor,
            codebook=self.collection.codebook,
            recipe=self.recipe,
            format=self.format,
            loop=self.loop,
        )
