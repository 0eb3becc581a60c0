"""Expectation over transformations: a photo is moved by what the network makes of it and of edited copies of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from torch import Tensor

from homing.edits.differentiable import Ranges, Views, random_edits

EDITS: Ranges = {
    "brightness": (0.5, 2.0),
    "contrast": (0.5, 2.0),
    "saturation": (0.5, 2.0),
    "hue": (-0.2, 0.2),
    "blur": (0.3, 2.0),
    "jpeg": (30, 90),
    "rotation": (-90, 90),
    "crop": (0.4, 1.0),
}
"""What the copies go through, with the strengths: those of the paper's table, at the size that the network sees."""

OFTEN = {"rotation": 4.0, "crop": 3.0}
"""How much more often than others of its family an edit is drawn: most copies that are lost are rotated or cropped."""

Edited = Callable[[Views, np.random.Generator], Views]


def randomly_edited(views: Views, rng: np.random.Generator) -> Views:
    """One to four of the edits, one after the other."""
    return random_edits(views, EDITS, rng, often=OFTEN)


def views_of(
    squares: Views, count: int, at_once: int, rng: np.random.Generator, edited: Edited = randomly_edited
) -> Iterator[Tensor]:
    """So many views of each of B squares: (B, 3, S, S) as they are, then (n·B, 3, S, S) edited, at most `at_once` · B.

    The edits are drawn anew for each view.
    """
    yield squares.pixels
    for left in range(count - 1, 0, -at_once):
        some = min(left, at_once)
        copies = Views(squares.pixels.repeat(some, 1, 1, 1), squares.ratio.repeat(some))
        yield edited(copies, rng).pixels
