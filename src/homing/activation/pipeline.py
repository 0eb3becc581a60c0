"""Photos on their way: some are read and some written while others are moved, and never more than memory holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import TypeVar

import torch

from homing._parallel import cores, map_ahead
from homing.errors import PhotoError, ran_out_of_memory
from homing.photo import Photo

Item = TypeVar("Item")
Other = TypeVar("Other")
Result = TypeVar("Result")
Move = Callable[[Sequence[Photo]], Sequence[Result | PhotoError]]


@dataclass(frozen=True)
class Size:
    """Of batches: several small photos or one large one, and how many are on their way at once."""

    photos: int
    pixels: int
    at_once: int = 2  # one is in the loop, and one before or after it
    threads: int | None = None
    """That compute one batch; all cores if None."""
    lasting: bool = False
    """Whether the same threads move the photos of every job: what a GPU needs seconds to plan is kept by thread."""


# A core for each batch, and small ones that stay in its caches: all cores on one batch wait for each other.
_BESIDE = min(4, cores())
ON_CPU = Size(photos=4, pixels=8_000_000, at_once=_BESIDE, threads=cores() // _BESIDE)
ON_GPU = Size(photos=64, pixels=32_000_000, lasting=True)


def size_for(device: torch.device) -> Size:
    """As many photos as keep the device busy."""
    return ON_GPU if device.type == "cuda" else ON_CPU


def in_batches(
    items: Iterable[tuple[Item, Photo | Other]], move: Move[Result], size: Size = ON_CPU
) -> Iterator[list[tuple[Item, Result | PhotoError | Other]]]:
    """Each item with what `move`, such as `activate` with its settings, makes of its photo; batch by batch.

    What stands in the place of a photo is passed on at once, in a list of its own. Where the memory does not suffice
    for a batch its halves are tried, down to single photos, which then give an error.
    """
    rest = batches(items, size)
    first = list(islice(rest, 2))
    with _threads(size.threads if len(first) > 1 else None):
        work = partial(moved, move=move)
        yield from map_ahead(work, chain(first, rest), threads=size.at_once, lasting=size.lasting)


@contextmanager
def _threads(count: int | None) -> Iterator[None]:
    """Let threads that begin from here on compute with so many, or with fewer where that was asked for."""
    before = torch.get_num_threads()
    torch.set_num_threads(min(count or before, before))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def batches(items: Iterable[tuple[Item, Photo | Other]], size: Size) -> Iterator[list[tuple[Item, Photo | Other]]]:
    """Items whose photos are moved together, and alone each that has none."""
    batch: list[tuple[Item, Photo | Other]] = []
    pixels = 0
    for item, photo in items:
        if not isinstance(photo, Photo):
            yield [(item, photo)]
            continue
        more = photo.pixels.shape[0] * photo.pixels.shape[1]
        if batch and (len(batch) == size.photos or pixels + more > size.pixels):
            yield batch
            batch, pixels = [], 0
        batch.append((item, photo))
        pixels += more
    if batch:
        yield batch


def moved(
    batch: Sequence[tuple[Item, Photo | Other]], move: Move[Result]
) -> list[tuple[Item, Result | PhotoError | Other]]:
    """What came of a batch, as `in_batches` gives it."""
    others = [(item, photo) for item, photo in batch if not isinstance(photo, Photo)]
    photos = [photo for _, photo in batch if isinstance(photo, Photo)]
    if others:
        return [*others]
    try:
        return list(zip((item for item, _ in batch), move(photos), strict=True))
    except (MemoryError, RuntimeError) as error:
        if not ran_out_of_memory(error):
            raise
    if len(batch) == 1:
        return [(batch[0][0], PhotoError(f"{photos[0].name}: too large for the memory there is"))]
    half = len(batch) // 2
    return [*moved(batch[:half], move), *moved(batch[half:], move)]
