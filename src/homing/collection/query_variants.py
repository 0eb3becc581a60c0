"""Variants of a query to search for: quarter turns and the mirror image."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from homing._io.paths import Location
from homing.extractors import Extractor, describe_images
from homing.photo import MemoryPhoto
from homing.photo.inputs import load_pixels

VARIANTS = 5
_BATCH = 16  # photos per batch of the extractor


@dataclass(frozen=True)
class Queries:
    """A batch of queries: names, and descriptors (B, D) or (B, T, D)."""

    names: list[str]
    descriptors: Tensor


def describe_queries(
    photos: Sequence[Location | MemoryPhoto], extractor: Extractor, *, variants: bool
) -> Iterator[Queries]:
    """Describe photos batch by batch; with `variants` also their quarter turns and mirror images."""
    for start in range(0, len(photos), _BATCH):
        batch = photos[start : start + _BATCH]
        inputs = [extractor.resize(load_pixels(photo)) for photo in batch]
        images = [each for image in inputs for each in (query_variants(image) if variants else [image])]
        names = [photo.name if isinstance(photo, MemoryPhoto) else str(photo) for photo in batch]
        yield Queries(names, describe_images(extractor, images).view(len(batch), len(images) // len(batch), -1))


def query_variants(network_input: Tensor) -> list[Tensor]:
    """A (3, S, S) input unchanged, in its three other quarter turns, and mirrored."""
    # Mirrored turns would cost three more passes of the network. A search of several cells finds mirrored and turned
    # copies without them; with one probe they add only a sixth of the recall that these five variants add.
    return [*(torch.rot90(network_input, number, (1, 2)) for number in range(4)), network_input.flip(2)]
