"""Expectation over transformations: a photo is moved by what the network makes of it and of edited copies of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from homing.edits.differentiable import Ranges, Views, random_edits

EDITS: Ranges = {
    "brightness": (0.4, 2.4),
    "contrast": (0.4, 2.4),
    "saturation": (0.5, 2.0),
    "hue": (-0.25, 0.25),
    "blur": (0.3, 2.0),
    "jpeg": (30, 90),
    "rotation": (-90, 90),
    "crop": (0.35, 0.8),
}
"""What the copies go through, at the size that the network sees: somewhat stronger than in the paper's table."""

EDIT_WEIGHTS = {"rotation": 4.0, "crop": 3.0}
"""How much more often than others of its family an edit is drawn: most copies that are lost are rotated or cropped."""

FAMILY_WEIGHTS = {"spatial": 4.0, "pixel": 0.3}
"""How much more often a family is: what blur and JPEG take away, a photo that has moved for the others keeps."""

EditFunction = Callable[[Views, np.random.Generator], Views]


def random_edit(views: Views, rng: np.random.Generator) -> Views:
    """One of the edits each: what several do together, a photo that withstands each of them withstands."""
    return random_edits(views, EDITS, rng, edit_weights=EDIT_WEIGHTS, family_weights=FAMILY_WEIGHTS, counts=(1.0,))


def eot_samples_of(
    inputs: Views, count: int, at_once: int, rng: np.random.Generator, edit: EditFunction
) -> Iterator[Tensor]:
    """So many views of each of B inputs, at most `at_once` together: (n·B, 3, S, S), first of all as they are.

    The edits are drawn anew for each view.
    """
    for start in range(0, count, at_once):
        some = min(count - start, at_once)
        plain = [inputs.pixels] if start == 0 else []
        copies = some - len(plain)
        samples = [edit(inputs.repeat(copies), rng).pixels] if copies else []
        yield torch.cat([*plain, *samples]) if samples else inputs.pixels
