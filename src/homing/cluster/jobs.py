"""The two cluster jobs: the stages that photos pass through, and the catalog actor.

    add         list -> read -> decode -> describe -> record -> report
                          |                             |
                          +------- catalog actor -------+     the only process with the catalog open
                          |                             |
    activate    list -> read -> decode -> activate -> write -> report

Workers are long-lived and hold the network. Without GPUs, each worker has a core and runs all stages except record.
With GPUs, separate tasks read, decode and write, on any machine. The driver lists, records and reports. Photos that are
already known or released leave the pipeline after they are read.

The catalog actor, on the driver's machine, makes a lock across machines unnecessary, for every storage. All its methods
are idempotent, so that Ray can restart it and repeat unanswered calls if it is killed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar, cast

from homing._imports import load_extra
from homing._io.paths import Address, Location, location, stored_path
from homing.activation import Recipe, resolve_recipe
from homing.activation.pipeline import (
    CPU_BATCH_SIZE,
    GPU_BATCH_SIZE,
    activate_in_worker,
    cached_extractor,
    decode,
    should_compile,
)
from homing.cluster.ray_pipeline import Resources, Stage, Throughput, run
from homing.codebooks import Codebook
from homing.collection import Collection, Outcome
from homing.collection.add import (
    DecodedPhoto,
    DescribedPhoto,
    NewReferences,
    decode_photo,
    describe_photos,
    read_photos,
)
from homing.collection.outcome import OutcomeCallback
from homing.collection.release import ReleaseRecords, Task, release_pipeline, settings_of, tasks_for
from homing.errors import HomingError
from homing.photo import FoundPhoto, Photo, PhotoFile, format_name

Handler = TypeVar("Handler")

_MAX_PIXEL_BYTES = 64 * 2**20  # bytes of decoded photos per batch; the worker decodes the rest


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
        codebook = opened.codebook
        codebook.check(opened.extractor)
        with open_catalog_actor(where, NewReferences) as records:
            stages = [
                Stage("read", partial(read_photos, records=records), resource="io"),
                Stage("decode", partial(_decode_to_inputs, network_name=codebook.extractor), resource="cpu"),
                Stage("describe", partial(_describe, codebook=codebook, device=workers.device), resource="network"),
                Stage("record", records.record, resource="driver"),
            ]
            return run(photos, stages, workers, on_outcome)


def activate(
    found: Sequence[FoundPhoto[Location]],
    collection: str,
    out: str | Location,
    *,
    recipe: str | Recipe,
    psnr: float | None = None,
    format: str | None = None,
    graphics: bool = False,
    resources: Resources | None = None,
    on_outcome: OutcomeCallback,
) -> list[Throughput]:
    """Add photos, activate them, and write the files to release into the folder `out`; otherwise as `add`.

    Each released file is written and in the catalog when it is reported. Options as in `Collection.activate`.
    """
    chosen = resolve_recipe(recipe, psnr=psnr)
    where, target = stored_path(location(collection)), _shareable(location(out))
    photos = [FoundPhoto(_shareable(item.path), item.name) for item in found]
    format = format_name(format) if format else None
    with Collection.open(where) as opened, opened.lock_for_writing():
        tasks = tasks_for(photos, target, format, opened.root)
        codebook = opened.codebook
        codebook.check(opened.extractor)
        handler = partial(ReleaseRecords, settings=settings_of(chosen, format, graphics))
        with (resources or Resources()).start() as workers, open_catalog_actor(where, handler) as records:
            work = partial(
                activate_in_worker,
                codebook=codebook,
                recipe=chosen,
                format=format,
                graphics=graphics,
                compiled=should_compile(len(tasks), chosen),
                device=workers.device,
            )
            pipeline = release_pipeline(records, work, GPU_BATCH_SIZE if workers.gpus else CPU_BATCH_SIZE)
            stages = [
                Stage("read", pipeline.source, resource="io"),
                Stage("decode", decode_some, resource="cpu"),
                Stage("activate", pipeline.activate_files, resource="network"),
                Stage("write", pipeline.sink, resource="io"),
            ]
            return run(tasks, stages, workers, on_outcome)


def _shareable(where: Location) -> Location:
    """A location that other processes can open."""
    if isinstance(where, Address):
        if where.scheme == "memory":
            raise HomingError(f"{where} is in the memory of one process, which other processes cannot reach")
        return where
    return location(stored_path(where))


def _decode_to_inputs(photos: Sequence[tuple[Location, PhotoFile]], network_name: str) -> list[DecodedPhoto | Outcome]:
    """Decode photos to inputs of the network."""
    extractor = cached_extractor(network_name, "cpu")
    return [decode_photo(*photo, lambda opened: extractor.resize(opened.pixels())) for photo in photos]


def _describe(photos: Sequence[DecodedPhoto], codebook: Codebook, device: str | None) -> list[DescribedPhoto]:
    extractor = cached_extractor(codebook.extractor, device)
    codebook.check(extractor)
    return describe_photos(photos, extractor, codebook)


def decode_some(pairs: Sequence[tuple[Task, PhotoFile]]) -> list[tuple[Task, Any]]:
    """Decode photos up to the size limit of a batch; the rest stay encoded."""
    decoded: list[tuple[Task, Any]] = []
    size = 0
    for task, file in pairs:
        pair = decode(task, file) if size < _MAX_PIXEL_BYTES else (task, file)
        size += pair[1].stored_pixels.nbytes if isinstance(pair[1], Photo) else 0
        decoded.append(pair)
    return decoded


class CatalogActor:
    """Opens the collection and forwards calls to a handler."""

    def __init__(self, collection: str, handler: Callable[[Collection], Any]) -> None:
        self._collection = Collection.open(collection)
        self._handler = handler(self._collection)

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the handler."""
        return getattr(self._handler, method)(*arguments)

    def close(self) -> None:
        """Close the catalog."""
        self._collection.close()


class _RemoteHandler:
    """Proxy of the handler for workers: forwards method calls to the actor; returns results and raises errors."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    def __getattr__(self, method: str) -> Any:
        if method.startswith("_"):  # looked up by pickle before the actor is set
            raise AttributeError(method)
        return partial(self._call, method)

    def _call(self, method: str, *arguments: Any) -> Any:
        ray = load_extra("ray", "ray")
        try:
            return ray.get(self._actor.call.remote(method, *arguments))
        except ray.exceptions.RayTaskError as error:
            raise error.cause from error


@contextmanager
def open_catalog_actor(collection: str, handler: Callable[[Collection], Handler]) -> Iterator[Handler]:
    """Start a catalog actor with a handler of the collection; yields a proxy of the handler."""
    ray = load_extra("ray", "ray")
    strategies = load_extra("ray.util.scheduling_strategies", "ray")
    driver_node = strategies.NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    actor = (
        ray.remote(CatalogActor)
        .options(num_cpus=0, max_restarts=-1, max_task_retries=-1, scheduling_strategy=driver_node)
        .remote(collection, handler)
    )
    try:
        yield cast(Handler, _RemoteHandler(actor))
        ray.get(actor.close.remote())
    finally:
        ray.kill(actor)
