"""Expectation over transformations: each step averages the loss over the photo and edited copies of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from homing.edits import Ranges, Views, random_edits

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
"""The edits of EOT samples, at the network's input size; somewhat stronger than in the paper's table."""

EDIT_WEIGHTS = {"rotation": 4.0, "crop": 3.0}
"""Relative frequency of an edit within its family (default 1): most lost copies are rotated or cropped."""

FAMILY_WEIGHTS = {"spatial": 4.0, "pixel": 0.3}
"""Relative frequency of a family (default 1): robustness to the other families covers blur and JPEG as well."""

EditFunction = Callable[[Views, np.random.Generator], Views]


def random_edit(views: Views, rng: np.random.Generator) -> Views:
    """One random edit of each view; robustness to single edits also covers combinations of them."""
    return random_edits(views, EDITS, rng, edit_weights=EDIT_WEIGHTS, family_weights=FAMILY_WEIGHTS, counts=(1.0,))


def eot_samples_of(
    inputs: Views, count: int, at_once: int, rng: np.random.Generator, edit: EditFunction
) -> Iterator[Tensor]:
    """Batches (n·B, 3, S, S) of `count` views of each of B inputs, at most `at_once` views per batch.

    The first view is the input itself; every other view has its own random edit.
    """
    for start in range(0, count, at_once):
        count_now = min(count - start, at_once)
        plain = [inputs.pixels] if start == 0 else []
        copies = count_now - len(plain)
        samples = [edit(inputs.repeat(copies), rng).pixels] if copies else []
        yield torch.cat([*plain, *samples]) if samples else inputs.pixels
