"""Random edits for the training of watermarks: those of the paper's tables, at random strengths."""

from __future__ import annotations

import numpy as np
import torch

from homing.edits import Ranges, Views, random_edits

EDITS: Ranges = {
    "identity": None,
    "contrast": (0.5, 2.0),
    "brightness": (0.5, 2.0),
    "hue": (-0.25, 0.25),
    "blur": (0.2, 2.0),  # in pixels at the decoder's input size
    "jpeg": (30, 95),
    "rotation": (-90, 90),
    "crop": (0.3, 1.0),
    "resize": (0.2, 1.0),
    "meme": None,
}


def random_edit(views: Views, rng: np.random.Generator) -> Views:
    """Apply one random edit to each view, all kinds equally often. Differentiable."""
    names = rng.permutation(list(EDITS)).tolist()
    parts = zip(names, np.array_split(np.arange(len(views)), len(names)), strict=True)
    edited = [
        random_edits(views[part[0] : part[-1] + 1], {name: EDITS[name]}, rng) for name, part in parts if len(part)
    ]
    return Views(torch.cat([each.pixels for each in edited]), torch.cat([each.ratio for each in edited]))
