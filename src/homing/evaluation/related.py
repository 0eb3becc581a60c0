"""Photos that are not unrelated: of the nearest pairs those that show one scene, however they came into one folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from homing._parallel import in_processes
from homing.codebooks.pairs import nearest_pairs
from homing.evaluation.alignment import align
from homing.evaluation.pictures import to_image
from homing.photo import Photo

LOOKED_AT = 300  # pairs, the nearest: farther ones hardly ever show one scene, and it takes seconds to tell
_SIDE = 256


def related_pairs(photos: Sequence[Path], descriptors: np.ndarray, advance: Callable[[], None]) -> np.ndarray:
    """Of the nearest pairs of photos, described each by one of (P, D), those (R, 2) that can be laid over each other.

    `advance` is called for each pair that is looked at.
    """
    pairs = nearest_pairs(np.asarray(descriptors, dtype=np.float32), LOOKED_AT)
    both = [(photos[one], photos[other]) for one, other in pairs]
    related = np.zeros(len(pairs), dtype=bool)
    for place, shows in enumerate(in_processes(_show_one_scene, both, modules=[__name__])):
        related[place] = shows
        advance()
    return pairs[related]


def _show_one_scene(both: tuple[Path, Path]) -> bool:
    one, other = map(_small, both)
    return align(one, other) is not None


def _small(path: Path) -> Image.Image:
    image = to_image(Photo.load(path).view())
    image.thumbnail((_SIDE, _SIDE))
    return image
