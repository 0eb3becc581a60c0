"""Release photos on one machine: index, activate, check, write."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from inspect import unwrap
from typing import TYPE_CHECKING

from homing._io.parallel import pipelined_map, prefetch_map
from homing._io.paths import Location
from homing.activation import Activation, Recipe, activate_batch
from homing.activation.batch import Loop
from homing.activation.optimize import optimize
from homing.activation.pipeline import batch_size_for, map_batches
from homing.activation.workers import ActivateFiles, EncodedPhoto, map_in_workers, should_compile, use_processes
from homing.collection.outcome import Outcome, failed
from homing.collection.release_steps import ReleaseWriter, Task, read, release, tasks_for, with_differences
from homing.errors import PhotoError
from homing.photo import FoundPhoto, Photo, format_name

if TYPE_CHECKING:
    from homing.collection.collection import Collection


class ActivationJob:
    """One call of `activate`: photos released with one recipe into one folder."""

    def __init__(
        self,
        collection: Collection,
        out: Location,
        recipe: Recipe,
        format: str | None,
        loop: Loop = optimize,
        *,
        expected: Mapping[Location, Container[str]] | None = None,
        processes: bool = False,
        graphics: bool = False,
    ) -> None:
        """`loop` replaces the optimization loop, for comparisons; its recipe must have a distinct name.

        `expected` maps each photo to the hashes that its file may have.
        """
        self.collection, self.out, self.recipe = collection, out, recipe
        self.loop, self.processes, self.graphics = loop, processes, graphics
        self.format = format_name(format) if format else None
        self._releases = ReleaseWriter(collection, recipe, format, expected, graphics=graphics)

    def run(self, found: Sequence[FoundPhoto[Location]], on_outcome: Callable[[Outcome], None]) -> list[Outcome]:
        """Release photos, and report each one once its file is on disk."""
        tasks = tasks_for(found, self.out, self.format, self.collection)
        outcomes = []
        for batch in self._released(tasks):
            for outcome in batch:
                on_outcome(outcome)
                outcomes.append(outcome)
        return outcomes

    def _released(self, tasks: Sequence[Task]) -> Iterator[list[Outcome]]:
        """Yield the outcomes batch by batch, in input order."""
        device = self.collection.extractor.device
        write_batch = partial(release, releases=self._releases)
        # Workers load the network by its name and run the default loop.
        can_use_workers = self.processes and self.loop is optimize and not self.collection.has_custom_extractor
        if can_use_workers and use_processes(len(tasks), device):
            compiled = should_compile(len(tasks), self.recipe)
            work = ActivateFiles(self.collection.codebook, self.recipe, self.format, compiled, graphics=self.graphics)
            # Batches finish so fast that waiting for the disk between them would halve the throughput.
            return pipelined_map(write_batch, map_in_workers(prefetch_map(self._read, tasks), work))
        size = batch_size_for(device)
        if unwrap(self.loop) is not optimize:  # a loop that is compared with ours runs one batch at a time
            size = replace(size, concurrent=1, threads=None)
        return map(write_batch, map_batches(prefetch_map(self._load, tasks), self._activate, size))

    def _read(self, task: Task) -> tuple[Task, EncodedPhoto | Outcome]:
        photo = read(task)
        if isinstance(photo, Outcome):
            return task, photo
        ((task, done),) = self._releases.lookup_existing([(task, photo.sha256, photo.target_sha256)])
        return task, photo.file if done is None else with_differences(done, task, photo.file.data)

    def _load(self, task: Task) -> tuple[Task, Photo | Outcome]:
        task, read = self._read(task)
        if isinstance(read, Outcome):
            return task, read
        try:
            return task, Photo.decode(read.data, read.name)
        except PhotoError as error:
            return task, failed(task.path, error)

    def _activate(self, photos: Sequence[Photo]) -> list[Activation | PhotoError]:
        return activate_batch(
            photos,
            extractor=self.collection.extractor,
            codebook=self.collection.codebook,
            recipe=self.recipe,
            format=self.format,
            loop=self.loop,
            graphics=self.graphics,
        )
