"""Batches of photos: some are read and written while others are optimized, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import TypeVar

import torch

from homing._io.parallel import cores, prefetch_map
from homing.errors import PhotoError, ran_out_of_memory
from homing.photo import Photo

Item = TypeVar("Item")
Other = TypeVar("Other")
Result = TypeVar("Result")
ActivateBatch = Callable[[Sequence[Photo]], Sequence[Result | PhotoError]]


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


def map_batches(
    items: Iterable[tuple[Item, Photo | Other]], activate_batch: ActivateBatch[Result], size: BatchSize = CPU_BATCH_SIZE
) -> Iterator[list[tuple[Item, Result | PhotoError | Other]]]:
    """Each item with the result of `activate_batch` for its photo; yields one list per batch.

    An item that has something else than a photo is passed on in a list of its own. A batch that runs out of memory is
    split in halves, down to single photos, which then give an error.
    """
    rest = split_into_batches(items, size)
    first = list(islice(rest, 2))
    with _torch_threads(size.threads if len(first) > 1 else None):
        work = partial(run_batch, activate_batch=activate_batch)
        yield from prefetch_map(work, chain(first, rest), threads=size.concurrent, persistent=size.persistent_threads)


@contextmanager
def _torch_threads(count: int | None) -> Iterator[None]:
    """Limit PyTorch to this many threads, or to fewer if the caller already set fewer."""
    before = torch.get_num_threads()
    torch.set_num_threads(min(count or before, before))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def split_into_batches(
    items: Iterable[tuple[Item, Photo | Other]], size: BatchSize
) -> Iterator[list[tuple[Item, Photo | Other]]]:
    """Items grouped into batches; an item without a photo is a batch of its own."""
    batch: list[tuple[Item, Photo | Other]] = []
    pixels = 0
    for item, photo in items:
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


def run_batch(
    batch: Sequence[tuple[Item, Photo | Other]], activate_batch: ActivateBatch[Result]
) -> list[tuple[Item, Result | PhotoError | Other]]:
    """The results of one batch, as `map_batches` gives them."""
    others = [(item, photo) for item, photo in batch if not isinstance(photo, Photo)]
    photos = [photo for _, photo in batch if isinstance(photo, Photo)]
    if others:
        return [*others]
    try:
        return list(zip((item for item, _ in batch), activate_batch(photos), strict=True))
    except (MemoryError, RuntimeError) as error:
        if not ran_out_of_memory(error):
            raise
    if len(batch) == 1:
        return [(batch[0][0], PhotoError(f"{photos[0].name}: too large for the available memory"))]
    half = len(batch) // 2
    return [*run_batch(batch[:half], activate_batch), *run_batch(batch[half:], activate_batch)]
