"""The two cluster jobs, and the stages that photos pass through.

    add         list -> read -> decode -> describe -> record -> report
                          |                             |
                          +------- catalog actor -------+     the only process with the catalog open
                          |                             |
    activate    list -> read -> decode -> activate -> write -> report

Workers are long-lived and hold the network. Without GPUs, each worker has a core and runs all stages except record.
With GPUs, separate tasks read, decode and write, on any machine. The driver lists, records and reports. Photos that are
already known or released leave the pipeline after they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from homing._io.paths import Address, Location, location, stored_path
from homing.activation import Recipe
from homing.activation.workers import ActivateFiles, should_compile
from homing.cluster import stages
from homing.cluster.catalog_actor import open_catalog_actor
from homing.cluster.ray_pipeline import Stage, Throughput, run
from homing.cluster.resources import Resources
from homing.collection import Collection, Outcome
from homing.collection.add_steps import PhotoAdder
from homing.collection.release_steps import ReleaseWriter, release, tasks_for
from homing.errors import HomingError
from homing.photo import FoundPhoto, format_name

OutcomeCallback = Callable[[Outcome], None]


def add(
    found: Sequence[FoundPhoto[Location]],
    collection: str,
    *,
    resources: Resources | None = None,
    on_outcome: OutcomeCallback,
) -> list[Throughput]:
    """Add photos, as found by `homing.photo.find_photos`, to the collection at this path or address.

    Each photo is in the catalog when it is reported, with the id that `Collection.add` would give it. Returns the
    throughput of each stage. Call again to resume an interrupted job.
    """
    where, photos = stored_path(location(collection)), [_shareable(item.path) for item in found]
    with Collection.open(where) as opened, opened.lock_for_writing(), (resources or Resources()).start() as workers:
        book = opened.codebook
        book.check(opened.extractor)
        with open_catalog_actor(where, PhotoAdder) as handler:
            flow = [
                Stage("read", partial(stages.read, handler=handler), resource="io"),
                Stage("decode", partial(stages.decode, network_name=book.extractor), resource="cpu"),
                Stage("describe", stages.Describe(book, workers.device), resource="network"),
                Stage("record", handler.record, resource="driver"),
            ]
            return run(photos, flow, workers, on_outcome)


def activate(
    found: Sequence[FoundPhoto[Location]],
    collection: str,
    out: str | Location,
    *,
    recipe: Recipe,
    format: str | None = None,
    graphics: bool = False,
    resources: Resources | None = None,
    on_outcome: OutcomeCallback,
) -> list[Throughput]:
    """Add photos, activate them, and write the files to release into the folder `out`; otherwise as `add`.

    Each released file is written and in the catalog when it is reported. Options as in `Collection.activate`.
    """
    where, target = stored_path(location(collection)), _shareable(location(out))
    photos = [FoundPhoto(_shareable(item.path), item.name) for item in found]
    written = format_name(format) if format else None
    with Collection.open(where) as opened, opened.lock_for_writing():
        tasks = tasks_for(photos, target, written, opened)
        book = opened.codebook
        book.check(opened.extractor)
        with (
            (resources or Resources()).start() as workers,
            open_catalog_actor(
                where, partial(ReleaseWriter, recipe=recipe, format=written, graphics=graphics)
            ) as handler,
        ):
            compiled = should_compile(len(tasks), recipe)
            work = ActivateFiles(book, recipe, written, compiled, workers.device, graphics)
            flow = [
                Stage("read", partial(stages.read_tasks, handler=handler), resource="io"),
                Stage("decode", stages.decode_tasks, resource="cpu"),
                Stage("activate", work, resource="network"),
                Stage("write", partial(release, releases=handler), resource="io"),
            ]
            return run(tasks, flow, workers, on_outcome)


def _shareable(where: Location) -> Location:
    """A location that other processes can open."""
    if isinstance(where, Address):
        if where.scheme == "memory":
            raise HomingError(f"{where} is in the memory of one process, which other processes cannot reach")
        return where
    return location(stored_path(where))
