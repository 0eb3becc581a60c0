"""The variants of a query that a search can try: quarter turns and the mirror image."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from homing._io.paths import Location
from homing.extractors import Extractor, describe
from homing.photo import MemoryPhoto
from homing.photo.inputs import load_pixels

VARIANTS = 5
_BATCH = 16  # photos that are described at once


@dataclass(frozen=True)
class Queries:
    """Photos that are searched for together: their names, and their descriptors (B, D) or (B, T, D)."""

    names: list[str]
    descriptors: Tensor


def describe_queries(
    photos: Sequence[Location | MemoryPhoto], extractor: Extractor, *, variants: bool
) -> Iterator[Queries]:
    """Descriptors of photos, batch by batch; with `variants` those of their quarter turns and mirror images, too."""
    for start in range(0, len(photos), _BATCH):
        batch = photos[start : start + _BATCH]
        inputs = [extractor.resize(load_pixels(photo)) for photo in batch]
        images = [each for image in inputs for each in (query_variants(image) if variants else [image])]
        names = [photo.name if isinstance(photo, MemoryPhoto) else str(photo) for photo in batch]
        yield Queries(names, describe(extractor, images).view(len(batch), len(images) // len(batch), -1))


def query_variants(network_input: Tensor) -> list[Tensor]:
    """A (3, S, S) square as it is, in its three other quarter turns, and mirrored."""
    # The mirror images of the turns would cost three more passes of the network. A search of several cells finds
    # mirrored copies that lie on their side without them; with one probe they add a sixth of what these five add.
    return [*(torch.rot90(network_input, number, (1, 2)) for number in range(4)), network_input.flip(2)]
