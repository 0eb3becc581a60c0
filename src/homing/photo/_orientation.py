"""The eight EXIF orientations: from stored pixels to upright ones, and back."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from torch import Tensor

Array = TypeVar("Array", np.ndarray, Tensor)

# orientation -> (axes to flip, whether to swap rows and columns after that)
_TRANSFORMS: dict[int, tuple[tuple[int, ...], bool]] = {
    1: ((), False),
    2: ((1,), False),
    3: ((0, 1), False),
    4: ((0,), False),
    5: ((), True),
    6: ((0,), True),
    7: ((0, 1), True),
    8: ((1,), True),
}


def upright(array: Array, orientation: int) -> Array:
    """Turn a stored (H, W, ...) array upright, as a viewer does."""
    axes, swap = _TRANSFORMS[orientation]
    flipped = _flip(array, axes)
    return flipped.swapaxes(0, 1) if swap else flipped


def stored(array: Array, orientation: int) -> Array:
    """Turn an upright (H, W, ...) array to the orientation in which the file stores it."""
    axes, swap = _TRANSFORMS[orientation]
    return _flip(array.swapaxes(0, 1) if swap else array, axes)


def _flip(array: Array, axes: tuple[int, ...]) -> Array:
    if not axes:
        return array  # a tensor would be copied
    return array.flip(axes) if isinstance(array, Tensor) else np.flip(array, axes)
