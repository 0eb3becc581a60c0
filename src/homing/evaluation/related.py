"""Photos that are not unrelated: of the nearest pairs those that show one scene, however they came into one folder."""

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

MAX_PAIRS = 300  # pairs, the nearest: farther ones hardly ever show one scene, and it takes seconds to tell
_SIDE = 256


def related_pairs(photos: Sequence[Path], descriptors: np.ndarray, advance: Callable[[], None]) -> np.ndarray:
    """Of the nearest pairs of photos, described each by one of (P, D), those (R, 2) that can be laid over each other.

    `advance` is called for each pair that is looked at.
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
