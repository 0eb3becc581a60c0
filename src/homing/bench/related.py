"""Find related photos: pairs of the same scene among the nearest pairs of a folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from homing._io.parallel import process_map
from homing.alignment import align
from homing.codebooks.pairs import nearest_pairs
from homing.imaging import to_image
from homing.photo import Photo

MAX_PAIRS = 300  # nearest pairs to check: farther ones rarely show the same scene, and each check takes seconds
_SIDE = 256


def related_pairs(photos: Sequence[Path], descriptors: np.ndarray, advance: Callable[[], None]) -> np.ndarray:
    """The pairs (R, 2) of photos that can be aligned, among the nearest pairs by their (P, D) descriptors.

    `advance` is called for each checked pair.
    """
    pairs = nearest_pairs(np.asarray(descriptors, dtype=np.float32), MAX_PAIRS)
    path_pairs = [(photos[one], photos[other]) for one, other in pairs]
    related = np.zeros(len(pairs), dtype=bool)
    for i, same_scene in enumerate(process_map(_show_same_scene, path_pairs, modules=[__name__])):
        related[i] = same_scene
        advance()
    return pairs[related]


def _show_same_scene(pair: tuple[Path, Path]) -> bool:
    one, other = map(_small, pair)
    return align(one, other) is not None


def _small(path: Path) -> Image.Image:
    image = to_image(Photo.load(path).pixels())
    image.thumbnail((_SIDE, _SIDE))
    return image
