"""The one way from photos to released files: read, decode, activate and write, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any, Generic, TypeVar

import torch

from homing._io.parallel import cores, pipelined_map, prefetch_map, process_map
from homing.errors import PhotoError, ran_out_of_memory
from homing.photo import Photo, PhotoFile

Item = TypeVar("Item")
Result = TypeVar("Result")
Pair = tuple[Item, Any]
"""An item, and what was made of it so far: its PhotoFile, its Photo, a result, or what the source gave instead."""
ActivateBatch = Callable[[Sequence[Photo]], Sequence[Any]]
"""The result for each photo of a batch, or a PhotoError."""

_CHUNK_PHOTOS = 64  # photos sent to a worker process and activated together
_CHUNK_BYTES = 16 * 2**20  # of their files
_GPU_BYTES_PER_PROCESS = 8 * 2**30  # 256 images in the loop, a batch of photos, and CUDA itself


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
        modules = (__name__, self.activate.__module__, "homing.extractors.timm_models")  # the last takes longest
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
    batch: list[Pair[Item]] = []
    pixels = 0
    for item, photo in pairs:
        if not isinstance(photo, Photo):
            yield [(item, photo)]
            continue
        more = photo.stored_pixels.shape[0] * photo.stored_pixels.shape[1]
        if batch and (len(batch) == size.photos or pixels + more > size.pixels):
            yield batch
            batch, pixels = [], 0
        batch.append((item, photo))
        pixels += more
    if batch:
        yield batch


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


def _chunks(pairs: Iterable[Pair[Item]]) -> Iterator[list[Pair[Item]]]:
    """Pairs in chunks that are small enough to be sent to a worker process."""
    chunk: list[Pair[Item]] = []
    size = 0
    for item, file in pairs:
        chunk.append((item, file))
        size += len(file.data) if isinstance(file, PhotoFile) else 0
        if len(chunk) == _CHUNK_PHOTOS or size > _CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
