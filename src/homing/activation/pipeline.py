"""The one way from photos to released files: read, decode, activate in batches, and write, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain, islice
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from homing import extractors
from homing._io.parallel import MIN_ITEMS_FOR_PROCESSES, cores, pipelined_map, prefetch_map, process_map
from homing._tensors import to_device
from homing.activation.optimize import optimize
from homing.activation.recipe import Recipe
from homing.activation.release_check import Activation, ReleaseCheck
from homing.activation.strength import ChangedPhoto
from homing.codebooks import Codebook
from homing.errors import PhotoError, ran_out_of_memory
from homing.extractors import Extractor, NetworkExtractor, describe_images
from homing.objectives import objective_for
from homing.photo import Photo, PhotoFile, graphic_kind

Item = TypeVar("Item")
Result = TypeVar("Result")
Pair = tuple[Item, Any]
"""An item, and what was made of it so far: its PhotoFile, its Photo, a result, or what the source gave instead."""
ActivateBatch = Callable[[Sequence[Photo]], Sequence[Any]]
"""The result for each photo of a batch, or a PhotoError."""
Loop = Callable[..., list[Tensor]]
"""A function with the signature of `optimize`."""

_CHUNK_PHOTOS = 64  # photos sent to a worker process and activated together
_CHUNK_BYTES = 16 * 2**20  # of their files
_GPU_BYTES_PER_PROCESS = 8 * 2**30  # 256 images in the loop, a batch of photos, and CUDA itself
_MIN_PASSES_TO_COMPILE = 500_000  # of the network
_GRAPHIC = "a graphic ({}); --graphics, in Python graphics=True, activates it"


def activate_batch(
    photos: Sequence[Photo],
    *,
    extractor: Extractor,
    codebook: Codebook,
    recipe: Recipe,
    format: str | None = None,
    loop: Loop = optimize,
    graphics: bool = False,
) -> list[Activation | PhotoError]:
    """Activate photos as one batch; every figure of an activation is measured on the bytes it holds.

    Photos may differ in size. On a CPU, the same batch gives the same bytes. `format` selects the file format; by
    default it is the photo's own. `loop` replaces `optimize`, for comparisons. Graphics are released
    unchanged unless `graphics` is true. A photo that cannot be written gives a PhotoError; the others are unaffected.
    """
    codebook.check(extractor)
    if not photos:
        return []
    images = [photo.pixels(extractor.device) for photo in photos]
    originals = describe_images(extractor, images)
    objective = objective_for(codebook, originals.to(extractor.device), recipe.objective)
    kinds = [None if graphics else graphic_kind(photo) for photo in photos]
    chosen = [index for index, kind in enumerate(kinds) if kind is None]
    found = {}
    if chosen:
        selected = objective.select(to_device(np.array(chosen), extractor.device))
        changes = loop([images[index] for index in chosen], extractor=extractor, objective=selected, recipe=recipe)
        found = dict(zip(chosen, changes, strict=True))
    changes = [found[index] if index in found else torch.zeros_like(image) for index, image in enumerate(images)]
    check = ReleaseCheck(extractor, codebook, objective, recipe.budget.psnr)
    refusals = [kind and _GRAPHIC.format(kind) for kind in kinds]
    return check.run(ChangedPhoto.batch(photos, images, changes, format), originals, refusals)


def activate_in_worker(
    photos: Sequence[Photo], *, codebook: Codebook, compiled: bool = False, device: str | None = None, **options: Any
) -> list[Activation | PhotoError]:
    """`activate_batch` in a worker process, which loads the extractor that the codebook names.

    `device` is by default a GPU if there is one; `options` are those of `activate_batch`.
    """
    extractor = cached_extractor(codebook.extractor, device, compiled=compiled)
    return activate_batch(photos, extractor=extractor, codebook=codebook, **options)


@lru_cache(maxsize=1)
def cached_extractor(name: str, device: str | None = None, *, compiled: bool = False) -> Extractor:
    """The extractor of this name, loaded once per worker."""
    extractor = extractors.load(name, device)
    return extractor.compiled() if compiled and isinstance(extractor, NetworkExtractor) else extractor


def use_processes(photos: int, device: torch.device) -> bool:
    """Whether worker processes, which take half a minute to start, pay off."""
    return device.type == "cuda" and photos >= MIN_ITEMS_FOR_PROCESSES


def should_compile(photos: int, recipe: Recipe) -> bool:
    """Whether compiling, which takes half a minute, pays off."""
    return photos * recipe.steps * recipe.eot_samples >= _MIN_PASSES_TO_COMPILE


@dataclass(frozen=True)
class BatchSize:
    """Limits of a batch (several small photos or one large one) and the number of concurrent batches."""

    photos: int
    pixels: int
    concurrent: int = 2  # one in the loop, and one before or after it
    threads: int | None = None
    """Threads that compute one batch; all cores if None."""
    persistent_threads: bool = False
    """Whether all jobs share their threads: cuDNN keeps its plans, which take seconds to make, per thread."""


# One core per batch, and small batches that fit its caches, are faster than all cores on one batch.
_CONCURRENT_BATCHES = min(4, cores())
CPU_BATCH_SIZE = BatchSize(
    photos=4, pixels=8_000_000, concurrent=_CONCURRENT_BATCHES, threads=cores() // _CONCURRENT_BATCHES
)
GPU_BATCH_SIZE = BatchSize(photos=64, pixels=32_000_000, persistent_threads=True)


def batch_size_for(device: torch.device) -> BatchSize:
    """The batch size that keeps the device busy."""
    return GPU_BATCH_SIZE if device.type == "cuda" else CPU_BATCH_SIZE


@dataclass(frozen=True)
class ReleasePipeline(Generic[Item, Result]):
    """Photos to released files. Jobs differ in where photos come from, what is done to them, and where they go.

    `source` reads the file of each item, a PhotoFile or Photo, or gives something else for an item that needs no
    activation. `activate` changes the photos of a batch. `sink` writes and records them, and what the source gave
    instead of files; it returns the result of each item.

    The pipeline runs in threads of this process (`run`), with worker processes (`run_in_processes`), or on many
    machines (`homing.cluster`); for the latter two `activate` can be pickled.
    """

    source: Callable[[Sequence[Item]], Sequence[Pair[Item]]]
    activate: ActivateBatch
    sink: Callable[[Sequence[Pair[Item]]], Sequence[Result]]
    size: BatchSize = CPU_BATCH_SIZE

    def run(self, items: Iterable[Item]) -> Iterator[Result]:
        """The results of the sink. Photos are read and decoded ahead; some batches are activated at the same time."""
        decoded = prefetch_map(lambda item: decode(*self.source([item])[0]), items)
        batches = split_into_batches(decoded, self.size)
        first = list(islice(batches, 2))
        with _torch_threads(self.size.threads if len(first) > 1 else None):
            for batch in prefetch_map(
                partial(_activate_or_halve, activate=self.activate),
                chain(first, batches),
                threads=self.size.concurrent,
                persistent=self.size.persistent_threads,
            ):
                yield from self.sink(batch)

    def run_in_processes(self, items: Iterable[Item]) -> Iterator[Result]:
        """The results of the sink. Worker processes decode and activate photos, for thousands of them on a GPU."""
        files = prefetch_map(lambda item: self.source([item])[0], items)
        modules = (__name__, "homing.extractors.external")  # the last takes longest
        activated = process_map(self.activate_files, _chunks(files), modules=modules, processes=_max_processes())
        # Batches finish so fast that waiting for the disk between them would halve the throughput.
        for results in pipelined_map(self.sink, activated):
            yield from results

    @property
    def activate_files(self) -> Callable[[Sequence[Pair[Item]]], list[Pair[Item]]]:
        """A function that decodes and activates what the source gave, for other processes."""
        return partial(_activate_files, activate=self.activate, size=self.size)


def _activate_files(pairs: Sequence[Pair[Item]], activate: ActivateBatch, size: BatchSize) -> list[Pair[Item]]:
    decoded = (decode(*pair) for pair in pairs)
    return [pair for batch in split_into_batches(decoded, size) for pair in _activate_or_halve(batch, activate)]


def _activate_or_halve(batch: list[Pair[Item]], activate: ActivateBatch) -> list[Pair[Item]]:
    """Each item of a batch with the result for its photo; a batch without photos is passed on.

    A batch that runs out of memory is split in halves, down to single photos, which then give an error.
    """
    photos = [photo for _, photo in batch if isinstance(photo, Photo)]
    if not photos:
        return batch
    try:
        return list(zip((item for item, _ in batch), activate(photos), strict=True))
    except (MemoryError, RuntimeError) as error:
        if not ran_out_of_memory(error):
            raise
    if len(batch) == 1:
        return [(batch[0][0], PhotoError(f"{photos[0].name}: too large for the available memory"))]
    half = len(batch) // 2
    return [*_activate_or_halve(batch[:half], activate), *_activate_or_halve(batch[half:], activate)]


def decode(item: Item, file: Any) -> Pair[Item]:
    """Decode the file of an item; a photo, and anything else, is passed on."""
    if not isinstance(file, PhotoFile):
        return item, file
    try:
        return item, file.photo()
    except PhotoError as error:
        return item, error


def split_into_batches(pairs: Iterable[Pair[Item]], size: BatchSize) -> Iterator[list[Pair[Item]]]:
    """Pairs grouped into batches; an item without a photo is a batch of its own."""

    def pixels(photo: Any) -> int | None:
        return photo.stored_pixels.shape[0] * photo.stored_pixels.shape[1] if isinstance(photo, Photo) else None

    return _grouped(pairs, pixels, size.photos, size.pixels)


def _chunks(pairs: Iterable[Pair[Item]]) -> Iterator[list[Pair[Item]]]:
    """Pairs in chunks that are small enough to be sent to a worker process."""
    return _grouped(
        pairs, lambda file: len(file.data) if isinstance(file, PhotoFile) else 0, _CHUNK_PHOTOS, _CHUNK_BYTES
    )


def _grouped(
    pairs: Iterable[Pair[Item]], size_of: Callable[[Any], int | None], max_count: int, max_size: int
) -> Iterator[list[Pair[Item]]]:
    """Groups of at most `max_count` pairs and of a limited total size; a pair without a size is a group of its own."""
    group: list[Pair[Item]] = []
    total = 0
    for item, value in pairs:
        size = size_of(value)
        if size is None:
            yield [(item, value)]
            continue
        if group and (len(group) == max_count or total + size > max_size):
            yield group
            group, total = [], 0
        group.append((item, value))
        total += size
    if group:
        yield group


@contextmanager
def _torch_threads(count: int | None) -> Iterator[None]:
    """Limit PyTorch to this many threads, or to fewer if the caller already set fewer."""
    before = torch.get_num_threads()
    torch.set_num_threads(min(count or before, before))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _max_processes() -> int:
    """One process per core, limited by the memory of the GPU."""
    if not torch.cuda.is_available():
        return cores()
    free, _ = torch.cuda.mem_get_info()
    return max(1, min(cores(), free // _GPU_BYTES_PER_PROCESS))
