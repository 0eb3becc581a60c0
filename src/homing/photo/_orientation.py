"""The eight EXIF orientations: how stored pixels are turned to stand upright, and back."""

from __future__ import annotations

import numpy as np

# orientation -> (axes to flip, whether to swap rows and columns after that)
_TURNS: dict[int, tuple[tuple[int, ...], bool]] = {
    1: ((), False),
    2: ((1,), False),
    3: ((0, 1), False),
    4: ((0,), False),
    5: ((), True),
    6: ((0,), True),
    7: ((0, 1), True),
    8: ((1,), True),
}


def upright(array: np.ndarray, orientation: int) -> np.ndarray:
    """A stored (H, W, ...) array as a viewer turns it."""
    axes, swap = _TURNS[orientation]
    flipped = np.flip(array, axes)
    return flipped.swapaxes(0, 1) if swap else flipped


def stored(array: np.ndarray, orientation: int) -> np.ndarray:
    """An upright (H, W, ...) array as the file stores it."""
    axes, swap = _TURNS[orientation]
    return np.flip(array.swapaxes(0, 1) if swap else array, axes)
